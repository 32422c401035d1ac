// Assets: their fields and values as text; a single asset with its label, processes and history; and the changes of all.
import { Problem, daysAfter, endOf, get, instanceName, isAboutInactiveUser, known, may, send, startOf, today, userName, zonedMoment } from './api.js'
import { changeForm } from './change.js'
import { button, h, hint, own, show } from './elements.js'
import { attempt, dayField, empty, field, problemBox } from './form.js'
import { builtIn, card, colon, facts, go, heading, link, runPath, say, skeleton, status, stepOf } from './page.js'
import { latest } from './requests.js'
import { has, named, sentence, t } from './texts.js'
import { ago, amount, date, editable } from './values.js'

/** In display order. */
const FIELDS = [
  'name', 'status', 'asset_type_id', 'location', 'assigned_to', 'manufacturer', 'model', 'serial_number',
  'purchase_date', 'purchase_price', 'warranty_until', 'last_seen_at', 'notes',
]
export const STATUSES = ['in_stock', 'preparing', 'in_use', 'in_service', 'returned', 'scrapped']
/** Maximum number of assets in one process. */
export const MOST = 20

export const fieldName = (name) => named(`field.${name}`, name)

/** A pill with a coloured dot and the status as text. */
export const pill = (name) => h('span.pill', h('i', { className: `dot s-${name}`, ariaHidden: 'true' }), status(name))

/** Creates a link to an asset, or to the asset of an instance, an event or a refusal. */
export const assetLink = (one) =>
  link([h('span.tag', one.asset_tag ?? one.entity_tag), ' ', own(one.asset_name ?? one.entity_name ?? one.name)], `asset/${one.asset_id ?? one.entity_id ?? one.id}`)

/** Returns the assets that a scanned code means: none, one or, for a serial number, several. @returns {Promise<any[]>} */
export async function byCode(code, signal) {
  const { data } = await get('/assets', signal, { code, limit: 20 })
  return data
}

/** Returns the path of the asset that a scanned code means, if it means one. */
export async function codeOpens(code, signal) {
  const [asset, ...others] = await byCode(code, signal).catch(() => [])
  return asset && !others.length ? `asset/${asset.id}` : null
}

/** Creates a line per asset, with its status or the result of `more`. @param {any[]} assets @param {(asset: any) => any} [more] */
export const assetList = (assets, more = ({ status }) => pill(status)) =>
  h('ul.plain-list.assets', assets.map((asset) => h('li', assetLink(asset), more(asset))))

/** @returns {Promise<any>} */
export async function valueOf(name, value) {
  if ((value ?? '') === '') return '–'
  const catalog = async (kind) => own((await known('catalog:read', `/catalog/${kind}/${value}`))?.name ?? value)
  switch (name) {
    case 'status': return status(value)
    case 'assigned_to': return own((await userName(value)) ?? t('somebody'))
    case 'asset_type_id': return catalog('asset-types')
    case 'model_id': return catalog('models')
    case 'purchase_price': return amount(value)
    case 'purchase_date':
    case 'warranty_until': return date(value)
    case 'last_seen_at': return ago(value)
    // Texts with several lines can have such characters for a reason.
    case 'notes': return h('bdi', value)
    default: return own(plain(value))
  }
}

/** Returns a value as text. A number is written as the form reads it. */
export const plain = (value) => {
  switch (typeof value) {
    case 'boolean': return t(value ? 'yes' : 'no')
    case 'number': return editable(value, 0)
    case 'object': return JSON.stringify(value)
    default: return String(value)
  }
}

const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

/**
 * Returns a line for each change: field, old and new value. Custom fields get a line each.
 * @param {Record<string, { old: any, new: any }>} changes
 */
export function changeLines({ custom_fields: custom, ...changes }) {
  const all = Object.entries(changes).map(([name, { old, new: now }]) => [name, fieldName(name), old, now])
  for (const member of Object.keys({ ...custom?.old, ...custom?.new })) {
    const [old, now] = [custom.old?.[member], custom.new?.[member]]
    if (!isSame(old, now)) all.push(['', own(member), old, now])
  }
  return Promise.all(all.map(async ([name, label, old, now]) =>
    h('li', h('b', label), colon(), (old ?? null) !== null
      && [h('del', await valueOf(name, old)), h('span.unseen', ` ${t('to')}`), h('span', { ariaHidden: 'true' }, ' → ')],
    h('ins', await valueOf(name, now)))))
}

export function differences(before, after) {
  const names = [...FIELDS, 'model_id', 'custom_fields'].filter((name) => name !== 'last_seen_at' && !isSame(before[name], after[name]))
  return Object.fromEntries(names.map((name) => [name, { old: before[name] ?? null, new: after[name] ?? null }]))
}

