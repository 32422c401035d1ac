// The form: what the signer confirms, the open steps, and errors next to their fields.
import { draftOf, keepField } from './draft.js'
import { button, h, hint, newId, own, part } from './elements.js'
import { personField } from './person.js'
import { shownSubmitted } from './shown.js'
import { signatureField } from './signature.js'
import { checklistField, completeField, confirmationField, dateField, selectField, textField, textareaField } from './steps.js'
import { sentence, t } from './texts.js'
import { zonedTime } from './values.js'
import { showProblem, showView } from './view.js'

/** @param {SignedAsset} asset */
function shownAsset({ asset_tag, name, manufacturer, model, serial_number, location }) {
  const details = [
    [manufacturer, model].filter(Boolean).join(' '),
    serial_number ? sentence('serial-number', { number: own(serial_number) }) : '',
    location ?? '',
  ].filter(Boolean)
  return h('li', h('span.tag', own(asset_tag)),
    h('strong', own(name)),
    ...details.map((detail) => h('span.detail', ...[typeof detail === 'string' ? own(detail) : detail].flat())),
  )
}

/** @param {SigningSession} session @returns {Node | string} */
export function shownAssets({ assets, movement_number }) {
  if (assets.length === 0) return ''
  const title = h('h2', { id: newId(), className: assets.length === 1 ? 'unseen' : '' }, t('devices'))
  return h('section.assets', { 'aria-labelledby': title.id },
    title,
    movement_number ? hint(own(movement_number)) : null,
    // Not collapsible: nobody should sign for assets that they can't see.
    h('ul', ...assets.map(shownAsset)),
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
export function showErrors(fields, errorOf) {
  const wrong = fields.filter((field) => {
    const error = errorOf(field)
    setError(field, error)
    return error !== null
  })
  const [first] = wrong
  if (!first) return false
  const lines = wrong.map((field) => {
    const link = button('', () => goTo(field), 'link')
    link.append(own(field.open.step.label))
    return h('li', { 'data-of': field.open.step.key }, link, h('p', field.error.textContent))
  })
  showProblem(h('p', secondLook(lines.length)), h('ul', ...lines))
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
export function showForm(session, submitButton, changed) {
  const fields = session.steps.map((open) => fieldOf(session, open))
  for (const field of fields) {
    field.element.addEventListener('input', () => {
      keepField(field)
      correct(field)
      changed(field)
    })
  }
  const name = h('strong', own(session.signer.name))
  const signer = h('p.signer', ...sentence('signing-as', { name }))
  const until = hint(...sentence('open-until', { time: zonedTime(session.ends_at) }))
  showView(
    session,
    titleOf(session),
    [shownAssets(session), shownSubmitted(session), signer, ...fields.map(({ element }) => element)],
    [submitButton, until],
  )
  return fields
}
