// The views of a session and of a refused request.

/**
 * Shows the form of a session, or the view for an ended session.
 * @param {SigningSession} next
 * @param {string} [notice] what happened
 */
function showSession(next, notice = '') {
  session = next
  retry = null
  isWarned = false
  if (next.status === 'used' || next.steps.length === 0) {
    fields = []
    removeDraft(next.link_id)
    showDone(next, submitted, notice)
    return
  }
  const isSigned = next.steps.some(({ step }) => step.type === 'signature')
  submitButton.textContent = isSigned ? t('sign-and-submit') : t('submit')
  fields = showForm(next, submitButton, () => {
    retry = null
  })
  if (!notice) return
  showProblem(create('p', {}, notice))
  submitButton.focus()
}

/** The latest button to retry, which may have been removed. @type {HTMLButtonElement | null} */
let tryAgain = null

/**
 * Shows an error with a button to retry.
 * @param {string} text
 * @param {() => void} again
 */
function offerRetry(text, again) {
  const act = () => {
    showProblem()
    again()
  }
  tryAgain = button(t('try-again'), act)
  showProblem(create('p', {}, text), tryAgain)
  retry = act
}

/** Resends a failed submission, unless the form has been edited since. */
function online() {
  if (retry) return retry()
  if (!tryAgain?.isConnected) return
  showProblem()
  say(t('online'))
}

/** @param {Reply} reply */
function refused(reply) {
  /** @type {Problem} */
  const problem = reply.body
  const errors = problem.errors ?? []
  if (reply.status === 401 && problem.link_status !== 'used') {
    if (session) removeDraft(session.link_id)
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
  if (showErrors(fields, textFor)) return
  const text = refusal(reply)
  if (reply.status === 0) offerRetry(text, () => void submit())
  else showProblem(create('p', {}, text))
  submitButton.focus()
}
