// Text fields that suggest values while typing, and codes from scanners.
import { h, newId, own, show } from './elements.js'
import { debounced, input } from './fields.js'
import { latest } from './requests.js'
import { t } from './texts.js'

/** By field with suggestions, a function that takes an unfinished text for what it means. @type {WeakMap<any, () => any>} */
const settlers = new WeakMap()
/** By field with suggestions, a function that sets the chosen item. @type {WeakMap<any, (item: any) => any>} */
const setters = new WeakMap()

/**
 * Creates a text field with suggestions while typing: an ARIA 1.2 combobox. A click or tap chooses a suggestion, and Enter a marked
 * one. The list always belongs to the text: each edit empties it.
 * @param {{ find: (text: string, signal: AbortSignal) => Promise<{ text: string, detail?: string }[]>, chosen: (item: any) => void,
 *   meant?: (text: string, items: any[]) => any, missed?: () => void, entered?: (text: string) => any, first?: any, placeholder?: string,
 *   none?: string }} options
 *   `meant`: returns the item that a whole text means, if any. `missed`: is told that a text means nothing. `entered`: takes each
 *   text that is ended by Enter or Tab, like a scanner's; the field is then empty for the next one. `first`: the item chosen at first. `none`: what
 *   the field says if nothing matches
 */
export function suggesting({ find, chosen, meant, missed, entered, first, placeholder = '', none = t('nothing-found') }) {
  const list = h('ul.suggestions', { id: newId(), role: 'listbox', hidden: true, ariaLabel: t('search'),
    // The field keeps the focus.
    mousedown: (event) => event.preventDefault() })
  const nothing = h('p.suggestions.none', { role: 'status', hidden: true })
  const newSearch = latest()
  let items = [], active = -1, last = first
  /** @type {{ text: string, done: Promise<void> } | null} */
  let search = null
  const text = () => control.value.trim()
  const open = (isOpen) => {
    list.hidden = !isOpen
    nothing.hidden = true
    if (isOpen) fit(list)
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
  const reveal = () => {
    if (document.activeElement !== control) return
    open(items.length > 0)
    nothing.hidden = items.length > 0 || !text()
    show(nothing, none)
    if (!nothing.hidden) fit(nothing)
  }
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
  setters.set(control, (item) => {
    close()
    last = item
    control.value = item?.text ?? ''
    if (item) control.dataset.chosen = ''
    else delete control.dataset.chosen
  })
  h('div.combobox', control, list, nothing)
  return control
}

/** Sets the chosen item of a field with suggestions, or none. @param {any} control @param {{ text: string } | null} item */
export const preset = (control, item) => setters.get(control)?.(item)

/** The space in pixels that a list leaves free above and below, for the page's header and navigation. */
const FREE = 56
const LOWEST = 96

/** Keeps a list on the screen: at the other end of its field, above it, or lower. @param {HTMLElement} list */
function fit(list) {
  list.classList.remove('at-end', 'above')
  list.style.maxHeight = ''
  const { right, bottom, top } = list.getBoundingClientRect()
  const field = /** @type {Element} */ (list.parentElement).getBoundingClientRect()
  const height = visualViewport?.height ?? innerHeight
  list.classList.toggle('at-end', right > document.documentElement.clientWidth)
  if (top >= FREE && bottom <= height) return
  const isAbove = field.top - FREE > height - FREE - field.bottom
  list.classList.toggle('above', isAbove)
  list.style.maxHeight = `min(18rem, ${Math.max(LOWEST, isAbove ? field.top - FREE : height - FREE - field.bottom)}px)`
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

/** Takes an unfinished text for what it means. @param {any} control */
export const settle = (control) => settlers.get(control)?.()
