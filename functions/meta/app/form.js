// Fields with their errors, and fields that suggest people and places.
import { Problem, cached, get, may, session, setKey, today } from './api.js'
import { button, every, h, hint, newId, own, show } from './elements.js'
import { debounced, input } from './fields.js'
import { colon, link, mayLeave, query } from './page.js'
import { latest } from './requests.js'
import { settle, suggesting } from './suggest.js'
import { has, named, t } from './texts.js'

/** Creates a labelled field. `pointer`, such as `/name`, locates the control's errors. */
export function field(label, control, pointer = '') {
  control.id ||= newId()
  if (pointer) control.dataset.pointer = pointer
  return h('div.field', h('label', { htmlFor: control.id }, label), control.parentElement ?? control)
}

/** Creates a field for a day up to today. A page can stay open overnight. */
export const dayField = (value, changed) =>
  input('date', value, { max: today(), focus: ({ target }) => (target.max = today()), change: ({ target }) => changed(target.value) })

/** Creates a form, which the browser never submits itself. */
export const form = (act, ...children) =>
  h('form.card.form', { noValidate: true, submit: (event) => (event.preventDefault(), act()) }, ...children)

export const submit = (text) => h('button.primary', { type: 'submit' }, text)

/** Shows an error, with a button if a retry or a different key can help. A fault that several assets share is listed once. */
export function problemBox(error, again) {
  if (!(error instanceof Problem)) throw error
  const details = error.code === 'VALIDATION_ERROR' ? error.errors : []
  const name = (/** @type {any} */ { parameter, pointer }) => parameter ?? pointer?.split('/').at(-1) ?? ''
  const faults = new Map(details.map((fault) => [name(fault) + fault.code + fault.detail, fault]))
  const newKey = () => mayLeave() && (setKey(null), location.reload())
  return h('div.problem', { role: 'alert' },
    h('p', error.text),
    faults.size > 0 && h('ul', [...faults.values()].map((fault) =>
      h('li', own(named(`field.${name(fault)}`, name(fault))), colon(), faultText(fault), unlisted(fault)))),
    error.status === 401 && session.key ? button(t('key-title'), newKey) : again && button(t('try-again'), again))
}

/** Links to the assets whose values keep a custom field out of lists. */
function unlisted({ parameter = '', code = '' }) {
  const name = /^custom_fields(?:_from|_before)?\.(.+)$/.exec(parameter)?.[1]
  return name && code === 'not_filterable' && [' ', link(t('unlisted-show'), 'assets', { unlisted: name })]
}

/** Builds a field error that the page finds without the service. */
export const fault = (code, ...pointers) =>
  new Problem(422, { code: 'VALIDATION_ERROR', errors: pointers.map((pointer) => ({ pointer, code })) })

export const planBox = (title, lines) => h('div.plan', { role: 'status' }, h('h3', title), h('ul', lines))

/** Runs an action, and shows its error in `place`, unless it was aborted. @param {() => any} [again] */
export async function attempt(place, act, again) {
  try {
    await act()
  } catch (error) {
    if (error.name !== 'AbortError') show(place, problemBox(error, again))
  }
}

/** Returns the text for a field error, and the service's English text if it says more. @param {any} fault @returns {any} */
export function faultText({ code, limit: count, detail }) {
  const known = has(`fault.${code}`)
  const text = t(`fault.${known ? code : 'other'}`, { count })
  return known && !/format|much/.test(code) ? text : [text, ' ', h('span.hint', { lang: 'en' }, detail)]
}

/** Shows a field error next to its field. */
export function mark(control, fault, text = faultText(fault)) {
  const id = newId()
  control.setAttribute('aria-invalid', 'true')
  control.setAttribute('aria-describedby', id)
  control.closest('.field').append(h('div.wrong', { id }, text))
}

/** Shows field errors next to their fields, and other errors in `place`. */
export function showProblems(form, place, error) {
  if (!(error instanceof Problem)) throw error
  clearProblems(form, place)
  error.errors = error.errors.filter((fault) => {
    const control = every(form, '[data-pointer]').find(({ dataset }) => dataset.pointer === fault.pointer)
    return control ? mark(control, fault) : true
  })
  show(place, problemBox(error))
  form.querySelector('[aria-invalid]')?.focus()
}

/**
 * Clears errors, waits for typed names, and refuses what the controls know to be wrong: impossible and incomplete dates, for which
 * they have no value, and required ones without a value.
 */
export async function check(form, place) {
  clearProblems(form, place)
  await Promise.all(every(form, '[role=combobox]').map((control) => settle(control)))
  for (const [kind, code] of [['badInput', 'invalid_date'], ['valueMissing', 'required']]) {
    const wrong = every(form, '[data-pointer]').filter(({ validity }) => validity[kind])
    if (wrong.length) throw fault(code, ...wrong.map(({ dataset }) => dataset.pointer))
  }
}

