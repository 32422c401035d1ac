// Fields of assets and their values, as people say them.
import { h, own } from './dom.js'
import { modelName, typeName, userName } from './api.js'
import { ago, amount, date, has, status, t } from './text.js'

/** In the order in which they are shown. */
export const FIELDS = [
  'name', 'status', 'asset_type_id', 'location', 'assigned_to', 'manufacturer', 'model', 'serial_number',
  'purchase_date', 'purchase_price', 'warranty_until', 'last_seen_at', 'notes',
]

export const fieldName = (name) => (has(`field.${name}`) ? t(`field.${name}`) : name)

/** A pill with a dot, whose text says the status too. */
export const pill = (name) => h('span.pill', h('i', { className: `dot s-${name}`, 'aria-hidden': 'true' }), status(name))

export const assetLink = ({ id, asset_tag, name }) =>
  h('a', { href: `#/asset/${id}` }, h('span.tag', asset_tag), ' ', own(name))

/** A value in words. @returns {Promise<any>} */
export async function valueOf(name, value) {
  if (value === null || value === undefined || value === '') return t('nothing')
  switch (name) {
    case 'status': return status(value)
    case 'assigned_to': return own((await userName(value)) ?? t('somebody'))
    case 'asset_type_id': return own((await typeName(value)) ?? t('unreadable'))
    case 'model_id': return own((await modelName(value)) ?? t('unreadable'))
    case 'purchase_price': return amount(value)
    case 'purchase_date':
    case 'warranty_until': return date(value)
    case 'last_seen_at': return ago(value)
    default: return own(plain(value))
  }
}

export const plain = (value) =>
  typeof value === 'boolean' ? t(value ? 'yes' : 'no') : typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)

/**
 * Changes as lines: what, from what, to what. Custom fields one by one.
 * @param {Record<string, { old: any, new: any }>} changes
 */
export async function changeLines(changes) {
  const all = []
  for (const [name, { old, new: now }] of Object.entries(changes)) {
    if (name !== 'custom_fields') all.push([name, fieldName(name), old, now])
    else {
      const members = new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])
      for (const member of members) {
        const pair = [old?.[member] ?? null, now?.[member] ?? null]
        if (JSON.stringify(pair[0]) !== JSON.stringify(pair[1])) all.push(['', own(member), ...pair])
      }
    }
  }
  return Promise.all(
    all.map(async ([name, label, old, now]) => {
      const isNew = old === null || old === undefined
      const to = h('ins', await valueOf(name, now))
      return h('li', h('b', label), ': ', !isNew && [h('del', await valueOf(name, old)), h('span.unseen', ` ${t('to')}`), h('span', { 'aria-hidden': 'true' }, ' → ')], to)
    }),
  )
}

/** What differs between two states of an asset. */
export function differences(before, after) {
  const names = [...FIELDS, 'model_id', 'custom_fields'].filter((name) => name !== 'last_seen_at')
  const differs = names.filter((name) => JSON.stringify(before[name] ?? null) !== JSON.stringify(after[name] ?? null))
  return Object.fromEntries(differs.map((name) => [name, { old: before[name] ?? null, new: after[name] ?? null }]))
}
