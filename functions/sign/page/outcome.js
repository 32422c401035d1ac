// What the page shows of a session, and of a request that was refused.

const MOVED = 'Some of this was submitted in the meantime, perhaps in another tab. The page shows what is left.'
const DONE_ELSEWHERE = 'This was submitted already, perhaps in another tab.'

/**
 * Shows a session: its form, or its end.
 * @param {SigningSession} next
 * @param {string} [notice] what happened
 */
function showSession(next, notice = '') {
  session = next
  retry = null
  if (next.status === 'used' || next.steps.length === 0) {
    fields = []
    removeDraft(next.link_id)
    showDone(next, submitted, notice)
    return
  }
  const isSigned = next.steps.some(({ step }) => step.type === 'signature')
  submitButton.textContent = isSigned ? 'Sign and submit' : 'Submit'
  fields = showForm(next, submitButton, () => {
    retry = null
  })
  if (!notice) return
  showProblem(create('p', {}, notice))
  submitButton.focus()
}

/** The last of its buttons; it may be gone. @type {HTMLButtonElement | null} */
let tryAgain = null

/**
 * Says what went wrong, with a button to try again.
 * @param {string} text
 * @param {() => void} again
 */
function offerRetry(text, again) {
  const act = () => {
    showProblem()
    again()
  }
  tryAgain = button('Try again', act)
  showProblem(create('p', {}, text), tryAgain)
  retry = act
}

/** Sends again what could not be sent, unless it was edited since. */
function online() {
  if (retry) return retry()
  if (!tryAgain?.isConnected) return
  showProblem()
  say('You are online again. Press the button to submit.')
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
  if (reply.status === 401 || hasMoved) return void load(MOVED)
  /** @param {Field} field */
  const errorFor = ({ open }) => errors.find(({ pointer = '' }) => `${pointer}/`.startsWith(`/step_data/${open.step.key}/`))
  const others = errors.filter((error) => !fields.some((field) => errorFor(field) === error))
  const otherTexts = others.map(({ detail }) => sentence(detail)).join(' ')
  const isBeside = showErrors(fields, (field) => {
    const error = errorFor(field)
    return error ? sentence(error.detail) : null
  })
  if (isBeside) return part('problem').append(otherTexts)
  const text = otherTexts || refusal(reply)
  if (reply.status === 0) offerRetry(text, () => void submit())
  else showProblem(create('p', {}, text))
  submitButton.focus()
}