export function clearProblems(form, place = h('div')) {
  show(place)
  for (const note of every(form, '.wrong')) note.remove()
  for (const control of every(form, '[aria-invalid]')) {
    control.removeAttribute('aria-invalid')
    control.removeAttribute('aria-describedby')
  }
}

/**
 * Marks an edited form, and calls `edit` to discard its plan, which must match the shown values. `next` has the form's buttons.
 * Returns a function that returns the signal of a new plan: the next edit or plan aborts it.
 */
export function discardOnEdit(element, next, edit) {
  const newPlan = latest()
  const discard = () => {
    newPlan()
    element.dataset.edited = ''
    if (!next.querySelector('[type=submit]')) edit()
  }
  element.addEventListener('input', discard)
  element.addEventListener('chosen', discard)
  return newPlan
}

/** Blocks elements while an action runs, because it would ignore their edits. @param {Iterable<any>} elements @param {() => any} act */
export async function blocking(elements, act) {
  const all = [...elements]
  for (const one of all) one.inert = true
  try {
    return await act()
  } finally {
    for (const one of all) one.inert = false
  }
}

/** Creates the search field of a list. @param {(text: string) => void} look */
export const searchField = (value, hint, look, signal) =>
  input('search', value, { id: 'search', className: 'search', placeholder: hint, ariaLabel: t('search'), enterKeyHint: 'search',
    input: debounced(({ target }) => signal.aborted || look(target.value.trim())) })

/** Returns the people whose whole name or e-mail address is a text. */
export const samePeople = (people, text) => people.filter(({ display_name: name, email }) => [name, email].some((one) => one.toLowerCase() === text.toLowerCase()))

/**
 * Suggests people by parts of their names or e-mail addresses. A text means the person with this name or address, or the only one
 * that is found.
 */
export const personField = (chosen, person = null, missed = undefined) =>
  suggesting({
    chosen,
    missed,
    first: person && { ...person, text: person.display_name },
    placeholder: t('person-placeholder'),
    find: async (text, signal) => {
      const { data } = await get('/users', signal, { q: text, is_active: true, limit: 8 })
      return data.map((user) => ({ ...user, text: user.display_name, detail: user.email }))
    },
    meant: (text, people) => {
      const same = samePeople(people, text)
      const [person, ...others] = same.length ? same : people
      return others.length ? null : person
    },
  })

const MOST_PLACES = 8
const MOST_LEVELS = 8
const LEVELS = ' / '
/** Returns the places, with those that contain them, that have a text, and how many assets are there: the outer ones first. */
export async function findPlaces(text) {
  if (!may('assets:read')) return []
  const { data } = await cached(`/stats${query({ group_by: 'location', depth: MOST_LEVELS })}`)
  /** @type {Map<string, number>} */
  const places = new Map()
  for (const { value, count } of data.groups) {
    const levels = value?.split(LEVELS) ?? []
    for (const n of levels.keys()) {
      const place = levels.slice(0, n + 1).join(LEVELS)
      places.set(place, (places.get(place) ?? 0) + count)
    }
  }
  const depth = (place) => place.split(LEVELS).length
  return [...places].filter(([place]) => place.toLowerCase().includes(text.toLowerCase())).sort(([a], [b]) => depth(a) - depth(b))
}

/** Suggests places. Others are accepted. */
export const locationField = (value, chosen = (_) => {}, none = t('new-place')) =>
  suggesting({
    none,
    first: value ? { text: value } : null,
    placeholder: 'Berlin / 3',
    chosen: (item) => item && chosen(item.text),
    find: async (text) => {
      const places = await findPlaces(text)
      return places.slice(0, MOST_PLACES).map(([text, count]) => ({ text, detail: t('assets', { count }) }))
    },
  })

const ROLES = ['viewer', 'helpdesk', 'technician', 'admin']
/** Returns the roles of people as options. */
export const roleOptions = () => ROLES.map((role) => [role, t(`role.${role}`)])

/** Shows advice in place of an empty list. */
export const empty = (title, text = '', ...actions) => h('div.empty', h('p', h('strong', title)), text && hint(text), ...actions)

/** @param {any} meta @param {(page: number, text: string) => any} link */
export const pager = ({ page, total_pages: of }, link) =>
  h('nav.pages', { ariaLabel: t('pages'), hidden: of < 2 }, page > 1 && link(page - 1, t('previous')),
    h('span', t('page-of', { page, of })), page < of && link(page + 1, t('next')))
