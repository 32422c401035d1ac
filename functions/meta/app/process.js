// Processes: hands assets over, takes them back and runs other processes, with a preview, the link as a QR code, and the
// receipt.
import { Problem, get, intent, may, plan, post, send, userName } from './api.js'
import { MOST, assetLink, assetList, byCode, pill, reason } from './asset.js'
import { button, h, hint, own, receiptFile, saveFile, show } from './elements.js'
import { choice, input, select } from './fields.js'
import { attempt, blocking, check, clearProblems, discardOnEdit, empty, fault, field, form, personField, planBox, samePeople, showProblems, submit } from './form.js'
import { chosen } from './basket.js'
import { builtIn, card, colon, facts, go, heading, href, link, say, sayNext, skeleton, status } from './page.js'
import { code } from './qr.js'
import { withSigned } from './receipts.js'
import { uuid } from './requests.js'
import { preset, suggesting, takeScans } from './suggest.js'
import { number, t } from './texts.js'
import { ago, date, moment } from './values.js'

const POLL_MS = 2500
/** The tab keeps the links it created, by process path: only the creation returns the URL. */
const linkKey = (path) => `link-${path}`

const signs = ({ steps }) => steps.some(({ type }) => type === 'signature')
const picks = ({ steps }) => steps.some(({ type }) => type === 'user_picker')
const subject = (ids) => (ids.length === 1 ? { asset_id: ids[0] } : { asset_ids: ids })
const entered = (fields) => Object.fromEntries(fields.map(({ key, value }) => [key, value()]).filter(([, value]) => value !== null))