/** Goes to the asset with a tag. */
export async function byTag(_, __, signal, [, tag]) {
  const { data } = await get(`/assets/by-tag/${encodeURIComponent(tag)}`, signal)
  go(`asset/${data.id}`, {}, true)
}

export async function asset(main, params, signal, [, id]) {
  const path = `/assets/${id}`
  const here = `asset/${id}`
  let { body: { data }, etag } = await send('GET', path, { signal })
  const header = h('div.title')
  const fields = h('div')
  const history = h('ol.timeline', { ariaBusy: 'true' }, skeleton(4))
  const more = h('p')
  const side = h('div.side')
  const proof = h('div', { role: 'status' })
  const proving = button(t('prove'), () => attempt(proof, async () => {
    const { verification: { valid, checked, broken } } = await get(`${path}/history`, signal, { verify: true, limit: 1 })
    show(proof, valid ? h('p.signed', '✓ ', t('proven', { count: checked })) : h('p.problem', t('disproven'), ' ', h('code', broken?.reason ?? '')))
  }), 'plain')
  const day = dayField(params.day, (day) => go(here, { day }, true))
  const box = h('div', skeleton(10))
  const present = card(t('fields'), h('div.as-of', field(t('as-of'), day)), box)
  show(main, header, h('div.columns', h('div', fields, card(t('history'), history, more, h('div.actions', proving), proof)), side))

  const runs = (text, kind, process, look) => link(text, kind, { assets: id, process }, look)
  /** @type {any} */
  let headed = null
  /** Shows the asset now, or on an earlier day, without any actions. */
  async function showHeader(shown, day) {
    if (headed === shown) return
    headed = shown
    const holder = shown.assigned_to && ((await userName(shown.assigned_to)) ?? t('somebody'))
    if (signal.aborted || headed !== shown) return
    const hadFocus = header.contains(document.activeElement)
    const run = (kind) => runs(t(`nav.${kind}`), kind, '', 'button')
    show(header,
      h('div', heading(own(shown.name)), h('p.meta', h('span.tag', shown.asset_tag), pill(shown.status),
        holder && link(own(holder), `person/${shown.assigned_to}`))),
      !day && h('div.actions', may('assets:write') && [button(t('change'), change), link(t('copy'), 'new', { copy: id }, 'button')], run('hand-over'), run('take-back')),
      !may('assets:write') && hint(t('scope-missing', { scope: 'assets:write' })))
    if (hadFocus) header.querySelector('button')?.focus()
  }

  async function showFields() {
    const { day } = params
    // While someone types a day, keep the field that has the focus.
    if (!present.isConnected) show(fields, present)
    const back = button(t('back-to-now'), () => go(here, {}, true), 'plain')
    try {
      const shown = day ? (await get(path, signal, { as_of: endOf(day) })).data : data
      if (day !== params.day) return
      showHeader(shown, day)
      const names = FIELDS.filter((name) => (day || name !== 'name') && name in shown)
      /** @type {any[]} */
      const rows = await Promise.all(names.map(async (name) =>
        [fieldName(name), name === 'asset_type_id' && shown.asset_type_name ? own(shown.asset_type_name) : await valueOf(name, shown[name])]))
      for (const [name, value] of Object.entries(shown.custom_fields)) rows.push([own(name), own(plain(value))])
      for (const name of ['created_at', 'updated_at']) rows.push([fieldName(name), ago(shown[name])])
      if (day === params.day) show(box, day && h('p.past', { role: 'status' }, t('as-it-was', { day: zonedMoment(endOf(day)) }), ' ', back), facts(rows))
    } catch (error) {
      if (signal.aborted || day !== params.day) return
      showHeader(data)
      const isGone = error instanceof Problem && error.status === 404
      show(box, isGone ? h('p', t('not-then'), ' ') : problemBox(error), back)
    }
  }

  function showSide() {
    const label = h('div.label')
    const processes = h('div', skeleton(3))
    show(side, may('processes:read') && card(t('processes'), processes), card(t('label'), label))
    attempt(label, () => showLabel(label))
    if (may('processes:read')) attempt(processes, () => showProcesses(processes))
  }

  async function showLabel(place) {
    const { body } = await send('GET', `${path}/label?format=svg`, { signal, as: 'blob' })
    const url = URL.createObjectURL(body)
    signal.addEventListener('abort', () => URL.revokeObjectURL(url))
    show(place, h('img', { src: url, alt: t('label-of', { tag: data.asset_tag }), width: 250, height: 100 }),
      h('a', { href: url, download: `label-${data.asset_tag.replace(/[^0-9A-Za-z-]+/g, '-')}.svg` }, t('save')))
  }

  async function showProcesses(place) {
    const [{ data: [instance] }, { data: all }] = await Promise.all([
      get('/processes/instances', signal, { asset_id: id, status: 'in_progress', omit: 'signatures' }), get(`${path}/processes`, signal)])
    const startable = all.filter(({ can_start }) => can_start)
    const others = all.filter(({ can_start }) => !can_start)
    show(place,
      instance && h('p', link(own(builtIn(instance.process_name)), runPath(instance)), h('span.hint', ' ', stepOf(instance))),
      startable.length > 0 && h('ul.plain-list', startable.map((one) =>
        h('li', runs(own(builtIn(one.name)), 'start', one.slug), h('span.hint', ` → ${status(one.target_status)}`)))),
      others.length > 0 && h('details', h('summary', t('cant-start')), h('ul.plain-list', others.map((one) =>
        h('li', own(builtIn(one.name)), hint(reason(one.code, { ...one, status_of_asset: data.status })))))))
  }

  async function showHistory(page) {
    await attempt(history, async () => {
      const { data: entries, meta } = await get(`${path}/history`, signal, { page, limit: 20 })
      const lines = await Promise.all(entries.map(entry))
      if (page === 1) show(history)
      history.append(...lines)
      show(more, page < meta.total_pages && button(t('more'), () => showHistory(page + 1)))
      history.ariaBusy = 'false'
    })
  }

  async function change() {
    const { element, focus } = await changeForm(data, etag, signal, (saved, tag) => {
      data = saved
      etag = tag
      say(t('saved'))
      go(here, {}, true)
      showAll()
      header.querySelector('button')?.focus()
    }, () => {
      showFields()
      header.querySelector('button')?.focus()
    })
    show(fields, element)
    focus.focus()
  }

  function showAll() {
    if (!params.day) showHeader(data)
    showFields()
    showSide()
    showHistory(1)
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

export const reason = (code, { status_of_asset: is, trigger_status: needs, user_id: user = '' }) =>
  isAboutInactiveUser({ code, user_id: user }) ? t('error.INACTIVE_USER') : code === 'WRONG_ASSET_STATUS' ? t('wrong-status', { is: status(is), needs: status(needs) }) : named(`error.${code}`, t('error.CONFLICT'))

async function entry(event) {
  const { at, type, actor, changes } = event
  const { running_instance_id: running, ...others } = changes ?? {}
  const lines = await changeLines(others)
  const instance = running?.new ?? running?.old
  const process = instance && link(own(builtIn((await instanceName(instance)) ?? t('a-process'))), `run/instances/${instance}`)
  const kind = type.split('.')[1]
  const by = { who: [h('b', own(actor.user_name ?? actor.key_name)), actor.link_id && ` ${t('by-link')}`], when: h('span.hint', ago(at)) }
  const what = !has(`history.${kind}`) || (kind === 'updated' && process) ? null : sentence(`history.${kind}`, by)
  const list = lines.length > 0 && h('ul', lines)
  const step = process && sentence(`history.${running.new ? 'started' : 'ended'}`, { ...by, process })
  return h('li',
    event.entity_tag && h('p', assetLink(event)),
    h('p', what, what && step && ' · ', step, !what && !step && [by.who, ' ', by.when]),
    kind === 'created' ? list && h('details', h('summary', t('fields')), list) : list,
    changes === null && hint('…'))
}

/** Shows the changes in a period, oldest first, with their authors. */
export function changes(main, params, signal) {
  const week = daysAfter(today(), -7)
  const list = h('ol.timeline', skeleton(8))
  const more = h('p')
  const days = [['from', week], ['until', '']].map(([name, usual]) => ({ name, usual, control: dayField(usual, (day) => go('changes', { ...params, [name]: day }, true)) }))
  show(main, heading(t('changes')), h('section.card', h('div.actions', days.map(({ name, control }) => field(t(`changes.${name}`), control))), list, more))

  const newList = latest(signal)
  async function showAll(after = '') {
    const { from = week, until } = params
    const asked = newList()
    if (!after) {
      for (const { name, usual, control } of days) control.value = params[name] ?? usual
      show(list, skeleton(8))
      show(more)
    }
    await attempt(list, async () => {
      const { data, meta } = await get('/events', asked, { types: 'asset.*', limit: 50, ...(after ? { after } : { since: startOf(from).toISOString() }), until: endOf(until) })
      const lines = await Promise.all(data.map(entry))
      if (asked.aborted) return
      if (!after) show(list)
      list.append(...lines)
      if (!list.children.length && !meta.has_more) show(list, h('li', empty(t('nothing-found'))))
      show(more, meta.has_more && button(t('more'), () => showAll(meta.after)))
    }, () => showAll(after))
  }
  showAll()
  return { title: t('changes'), update: (next) => ((params = next), showAll()) }
}
