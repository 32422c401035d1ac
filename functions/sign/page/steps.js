// Controls for each type of step, except signatures.
import { h, newId, own } from './elements.js'
import { choice, input, select } from './fields.js'
import { t } from './texts.js'

/**
 * Creates the group of a field, named by the step's label, with a place for an error. With `isLabel`, the label belongs to the
 * control; with `hasOwnLabel`, the control shows the label, and the group's name is only for screen readers.
 * @param {SessionStep} open
 * @param {{ control: HTMLElement, hint?: string, statement?: string, isLabel?: boolean, hasOwnLabel?: boolean }} options
 * @param {...(Node | null)} content
 * @returns {Field}
 */
export function frame(open, { control, hint = '', statement = '', isLabel = false, hasOwnLabel = false }, ...content) {
  const { step } = open
  const label = own(step.label)
  const isOptional = !(step.required ?? step.type === 'confirmation') && step.type !== 'complete'
  const hints = [hint, isOptional ? t('optional') : ''].filter(Boolean).join(' ')
  const hinted = hints ? h('p.hint', { id: newId() }, hints) : null
  const stated = statement ? h('p', { className: 'statement value', id: newId(), dir: 'auto' }, statement) : null
  const error = h('p.error', { id: newId(), hidden: true, 'data-error': '' })
  const legend = h('legend', isLabel ? h('label', { htmlFor: control.id }, label) : label)
  if (hasOwnLabel) legend.className = 'unseen'
  const described = [hinted, stated, error].flatMap((part) => part?.id ?? []).join(' ')
  if (isLabel || hasOwnLabel) control.setAttribute('aria-describedby', described)
  const element = h('fieldset', { 'data-key': step.key, 'aria-describedby': described }, legend, hinted, stated, ...content, error)
  return { open, element, control, error, value: () => null, check: () => null, save: () => null }
}

/**
 * @param {SessionStep} open
 * @param {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} control
 * @param {FieldDraft | undefined} kept
 * @param {() => string | null} check
 * @returns {Field}
 */
function textualField(open, control, kept, check) {
  control.id = newId()
  const text = kept ?? open.value
  if (typeof text === 'string') control.value = text
  const field = frame(open, { control, isLabel: true }, control)
  const isMissing = () => Boolean(open.step.required) && !control.value.trim()
  return Object.assign(field, {
    value: () => control.value || null,
    check: () => check() ?? (isMissing() ? t(`missing.${open.step.type}`) : null),
    save: () => control.value,
  })
}

/** @param {HTMLInputElement | HTMLTextAreaElement} control @param {number} most */
const tooLong = (control, most) => () => {
  const length = [...control.value.trim()].length
  return length > most ? t('too-long', { most, length }) : null
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
export function textField(open, kept) {
  const control = input('text', '', { dir: 'auto' })
  return textualField(open, control, kept, tooLong(control, 255))
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
export function textareaField(open, kept) {
  const control = h('textarea', { rows: 4, dir: 'auto' })
  return textualField(open, control, kept, tooLong(control, 10_000))
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
export function dateField(open, kept) {
  const control = input('date')
  return textualField(open, control, kept, () => (control.validity.badInput ? t('whole-date') : null))
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
export function selectField(open, kept) {
  const control = select([['', t('choose')], ...(open.step.options ?? []).map((option) => [option, option])])
  return textualField(open, control, kept, () => null)
}

/** @param {SessionStep} open @param {FieldDraft} [kept] @returns {Field} */
export function checklistField(open, kept) {
  const chosen = kept ?? open.value
  const items = open.step.items ?? []
  const isChosen = (/** @type {string} */ item) => Array.isArray(chosen) && chosen.includes(item)
  const choices = items.map((item) => choice(own(item), isChosen(item)))
  const [first] = choices
  const hint = open.step.required && items.length > 1 ? t('every-line') : ''
  const field = frame(open, { control: first?.box ?? input('checkbox'), hint }, ...choices.map(({ element }) => element))
  const checked = () => items.filter((_, index) => choices[index]?.box.checked)
  return Object.assign(field, {
    value: () => (checked().length || Array.isArray(open.value) ? checked() : null),
    check() {
      const missing = choices.find(({ box }) => !box.checked)
      field.control = missing?.box ?? field.control
      return open.step.required && missing ? t('missing.checklist') : null
    },
    save: checked,
  })
}

/** @param {SessionStep} open @param {FieldDraft} [kept] @returns {Field} */
export function confirmationField(open, kept) {
  const { box, element } = choice(own(open.step.label), (kept ?? open.value) === true)
  const field = frame(open, { control: box, hasOwnLabel: true }, element)
  return Object.assign(field, {
    value: () => box.checked || null,
    check: () => ((open.step.required ?? true) && !box.checked ? t('missing.confirmation') : null),
    save: () => box.checked,
  })
}

/** @param {SessionStep} open @returns {Field} */
export function completeField(open) {
  const field = frame(open, { control: h('span'), hint: t('when-pressed') })
  field.element.className = 'complete'
  return field
}