/** Shows the form that starts a process. `kind` is hand-over, take-back or start. */
export async function begin(main, params, signal, [kind]) {
  const read = async (path) => (await get(path, signal)).data
  const known = (path) => read(path).catch(() => null)
  const [definitions, person, ...found] = await Promise.all([
    read('/processes'), params.person && known(`/users/${params.person}`),
    ...(params.assets ?? '').split(',').filter(Boolean).slice(0, MOST).map((id) => known(`/assets/${id}`))])
  const assets = found.filter(Boolean)
  if (assets.length < found.length) say(t('error.NOT_FOUND'))
  if ((params.assets ?? '').split(',').length > MOST) say(t('fault.too_large', { count: MOST }))
  const fits = { 'hand-over': picks, 'take-back': (one) => one.trigger_status === 'in_use' && !picks(one) }[kind] ?? (() => true)
  const fitting = definitions.filter(fits)
  const usual = params.process ?? { 'hand-over': 'employee-onboarding', 'take-back': 'device-return' }[kind]
  let definition = fitting.find(({ slug }) => slug === usual) ?? fitting[0]
  const title = t(kind === 'start' ? 'start' : `nav.${kind}`)
  if (!definition) return show(main, heading(title), empty(t('no-process'), '', h('a.button', { href: '/v1/docs' }, t('help')))), { title }
  const once = intent()
  const list = h('div')
  const place = h('div')
  const next = h('div.actions')
  const steps = h('div.grid')
  /** @type {any[]} */
  let fields = []

  const remover = (name, act) => h('button.plain', { type: 'button', ariaLabel: t('remove', { name }), click: act }, '×')
  function showAssets() {
    const remove = (asset) => remover(asset.asset_tag, () => keepAssets(({ id }) => id !== asset.id))
    show(list, assetList(assets, (asset) => h('span', pill(asset.status), remove(asset))))
  }
  function keepAssets(isKept) {
    assets.splice(0, assets.length, ...assets.filter(isKept))
    changed()
  }
  function addAsset(asset) {
    if (late) return tooLate(asset.asset_tag)
    if (assets.some(({ id }) => id === asset.id)) return
    if (assets.length >= MOST) return say(t('fault.too_large', { count: MOST }))
    assets.push(asset)
    changed()
  }

  /** Codes that mean no asset, or several. @type {Map<string, any>} */
  const unclear = new Map()
  const unclearList = h('div.unclear', { role: 'status' })
  function showUnclear() {
    const line = ([code, why]) => h('li', own(code), colon(), why, remover(code, () => {
      if (add.value.trim() === code) add.value = ''
      clear(code)
    }))
    show(unclearList, unclear.size > 0 && h('ul.plain-list', [...unclear].map(line)))
  }
  function clear(code) {
    unclear.delete(code)
    showUnclear()
  }
  /** Adds the asset with a code, and no other. */
  async function addCode(code) {
    const take = (asset) => (clear(code), addAsset(asset))
    try {
      const found = await byCode(code, signal)
      if (late) return tooLate(code)
      if (found.length === 1) return take(found[0])
      const choices = found.map((asset) => button(asset.asset_tag, () => take(asset), 'plain'))
      unclear.set(code, [t(`outcome.${choices.length ? 'ambiguous' : 'unknown'}`), choices])
    } catch (error) {
      if (signal.aborted) return
      unclear.set(code, error.text)
    }
    showUnclear()
    // Someone who types goes on from here, and the next scan replaces the text.
    if (add.value || document.activeElement !== add) return
    add.value = add.dataset.refused = code
    add.select()
    add.dispatchEvent(new Event('input'))
  }
  /** Codes that come while the plan is carried out. @type {Set<string> | null} */
  let late = null
  function tooLate(code) {
    late?.add(code)
    say(t('too-late', { codes: [...(late ?? [])].join(', ') }))
  }
  let codes = Promise.resolve()
  const take = (code) => (late ? tooLate(code) : (codes = codes.then(() => addCode(code))))
  const add = suggesting({
    placeholder: t('search-placeholder'),
    entered: take,
    chosen(asset) {
      clear(add.dataset.refused)
      addAsset(asset)
    },
    find: async (text, either) => {
      const { data } = await get('/assets', either, { q: text, limit: 8, status: text ? '' : definition.trigger_status })
      return data.map((asset) => ({ ...asset, text: asset.asset_tag, detail: `${asset.name} · ${status(asset.status)}` }))
    },
  })
  const process = select(fitting.map(({ slug, name }) => [slug, builtIn(name)]), definition.slug, { change: () => {
    definition = fitting.find(({ slug }) => slug === process.value)
    showSteps()
    edit()
    askWhose()
  } })

  /** Shows the steps before the signature, to fill in here; after that, the signer signs. */
  function showSteps() {
    const end = definition.steps.findIndex(({ type }) => type === 'signature' || type === 'complete')
    fields = definition.steps.slice(0, end < 0 ? undefined : end).map((step) => stepField(step, person))
    show(steps, fields.map(({ element }) => element))
  }
  function changed() {
    history.replaceState(history.state, '', href(kind, { ...params, assets: assets.map(({ id }) => id).join() }))
    showAssets()
    edit()
    askWhose()
  }

  /** Lets the user choose one person, if one signature would cover the assets of several. Returns whether it would. */
  function askWhose() {
    const holders = [...new Set(assets.map(({ assigned_to: holder }) => holder))]
    if (holders.length < 2 || !signs(definition) || picks(definition)) return false
    const choices = h('div.actions')
    show(place, h('div.plan', { role: 'alert' }, h('p', t('one-person')), choices))
    Promise.all(holders.map(async (holder) => {
      const name = holder ? (await userName(holder)) ?? t('somebody') : t('nobody')
      const count = assets.filter(({ assigned_to: other }) => other === holder).length
      return button(`${name} (${number(count)})`, () => keepAssets(({ assigned_to: other }) => other === holder))
    })).then((buttons) => show(choices, buttons))
    return true
  }
  function edit() {
    if (late) return
    newPlan()
    clearProblems(element, place)
    show(next, submit(t('show-plan')))
  }

  /** The checklist that is left to the signer, since nothing is ticked in it. With it, the later steps are left to them as well. */
  const leftToSigner = () => (signs(definition) ? fields.findIndex(({ type, value }) => type === 'checklist' && !value().length) : -1)
  /** @returns {any} */
  function body() {
    const from = leftToSigner()
    const last = from >= 0 ? fields[from - 1]?.key : signs(definition) ? fields.at(-1)?.key : definition.steps.at(-1).key
    const data = entered(fields.filter(({ type, value }) => !signs(definition) || type !== 'checklist' || value().length))
    return { ...subject(assets.map(({ id }) => id)), step_data: data, ...(last ? { through: last } : {}) }
  }

  async function preview() {
    const typed = add.value.trim()
    await check(element, place)
    await codes
    if (unclear.has(typed)) throw fault('unknown_reference', '/asset_ids')
    if (assets.length === 0) throw fault('required', '/asset_ids')
    if (askWhose()) return
    const asked = body()
    const path = `/processes/${definition.id}/start`
    const planned = newPlan()
    await atOnce(() => plan(path, asked, planned), () => plan(path, without(asked), planned))
    planned.throwIfAborted()
    const picked = picker()?.text()
    show(place, planBox(t('would-happen'), [
      assets.map((asset) => h('li', assetLink(asset), colon(), `${status(asset.status)} → ${status(definition.target_status)}`)),
      picked && h('li', t('plan-person', { name: picked })),
      fields.filter(({ type, value }) => type === 'checklist' && !value().length)
        .map(({ label }) => h(signs(definition) ? 'li' : 'li.wrong', t(signs(definition) ? 'plan-left' : 'plan-unticked', { name: builtIn(label) }))),
      h('li', t(signs(definition) ? 'plan-sign' : 'plan-no-sign'))]))
    show(next, button(t('go-on'), () => act(asked).catch(refused), 'primary'), keepEditing())
    next.querySelector('button').focus()
  }
  const keepEditing = () => button(t('keep-editing'), () => (edit(), next.querySelector('button').focus()))

  function refused(error) {
    if (error.name === 'AbortError') return
    if (!(error instanceof Problem) || error.status !== 409) return showProblems(element, place, error)
    const all = error.body.assets ?? [{ ...error.body, asset_id: assets[0].id }]
    const ready = preparable(all)
    const out = all.map(({ asset_id: id }) => id).filter((id) => !ready?.ids.includes(id))
    const canLeave = out.length > 0 && out.length < assets.length
    const line = (one) => h('li', assetLink(assets.find(({ id }) => id === one.asset_id) ?? assets[0]), colon(), reason(one.code, one), ' ',
      one.instance_id && link(t('process'), `run/instances/${one.instance_id}`), canLeave && out.includes(one.asset_id) && h('b', ` ${t('left-out')}`))
    const leaveOut = () => keepAssets(({ id }) => !out.includes(id))
    const first = ready ? preparation(ready, leaveOut) : canLeave && button(t('leave-out', { count: out.length }), () => {
      leaveOut()
      return preview().catch(refused)
    }, 'primary')
    show(place, h('div', { className: first ? 'plan' : 'problem', role: 'alert' }, h('p', t('cant-start')), h('ul', all.map(line))))
    show(next, first || submit(t('show-plan')), first && keepEditing())
    next.querySelector('button').focus()
  }

  /** Finds the process that needs no input and brings most of the refused assets into the trigger status of the chosen process. */
  function preparable(refusals) {
    const isFree = ({ type, required }) => !required && !['signature', 'user_picker', 'confirmation'].includes(type)
    const waiting = refusals.filter(({ code }) => code === 'WRONG_ASSET_STATUS').map(({ asset_id }) => asset_id)
    const found = definitions.filter((one) => one.target_status === definition.trigger_status && one.steps.every(isFree)).map((step) =>
      ({ step, ids: assets.filter(({ id, status }) => waiting.includes(id) && status === step.trigger_status).map(({ id }) => id) }))
    const [best] = found.sort((a, b) => b.ids.length - a.ids.length)
    return best?.ids.length ? best : null
  }

  /** Offers to prepare assets. What can't be prepared is left out then. */
  function preparation({ step, ids }, leaveOut) {
    const fields = step.steps.filter(({ type }) => type !== 'complete').map((one) => stepField(one, null))
    const title = t('first-do', { process: builtIn(step.name), count: ids.length, status: status(step.target_status) })
    const wrong = h('div')
    // Edits to these fields keep the plan.
    const plan = h('div.plan', { input: (event) => event.stopPropagation() }, h('h3', title), fields.map(({ element }) => element), wrong)
    const prepare = async () => {
      try {
        await check(plan, wrong)
        await start(step, { ...subject(ids), step_data: entered(fields), through: step.steps.at(-1).key })
      } catch (error) {
        if (error.status === 409) throw error
        return showProblems(plan, wrong, error)
      }
      leaveOut()
      for (const [n, { id }] of assets.entries()) assets[n] = await read(`/assets/${id}`)
      showAssets()
      await preview()
    }
    return button(title, () => {
      show(place, plan)
      show(next, button(t('go-on'), () => prepare().catch(refused), 'primary'), keepEditing())
      next.querySelector('button').focus()
    }, 'primary')
  }

  /** Starts a process and submits its steps, in separate requests if the steps are too many for one transaction. */
  function start({ id, steps }, asked) {
    const path = `/processes/${id}/start`
    return atOnce(() => once(path, asked), async () => {
      const { data } = await once(path, without(asked))
      return submitEach(`movements/${data.id}`, steps.slice(0, steps.findIndex(({ key }) => key === asked.through) + 1), asked.step_data, once)
    })
  }

  /** Carries out the plan. Only codes can still be entered, and are refused, because a scanner doesn't see what is blocked. */
  async function act(asked) {
    const missed = (late = new Set())
    try {
      await blocking([...element.children].filter((child) => !child.contains(add)), () => carryOut(asked))
    } finally {
      late = null
    }
    if (missed.size) sayNext(t('too-late', { codes: [...missed].join(', ') }))
  }

  async function carryOut(asked) {
    const data = await start(definition, asked)
    chosen.clear()
    const path = data.instances ? `movements/${data.id}` : `instances/${data.id}`
    const isOpen = (data.instances?.[0] ?? data).status === 'in_progress'
    delete element.dataset.edited
    const [holder, ...others] = new Set(assets.map(({ assigned_to }) => assigned_to))
    const signer = picker()?.value() ?? (others.length === 0 && holder)
    if (isOpen && signer && signs(definition)) await makeLink(path, { user_id: signer }).catch(() => null)
    go(`run/${path}`)
  }

  const picker = () => fields.find(({ type }) => type === 'user_picker')
  const element = form(() => preview().catch(refused), field(t('process'), process), h('div.field', h('h2', t('assets-of')), list, unclearList), field(t('add-asset'), add, '/asset_ids'), steps, place, next)
  const newPlan = discardOnEdit(element, next, edit)
  show(main, heading(title), element)
  showAssets()
  showSteps()
  edit()
  askWhose()
  takeScans(take, signal, add)
  return { title }
}

