// The views without a form: the submitted values with the receipt, and ended links.
import { button, h, hint, newId, own, part } from './elements.js'
import { shownAssets } from './form.js'
import { receiptSteps, saveReceipt } from './receipt.js'
import { shownValue, typedHint } from './shown.js'
import { load } from './start.js'
import { signing } from './state.js'
import { has, sentence, t } from './texts.js'
import { zonedTime } from './values.js'
import { focusTitle, say, showView } from './view.js'

/** Shows the time and author of a submitted value, if known. @param {Submitted} entry */
const shownOrigin = ({ at, by }) =>
  at ? hint(zonedTime(at), by ? ', ' : '', own(by ?? '')) : null

/** @param {Submitted} entry @param {Node | null} origin */
function shownEntry(entry, origin) {
  const { step, value, image, isSigned, isTyped } = entry
  const parts = isSigned
    ? [
        h('p', { className: 'statement value', dir: 'auto' }, step.statement ?? ''),
        image ? h('img.picture', { alt: t('signature'), src: image }) : h('p', t('signed')),
        isTyped ? typedHint() : null,
      ]
    : [shownValue(step, value, entry.userName)]
  return [h('dt', own(step.label)), h('dd', ...parts, origin)]
}

/**
 * Shows the submitted values, and offers the receipt.
 * @param {SigningSession} session
 * @param {Submitted[]} mine what this tab submitted
 * @param {string} notice
 */
export function showDone(session, mine, notice) {
  const title = h('h2', { tabIndex: -1 }, mine.length ? t('thank-you') : t('done'))
  const values = { time: zonedTime(session.ends_at), organization: own(session.organization) }
  const key = session.is_completed ? 'completed' : session.is_cancelled ? 'cancelled' : 'goes-on'
  const text = h('p', ...sentence(key, values))
  const intro = mine.length ? t('you-submitted') : t('was-submitted')
  const list = h('dl')
  const heading = h('h2', { id: newId() }, session.is_completed ? t('receipt') : t('what-you-submitted'))
  const entries = h('section', { 'aria-labelledby': heading.id, hidden: true })
  const save = button(t('save-receipt'), () => saveReceipt(session), 'primary')
  const again = button(t('check-receipt'), lookForReceipt)
  showView(
    session,
    session.process_name,
    [
      h('section.done', title, h('p', notice || intro), text, session.is_completed ? save : session.is_cancelled ? null : again),
      shownAssets(session),
      entries,
    ],
  )
  title.focus({ preventScroll: true })
  window.scrollTo(0, 0)

  /** @param {Submitted[]} all */
  const showSteps = (all) => {
    const origins = all.map(shownOrigin)
    const [first] = origins
    // If all values have the same author and time, the author and time are shown once.
    const common = first && origins.every((origin) => origin?.textContent === first.textContent) ? first : null
    list.replaceChildren(...all.flatMap((entry, index) => shownEntry(entry, common ? null : (origins[index] ?? null))))
    entries.replaceChildren(heading, list, common ?? '')
    entries.hidden = all.length === 0
  }
  const fill = async () => {
    showSteps(mine)
    const steps = session.is_completed ? await receiptSteps(mine) : null
    if (steps) showSteps(steps)
  }
  void fill()
}

/** Checks whether there is a receipt now. */
async function lookForReceipt() {
  const isLoaded = await load()
  if (!isLoaded || signing.session?.is_completed || signing.session?.is_cancelled) return
  say(t('no-receipt'))
  part('content').querySelector('button')?.focus()
  part('status').scrollIntoView({ block: 'nearest' })
}

/**
 * Says that a link has ended, and what to do.
 * @param {string} [linkStatus]
 */
export function showOver(linkStatus = 'invalid') {
  Object.assign(signing, { session: null, fields: [], retry: null })
  const status = has(`over.${linkStatus}`) ? linkStatus : 'invalid'
  showView(null, t(`over.${status}`), [h('section', h('p', t(`over.${status}.hint`)))])
  focusTitle()
}
