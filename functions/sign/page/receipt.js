// The receipt: a summary on the page, and the complete receipt as a file.
import { showOver } from './done.js'
import { h, receiptFile, saveFile } from './elements.js'
import { withSigned } from './receipts.js'
import { refusal, send } from './service.js'
import { t } from './texts.js'
import { say, showProblem } from './view.js'

/**
 * Returns the receipt's steps for the page, with the images stored in this tab, or null if there is no receipt yet.
 * @param {Submitted[]} mine
 * @returns {Promise<Submitted[] | null>}
 */
export async function receiptSteps(mine) {
  const reply = await send('receipt?format=json')
  if (reply.status !== 200) return null
  /** @type {SignedReceipt} */
  const { receipt } = reply.body.data ?? reply.body
  return receipt.steps.map(({ step, value, user_name, submitted_at, submitted_by }) => {
    const { sha256, typed, statement } = /** @type {{ sha256?: string, typed?: boolean, statement?: string }} */ (Object(value))
    const image = mine.find((entry) => entry.step.key === step.key)?.image ?? null
    return {
      step: statement ? { ...step, statement } : step,
      value,
      userName: user_name,
      image,
      isSigned: sha256 !== undefined,
      isTyped: typed === true,
      by: submitted_by.user_name ?? submitted_by.key_name,
      at: submitted_at,
    }
  })
}

/** @param {SigningSession} session */
export async function saveReceipt(session) {
  showProblem()
  const reply = await send('receipt?format=html')
  const signed = reply.status === 200 ? await send('receipt?format=json') : reply
  say('')
  if (signed.status === 401) return showOver(signed.body.link_status)
  if (signed.status !== 200) return showProblem(h('p', refusal(signed)))
  saveFile(receiptFile(session.movement_number ?? session.assets[0]?.asset_tag ?? ''), withSigned(reply.body, signed.body.data ?? signed.body), 'text/html')
  say(t('receipt-saved'))
}
