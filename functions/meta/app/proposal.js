// How a file would be read: each column with what it is, what the values mean, and what is doubtful. Every choice is a decision, after
// which the service looks at the file again.
import { assetTypes } from './api.js'
import { STATUSES, fieldName } from './asset.js'
import { h, own, show } from './elements.js'
import { choice, select } from './fields.js'
import { field, roleOptions } from './form.js'
import { card, status } from './page.js'
import { t } from './texts.js'

const COLUMNS = {
  assets: ['name', 'asset_tag', 'serial_number', 'status', 'asset_type_code', 'manufacturer', 'model', 'location', 'assigned_to_email', 'assigned_to_name',
    'purchase_date', 'purchase_price', 'warranty_until', 'notes'],
  users: ['email', 'display_name', 'role', 'is_active'],
}
const MATCHES = { assets: ['none', 'asset_tag', 'serial_number', 'id'], users: ['none', 'email', 'id'] }
const AND = ' + '
const DATES = ['DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY', 'YYYY/MM/DD', 'DD-MM-YYYY', 'DD.MM.YYYY + DD/MM/YYYY', 'DD.MM.YYYY + MM/DD/YYYY']
const CUSTOM = 'custom_fields.'

/** Escapes what parameters give a meaning. */
const escaped = (text) => text.replace(/[\\=:+/#]/g, '\\$&')

/** Maps a column of a file to a field, or to nothing. Objects have no order of columns. */
export const mapping = (n, heading, to, isCsv) => `${isCsv ? `#${n + 1}` : escaped(heading)}=${to}`

/** Says what a text in a field means. */
export const meaning = (name, text, value) => ({ name: 'value', value: `${name}:${escaped(text)}=${value}` })

/** Returns the choices for the values of a field, if it has some. @returns {Promise<string[][] | null>} */
export async function choices(name) {
  switch (name) {
    case 'status': return STATUSES.map((one) => [one, status(one)])
    case 'role': return roleOptions()
    case 'asset_type_code': return (await assetTypes()).filter(({ code }) => code).map((type) => [type.code, type.name])
    default: return null
  }
}

export const columnName = (name) => (name.startsWith(CUSTOM) ? name.slice(CUSTOM.length) : fieldName(name))

/**
 * Creates the form.
 * @param {any} found the service's suggestion @param {string} kind @param {boolean} isCsv
 * @param {(decided: any[]) => any} decide takes all decisions after a change
 * @param {any[]} given the decisions so far
 */
export function proposal({ columns, parameters, doubts }, kind, isCsv, decide, given) {
  const value = (name) => parameters.find((one) => one.name === name)?.value ?? ''
  const without = (name) => given.filter((one) => one.name !== name)
  const set = (name, value) => decide(value ? [...without(name), { name, value }] : without(name))
  const rows = columns.map((column, n) => columnRow(column, n, kind, (to) => {
    // The last mapping of a column would count, but joined ones could still name it.
    const mine = mapping(n, column.heading, '', isCsv)
    decide([...given.filter((one) => !(one.name === 'map' && one.value.startsWith(mine))), { name: 'map', value: mine + to }])
  }))
  const type = parameters.find((one) => one.name === 'set' && one.value.startsWith('asset_type_code='))?.value.split('=')[1]
  const types = h('div')
  if (kind === 'assets' && !columns.some(({ field }) => field?.startsWith('asset_type'))) choices('asset_type_code').then((all) => all?.length && show(types,
    field(t('type-of-all'), select([['', '–'], ...all], type, { change: ({ target }) =>
      decide([...given.filter((one) => !one.value.startsWith('asset_type_code=')), ...(target.value ? [{ name: 'set', value: `asset_type_code=${target.value}` }] : [])]) }))))
  const formats = parameters.filter(({ name }) => name === 'date_format').map(({ value }) => value).join(AND)
  const dates = [...new Set([formats, ...DATES])].filter(Boolean).map((format) => [format, format])
  const create = choice(t('create-unmatched'), value('create_unmatched') === 'true', { change: ({ target }) => set('create_unmatched', target.checked ? 'true' : 'false') })
  return [
    doubts.length > 0 && h('section.card.doubts', { ariaLabel: t('doubts') }, h('h2', t('doubts')), h('ul', { lang: 'en' }, doubts.map((doubt) => h('li', own(inWords(doubt)))))),
    card(t('columns'), h('table.columns-read', h('thead', h('tr', [t('column'), t('is-field')].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', rows))),
    h('section.card.form', { ariaLabel: t('reading') }, h('div.grid', types,
      kind === 'assets' && field(t('dates'), select([['', '–'], ...dates], formats, { change: ({ target }) =>
        decide([...without('date_format'), ...target.value.split(AND).filter(Boolean).map((value) => ({ name: 'date_format', value }))]) })),
      kind === 'assets' && field(t('decimal'), select([['', '–'], ['comma', '1.249,00'], ['point', '1,249.00']], value('decimal'), { change: ({ target }) => set('decimal', target.value) })),
      field(t('match-by'), select(MATCHES[kind].map((name) => [name, name === 'none' ? t('match-none') : columnName(name)]), value('match') || 'none', { change: ({ target }) => set('match', target.value) })),
      value('match') && value('match') !== 'none' && create.element)),
  ]
}

/** Leaves out the sentences that name parameters: here, controls set them. */
const inWords = (doubt) => doubt.split(/(?<=[.:]) (?=[A-Z`])/).filter((sentence, n) => n === 0 || !sentence.includes('`')).join(' ')

function columnRow({ heading, field: is, example }, n, kind, change) {
  const other = `${CUSTOM}${heading.trim()}`
  const known = [...COLUMNS[kind], ...(kind === 'assets' ? [other] : [])]
  const all = is && !known.includes(is) ? [is, ...known] : known
  const name = (one) => (one === other ? t('own-field', { name: heading }) : columnName(one))
  const chooser = select([['', t('not-imported')], ...all.map((one) => [one, name(one)])], is, { ariaLabel: heading || `#${n + 1}`, change: ({ target }) => change(target.value) })
  return h('tr', h('td', own(heading), own(example ?? '', 'hint')), h('td', chooser))
}
