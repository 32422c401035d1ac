// One asset: fields, label, holder, processes, history, and its change.
import { Problem, cached, get, may, now, query, send, userName } from './api.js'
import { button, card, facts, h, own, say, show, skeleton } from './dom.js'
import { clearProblems, field, input, personField, problemBox, select, showProblems } from './form.js'
import { STATUSES, locationField } from './inventory.js'
import { go, href } from './route.js'
import { ago, has, moment, sentence, status, t } from './text.js'
import { FIELDS, changeLines, differences, fieldName, pill, plain, valueOf } from './words.js'

/** Goes to the asset that wears a tag. */
export async function byTag(main, tag, signal) {
  show(main, skeleton(8))
  const { data } = await get(`/assets/by-tag/${encodeURIComponent(tag)}`, signal)
  go(['asset', data.id], {}, true)
}

export async function asset(main, id, params, signal) {
  show(main, skeleton(12))
  const path = `/assets/${id}`
  const expand = may('users:read') ? '?expand=assigned_to' : ''
  let { body: { data }, etag } = await send('GET', path + expand, { signal })
  const header = h('div.title')
  const fields = h('div')
  const history = h('ol.timeline', { 'aria-busy': 'true' }, skeleton(4))
  const more = h('p')
  const day = input('date', params.day, { max: new Date().toISOString().slice(0, 10) })
  day.addEventListener('change', () => go(['asset', id], { day: day.value }, true))
  const side = h('div.side')
  show(main, header, h('div.columns', h('div', fields,
    card(t('history'), h('div.as-of', field(t('as-of'), day)), history, more)), side))

  const runsOf = (key, process) => href([key], { assets: id, process })
  function showHeader() {
    show(header,
      h('div', h('h1', { tabIndex: -1 }, own(data.name)), h('p', h('span.tag', data.asset_tag), ' ', pill(data.status))),
      h('div', { className: 'actions' },
        may('assets:write') && button(t('change'), change),
        may('processes:write') && h('a.button', { href: runsOf('hand-over') }, t('nav.hand-over')),
        may('processes:write') && h('a.button', { href: runsOf('take-back') }, t('nav.take-back'))),
      !may('assets:write') && h('p.hint', t('read-only', { scope: 'assets:write' })))
  }

  async function showFields() {
    const isPast = Boolean(params.day)
    let shown = data
    try {
      if (isPast) {
        // Until the end of that day here, and not later than now.
        const end = new Date(`${params.day}T23:59:59.999`)
        const time = new Date(Math.min(+end, +now() - 1000)).toISOString()
        shown = (await get(`${path}${query({ as_of: time })}`, signal)).data
      }
    } catch (error) {
      if (signal.aborted) return
      const gone = error instanceof Problem && error.status === 404
      return show(fields, card(t('fields'), gone ? h('p', t('not-then')) : problemBox(error), back()))
    }
    const names = FIELDS.filter((name) => name !== 'name' && name in shown)
    const value = (name) => (name === 'asset_type_id' && shown.asset_type_name ? own(shown.asset_type_name) : valueOf(name, shown[name]))
    const rows = await Promise.all(names.map(async (name) => /** @type {[any, any]} */ ([fieldName(name), await value(name)])))
    const custom = Object.entries(shown.custom_fields).map(([name, value]) => /** @type {[any, any]} */ ([own(name), own(plain(value))]))
    const times = /** @type {[any, any][]} */ ([[fieldName('created_at'), ago(shown.created_at)], [fieldName('updated_at'), ago(shown.updated_at)]])
    if (signal.aborted) return
    show(fields, isPast && h('p.past', { role: 'status' }, t('as-it-was', { day: moment(`${params.day}T23:59`) }), ' ', back()),
      card(t('fields'), isPast && facts([[fieldName('name'), own(shown.name)]]), facts([...rows, ...custom, ...times])))
  }
  const back = () => button(t('back-to-now'), () => go(['asset', id], {}, true), 'plain')

  async function showSide() {
    const label = h('div.label')
    const holder = h('div')
    const processes = h('div', skeleton(3))
    show(side, may('processes:read') && card(t('processes'), processes), card(t('holder'), holder), card(t('label'), label))
    const name = data.assigned_user?.display_name ?? (data.assigned_to && (await userName(data.assigned_to)))
    show(holder, !data.assigned_to ? h('p.hint', t('nobody')) : name ? h('a', { href: `#/person/${data.assigned_to}` }, own(name)) : t('somebody'))
    picture(label).catch(() => show(label, h('p.hint', t('no-label'))))
    if (may('processes:read')) await showProcesses(processes).catch((error) => signal.aborted || show(processes, problemBox(error)))
  }

  async function picture(place) {
    const { body } = await send('GET', `${path}/label?format=svg`, { signal, as: 'blob' })
    const url = URL.createObjectURL(body)
    signal.addEventListener('abort', () => URL.revokeObjectURL(url))
    show(place, h('img', { src: url, alt: t('label-of', { tag: data.asset_tag }), width: 250, height: 100 }),
      h('a', { href: url, download: `label-${data.asset_tag.replace(/[^0-9A-Za-z-]+/g, '-')}.svg` }, t('save-label')))
  }

  async function showProcesses(place) {
    const [running, all] = await Promise.all([
      get(`/processes/instances${query({ asset_id: id, status: 'in_progress', omit: 'signatures' })}`, signal),
      get(`${path}/processes`, signal)])
    const [instance] = running.data
    const target = instance && (instance.movement_id ? ['run', 'movements', instance.movement_id] : ['run', 'instances', instance.id])
    const startable = all.data.filter(({ can_start }) => can_start)
    const line = (process) => h('li', may('processes:write')
      ? h('a', { href: runsOf('start', process.slug) }, own(process.name)) : own(process.name), h('span.hint', ` → ${status(process.target_status)}`))
    const why = (process) => h('li', own(process.name), h('p.hint', reason(process.code, { ...process, status_of_asset: data.status })))
    const others = all.data.filter(({ can_start }) => !can_start)
    show(place,
      instance && h('p', h('a', { href: href(target) }, own(instance.process_name)), h('span', { className: 'hint' },
        ` ${t('step-of', { step: instance.current_step + 1, of: instance.steps.length })}: `, own(instance.steps[instance.current_step]?.label ?? ''))),
      startable.length > 0 && h('ul.plain-list', startable.map(line)),
      others.length > 0 && h('details', h('summary', t('cant-start')), h('ul.plain-list', others.map(why))))
  }

  let page = 0
  async function showHistory() {
    page += 1
    try {
      const { data: entries, meta } = await get(`${path}/history${query({ page, limit: 20 })}`, signal)
      const lines = await Promise.all(entries.map(entry))
      if (signal.aborted) return
      if (page === 1) show(history)
      history.append(...lines)
      show(more, page < meta.total_pages && button(t('older'), showHistory))
      history.setAttribute('aria-busy', 'false')
    } catch (error) {
      if (!signal.aborted) show(history, h('li', problemBox(error)))
    }
  }

  async function change() {
    const { form, focus } = await changeForm(data, etag, signal, (saved, tag) => {
      data = { ...saved, assigned_user: undefined }
      etag = tag
      say(t('saved'))
      go(['asset', id], {}, true)
      page = 0
      showAll()
    }, showFields)
    show(fields, form)
    focus.focus()
  }

  function showAll() {
    showHeader()
    showFields()
    showSide()
    showHistory()
  }
  showAll()
  return {
    title: data.name,
    update(next) {
      params = next
      day.value = params.day ?? ''
      showFields()
    },
  }
}

