// Fields, their errors, and fields that suggest values while typing.
import { Problem, cached, get, latest, may, session, setKey, today } from './api.js'
import { button, every, h, has, hint, link, mayLeave, named, newId, own, query, show, t } from './page.js'

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
      h('li', own(named(`field.${name(fault)}`, name(fault))), ': ', faultText(fault), unlisted(fault)))),
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
export function mark(control, fault) {
  const id = newId()
  control.setAttribute('aria-invalid', 'true')
  control.setAttribute('aria-describedby', id)
  control.closest('.field').append(h('div.wrong', { id }, faultText(fault)))
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

/** Clears errors, waits for typed names, and refuses impossible and incomplete dates, for which the control has no value. */
export async function check(form, place) {
  clearProblems(form, place)
  await Promise.all(every(form, '[role=combobox]').map((control) => settlers.get(control)?.()))
  const wrong = every(form, '[data-pointer]').filter(({ validity }) => validity.badInput)
  if (wrong.length) throw fault('invalid_date', ...wrong.map(({ dataset }) => dataset.pointer))
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

/** By field with suggestions, a function that takes an unfinished text for what it means. @type {WeakMap<any, () => any>} */
const settlers = new WeakMap()

/**
 * Creates a text field with suggestions while typing: an ARIA 1.2 combobox. A click or tap chooses a suggestion, and Enter a marked
 * one. The list always belongs to the text: each edit empties it.
 * @param {{ find: (text: string, signal: AbortSignal) => Promise<{ text: string, detail?: string }[]>, chosen: (item: any) => void,
 *   meant?: (text: string, items: any[]) => any, missed?: () => void, entered?: (text: string) => any, first?: any, placeholder?: string }} options
 *   `meant`: returns the item that a whole text means, if any. `missed`: is told that a text means nothing. `entered`: takes each
 *   text that is ended by Enter or Tab, like a scanner's; the field is then empty for the next one. `first`: the item chosen at first
 */
export function suggesting({ find, chosen, meant, missed, entered, first, placeholder = '' }) {
  const list = h('ul.suggestions', { id: newId(), role: 'listbox', hidden: true, ariaLabel: t('search'),
    // The field keeps the focus.
    mousedown: (event) => event.preventDefault() })
  const newSearch = latest()
  let items = [], active = -1, last = first
  /** @type {{ text: string, done: Promise<void> } | null} */
  let search = null
  const text = () => control.value.trim()
  const open = (isOpen) => {
    list.hidden = !isOpen
    control.ariaExpanded = String(isOpen)
    active = -1
    control.removeAttribute('aria-activedescendant')
  }
  const close = () => {
    newSearch()
    search = null
    items = []
    open(false)
  }
  const reveal = () => document.activeElement === control && open(items.length > 0)
  const choose = (item) => {
    close()
    control.value = entered ? '' : item.text
    if (!entered) {
      last = item
      control.dataset.chosen = ''
    }
    chosen(item)
    if (!entered) control.dispatchEvent(new Event('chosen', { bubbles: true }))
  }
  const mark = (index) => {
    active = (index + items.length) % items.length
    for (const [n, option] of [...list.children].entries()) option.ariaSelected = String(n === active)
    control.setAttribute('aria-activedescendant', list.children[active].id)
    list.children[active].scrollIntoView({ block: 'nearest' })
  }
  async function fillList(asked, signal) {
    const found = await find(asked, signal).catch(() => null)
    if (signal.aborted) return
    if (!found) return close()
    items = found
    show(list, items.map((item) => h('li', { id: newId(), role: 'option', ariaSelected: 'false', click: () => choose(item) },
      own(item.text), item.detail && own(item.detail, 'hint'))))
    reveal()
  }
  /** Fills the list for the text, once. */
  const look = () => {
    if (search?.text !== text()) search = { text: text(), done: fillList(text(), newSearch()) }
    return search.done
  }
  const lookSoon = debounced((signal) => !signal.aborted && text() && document.activeElement === control && look(), 150)
  /** Chooses what the text means, and returns whether it means anything. Waits for the list that belongs to the text. */
  async function settle() {
    const asked = text()
    await look()
    if (text() !== asked || 'chosen' in control.dataset || !control.isConnected) return true
    const item = meant(asked, items)
    if (item) choose(item)
    return Boolean(item ?? items.length)
  }
  const isOpenText = () => meant && text() && !('chosen' in control.dataset)
  function takeText() {
    const asked = text()
    close()
    control.value = ''
    return asked && entered(asked)
  }
  function enter(event) {
    if (active >= 0) choose(items[active])
    else if (entered) takeText()
    else if (isOpenText()) settle().then((isFound) => isFound || (missed ? missed() : control.form?.requestSubmit()))
    else return close()
    event.preventDefault()
  }
  const control = input('text', first?.text, {
    role: 'combobox', ariaExpanded: 'false', 'aria-controls': list.id, ariaAutoComplete: 'list', placeholder,
    blur: () => {
      open(false)
      if (isOpenText()) settle().then(() => isOpenText() && missed?.())
    },
    input: () => {
      delete control.dataset.chosen
      close()
      // The edit is undone.
      if (!entered && last && control.value === last.text) return choose(last)
      if (!entered) chosen(null)
      // Until then, Enter can choose something or look itself.
      lookSoon(newSearch())
    },
    click: () => entered && look(),
    keydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
      if (step) {
        event.preventDefault()
        if (!list.hidden) mark(Math.max(active, step < 0 ? 0 : -1) + step)
        else look().then(reveal)
      } else if (endsScan(event) && (event.key !== 'Tab' || (entered && text() && text() !== control.dataset.refused))) enter(event)
      else if (event.key === 'Escape' && !list.hidden) {
        event.stopPropagation()
        open(false)
      }
    },
  })
  if (first) control.dataset.chosen = ''
  settlers.set(control, () => (entered ? takeText() : isOpenText() && settle()))
  h('div.combobox', control, list)
  return control
}

/** Returns whether a key ends a scan: Enter, Tab or, with scanners for terminals, Ctrl+M and Ctrl+J. */
export const endsScan = ({ key, shiftKey, ctrlKey, isComposing }) =>
  !isComposing && (key === 'Enter' || (key === 'Tab' && !shiftKey) || (ctrlKey && /^[mj]$/i.test(key)))

let isSuggestion = false
// The second tap of a double tap on a suggestion must not press or focus what lies beneath it.
for (const type of ['mousedown', 'click']) addEventListener(type, (/** @type {any} */ event) => {
  if (event.detail > 1 && isSuggestion) {
    event.preventDefault()
    event.stopPropagation()
  } else isSuggestion = event.target instanceof Element && event.target.closest('[role=option]') !== null
}, { capture: true })

/** The longest pause between a scanner's keys, in milliseconds. Nobody types a code so fast. */
const SCAN_MS = 70
const SHORTEST_SCAN = 4

/**
 * Takes codes from a scanner wherever the focus is. Outside of fields for text, any character leads to `control`, if there is one;
 * in such a field, a code that is typed as a scanner types goes to `take`, and the field gets back what it had. People leave a
 * search field with Tab, so there Tab ends a scan only after such a code.
 * @param {(code: string) => any} take @param {AbortSignal} signal @param {HTMLInputElement} [control]
 */
export function takeScans(take, signal, control) {
  const none = { code: '', at: 0, field: null, before: '' }
  let typed = none
  addEventListener('keydown', (event) => {
    const { key, target, timeStamp: at, ctrlKey, metaKey, altKey } = event
    if (!(target instanceof HTMLElement) || (control && !control.isConnected)) return
    const field = /** @type {any} */ (target)
    const isControl = field === control
    // A field with a chosen value is complete, unless someone has selected its text to replace it.
    const isText = isControl || (target instanceof HTMLInputElement ? !/checkbox|radio/.test(target.type) && !('chosen' in target.dataset && target.selectionStart === target.selectionEnd)
      : target instanceof HTMLTextAreaElement)
    const isCharacter = key.length === 1 && (!(ctrlKey || metaKey || altKey) || event.getModifierState('AltGraph'))
    if (control && !isText) {
      if (!isCharacter || key === ' ' || key === '/') return
      typed = { code: key, at, field: control, before: '' }
      control.select()
      return control.focus()
    }
    if (!isControl && isText && (!control || target.closest('.basket'))) return
    const isFast = field === typed.field && at - typed.at <= SCAN_MS && !event.repeat
    if (isCharacter) {
      typed = { code: (isFast ? typed.code : '') + key, at, field, before: isFast ? typed.before : field.value }
      // A space would press a button.
      if (isFast && !isText) event.preventDefault()
    } else if (endsScan(event) && isFast && typed.code.length >= SHORTEST_SCAN) {
      const { code, before } = typed
      if (isControl && before && /\d/.test(code)) {
        // What the field had before is no part of the code. A word without a digit can be the end of a person's typing.
        field.value = code
        field.dispatchEvent(new Event('input', { bubbles: true }))
      }
      if (isControl && !(field.type === 'search' && key === 'Tab')) return
      // Leaving a field with suggestions settles what its text means.
      if (key !== 'Tab' || !settlers.has(field)) event.preventDefault()
      event.stopPropagation()
      finish(typed)
      typed = none
    } else if (!/^(Shift|CapsLock|AltGraph|Control)$/.test(key)) typed = none
  }, { signal, capture: true })

  async function finish({ code, field, before }) {
    if (await settlers.get(field)?.()) return
    if (field !== control && before !== undefined && field.value !== before) {
      field.value = before
      for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true }))
    }
    take(code.trim())
  }
}

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

/** Suggests places. Others are accepted. */
export const locationField = (value, chosen = (_) => {}) =>
  suggesting({
    first: value ? { text: value } : null,
    placeholder: 'Berlin / 3',
    chosen: (item) => item && chosen(item.text),
    find: async (text) => {
      if (!may('assets:read')) return []
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
