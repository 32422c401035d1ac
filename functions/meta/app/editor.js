// The fields of an asset as controls of a form.
import { may } from './api.js'
import { STATUSES, fieldName, plain } from './asset.js'
import { h, own } from './elements.js'
import { input, select } from './fields.js'
import { field, locationField, personField } from './form.js'
import { status } from './page.js'
import { t } from './texts.js'
import { editable, typedAmount } from './values.js'

/** Creates a field from a control. `value` returns what the form says. @param {string} name @param {any} control */
export const fieldOf = (name, control, value = () => control.value.trim()) => ({ name, control, value })

/**
 * Creates a field for each member that the key may set, in display order.
 * @param {any} asset the values at first
 * @param {any[]} types
 * @returns {{ name: string, control: any, value: () => any }[]}
 */
export function controlsOf(asset, types, holderName = '') {
  let person = asset.assigned_to
  const text = (name, type = 'text') => fieldOf(name, input(type, asset[name]))
  const holder = personField((user) => (person = user?.id ?? null), holderName ? { id: person, display_name: holderName } : null)
  const shownPrice = editable(asset.purchase_price ?? null)
  const price = input('text', shownPrice, { inputMode: 'decimal' })
  const all = [
    text('name'),
    fieldOf('status', select(STATUSES.map((name) => [name, status(name)]), asset.status)),
    types.length > 0 && fieldOf('asset_type_id', select([['', '–'], ...types.map(({ id, name }) => [id, name])], asset.asset_type_id)),
    'location' in asset && fieldOf('location', locationField(asset.location)),
    may('users:read') && fieldOf('assigned_to', holder, () => (holder.value.trim() === holderName ? asset.assigned_to : holder.value.trim() && (person ?? holder.value.trim()))),
    !asset.model_id && text('manufacturer'), !asset.model_id && text('model'), text('serial_number'), text('purchase_date', 'date'),
    fieldOf('purchase_price', price, () => (price.value === shownPrice ? String(asset.purchase_price ?? '') : typedAmount(price.value.trim()))),
    text('warranty_until', 'date'),
    fieldOf('notes', h('textarea', { rows: 3, value: asset.notes ?? '' })),
  ]
  return /** @type {any[]} */ (all.filter(Boolean))
}

/** Creates a control for each custom field that an asset has or its type's schema defines. @param {any} type */
export function customControls(values, type) {
  const properties = type?.custom_fields_schema?.properties ?? {}
  return Object.keys({ ...values, ...properties }).map((name) => customField(name, values[name], properties[name]))
}

/** Returns the labelled fields. `under` is the member of the body that has the custom fields. */
export const labelled = (all, custom, under) => [
  all.map(({ name, control }) => field(fieldName(name), control, `/${name}`)),
  custom.map(({ name, control }) => field(own(name), control, `/${under}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`))]

/** Reads a number, such as `-1.249,5` in German. Keeps other texts. */
export function typedNumber(text) {
  const [, sign, digits] = /^([-\u2212]?)(.*)$/.exec(text)
  const number = Number((sign && '-') + typedAmount(digits))
  return Number.isFinite(number) ? number : text
}

/** Creates the control for a custom field, by the type in the schema or, without one, by the type of the value. */
function customField(name, old, schema) {
  const type = [schema?.type ?? (old === null ? 'object' : typeof old)].flat().find((type) => type !== 'null')
  const was = (old ?? '') === '' ? '' : plain(old)
  const choice = (options) => select([['', '–'], ...options], String(old ?? ''))
  const permitted = Array.isArray(schema?.enum) ? schema.enum : null
  const control = permitted ? choice(permitted.map((value) => [String(value), String(value)]))
    : type === 'boolean' ? choice([['true', t('yes')], ['false', t('no')]])
      : input('text', was, { inputMode: { integer: 'numeric', number: 'decimal' }[type] ?? 'text' })
  const start = control.value
  const value = () => {
    const text = control.value.trim()
    if (permitted) return permitted.find((value) => String(value) === control.value) ?? null
    if (text === '' || type === 'string' || type === 'undefined') return text || null
    if (type === 'number' || type === 'integer') return typedNumber(text)
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
  return { name, control, value, changed: () => control.value.trim() !== start.trim() }
}
