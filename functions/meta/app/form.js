// Fields, their errors, and fields that suggest values while typing.
import { Problem, cached, get, latest, session, setKey } from './api.js'
import { button, every, h, has, hint, mayLeave, named, newId, own, query, show, t } from './page.js'

/** Creates a labelled field. `pointer`, such as `/name`, locates the control's errors. */
export function field(label, control, pointer = '') {
  control.id ||= newId()
  if (pointer) control.dataset.pointer = pointer
  return h('div.field', h('label', { htmlFor: control.id }, label), control.parentElement ?? control)
}

export const input = (type, value = '', more = {}) => h('input', { type, value: value ?? '', autocomplete: 'off', ...more })

/** @param {[string, string][]} options value and text @param {string} [value] */
export const select = (options, value = '', more = {}) =>
  h('select', more, options.map(([name, text]) => h('option', { value: name, selected: name === (value ?? '') }, text)))

export const checkbox = (label, isChecked = false) => {
  const box = h('input', { type: 'checkbox', checked: isChecked })
  return { box, element: h('label.choice', box, h('span', label)) }
}

/** Creates a field for a day up to today. */
export const dayField = (value, changed) =>
  input('date', value, { max: new Date().toISOString().slice(0, 10), change: ({ target }) => changed(target.value) })

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
      h('li', own(named(`field.${name(fault)}`, name(fault))), ': ', faultText(fault)))),
    error.status === 401 && session.key ? button(t('key-title'), newKey) : again && button(t('try-again'), again))
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

/** Shows field errors next to their fields, and other errors in `place`. */
export function showProblems(form, place, error) {
  if (!(error instanceof Problem)) throw error
  clearProblems(form, place)
  error.errors = error.errors.filter((fault) => {
    const control = every(form, '[data-pointer]').find(({ dataset }) => dataset.pointer === fault.pointer)
    if (!control) return true
    const id = newId()
    control.setAttribute('aria-invalid', 'true')
    control.setAttribute('aria-describedby', id)
    control.closest('.field').append(h('div.wrong', { id }, faultText(fault)))
  })
  show(place, problemBox(error))
  form.querySelector('[aria-invalid]')?.focus()
}

/** Clears errors, and refuses impossible and incomplete dates, for which the control has no value. */
export function check(form, place) {
  clearProblems(form, place)
  const wrong = every(form, '[data-pointer]').filter(({ validity }) => validity.badInput)
  if (wrong.length) throw fault('invalid_date', ...wrong.map(({ dataset }) => dataset.pointer))
}

export function clearProblems(form, place) {
  show(place)
  for (const note of every(form, '.wrong')) note.remove()
  for (const control of every(form, '[aria-invalid]')) {
    control.removeAttribute('aria-invalid')
    control.removeAttribute('aria-describedby')
  }
}

/** Marks an edited form, and calls `edit` to discard its plan, which must match the shown values. `next` has the form's buttons. */
export const discardOnEdit = (element, next, edit) =>
  element.addEventListener('input', () => {
    element.dataset.edited = ''
    if (!next.querySelector('[type=submit]')) edit()
  })

/** Calls a function after a pause in typing. */
export function debounced(act, milliseconds = 200) {
  let timer
  return (...values) => {
    clearTimeout(timer)
    timer = setTimeout(() => act(...values), milliseconds)
  }
}

/** Creates the search field of a list. @param {(text: string) => void} look */
export const searchField = (value, hint, look, signal) =>
  input('search', value, { id: 'search', className: 'search', placeholder: hint, ariaLabel: t('search'), enterKeyHint: 'search',
    input: debounced(({ target }) => signal.aborted || look(target.value.trim())) })

/**
 * Creates a text field with suggestions while typing: an ARIA 1.2 combobox.
 * @param {{ find: (text: string, signal: AbortSignal) => Promise<{ text: string, detail?: string }[]>,
 *   chosen: (item: any) => void, value?: string, stays?: boolean, placeholder?: string }} options `stays`: whether the field
 *   keeps the text
 */
export function suggesting({ find, chosen, value = '', stays = true, placeholder = '' }) {
  const list = h('ul.suggestions', { id: newId(), role: 'listbox', hidden: true, ariaLabel: t('search') })
  const newSearch = latest()
  let items = [], active = -1
  const open = (isOpen) => {
    list.hidden = !isOpen
    control.ariaExpanded = String(isOpen)
    active = -1
    control.removeAttribute('aria-activedescendant')
  }
  const close = () => {
    newSearch()
    open(false)
  }
  const choose = (item) => {
    control.value = stays ? item.text : ''
    close()
    chosen(item)
  }
  const mark = (index) => {
    active = (index + items.length) % items.length
    for (const [n, option] of [...list.children].entries()) option.ariaSelected = String(n === active)
    control.setAttribute('aria-activedescendant', list.children[active].id)
    list.children[active].scrollIntoView({ block: 'nearest' })
  }
  const look = async () => {
    const signal = newSearch()
    items = await find(control.value.trim(), signal).catch(() => [])
    if (signal.aborted || document.activeElement !== control) return
    show(list, items.map((item) => h('li', { id: newId(), role: 'option', ariaSelected: 'false',
      pointerdown: (event) => (event.preventDefault(), choose(item)) }, own(item.text), item.detail && own(item.detail, 'hint'))))
    open(items.length > 0)
  }
  const lookSoon = debounced(look, 150)
  const control = input('text', value, {
    role: 'combobox', ariaExpanded: 'false', 'aria-controls': list.id, ariaAutoComplete: 'list', placeholder, blur: close,
    input: () => (stays && chosen(null), lookSoon()),
    focus: () => stays || lookSoon(),
    keydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
      if (step) {
        event.preventDefault()
        if (list.hidden) look()
        else mark(Math.max(active, step < 0 ? 0 : -1) + step)
      } else if (event.key === 'Enter' && !list.hidden) {
        event.preventDefault()
        choose(items[Math.max(active, 0)])
      } else if (event.key === 'Escape' && !list.hidden) {
        event.stopPropagation()
        close()
      }
    },
  })
  h('div.combobox', control, list)
  return control
}

/** Suggests people by parts of their names or e-mail addresses. */
export const personField = (chosen, value = '') =>
  suggesting({
    chosen,
    value,
    placeholder: t('person-placeholder'),
    find: async (text, signal) => {
      const { data } = await get('/users', signal, { q: text, is_active: true, limit: 8 })
      return data.map((user) => ({ ...user, text: user.display_name, detail: user.email }))
    },
  })

export const locationField = (value, chosen = (_) => {}) =>
  suggesting({
    value,
    placeholder: 'Berlin / 3',
    chosen: (item) => item && chosen(item.text),
    find: async (text) => {
      const depth = Math.min(8, text.split('/').length)
      const { data } = await cached(`/stats${query({ group_by: 'location', depth })}`)
      const places = data.groups.filter(({ value }) => value?.toLowerCase().includes(text.toLowerCase()))
      return places.slice(0, 8).map(({ value, count }) => ({ text: value, detail: t('assets', { count }) }))
    },
  })

/** Shows advice in place of an empty list. */
export const empty = (title, text = '', ...actions) => h('div.empty', h('p', h('strong', title)), text && hint(text), ...actions)

/** @param {any} meta @param {(page: number, text: string) => any} link */
export const pager = ({ page, total_pages: of }, link) =>
  h('nav.pages', { ariaLabel: t('pages'), hidden: of < 2 }, page > 1 && link(page - 1, t('previous')),
    h('span', t('page-of', { page, of })), page < of && link(page + 1, t('next')))