/** Why a process can't start, in words. */
export function reason(code, { status_of_asset, trigger_status }) {
  if (code === 'WRONG_ASSET_STATUS') return t('wrong-status', { is: status(status_of_asset), needs: status(trigger_status) })
  return t(has(`error.${code}`) ? `error.${code}` : 'error.CONFLICT')
}

/** One entry of a history: who did what, when. */
async function entry({ at, type, actor, changes }) {
  const { running_instance_id: running, ...others } = changes ?? {}
  const name = actor.user_name ?? actor.key_name
  const lines = await changeLines(others)
  const [instance, verb] = running?.new ? [running.new, 'started'] : [running?.old, 'ended']
  const process = instance && h('a', { href: `#/run/instances/${instance}` }, own((await cached(`/processes/instances/${instance}?omit=signatures`).catch(() => null))?.data.process_name ?? t('a-process')))
  const kind = type.split('.')[1]
  const what = has(`history.${kind}`) && (kind !== 'updated' || !process) ? t(`history.${kind}`) : ''
  const list = lines.length > 0 && h('ul', lines)
  return h('li', {},
    h('p', h('b', own(name)), actor.link_id && h('span.hint', ` ${t('by-link')}`), ' ', what, process && sentence(`history.${verb}`, { process }), ' ', h('span.hint', ago(at))),
    kind === 'created' ? list && h('details', h('summary', t('history.fields')), list) : list,
    changes === null && h('p.hint', t('history.too-long')))
}

