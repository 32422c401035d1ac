// The views of a session and of a refused request.
import { showDone, showOver } from './done.js'
import { removeDraft } from './draft.js'
import { button, h } from './elements.js'
import { showErrors, showForm } from './form.js'
import { refusal } from './service.js'
import { load } from './start.js'
import { signing } from './state.js'
import { submit, submitButton } from './submit.js'
import { t } from './texts.js'
import { say, showProblem } from './view.js'

/**
 * Shows the form of a session, or the view for an ended session.
 * @param {SigningSession} next
 * @param {string} [notice] what happened
 */
export function showSession(next, notice = '') {
  Object.assign(signing, { session: next, retry: null, isWarned: false })
  if (next.status === 'used' || next.steps.length === 0) {
    signing.fields = []
    removeDraft(next.link_id)
    showDone(next, signing.submitted, notice)
    return
  }
  const isSigned = next.steps.some(({ step }) => step.type === 'signature')
  submitButton.textContent = isSigned ? t('sign-and-submit') : t('submit')
  signing.fields = showForm(next, submitButton, () => {
    signing.retry = null
  })
  if (!notice) return
  showProblem(h('p', notice))
  submitButton.focus()
}

/** The latest button to retry, which may have been removed. @type {HTMLButtonElement | null} */
let tryAgain = null

/**
 * Shows an error with a button to retry.
 * @param {string} text
 * @param {() => void} again
 */
export function offerRetry(text, again) {
  const act = () => {
    showProblem()
    again()
  }
  tryAgain = button(t('try-again'), act)
  showProblem(h('p', text), tryAgain)
  signing.retry = act
}

/** Resends a failed submission, unless the form has been edited since. */
export function online() {
  if (signing.retry) return signing.retry()
  if (!tryAgain?.isConnected) return
  showProblem()
  say(t('online'))
}

/** @param {Reply} reply */
export function refused(reply) {
  /** @type {Problem} */
  const problem = reply.body
  const errors = problem.errors ?? []
  if (reply.status === 401 && problem.link_status !== 'used') {
    if (signing.session) removeDraft(signing.session.link_id)
    return showOver(problem.link_status)
  }
  const hasMoved = ['STEP_MOVED', 'STEP_SUBMITTED', 'INSTANCE_CLOSED'].includes(problem.code ?? '')
  if (reply.status === 401 || hasMoved) return void load(t('moved'))
  /** @param {Field} field */
  const errorFor = ({ open }) => errors.find(({ pointer = '' }) => `${pointer}/`.startsWith(`/step_data/${open.step.key}/`))
  /** @param {Field} field */
  const textFor = (field) => {
    if (!errorFor(field)) return null
    return field.open.step.type === 'user_picker' ? t('refused.user_picker') : t('refused')
  }
  if (showErrors(signing.fields, textFor)) return
  const text = refusal(reply)
  if (reply.status === 0) offerRetry(text, () => void submit())
  else showProblem(h('p', text))
  submitButton.focus()
}
