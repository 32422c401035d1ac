// The filters of the inventory: as the API reads them, and their controls.
import { assetTypes, daysAfter, known, literal, may, today, userName } from './api.js'
import { STATUSES, fieldName } from './asset.js'
import { typedNumber } from './editor.js'
import { h, own, show } from './elements.js'
import { input, select } from './fields.js'
import { clearProblems, field, locationField, mark, personField } from './form.js'
import { colon, status } from './page.js'
import { preset } from './suggest.js'
import { t } from './texts.js'
import { date } from './values.js'

/** Columns of the list that it can be sorted by. */
export const SORTABLE = ['asset_tag', 'name', 'status', 'location', 'warranty_until', 'updated_at']

/**
 * Returns the values that a typed value of a custom field can mean: the text and, for a text such as `2,5`, the number that the form
 * of an asset reads. Digits alone, such as `0815`, find numbers as text.
 */
const meanings = (text) => [...new Set([text, /^\d+$/.test(text) ? text : String(typedNumber(text))])].map(literal).join()

/** Converts a fragment's filters to the API's. */
export function filters({ q, status, type, location, person, cf, cv, from, before, unlisted }) {
  return {
    q, status, asset_type_id: type, unlisted_field: unlisted, assigned_to: person, warranty_from: from, warranty_before: before,
    location: location && (location === 'none' ? location : literal(location)),
    ...(cf && cv ? { [`custom_fields.${cf}`]: meanings(cv) } : {}),
  }
}

/** Returns the parameters that have controls beside the search field. */
export const controlled = ({ q: _, page: __, ...others }) => others

/** Creates the controls of the filters. @param {any} view its parameters, and `set`, which changes them */
export function filterControls({ set, signal, params: read }) {
  const box = h('div.filters')
  /** @type {any} */
  let person = null
  /** @type {Record<string, any> | null} the controls by parameter */
  let controls = null
  const choice = (name, options) => select([['', t('any')], ...options], '', { change: ({ target }) => set({ [name]: target.value }) })
  function placeField() {
    const place = locationField('', (location) => set({ location }), t('nothing-found'))
    place.addEventListener('change', () => set({ location: place.value.trim() }))
    return place
  }
  function holderField() {
    const holder = personField((user) => {
      clearProblems(holder.closest('.field'))
      // Until the text means another person, the list is still this person's.
      if (!user && holder.value) return
      person = user
      set({ person: user?.id ?? '' })
    }, null, () => {
      if (!read().person) return mark(holder, { code: 'unknown_reference' })
      holder.value = person?.display_name ?? ''
      holder.dispatchEvent(new Event('input'))
    })
    return holder
  }
  const customPart = (text) => input('text', '', { placeholder: t(text), ariaLabel: t(text), change: () =>
    set({ cf: controls.cf.value.trim(), cv: controls.cv.value.trim() }) })
  function build(types) {
    const sort = choice('sort', SORTABLE.flatMap((key) => [[key, `${fieldName(key)} ↑`], [`-${key}`, `${fieldName(key)} ↓`]]))
    sort.options[0].text = t('newest')
    controls = {
      status: choice('status', STATUSES.map((name) => [name, status(name)])), type: choice('type', types.map(({ id, name }) => [id, name])),
      location: placeField(), person: holderField(), cf: customPart('custom-name'), cv: customPart('custom-value'), sort,
    }
    const sorting = field(t('sort'), sort)
    sorting.classList.add('sort')
    show(box,
      field(t('field.status'), controls.status), types.length > 0 && field(t('field.asset_type_id'), controls.type),
      field(t('field.location'), controls.location), may('users:read') && field(t('field.assigned_to'), controls.person),
      h('fieldset.field.pair', h('legend', t('custom-field')), h('div', controls.cf, controls.cv)), sorting)
  }
  /** Shows the parameters. Leaves the control alone that someone is in. */
  async function draw() {
    const types = await assetTypes()
    const { person: id } = read()
    if (id && id !== 'none' && person?.id !== id) person = await known('users:read', `/users/${id}`)
    if (signal.aborted) return
    if (!controls) build(types)
    const params = read()
    for (const [name, control] of Object.entries(controls)) {
      if (control === document.activeElement) continue
      if (name === 'location') preset(control, params.location ? { text: params.location } : null)
      else if (name === 'person') {
        clearProblems(control.closest('.field') ?? box)
        preset(control, params.person && person?.id === params.person ? { ...person, text: person.display_name } : null)
      } else control.value = params[name] ?? ''
      if (control.selectedIndex < 0) control.selectedIndex = 0
    }
  }
  return { box, draw }
}

const isMonth = (from, before) => from?.endsWith('-01') && before === `${daysAfter(from, 32).slice(0, 8)}01`

/** Returns when warranties end, as a text. */
function period({ from, before }) {
  if (isMonth(from, before)) return date(from, { month: 'long', year: 'numeric' })
  if (!from && before === today()) return t('warranty-ended')
  const last = before && date(daysAfter(before, -1))
  return from && before ? `${date(from)} – ${last}` : from ? `${t('changes.from')} ${date(from)}` : `${t('changes.until')} ${last}`
}

/** Returns the active filters as texts, each with the changes that remove it. @returns {Promise<[string, Record<string, ''>][]>} */
async function active(params) {
  const { status: state, type, location, person, cf, cv, from, before, unlisted } = params
  const types = type ? await assetTypes() : []
  const holder = person === 'none' ? t('nobody') : person && ((await userName(person)) ?? t('somebody'))
  const line = (name, value) => `${fieldName(name)}${colon()}${value}`
  /** @type {any[]} */
  const all = [
    state && [line('status', state.split(',').map(status).join(', ')), { status: '' }],
    type && [line('asset_type_id', types.find(({ id }) => id === type)?.name ?? type), { type: '' }],
    location && [line('location', location === 'none' ? t('no-location') : location), { location: '' }],
    holder && [line('assigned_to', holder), { person: '' }],
    cf && cv && [`${cf}${colon()}${cv}`, { cf: '', cv: '' }],
    (from || before) && [line('warranty_until', period(params)), { from: '', before: '' }],
    unlisted && [t('unlisted', { name: unlisted }), { unlisted: '' }],
  ]
  return all.filter(Boolean)
}

/** Creates a button for each active filter, which removes the filter. */
export const chips = async (params, set) =>
  (await active(params)).map(([text, without]) =>
    h('button.chip', { type: 'button', title: t('remove', { name: text }), click: () => set(without) }, own(text), h('span', { ariaHidden: 'true' }, ' ×')))