/** The fields of an asset as a form. What it would change is shown before it is sent. */
async function changeForm(asset, etag, signal, saved, cancelled) {
  const schema = asset.asset_type_id && may('catalog:read') ? (await cached(`/catalog/asset-types/${asset.asset_type_id}`).catch(() => null))?.data.custom_fields_schema : null
  const types = may('catalog:read') ? (await cached('/catalog/asset-types?limit=100').catch(() => ({ data: [] }))).data : []
  const holderName = asset.assigned_to ? (await userName(asset.assigned_to)) ?? '' : ''
  const before = structuredClone(asset)
  let person = asset.assigned_to
  const text = (name, type = 'text') => ({ name, control: input(type, asset[name] === null ? '' : String(asset[name])) })
  const holder = personField((user) => (person = user?.id ?? null), holderName)
  const all = [
    text('name'),
    { name: 'status', control: select(STATUSES.map((name) => /** @type {[string, string]} */ ([name, status(name)])), asset.status) },
    types.length > 0 && { name: 'asset_type_id', control: select([['', t('nothing')], ...types.map(({ id, name }) => [id, name])], asset.asset_type_id ?? '') },
    'location' in asset && { name: 'location', control: locationField(asset.location ?? '', () => {}) },
    may('users:read') && { name: 'assigned_to', control: holder, value: () => (holder.value.trim() === holderName ? asset.assigned_to : holder.value.trim() ? person : null) },
    !asset.model_id && text('manufacturer'), !asset.model_id && text('model'), text('serial_number'), text('purchase_date', 'date'),
    text('purchase_price'), text('warranty_until', 'date'),
    { name: 'notes', control: h('textarea', { rows: 3, value: asset.notes ?? '' }) },
  ].filter(Boolean)
  const properties = schema?.properties ?? {}
  const names = [...new Set([...Object.keys(asset.custom_fields), ...Object.keys(properties)])]
  const custom = names.map((name) => customField(name, asset.custom_fields[name], properties[name]))
  const place = h('div')
  const next = h('div.actions')

  /** Only what somebody changed: what others change meanwhile stays. */
  function body() {
    const patch = {}
    for (const { name, control, value } of all) {
      const now = value ? value() : control.value.trim() || (name === 'name' ? '' : null)
      const old = before[name] === null ? null : name === 'purchase_price' ? String(before[name]) : before[name]
      if (now !== old) patch[name] = now
    }
    const fields = Object.fromEntries(custom.filter(({ changed }) => changed()).map(({ name, value }) => [name, value()]))
    return Object.keys(fields).length ? { ...patch, custom_fields_patch: fields } : patch
  }

  async function preview() {
    clearProblems(form, place)
    const patch = body()
    if (Object.keys(patch).length === 0) return show(place, h('p.hint', { role: 'status' }, t('no-change')))
    try {
      const { body: { data } } = await send('PATCH', `/assets/${asset.id}?dry_run=true`, { body: patch, headers: { 'if-match': etag } })
      const changes = differences(asset, data)
      const lines = await changeLines(changes)
      if (lines.length === 0) return show(place, h('p.hint', { role: 'status' }, t('no-change')))
      show(place, h('div.plan', { role: 'status' }, h('h3', t('would-change')), h('ul', lines)))
      show(next, button(t('save'), () => save(patch), 'primary'), button(t('keep-editing'), edit), cancel())
      next.querySelector('button').focus()
    } catch (error) {
      await refused(error)
    }
  }

  async function save(patch) {
    try {
      const { body: { data }, etag: tag } = await send('PATCH', `/assets/${asset.id}`, { body: patch, headers: { 'if-match': etag } })
      saved(data, tag)
    } catch (error) {
      await refused(error)
    }
  }

  async function refused(error) {
    edit()
    if (!(error instanceof Problem) || error.code !== 'PRECONDITION_FAILED') return showProblems(form, place, error)
    const { body: { data }, etag: tag } = await send('GET', `/assets/${asset.id}`, { signal })
    const lines = await changeLines(differences(asset, data))
    asset = data
    etag = tag
    show(place, h('div.problem', { role: 'alert' }, h('p', t('error.PRECONDITION_FAILED')), h('ul', lines)))
  }

  const cancel = () => button(t('cancel'), cancelled, 'plain')
  function edit() {
    clearProblems(form, place)
    show(next, h('button', { type: 'submit', className: 'primary' }, t('preview')), cancel())
  }
  const form = h('form.card.form', { noValidate: true, 'aria-label': t('change') },
    h('h2', t('change')),
    h('div.grid', all.map(({ name, control }) => field(fieldName(name), control, { pointer: `/${name}` })),
      custom.map(({ name, control }) => field(own(name), control, { pointer: `/custom_fields_patch/${name.replaceAll('~', '~0').replaceAll('/', '~1')}` }))),
    place, next)
  form.addEventListener('submit', (event) => (event.preventDefault(), preview()))
  form.addEventListener('keydown', (event) => event.key === 'Escape' && cancelled())
  // A plan of other values than those shown would mislead.
  form.addEventListener('input', () => next.querySelector('[type=submit]') || edit())
  edit()
  return { form, focus: all[0].control }
}

/** A custom field, whose type is that of its schema or its value. */
function customField(name, old, schema) {
  const type = schema?.type ?? (typeof old === 'object' && old !== null ? 'object' : typeof old)
  const was = old === undefined || old === null ? '' : typeof old === 'object' ? JSON.stringify(old) : String(old)
  const control = Array.isArray(schema?.enum) ? select([['', t('nothing')], ...schema.enum.map((value) => [String(value), String(value)])], was)
    : type === 'boolean' ? select([['', t('nothing')], ['true', t('yes')], ['false', t('no')]], was)
      : input('text', was, { inputMode: type === 'integer' ? 'numeric' : type === 'number' ? 'decimal' : 'text' })
  const value = () => {
    const text = control.value.trim()
    if (text === '') return null
    if (type === 'string' || type === 'undefined') return text
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
  return { name, control, value, changed: () => control.value.trim() !== was }
}
