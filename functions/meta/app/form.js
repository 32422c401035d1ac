// Fields, their problems, and fields that suggest as one types.
import { button, h, newId, own, show } from './dom.js'
import { Problem, get, query } from './api.js'
import { t } from './text.js'

/** A field with its name. The control has the pointer of its problems, such as `/name`. */
export function field(label, control, { hint = '', pointer = '' } = {}) {
  control.id ||= newId()
  if (pointer) control.dataset.pointer = pointer
  return h(
    'div.field',
    h('label', { htmlFor: control.id }, label),
    control.parentElement ?? control,
    hint && h('p.hint', hint),
  )
}

export const input = (type, value = '', more = {}) => h('input', { type, value: value ?? '', autocomplete: 'off', ...more })

/** @param {[string, string][]} options value and text @param {string} [value] */
export const select = (options, value = '', more = {}) =>
  h('select', more, options.map(([name, text]) => h('option', { value: name, selected: name === value }, text)))

export const checkbox = (label, isChecked = false, more = {}) => {
  const box = h('input', { type: 'checkbox', checked: isChecked, ...more })
  return { box, element: h('label.choice', box, h('span', label)) }
}

/** What went wrong, with a button where trying again may help. */
export function problemBox(error, again) {
  if (!(error instanceof Problem)) throw error
  const details = error.code === 'VALIDATION_ERROR' ? error.errors : []
  return h(
    'div',
    { className: 'problem', role: 'alert' },
    h('p', error.text),
    details.length > 0 && h('ul', details.map((fault) => h('li', { lang: 'en' }, `${fault.parameter ?? fault.pointer}: ${fault.detail}`))),
    again && button(t('try-again'), again),
  )
}

/** Shows the problems of a form beside its fields, and the others in `place`. */
export function showProblems(form, place, error) {
  if (!(error instanceof Problem)) throw error
  clearProblems(form, place)
  const rest = []
  for (const fault of error.errors) {
    const control = [...form.querySelectorAll('[data-pointer]')].find(({ dataset }) => dataset.pointer === fault.pointer)
    if (!control) {
      rest.push(fault)
      continue
    }
    const note = h('p.wrong', { id: newId(), lang: 'en' }, fault.detail)
    control.setAttribute('aria-invalid', 'true')
    control.setAttribute('aria-describedby', note.id)
    control.closest('.field').append(note)
  }
  show(place, problemBox(Object.assign(new Problem(error.status, error.body), { errors: rest })))
  form.querySelector('[aria-invalid]')?.focus()
}

export function clearProblems(form, place) {
  show(place)
  for (const note of form.querySelectorAll('.wrong')) note.remove()
  for (const control of form.querySelectorAll('[aria-invalid]')) {
    control.removeAttribute('aria-invalid')
    control.removeAttribute('aria-describedby')
  }
}

/** Calls after a pause of typing. */
export function debounced(act, milliseconds = 200) {
  let timer
  return (...values) => {
    clearTimeout(timer)
    timer = setTimeout(() => act(...values), milliseconds)
  }
}

/**
 * A text field that suggests as one types: a combobox of ARIA 1.2.
 * @param {{ find: (text: string, signal: AbortSignal) => Promise<{ text: string, detail?: string }[]>,
 *   chosen: (item: any) => void, value?: string, stays?: boolean, placeholder?: string }} options `stays`: it keeps the text
 */
export function suggesting({ find, chosen, value = '', stays = true, placeholder = '' }) {
  const list = h('ul', { id: newId(), role: 'listbox', className: 'suggestions', hidden: true, 'aria-label': t('suggestions') })
  const control = input('text', value, { role: 'combobox', 'aria-expanded': 'false', 'aria-controls': list.id, placeholder })
  control.setAttribute('aria-autocomplete', 'list')
  let items = [], active = -1, abort = new AbortController()
  const close = () => {
    abort.abort()
    list.hidden = true
    active = -1
    control.setAttribute('aria-expanded', 'false')
    control.removeAttribute('aria-activedescendant')
  }
  const choose = (item) => {
    control.value = stays ? item.text : ''
    close()
    chosen(item)
  }
  const mark = (index) => {
    active = (index + items.length) % items.length
    for (const [n, option] of [...list.children].entries()) option.setAttribute('aria-selected', String(n === active))
    const option = list.children[active]
    control.setAttribute('aria-activedescendant', option.id)
    option.scrollIntoView({ block: 'nearest' })
  }
  const look = async () => {
    abort.abort()
    abort = new AbortController()
    const { signal } = abort
    try {
      items = await find(control.value.trim(), signal)
    } catch (error) {
      if (signal.aborted) return
      items = []
    }
    if (signal.aborted || document.activeElement !== control) return
    active = -1
    const options = items.map((item) => {
      const option = h('li', { id: newId(), role: 'option', 'aria-selected': 'false' }, own(item.text), item.detail && own(item.detail, 'hint'))
      option.addEventListener('pointerdown', (event) => (event.preventDefault(), choose(item)))
      return option
    })
    show(list, options)
    list.hidden = options.length === 0
    control.setAttribute('aria-expanded', String(options.length > 0))
  }
  const lookSoon = debounced(look, 150)
  control.addEventListener('input', () => (stays && chosen(null), lookSoon()))
  control.addEventListener('focus', () => stays || lookSoon())
  control.addEventListener('blur', close)
  control.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      if (list.hidden) look()
      else mark(active < 0 && event.key === 'ArrowUp' ? -1 : active + (event.key === 'ArrowDown' ? 1 : -1))
    } else if (event.key === 'Enter' && !list.hidden && items.length) {
      event.preventDefault()
      choose(items[Math.max(active, 0)])
    } else if (event.key === 'Escape' && !list.hidden) {
      event.stopPropagation()
      close()
    }
  })
  h('div.combobox', control, list)
  return control
}

/** Suggests people by a part of their names or addresses. */
export const personField = (chosen, value = '') =>
  suggesting({
    chosen,
    value,
    placeholder: t('person-placeholder'),
    find: async (text, signal) => {
      const { data } = await get(`/users${query({ q: text, is_active: true, limit: 8 })}`, signal)
      return data.map((user) => ({ ...user, text: user.display_name, detail: user.email }))
    },
  })

/** What stands in place of an empty list: what to do. */
export const empty = (title, hint, ...actions) =>
  h('div.empty', h('p', h('strong', title)), h('p.hint', hint), ...actions)