/** Starts without submitting steps. */
const without = ({ through: _, step_data: __, ...start }) => start

/** Submits all steps at once, or calls `stepwise` if the steps are too many for one transaction. */
async function atOnce(all, stepwise) {
  try {
    return (await all()).data
  } catch (error) {
    const isTooMany = error instanceof Problem && error.errors.some(({ pointer, code }) => pointer === '/through' && code === 'too_much')
    if (!isTooMany) throw error
    return stepwise()
  }
}

/** Creates the field for a step. `value` returns null if the field is empty. */
function stepField(step, person) {
  const { type, key, label, items, options, required } = step
  const name = [own(builtIn(label)), required && ` (${t('required')})`]
  const pointer = `/step_data/${key}`
  const made = (element, value, text = () => '') => ({ key, label, type, value, text, element })
  const of = (control, value = (typed) => typed || null) => made(field(name, control, pointer), () => value(control.value.trim()), () => control.value)
  switch (type) {
    case 'user_picker': {
      if (!may('users:read')) return made(h('div.field', h('p', name), hint(t('scope-missing', { scope: 'users:read' }))), () => null)
      let user = person
      return of(personField((chosen) => (user = chosen), person), (typed) => user?.id ?? (typed || null))
    }
    case 'checklist': {
      const boxes = items.map((item) => ({ item, ...choice(own(item)) }))
      const group = h('fieldset.field', { 'data-pointer': pointer }, h('legend', name), boxes.map(({ element }) => element))
      return made(group, () => boxes.filter(({ box }) => box.checked).map(({ item }) => item))
    }
    case 'confirmation': {
      const { box, element } = choice(own(builtIn(label)))
      box.dataset.pointer = pointer
      return made(h('div.field', element), () => box.checked || null)
    }
    case 'select': return of(select([['', '–'], ...options.map((option) => [option, option])]))
    case 'textarea': return of(h('textarea', { rows: 2 }))
    default: return of(input(type === 'date' ? 'date' : 'text'))
  }
}

