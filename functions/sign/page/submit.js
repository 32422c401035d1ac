// Submits the form once, even if the button is pressed repeatedly or the connection is lost.
import { keepField, keyFor } from './draft.js'
import { button, h, part } from './elements.js'
import { showErrors } from './form.js'
import { refused, showSession } from './outcome.js'
import { send } from './service.js'
import { signing } from './state.js'
import { t } from './texts.js'
import { say, showProblem } from './view.js'

export const submitButton = button('', () => submit(), 'primary')

/** @param {Field[]} batch @param {Json[]} values */
function bodyOf(batch, values) {
  /** @type {Record<string, Json>} */
  const stepData = {}
  batch.forEach(({ open }, index) => {
    const value = values[index] ?? null
    // Null removes a stored value.
    if (value !== null || open.value !== null || open.is_stored) stepData[open.step.key] = value
  })
  const typed = batch.filter((field, index) => field.isTyped?.() && values[index])
  return JSON.stringify({
    current_step: batch[0]?.open.index,
    through: batch[batch.length - 1]?.open.step.key,
    step_data: stepData,
    typed_signatures: typed.length ? typed.map(({ open }) => open.step.key) : undefined,
  })
}

/** @param {Field} field @param {Json} value @returns {Submitted} */
function submittedOf(field, value) {
  const { step } = field.open
  const image = step.type === 'signature' && typeof value === 'string' ? value : null
  const isTyped = field.isTyped?.() ?? false
  return { step, value, userName: field.summary?.() ?? null, image, isSigned: image !== null, isTyped, by: null, at: null }
}

/**
 * Submits the steps of these fields in one request, or in halves if there are too many for one request.
 * @param {Field[]} batch
 * @returns {Promise<Reply>}
 */
async function submitFields(batch) {
  const values = batch.map((field) => field.value())
  const body = bodyOf(batch, values)
  const reply = await send('advance', body, keyFor(body))
  /** @type {Problem} */
  const problem = reply.body
  const isTooMuch = reply.status === 413 || (reply.status === 422 && problem.errors?.some(({ pointer }) => pointer === '/through'))
  if (isTooMuch && batch.length > 1) {
    const half = Math.ceil(batch.length / 2)
    const first = await submitFields(batch.slice(0, half))
    return first.status === 200 ? submitFields(batch.slice(half)) : first
  }
  if (reply.status === 200) {
    signing.session = reply.body.data
    signing.submitted.push(...batch.map((field, index) => submittedOf(field, values[index] ?? null)))
  }
  return reply
}

/** @param {boolean} is */
function setSending(is) {
  signing.isSending = is
  submitButton.disabled = is
  submitButton.setAttribute('aria-busy', String(is))
  part('content').inert = is
  say(is ? t('sending') : '')
}

/** Warns once if nothing is ticked in an optional checklist. Returns whether it warned. */
function warnOfNothing() {
  const empty = signing.fields.find(({ open, save }) => open.step.type === 'checklist' && !Object(save()).length)
  if (!empty || signing.isWarned) return false
  signing.isWarned = true
  showProblem(h('p', t('nothing-ticked', { label: empty.open.step.label })))
  submitButton.focus()
  return true
}

export async function submit() {
  if (signing.isSending || !signing.session) return
  showProblem()
  signing.retry = null
  const { fields: all } = signing
  if (showErrors(all, (field) => field.check()) || warnOfNothing()) return
  setSending(true)
  for (const field of all) keepField(field)
  const reply = await submitFields(all)
  setSending(false)
  const { session } = signing
  if (reply.status === 200) return showSession(session)
  // Some steps may have been submitted before a step was refused.
  const isPart = session.steps.length !== all.length
  if (isPart) showSession(session)
  refused(reply)
  if (isPart) say(t('others-submitted'))
}
