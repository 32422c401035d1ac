// The form: what the signer confirms, the open steps, and errors next to their fields.

/** @param {SignedAsset} asset */
function shownAsset({ asset_tag, name, manufacturer, model, serial_number, location }) {
  const details = [
    [manufacturer, model].filter(Boolean).join(' '),
    serial_number ? pieces('serial-number', { number: isolated(serial_number) }) : '',
    location ?? '',
  ].filter(Boolean)
  return create(
    'li',
    {},
    create('span', { className: 'tag' }, isolated(asset_tag)),
    create('strong', {}, isolated(name)),
    ...details.map((detail) => create('span', { className: 'detail' }, ...[typeof detail === 'string' ? isolated(detail) : detail].flat())),
  )
}

/** @param {SigningSession} session @returns {Node | string} */
function shownAssets({ assets, movement_number }) {
  if (assets.length === 0) return ''
  const title = create('h2', { id: newId(), className: assets.length === 1 ? 'unseen' : '' }, t('devices'))
  return create(
    'section',
    { className: 'assets', 'aria-labelledby': title.id },
    title,
    movement_number ? create('p', { className: 'hint' }, isolated(movement_number)) : null,
    // Not collapsible: nobody should sign for assets that they can't see.
    create('ul', {}, ...assets.map(shownAsset)),
  )
}

/**
 * Creates the field for a step, with the step's value in the draft.
 * @param {SigningSession} session
 * @param {SessionStep} open
 * @returns {Field}
 */
function fieldOf(session, open) {
  const { fields } = draftOf(session.link_id)
  // A step key can be the name of an inherited property, such as "constructor".
  const kept = Object.hasOwn(fields, open.step.key) ? fields[open.step.key] : undefined
  switch (open.step.type) {
    case 'user_picker': return personField(open, kept, session.signer)
    case 'checklist': return checklistField(open, kept)
    case 'signature': return signatureField(open, kept)
    case 'text': return textField(open, kept)
    case 'textarea': return textareaField(open, kept)
    case 'select': return selectField(open, kept)
    case 'date': return dateField(open, kept)
    case 'confirmation': return confirmationField(open, kept)
    case 'complete': return completeField(open)
  }
}

/**
 * Shows an error beside a field. Null removes the error.
 * @param {Field} field
 * @param {string | null} text
 */
function setError(field, text) {
  field.error.textContent = text ?? ''
  field.error.hidden = text === null
  for (const control of field.element.querySelectorAll('input, select, textarea')) control.removeAttribute('aria-invalid')
  const isControl = field.control.matches('input, select, textarea')
  if (text !== null && isControl) field.control.setAttribute('aria-invalid', 'true')
  field.element.classList.toggle('wrong', text !== null)
}

/**
 * Shows errors next to their fields, and focuses the first field with an error.
 * @param {Field[]} fields
 * @param {(field: Field) => string | null} errorOf
 * @returns {boolean} whether there is an error
 */
function showErrors(fields, errorOf) {
  const wrong = fields.filter((field) => {
    const error = errorOf(field)
    setError(field, error)
    return error !== null
  })
  const [first] = wrong
  if (!first) return false
  const lines = wrong.map((field) => {
    const link = button('', () => goTo(field), 'link')
    link.append(isolated(field.open.step.label))
    return create('li', { 'data-of': field.open.step.key }, link, create('p', {}, field.error.textContent))
  })
  showProblem(create('p', {}, secondLook(lines.length)), create('ul', {}, ...lines))
  goTo(first)
  return true
}

/** @param {number} count */
const secondLook = (count) => t('second-look', { count })

/**
 * Removes the error of a corrected field, also from the list of errors.
 * @param {Field} field
 */
function correct(field) {
  if (field.error.hidden) return
  const error = field.check()
  // If the page got shorter, its content could move while someone is signing.
  part('form').style.minHeight = `${innerHeight - part('form').getBoundingClientRect().top}px`
  setError(field, error)
  const problem = part('problem')
  const lines = [...problem.querySelectorAll('li')]
  const line = lines.find((item) => item.getAttribute('data-of') === field.open.step.key)
  if (!line) return
  // While someone corrects a field, screen readers need not repeat the other errors.
  problem.setAttribute('aria-live', 'off')
  if (error !== null) return line.lastElementChild?.replaceChildren(error)
  const count = problem.querySelector('p')
  line.remove()
  if (lines.length > 1) return count?.replaceChildren(secondLook(lines.length - 1))
  count?.remove()
  problem.querySelector('ul')?.remove()
}

/** @param {Field} field */
function goTo(field) {
  field.control.focus({ preventScroll: true })
  field.element.scrollIntoView({ block: 'center' })
}

/**
 * Says what the signer receives or returns. Later signers, such as IT or witnesses, see the name of the process.
 * @param {SigningSession} session
 */
function titleOf({ assets, process_name, steps, submitted, target_status }) {
  const isSignature = (/** @type {SessionStep} */ { step }) => step.type === 'signature'
  const isFirst = steps.some(isSignature) && !submitted.some((entry) => isSignature(entry) && entry.is_stored)
  if (isFirst && target_status === 'in_use') return t('receives', { count: assets.length })
  if (isFirst && target_status === 'returned') return t('gives-back', { count: assets.length })
  return process_name
}

/**
 * Shows the form with the open steps, and returns their fields.
 * @param {SigningSession} session
 * @param {HTMLButtonElement} submitButton
 * @param {(field: Field) => void} changed
 */
function showForm(session, submitButton, changed) {
  const fields = session.steps.map((open) => fieldOf(session, open))
  for (const field of fields) {
    field.element.addEventListener('input', () => {
      keepField(field)
      correct(field)
      changed(field)
    })
  }
  const name = create('strong', {}, isolated(session.signer.name))
  const signer = create('p', { className: 'signer' }, ...pieces('signing-as', { name }))
  const until = create('p', { className: 'hint' }, ...pieces('open-until', { time: shownTime(session.ends_at) }))
  showView(
    session,
    titleOf(session),
    [shownAssets(session), shownSubmitted(session), signer, ...fields.map(({ element }) => element)],
    [submitButton, until],
  )
  return fields
}
