// What the page shows when there is nothing left to enter.

/** Shows when and by whom something was submitted, if that is known. @param {Submitted} entry */
const shownOrigin = ({ at, by }) =>
  at ? create('p', { className: 'hint' }, shownTime(at), by ? ', ' : '', isolated(by ?? '')) : null

/** @param {Submitted} entry @param {Node | null} origin */
function shownEntry(entry, origin) {
  const { step, value, image, isTyped, digest } = entry
  const isSigned = step.type === 'signature' && (image || digest)
  const parts = isSigned
    ? [
        create('p', { className: 'statement value', dir: 'auto' }, step.statement ?? ''),
        image ? create('img', { className: 'picture', alt: 'Signature', src: image }) : create('p', {}, 'Signed'),
        isTyped ? typedHint() : null,
      ]
    : [shownValue(step, value, entry.userName)]
  return [create('dt', {}, isolated(step.label)), create('dd', {}, ...parts, origin)]
}

/** @param {Submitted} entry */
const shownDigest = ({ step, digest }) =>
  digest
    ? create('p', { className: 'hint' }, 'SHA-256 of the image, ', isolated(step.label), ': ', create('code', {}, digest))
    : ''

/**
 * Shows what was submitted, and offers the receipt.
 * @param {SigningSession} session
 * @param {Submitted[]} own what this tab submitted
 * @param {string} notice
 */
function showDone(session, own, notice) {
  const title = create('h2', { tabIndex: -1 }, own.length ? 'Thank you' : 'Done')
  const until = shownTime(session.ends_at)
  const organization = isolated(session.organization)
  const text = session.is_completed
    ? create('p', {}, 'Everything is complete. You can save your receipt on this page until ', until, '.')
    : session.is_cancelled
    ? create('p', {}, 'The process was cancelled afterwards, so there is no receipt.')
    : create('p', {}, organization, ' completes the process. The receipt will be on this page then, until ', until, '.')
  const intro = own.length ? 'What you entered was submitted.' : 'What was asked for has been submitted.'
  const list = create('dl', {})
  const heading = create('h2', { id: newId() }, session.is_completed ? 'Receipt' : 'What you submitted')
  const entries = create('section', { 'aria-labelledby': heading.id, hidden: true })
  const save = button('Save receipt', () => void saveReceipt(session, save), 'primary')
  const again = button('Check for the receipt', () => void lookForReceipt())
  showView(
    session.organization,
    session.process_name,
    [
      create('section', { className: 'done' }, title, create('p', {}, notice || intro), text, session.is_completed ? save : session.is_cancelled ? null : again),
      shownAssets(session),
      entries,
    ],
  )
  title.focus({ preventScroll: true })
  window.scrollTo(0, 0)

  /** @param {Submitted[]} all */
  const show = (all) => {
    const origins = all.map(shownOrigin)
    const [first] = origins
    // What is the same for all is said once.
    const common = first && origins.every((origin) => origin?.textContent === first.textContent) ? first : null
    list.replaceChildren(...all.flatMap((entry, index) => shownEntry(entry, common ? null : (origins[index] ?? null))))
    entries.replaceChildren(heading, list, common ?? '', ...all.map(shownDigest))
    entries.hidden = all.length === 0
  }
  const fill = async () => {
    show(own)
    const steps = session.is_completed ? await receiptSteps(own) : null
    if (!steps) await addDigests(own)
    show(steps ?? own)
  }
  void fill()
}

/** Looks whether there is a receipt by now. */
async function lookForReceipt() {
  const isLoaded = await load()
  if (!isLoaded || session?.is_completed || session?.is_cancelled) return
  say('There is no receipt yet.')
  part('content').querySelector('button')?.focus()
  part('status').scrollIntoView({ block: 'nearest' })
}

/** Links that can't be used: heading and what to do. @type {Record<string, [string, string]>} */
const OVER = {
  expired: ['This link has expired', 'Ask the person who sent it to you for a new one.'],
  revoked: ['This link was revoked', 'If you still have to sign, ask the person who sent it to you for a new one.'],
  used: ['This link has been used', 'Everything was submitted with it. If you need the receipt, ask the person who sent you the link.'],
  ended: ['This process has ended', 'It was completed or cancelled in another way, so there is nothing left to sign.'],
  invalid: ['This link is not valid', 'Check that you opened the whole link, up to its last character, or ask the person who sent it to you for a new one.'],
}

/**
 * Says that a link is over.
 * @param {string} [linkStatus]
 */
function showOver(linkStatus = 'invalid') {
  session = null
  fields = []
  retry = null
  const [title, text] = OVER[linkStatus] ?? OVER['invalid'] ?? ['', '']
  showView('', title, [create('section', {}, create('p', {}, text))])
  focusTitle()
}