/** Submits each step in a separate request, and returns the process. */
async function submitEach(path, steps, values, once) {
  let data
  for (const { key } of steps) {
    const body = { step_data: values?.[key] === undefined ? {} : { [key]: values[key] }, through: key }
    data = (await once(`${base(path)}/advance`, body)).data
  }
  return data
}

async function makeLink(path, signer) {
  // Always a new idempotency key, because a replayed response would lack the link's URL.
  const { data } = await post(`${base(path)}/links`, { signer }, uuid())
  if (data.url) sessionStorage.setItem(linkKey(path), JSON.stringify(data))
}

const base = (path) => (path.startsWith('movements') ? `/${path}` : `/processes/${path}`)

/** Shows a process that is in progress or has ended, at `movements/…` or `instances/…`. */
export async function run(main, _, signal, [, ...parts]) {
  const path = parts.join('/')
  const at = base(path)
  const read = async () => (await get(at, signal, path.startsWith('movements') ? {} : { omit: 'signatures' })).data
  let data = await read()
  if (data.movement_id) return go(`run/movements/${data.movement_id}`, {}, true)
  const top = h('div.title')
  const left = h('div', skeleton(6)), right = h('div.side', skeleton(4))
  show(main, top, h('div.columns', left, right))
  const once = intent()
  const all = () => data.instances ?? [data]
  const polled = new Set()
  const lead = () => all().find((one) => one.status === 'in_progress') ?? all()[0]

  async function showAll() {
    const { status: state } = data
    const { steps, current_step: step } = lead()
    show(top, h('div', heading(own(builtIn(data.process_name))), h('p.meta', data.number && h('span.tag', data.number),
      h('span', { className: `run-${state}` }, t(`run.${state}`)), h('span.hint', t('started-by', { name: data.started_by_name }), ' ', ago(data.started_at)))))
    const { data: signatures } = await get(`${at}/links`, signal, { limit: 100 })
    const used = signatures.find(({ status }) => status === 'used')
    show(right, card(t('assets-of'), assetList(all(), () => null)), card(t('steps'), await stepList(steps)),
      state === 'in_progress' && may('processes:write') && cancelling())
    const open = state === 'in_progress' ? steps.slice(step) : []
    show(left,
      used && h('p.signed', { role: 'status' }, h('span', { ariaHidden: 'true' }, '✓ '), t('signed-by', { name: used.signer.name, time: moment(used.used_at) })),
      state === 'completed' && receipt(),
      open.length > 0 && (signs({ steps: open }) ? signing(signatures) : rest(open)))
  }

  async function stepList(steps) {
    const one = lead()
    const words = async ({ type, key }) => {
      const value = one.step_data[key]
      if (type === 'user_picker') return own((await userName(value)) ?? t('somebody'))
      if (type === 'signature') return !value && '–'
      if (type === 'date' && value) return date(value)
      if (type === 'textarea') return h('bdi', value ?? '')
      return value !== true && own(Array.isArray(value) ? value.join(', ') || '–' : value ?? '')
    }
    return h('ol.steps', await Promise.all(steps.map(async (step, n) => {
      const isDone = n < one.current_step || one.status === 'completed'
      const mark = isDone ? '✓' : n === one.current_step && one.status === 'in_progress' ? '▸' : '·'
      return h('li', { className: isDone ? '' : 'hint' }, h('span.mark', { ariaHidden: 'true' }, mark),
        h('span', own(builtIn(step.label)), h('span.unseen', ` (${t(isDone ? 'done' : 'step-open')})`), isDone && hint(await words(step))))
    })))
  }

  function signing(signatures) {
    const place = h('div')
    const made = JSON.parse(sessionStorage.getItem(linkKey(path)) ?? 'null')
    const live = signatures.find(({ status }) => status === 'open')
    const known = signatures.some(({ id, status }) => status === 'open' && id === made?.id) && made
    if (live && !polled.has(live.id)) poll(live)
    polled.add(live?.id)
    const picked = lead().steps.find(({ type }) => type === 'user_picker')
    let signer = picked ? lead().step_data[picked.key] : null
    const who = may('users:read') ? personField((user) => (signer = user?.id ?? null)) : input('text', '', { input: () => (signer = null) })
    // The asset's current user signs a return.
    Promise.resolve(signer ?? (may('assets:read') && get(`/assets/${lead().asset_id}`, signal).then(({ data }) => data.assigned_to)))
      .then(async (id) => {
        const name = id && ((await userName(id)) ?? t('somebody'))
        if (!name || who.value) return
        signer = id
        if (who.role === 'combobox') preset(who, { text: name })
        else who.value = name
      })
      .catch(() => {})
    const make = button(t(live ? 'another-link' : 'make-link'), () => makeFor(who.value.trim()).catch((error) => showProblems(asked, place, error)), known ? '' : 'primary')
    async function makeFor(name) {
      if (!signer && !name) throw fault('required', '/signer')
      // A user's name typed in full means the user, and not a guest.
      const same = signer || !may('users:read') ? [] : samePeople((await get('/users', signal, { q: name, is_active: true, limit: 100 })).data, name)
      if (same.length > 1) throw fault('unknown_reference', '/signer')
      await makeLink(path, signer || same.length ? { user_id: signer ?? same[0].id } : { name })
      await showAll()
    }
    const asked = h(known ? 'details' : 'div', known && h('summary', t('another-link')), field(t('signer'), who, '/signer'), make)
    const copy = button(t('copy-link'), async () => {
      await navigator.clipboard.writeText(known.url)
      say(t('copied'))
    })
    return card(t('signature'),
      known ? h('div.code', code(known.url, t('qr-code')),
        h('div', h('p', t('scan-to-sign', { name: known.signer.name })), h('a', { href: known.url, target: '_blank', rel: 'noopener noreferrer' }, t('open-link')),
          navigator.clipboard && copy, hint(t('link-until', { time: moment(known.expires_at) })), h('p.waiting', t('waiting-for-signature'))))
        : h('p', live ? t('link-elsewhere', { name: live.signer.name, time: moment(live.expires_at) }) : t('needs-signature')),
      may('processes:write') && asked, place)
  }

  /** Polls until the link is used. */
  async function poll({ id }) {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      if (signal.aborted) return
      if (document.hidden) continue
      try {
        const { data: now } = await get(`${at}/links/${id}`, signal)
        if (now.status === 'open') continue
        data = await read()
        if (now.status === 'used') say(t('signed-by', { name: now.signer.name, time: moment(now.used_at) }))
        sessionStorage.removeItem(linkKey(path))
        return await showAll()
      } catch (error) {
        // The next poll may succeed.
        if (signal.aborted || !(error instanceof Problem) || error.status === 401) return
      }
    }
  }

  /** Shows the steps left for the key's users, such as confirming that a device was received. */
  function rest(open) {
    if (!may('processes:write')) return hint(t('scope-missing', { scope: 'processes:write' }))
    const last = open.at(-1)
    const fields = open.filter(({ type }) => type !== 'complete').map((step) => stepField(step, null))
    const place = h('div')
    const element = form(async () => {
      try {
        await check(element, place)
        const body = { step_data: entered(fields), through: last.key }
        data = await atOnce(() => once(`${at}/advance`, body), () => submitEach(path, open, body.step_data, once))
        await showAll()
      } catch (error) {
        showProblems(element, place, error)
      }
    }, h('h2', t('left-to-do')), fields.map(({ element }) => element), place, h('div.actions', submit(last.type === 'complete' ? own(builtIn(last.label)) : t('go-on'))))
    return element
  }

  function cancelling() {
    const why = input('text')
    const place = h('div')
    return h('details', h('summary', t('cancel-process')), field(t('reason'), why), button(t('cancel-process'), () => attempt(place, async () => {
      await once(`${at}/cancel`, why.value.trim() ? { reason: why.value.trim() } : {})
      data = await read()
      await showAll()
    })), place)
  }

  function receipt() {
    const place = h('div')
    const save = () => attempt(place, async () => {
      const { body } = await send('GET', `${at}/receipt?format=html`, { signal, as: 'text' })
      const signed = await get(`${at}/receipt`, signal, { format: 'json' })
      saveFile(receiptFile(data.number ?? lead().asset_tag), withSigned(body, signed.data ?? signed), 'text/html')
      say(t('saved'))
    })
    return card(t('receipt'), facts([[t('run.completed'), ago(lead().completed_at)]]), h('div.actions', button(t('get-receipt'), save, 'primary'), link(t('verify'), 'verify')), place)
  }

  await showAll()
  return { title: builtIn(data.process_name) }
}
