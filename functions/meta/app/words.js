// Fields of assets and their values, as people say them.
import { known, userName } from './api.js'
import { h, href, own } from './dom.js'
import { ago, amount, date, named, status, t } from './text.js'

/** In the order in which they are shown. */
export const FIELDS = [
  'name', 'status', 'asset_type_id', 'location', 'assigned_to', 'manufacturer', 'model', 'serial_number',
  'purchase_date', 'purchase_price', 'warranty_until', 'last_seen_at', 'notes',
]
export const STATUSES = ['in_stock', 'preparing', 'in_use', 'in_service', 'returned', 'scrapped']
/** So many assets take part in one process. */
export const MOST = 20

export const fieldName = (name) => named(`field.${name}`, name)

/** A pill with a dot, whose text says the status too. */
export const pill = (name) => h('span.pill', h('i', { className: `dot s-${name}`, ariaHidden: 'true' }), status(name))

/** A link to an asset, or to the asset of an instance, an event or a refusal. */
export const assetLink = (one) =>
  h('a', { href: href(`asset/${one.asset_id ?? one.entity_id ?? one.id}`) },
    h('span.tag', one.asset_tag ?? one.entity_tag), ' ', own(one.asset_name ?? one.entity_name ?? one.name))

/** Assets in lines, each with its status or what `more` says. @param {any[]} assets @param {(asset: any) => any} [more] */
export const assetList = (assets, more = ({ status }) => pill(status)) =>
  h('ul.plain-list.assets', assets.map((asset) => h('li', assetLink(asset), more(asset))))

/** A value in words. @returns {Promise<any>} */
export async function valueOf(name, value) {
  if ((value ?? '') === '') return '–'
  const catalog = async (kind) => own((await known('catalog:read', `/catalog/${kind}/${value}`))?.name ?? t('unreadable'))
  switch (name) {
    case 'status': return status(value)
    case 'assigned_to': return own((await userName(value)) ?? t('somebody'))
    case 'asset_type_id': return catalog('asset-types')
    case 'model_id': return catalog('models')
    case 'purchase_price': return amount(value)
    case 'purchase_date':
    case 'warranty_until': return date(value)
    case 'last_seen_at': return ago(value)
    default: return own(plain(value))
  }
}

export const plain = (value) =>
  typeof value === 'boolean' ? t(value ? 'yes' : 'no') : typeof value === 'object' ? JSON.stringify(value) : String(value)

const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

/**
 * Changes as lines: what, from what, to what. Custom fields one by one.
 * @param {Record<string, { old: any, new: any }>} changes
 */
export function changeLines({ custom_fields: custom, ...changes }) {
  const all = Object.entries(changes).map(([name, { old, new: now }]) => [name, fieldName(name), old, now])
  for (const member of Object.keys({ ...custom?.old, ...custom?.new })) {
    const [old, now] = [custom.old?.[member], custom.new?.[member]]
    if (!isSame(old, now)) all.push(['', own(member), old, now])
  }
  return Promise.all(all.map(async ([name, label, old, now]) =>
    h('li', h('b', label), ': ', (old ?? null) !== null
      && [h('del', await valueOf(name, old)), h('span.unseen', ` ${t('to')}`), h('span', { ariaHidden: 'true' }, ' → ')],
    h('ins', await valueOf(name, now)))))
}

/** What differs between two states of an asset. */
export function differences(before, after) {
  const names = [...FIELDS, 'model_id', 'custom_fields'].filter((name) => name !== 'last_seen_at' && !isSame(before[name], after[name]))
  return Object.fromEntries(names.map((name) => [name, { old: before[name] ?? null, new: after[name] ?? null }]))
}
