// Processes: handing over, taking back and any other, with the plan first, the link as a code, and the receipt.
import { Intent, Problem, get, may, plan, post, query, send, userName, uuid } from './api.js'
import { button, card, facts, h, own, say, show, skeleton } from './dom.js'
import { checkbox, clearProblems, empty, field, input, personField, problemBox, select, showProblems, suggesting } from './form.js'
import { reason } from './asset.js'
import { code } from './qr.js'
import { go, href } from './route.js'
import { ago, date, moment, sentence, status, t } from './text.js'
import { assetLink, pill } from './words.js'

const MOST = 20
const POLL_MS = 2500
/** Links made in this tab, by the path of their process: only their creation tells the address. */
const links = new Map()

/** The form that starts a process. `kind` is hand-over, take-back or start. */
export async function begin(main, kind, params, signal) {
  show(main, skeleton(10))
  const [{ data: definitions }, assets, person] = await Promise.all([
    get('/processes', signal),
    Promise.all((params.assets ?? '').split(',').filter(Boolean).slice(0, MOST).map((id) => get(`/assets/${id}`, signal).then(({ data }) => data, () => null))).then((all) => all.filter(Boolean)),
    params.person && may('users:read') ? get(`/users/${params.person}`, signal).then(({ data }) => data, () => null) : null])
  const isHandOver = kind === 'hand-over'
  const hasPicker = ({ steps }) => steps.some(({ type }) => type === 'user_picker')
  const fitting = definitions.filter((one) => (isHandOver ? hasPicker(one) : kind === 'take-back' ? one.trigger_status === 'in_use' && !hasPicker(one) : true))
  const usual = { 'hand-over': 'employee-onboarding', 'take-back': 'device-return' }[kind] ?? ''
  let definition = fitting.find(({ slug }) => slug === (params.process ?? usual)) ?? fitting[0]
  const title = t(kind === 'start' ? 'start' : `nav.${kind}`)
  if (!definition) return show(main, h('h1', { tabIndex: -1 }, title), empty(t('no-process'), t('no-process-hint'))), { title }
  const intent = new Intent()
  const list = h('ul.plain-list.assets')
  const place = h('div')
  const next = h('div.actions')
  const steps = h('div.grid')
  /** @type {any[]} */
  let fields = []

  function showAssets() {
    const without = (asset) => button('×', () => {
      assets.splice(assets.indexOf(asset), 1)
      changed()
    }, 'plain')
    show(list, assets.map((asset) => {
      const remove = without(asset)
      remove.setAttribute('aria-label', t('remove', { name: asset.asset_tag }))
      return h('li', assetLink(asset), pill(asset.status), remove)
    }))
    if (assets.length === 0) show(list, h('li.hint', t('choose-assets')))
  }
  const add = suggesting({
    stays: false,
    placeholder: t('search-placeholder'),
    chosen(asset) {
      if (!asset || assets.some(({ id }) => id === asset.id)) return
      if (assets.length >= MOST) return say(t('error.TOO_MANY', { count: MOST }))
      assets.push(asset)
      changed()
    },
    find: async (text, either) => {
      const { data } = await get(`/assets${query({ q: text, limit: 8, status: text ? '' : definition.trigger_status })}`, either)
      return data.map((asset) => ({ ...asset, text: asset.asset_tag, detail: `${asset.name} · ${status(asset.status)}` }))
    },
  })
  const process = select(fitting.map(({ slug, name }) => [slug, name]), definition.slug)
  process.addEventListener('change', () => {
    definition = fitting.find(({ slug }) => slug === process.value)
    showSteps()
    edit()
  })

  /** The steps before the signature are filled in here; then the signer signs. */
  function showSteps() {
    const end = definition.steps.findIndex(({ type }) => type === 'signature' || type === 'complete')
    fields = definition.steps.slice(0, end < 0 ? definition.steps.length : end).map((step) => stepField(step, person))
    show(steps, fields.map(({ element }) => element))
  }
  function changed() {
    history.replaceState(null, '', href([kind], { ...params, assets: assets.map(({ id }) => id).join() }))
    showAssets()
    edit()
  }
  function edit() {
    show(place)
    show(next, h('button', { type: 'submit', className: 'primary' }, t('show-plan')))
  }

  /** @returns {any} */
  function body() {
    const values = fields.map(({ key, value }) => [key, value()]).filter(([, value]) => value !== null)
    const hasSignature = definition.steps.some(({ type }) => type === 'signature')
    const last = hasSignature ? fields.at(-1)?.key : definition.steps.at(-1).key
    const ids = assets.map(({ id }) => id)
    return { ...(ids.length === 1 ? { asset_id: ids[0] } : { asset_ids: ids }), step_data: Object.fromEntries(values), ...(last ? { through: last } : {}) }
  }

  async function preview() {
    clearProblems(form, place)
    if (assets.length === 0) return add.focus()
    const asked = body()
    try {
      const path = `/processes/${definition.id}/start`
      await plan(path, asked).catch((error) => {
        if (!isTooMany(error)) throw error
        const { through: _, step_data: __, ...only } = asked
        return plan(path, only)
      })
      const picked = fields.find(({ type }) => type === 'user_picker')?.text()
      const signs = definition.steps.some(({ type }) => type === 'signature')
      show(place, h('div.plan', { role: 'status' }, h('h3', t('would-happen')), h('ul', {},
        assets.map((asset) => h('li', sentence('plan-asset', { asset: assetLink(asset), from: status(asset.status), to: status(definition.target_status) }))),
        picked && h('li', t('plan-person', { name: picked })),
        h('li', signs ? t('plan-sign') : t('plan-no-sign')))))
      show(next, button(t('go-on'), () => act(asked), 'primary'), button(t('keep-editing'), edit))
      next.querySelector('button').focus()
    } catch (error) {
      refused(error)
    }
  }

  function refused(error) {
    if (!(error instanceof Problem) || error.status !== 409) return showProblems(form, place, error)
    const all = error.body.assets ?? [{ ...error.body, asset_id: assets[0].id }]
    const lines = all.map((one) => {
      const asset = assets.find(({ id }) => id === one.asset_id) ?? assets[0]
      return h('li', assetLink(asset), ': ', reason(one.code, one), ' ',
        one.instance_id && h('a', { href: href(['run', 'instances', one.instance_id]) }, t('see-process')))
    })
    show(place, h('div.problem', { role: 'alert' }, h('p', t('cant-start')), h('ul', lines)), h('div.actions', preparation(all)))
  }

  /** A process that brings the assets into the status that this one needs, and asks for nothing. */
  function preparation(refusals) {
    const from = assets.filter(({ id }) => refusals.some((one) => one.asset_id === id)).map((asset) => asset.status)
    const step = definitions.find((one) => from.every((status) => status === one.trigger_status) && one.target_status === definition.trigger_status
      && !one.steps.some(({ type, required }) => required || type === 'signature' || type === 'user_picker' || type === 'confirmation'))
    if (!step || refusals.some(({ code }) => code !== 'WRONG_ASSET_STATUS')) return null
    return button(t('first-do', { process: step.name, count: from.length, status: status(step.target_status) }), async () => {
      const ids = refusals.map(({ asset_id }) => asset_id)
      const asked = { ...(ids.length === 1 ? { asset_id: ids[0] } : { asset_ids: ids }), through: step.steps.at(-1).key }
      try {
        await start(step, asked)
        for (const [n, { id }] of assets.entries()) assets[n] = (await get(`/assets/${id}`, signal)).data
        showAssets()
        await preview()
      } catch (error) {
        refused(error)
      }
    })
  }

  /** Starts a process, and submits steps; one by one if all of them are too many for one transaction. */
  async function start({ id, steps }, asked) {
    const path = `/processes/${id}/start`
    try {
      return (await post(path, asked, intent.key(path, asked))).data
    } catch (error) {
      if (!isTooMany(error)) throw error
    }
    const { through, step_data: values, ...only } = asked
    const { data } = await post(path, only, intent.key(path, only))
    return submitEach(['movements', data.id], steps.slice(0, steps.findIndex(({ key }) => key === through) + 1), values, intent)
  }

  function onlyHolder() {
    const holders = new Set(assets.map(({ assigned_to }) => assigned_to))
    return holders.size === 1 ? [...holders][0] : null
  }

  async function act(asked) {
    try {
      const data = await start(definition, asked)
      const path = data.instances ? ['movements', data.id] : ['instances', data.id]
      const isOpen = (data.instances?.[0] ?? data).status === 'in_progress'
      const signer = fields.find(({ type }) => type === 'user_picker')?.value() ?? onlyHolder()
      if (isOpen && signer && definition.steps.some(({ type }) => type === 'signature')) await makeLink(path, { user_id: signer }).catch(() => null)
      go(['run', ...path])
    } catch (error) {
      refused(error)
    }
  }

  const form = h('form.card.form', { noValidate: true },
    field(t('process'), process), h('div.field', h('h2', t('assets-of')), list), field(t('add-asset'), add), steps, place, next)
  form.addEventListener('submit', (event) => (event.preventDefault(), preview()))
  form.addEventListener('input', () => next.querySelector('[type=submit]') || edit())
  show(main, h('h1', { tabIndex: -1 }, title), form)
  showAssets()
  showSteps()
  edit()
  return { title }
}

