// The views without a form: the submitted values with the receipt, and ended links.

/** Shows the time and author of a submitted value, if known. @param {Submitted} entry */
const shownOrigin = ({ at, by }) =>
  at ? create('p', { className: 'hint' }, shownTime(at), by ? ', ' : '', isolated(by ?? '')) : null

/** @param {Submitted} entry @param {Node | null} origin */
function shownEntry(entry, origin) {
  const { step, value, image, isSigned, isTyped } = entry
  const parts = isSigned
    ? [
        create('p', { className: 'statement value', dir: 'auto' }, step.statement ?? ''),
        image ? create('img', { className: 'picture', alt: t('signature'), src: image }) : create('p', {}, t('signed')),
        isTyped ? typedHint() : null,
      ]
    : [shownValue(step, value, entry.userName)]
  return [create('dt', {}, isolated(step.label)), create('dd', {}, ...parts, origin)]
}

/**
 * Shows the submitted values, and offers the receipt.
 * @param {SigningSession} session
 * @param {Submitted[]} own what this tab submitted
 * @param {string} notice
 */
function showDone(session, own, notice) {
  const title = create('h2', { tabIndex: -1 }, own.length ? t('thank-you') : t('done'))
  const values = { time: shownTime(session.ends_at), organization: isolated(session.organization) }
  const key = session.is_completed ? 'completed' : session.is_cancelled ? 'cancelled' : 'goes-on'
  const text = create('p', {}, ...pieces(key, values))
  const intro = own.length ? t('you-submitted') : t('was-submitted')
  const list = create('dl', {})
  const heading = create('h2', { id: newId() }, session.is_completed ? t('receipt') : t('what-you-submitted'))
  const entries = create('section', { 'aria-labelledby': heading.id, hidden: true })
  const save = button(t('save-receipt'), () => void saveReceipt(session, save), 'primary')
  const again = button(t('check-receipt'), () => void lookForReceipt())
  showView(
    session,
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
    // If all values have the same author and time, the author and time are shown once.
    const common = first && origins.every((origin) => origin?.textContent === first.textContent) ? first : null
    list.replaceChildren(...all.flatMap((entry, index) => shownEntry(entry, common ? null : (origins[index] ?? null))))
    entries.replaceChildren(heading, list, common ?? '')
    entries.hidden = all.length === 0
  }
  const fill = async () => {
    show(own)
    const steps = session.is_completed ? await receiptSteps(own) : null
    if (steps) show(steps)
  }
  void fill()
}

/** Checks whether there is a receipt now. */
async function lookForReceipt() {
  const isLoaded = await load()
  if (!isLoaded || session?.is_completed || session?.is_cancelled) return
  say(t('no-receipt'))
  part('content').querySelector('button')?.focus()
  part('status').scrollIntoView({ block: 'nearest' })
}

/**
 * Says that a link has ended, and what to do.
 * @param {string} [linkStatus]
 */
function showOver(linkStatus = 'invalid') {
  session = null
  fields = []
  retry = null
  const status = has(`over.${linkStatus}`) ? linkStatus : 'invalid'
  showView(null, t(`over.${status}`), [create('section', {}, create('p', {}, t(`over.${status}.hint`)))])
  focusTitle()
}
