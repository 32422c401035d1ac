// Controls for each type of step, except signatures.

/**
 * Creates the group of a field, named by the step's label, with a place for an error. With `isLabel`, the label belongs to the
 * control; with `hasOwnLabel`, the control shows the label, and the group's name is only for screen readers.
 * @param {SessionStep} open
 * @param {{ control: HTMLElement, hint?: string, statement?: string, isLabel?: boolean, hasOwnLabel?: boolean }} options
 * @param {...(Node | null)} content
 * @returns {Field}
 */
function frame(open, { control, hint = '', statement = '', isLabel = false, hasOwnLabel = false }, ...content) {
  const { step } = open
  const label = isolated(step.label)
  const isOptional = !(step.required ?? step.type === 'confirmation') && step.type !== 'complete'
  const hints = [hint, isOptional ? t('optional') : ''].filter(Boolean).join(' ')
  const hinted = hints ? create('p', { className: 'hint', id: newId() }, hints) : null
  const stated = statement ? create('p', { className: 'statement value', id: newId(), dir: 'auto' }, statement) : null
  const error = create('p', { className: 'error', id: newId(), hidden: true, 'data-error': '' })
  const legend = create('legend', {}, isLabel ? create('label', { htmlFor: control.id }, label) : label)
  if (hasOwnLabel) legend.className = 'unseen'
  const described = [hinted, stated, error].flatMap((part) => part?.id ?? []).join(' ')
  if (isLabel || hasOwnLabel) control.setAttribute('aria-describedby', described)
  const element = create('fieldset', { 'data-key': step.key, 'aria-describedby': described }, legend, hinted, stated, ...content, error)
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
function textField(open, kept) {
  const control = create('input', { type: 'text', dir: 'auto' })
  return textualField(open, control, kept, tooLong(control, 255))
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
function textareaField(open, kept) {
  const control = create('textarea', { rows: 4, dir: 'auto' })
  return textualField(open, control, kept, tooLong(control, 10_000))
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
function dateField(open, kept) {
  const control = create('input', { type: 'date' })
  return textualField(open, control, kept, () => (control.validity.badInput ? t('whole-date') : null))
}

/** @param {SessionStep} open @param {FieldDraft} [kept] */
function selectField(open, kept) {
  const options = (open.step.options ?? []).map((option) => create('option', { value: option }, option))
  const control = create('select', {}, create('option', { value: '' }, t('choose')), ...options)
  return textualField(open, control, kept, () => null)
}

/**
 * @param {'checkbox' | 'radio'} type
 * @param {string} group
 * @param {boolean} isChecked
 * @param {...(Node | string)} text
 */
function choice(type, group, isChecked, ...text) {
  const input = create('input', { type, name: group, checked: isChecked })
  return { input, line: create('label', { className: 'choice' }, input, create('span', {}, ...text)) }
}

/** @param {SessionStep} open @param {FieldDraft} [kept] @returns {Field} */
function checklistField(open, kept) {
  const chosen = kept ?? open.value
  const items = open.step.items ?? []
  const isChosen = (/** @type {string} */ item) => Array.isArray(chosen) && chosen.includes(item)
  const choices = items.map((item) => choice('checkbox', '', isChosen(item), isolated(item)))
  const [first] = choices
  const hint = open.step.required && items.length > 1 ? t('every-line') : ''
  const field = frame(open, { control: first?.input ?? create('input'), hint }, ...choices.map(({ line }) => line))
  const checked = () => items.filter((_, index) => choices[index]?.input.checked)
  return Object.assign(field, {
    value: () => (checked().length || Array.isArray(open.value) ? checked() : null),
    check() {
      const missing = choices.find(({ input }) => !input.checked)
      field.control = missing?.input ?? field.control
      return open.step.required && missing ? t('missing.checklist') : null
    },
    save: checked,
  })
}

/** @param {SessionStep} open @param {FieldDraft} [kept] @returns {Field} */
function confirmationField(open, kept) {
  const { input, line } = choice('checkbox', '', (kept ?? open.value) === true, isolated(open.step.label))
  const field = frame(open, { control: input, hasOwnLabel: true }, line)
  return Object.assign(field, {
    value: () => input.checked || null,
    check: () => ((open.step.required ?? true) && !input.checked ? t('missing.confirmation') : null),
    save: () => input.checked,
  })
}

/** @param {SessionStep} open @returns {Field} */
function completeField(open) {
  const field = frame(open, { control: create('span'), hint: t('when-pressed') })
  field.element.className = 'complete'
  return field
}