const isTooMany = (error) => error instanceof Problem && error.errors.some(({ pointer, detail }) => pointer === '/through' && detail.startsWith('makes '))

/** The field of a step, and its value; null if nothing is entered. */
function stepField(step, person) {
  const { type, key, label, items, options, required } = step
  const name = required ? [own(label), ` (${t('required')})`] : own(label)
  const pointer = `/step_data/${key}`
  const of = (control, value, text = () => control.value) => ({ key, type, value, text, element: field(name, control, { pointer }) })
  switch (type) {
    case 'user_picker': {
      let user = person
      const control = personField((chosen) => (user = chosen), person?.display_name)
      return of(control, () => user?.id ?? null)
    }
    case 'checklist': {
      const boxes = items.map((item) => ({ item, ...checkbox(own(item)) }))
      const group = h('fieldset.field', h('legend', name), boxes.map(({ element }) => element))
      group.dataset.pointer = pointer
      return { key, type, text: () => '', value: () => boxes.filter(({ box }) => box.checked).map(({ item }) => item), element: group }
    }
    case 'confirmation': {
      const { box, element } = checkbox(own(label))
      box.dataset.pointer = pointer
      return { key, type, text: () => '', value: () => box.checked || null, element: h('div.field', element) }
    }
    case 'select': {
      const control = select([['', t('nothing')], ...options.map((option) => [option, option])])
      return of(control, () => control.value || null)
    }
    default: {
      const control = type === 'textarea' ? h('textarea', { rows: 2 }) : input(type === 'date' ? 'date' : 'text')
      return of(control, () => control.value.trim() || null)
    }
  }
}

/** Submits steps one by one, and returns what has become of the process. */
async function submitEach(path, steps, values, intent) {
  let data
  for (const { key } of steps) {
    const body = { step_data: values?.[key] === undefined ? {} : { [key]: values[key] }, through: key }
    data = (await post(`${base(path)}/advance`, body, intent.key(path, body))).data
  }
  return data
}

async function makeLink(path, signer) {
  // With another key each time: a repeated response would lack the address.
  const { data } = await post(`${base(path)}/links`, { signer }, uuid())
  if (data.url) links.set(path.join('/'), data)
  return data
}

const base = ([way, id]) => (way === 'movements' ? `/movements/${id}` : `/processes/instances/${id}`)

/** A running or ended process. */
export async function run(main, path, signal) {
  show(main, skeleton(10))
  const isMovement = path[0] === 'movements'
  let { data } = await get(`${base(path)}${isMovement ? '' : '?omit=signatures'}`, signal)
  if (!isMovement && data.movement_id) return go(['run', 'movements', data.movement_id], {}, true)
  const top = h('div.title')
  const left = h('div', skeleton(6)), right = h('div.side', skeleton(4))
  show(main, top, h('div.columns', left, right))
  const intent = new Intent()
  const all = () => data.instances ?? [data]
  const polled = new Set()
  const lead = () => all().find((one) => one.status === 'in_progress') ?? all()[0]

  async function showAll() {
    const { steps, status: state } = { ...lead(), status: data.status }
    show(top, h('div', h('h1', { tabIndex: -1 }, own(data.process_name)), h('p', data.number && h('span.tag', data.number), ' ',
      h('span', { className: `pill run-${state}` }, t(`run.${state}`)), h('span.hint', ' ', t('started-by', { name: data.started_by_name }), ' ', ago(data.started_at)))))
    const signatures = (await get(`${base(path)}/links?limit=100`, signal)).data
    const used = signatures.filter(({ status }) => status === 'used')
    show(right, card(t('assets-of'), h('ul.plain-list.assets', all().map((one) => h('li', assetLink({ id: one.asset_id, asset_tag: one.asset_tag, name: one.asset_name }))))),
      card(t('steps'), await stepList(steps)))
    const open = state === 'in_progress' ? steps.slice(lead().current_step) : []
    const toSign = open.findIndex(({ type }) => type === 'signature')
    show(left,
      used.length > 0 && h('p.signed', { role: 'status' }, h('span', { 'aria-hidden': 'true' }, '✓ '), t('signed-by', { name: used[0].signer.name, time: moment(used[0].used_at) })),
      state === 'completed' && receipt(),
      open.length > 0 && (toSign >= 0 ? signing(signatures) : rest(open)))
    if (state === 'in_progress' && may('processes:write')) left.append(cancelling())
  }

  async function stepList(steps) {
    const one = lead()
    const rows = await Promise.all(steps.map(async (step, n) => {
      const isDone = n < one.current_step || one.status === 'completed'
      const value = one.step_data[step.key]
      const shown = !isDone ? null : step.type === 'user_picker' ? own((await userName(value)) ?? t('somebody')) : step.type === 'signature' ? t(value ? 'signed' : 'not-signed')
        : Array.isArray(value) ? own(value.length ? value.join(', ') : t('nothing')) : step.type === 'date' && value ? date(value) : value === true ? '' : own(value ?? '')
      const mark = h('span', { 'aria-hidden': 'true', className: 'mark' }, isDone ? '✓' : n === one.current_step && one.status === 'in_progress' ? '▸' : '·')
      return h('li', { className: isDone ? '' : 'hint' }, mark, h('span', own(step.label), h('span.unseen', ` (${t(isDone ? 'step-done' : 'step-open')})`), shown && h('p.hint', shown)))
    }))
    return h('ol.steps', rows)
  }

  function signing(signatures) {
    const place = h('div')
    const made = links.get(path.join('/'))
    const live = signatures.find(({ status }) => status === 'open')
    const known = made && live?.id === made.id ? made : null
    if (live && !polled.has(live.id)) poll(live)
    polled.add(live?.id)
    const picked = lead().steps.find(({ type }) => type === 'user_picker')
    let signer = picked ? lead().step_data[picked.key] : null
    const who = personField((user) => (signer = user?.id ?? null))
    const holder = () => get(`/assets/${lead().asset_id}`, signal).then(({ data }) => data.assigned_to)
    // Who gives something back signs for it.
    Promise.resolve(signer ?? holder())
      .then(async (id) => {
        const name = id && (await userName(id))
        if (name && !who.value) [signer, who.value] = [id, name]
      })
      .catch(() => {})
    const make = button(t(live ? 'another-link' : 'make-link'), async () => {
      try {
        const one = signer ? { user_id: signer } : { name: who.value.trim() }
        if (!signer && !one.name) return who.focus()
        await makeLink(path, one)
        await showAll()
      } catch (error) {
        show(place, problemBox(error))
      }
    }, known ? '' : 'primary')
    const copy = button(t('copy-link'), async () => {
      await navigator.clipboard.writeText(known.url)
      say(t('copied'))
    })
    return card(t('signature'),
      known ? h('div.code', code(known.url, t('code-of-link', { name: known.signer.name })),
        h('div', h('p', t('scan-to-sign', { name: known.signer.name })), h('p', h('a', { href: known.url, target: '_blank', rel: 'noopener noreferrer' }, t('open-link'))),
          navigator.clipboard && copy, h('p.hint', t('link-until', { time: moment(known.expires_at) })), h('p.waiting', t('waiting-for-signature'))))
        : live ? h('p', t('link-elsewhere', { name: live.signer.name, time: moment(live.expires_at) })) : h('p', t('needs-signature')),
      may('processes:write') && h(known ? 'details' : 'div', {}, known && h('summary', t('another-link')), may('users:read') && field(t('signer'), who), make), place)
  }

  /** Looks until the link was used. */
  async function poll(link) {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      if (signal.aborted) return
      if (document.hidden) continue
      try {
        const { data: now } = await get(`${base(path)}/links/${link.id}`, signal)
        if (now.status === 'open') continue
        data = (await get(`${base(path)}${isMovement ? '' : '?omit=signatures'}`, signal)).data
        if (now.status === 'used') say(t('signed-by', { name: now.signer.name, time: moment(now.used_at) }))
        links.delete(path.join('/'))
        return await showAll()
      } catch (error) {
        // The next look may succeed.
        if (signal.aborted || !(error instanceof Problem) || error.status === 401) return
      }
    }
  }

  /** What is left for this key's people, such as the confirmation that a device was received. */
  function rest(open) {
    if (!may('processes:write')) return h('p.hint', t('read-only', { scope: 'processes:write' }))
    const fields = open.filter(({ type }) => type !== 'complete').map((step) => stepField(step, null))
    const place = h('div')
    const form = h('form.card.form', { noValidate: true }, h('h2', t('left-to-do')), fields.map(({ element }) => element), place,
      h('div.actions', h('button', { type: 'submit', className: 'primary' }, open.at(-1).type === 'complete' ? own(open.at(-1).label) : t('submit'))))
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      clearProblems(form, place)
      const values = fields.map(({ key, value }) => [key, value()]).filter(([, value]) => value !== null)
      const body = { step_data: Object.fromEntries(values), through: open.at(-1).key }
      try {
        data = await post(`${base(path)}/advance`, body, intent.key(body)).then(({ data }) => data, (error) => {
          if (!isTooMany(error)) throw error
          return submitEach(path, open, body.step_data, intent)
        })
        await showAll()
      } catch (error) {
        showProblems(form, place, error)
      }
    })
    return form
  }

  function cancelling() {
    const why = input('text')
    const place = h('div')
    return h('details.cancelling', h('summary', t('cancel-process')), field(t('reason'), why), button(t('cancel-process'), async () => {
      const body = why.value.trim() ? { reason: why.value.trim() } : {}
      try {
        await post(`${base(path)}/cancel`, body, intent.key(body))
        data = (await get(`${base(path)}${isMovement ? '' : '?omit=signatures'}`, signal)).data
        await showAll()
      } catch (error) {
        show(place, problemBox(error))
      }
    }), place)
  }

  function receipt() {
    const place = h('div')
    const made = h('div.actions', button(t('get-receipt'), async () => {
      try {
        const { body } = await send('GET', `${base(path)}/receipt?format=html`, { signal, as: 'text' })
        const url = URL.createObjectURL(new Blob([body], { type: 'text/html' }))
        const link = h('a', { href: url, download: `receipt-${(data.number ?? lead().asset_tag).replace(/[^0-9A-Za-z-]+/g, '-')}.html`, hidden: true })
        document.body.append(link)
        link.click()
        link.remove()
        setTimeout(() => URL.revokeObjectURL(url), 60_000)
        say(t('receipt-saved'))
      } catch (error) {
        show(place, problemBox(error))
      }
    }, 'primary'))
    return card(t('receipt'), facts([[t('run.completed'), ago(lead().completed_at)]]), made, place)
  }

  await showAll()
  return { title: data.process_name }
}
