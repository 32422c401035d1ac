// The receipt: a summary on the page, and the complete receipt as a file.

/**
 * Returns the receipt's steps for the page, with the images stored in this tab, or null if there is no receipt yet.
 * @param {Submitted[]} own
 * @returns {Promise<Submitted[] | null>}
 */
async function receiptSteps(own) {
  const reply = await send('receipt?format=json')
  if (reply.status !== 200) return null
  /** @type {SignedReceipt} */
  const { receipt } = reply.body.data ?? reply.body
  return receipt.steps.map(({ step, value, user_name, submitted_at, submitted_by }) => {
    const { sha256, typed, statement } = /** @type {{ sha256?: string, typed?: boolean, statement?: string }} */ (Object(value))
    const image = own.find((entry) => entry.step.key === step.key)?.image ?? null
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

/**
 * @param {SigningSession} session
 * @param {HTMLButtonElement} saveButton
 */
async function saveReceipt(session, saveButton) {
  if (saveButton.getAttribute('aria-busy') === 'true') return
  saveButton.setAttribute('aria-busy', 'true')
  showProblem()
  const reply = await send('receipt?format=html')
  saveButton.setAttribute('aria-busy', 'false')
  say('')
  if (reply.status === 401) return showOver(reply.body.link_status)
  if (reply.status !== 200) return showProblem(create('p', {}, refusal(reply)))
  const subject = session.movement_number ?? session.assets[0]?.asset_tag ?? ''
  const file = `receipt-${subject}`.replace(/[^0-9A-Za-z]+/g, '-').replace(/-$/, '')
  const url = URL.createObjectURL(new Blob([reply.body], { type: 'text/html' }))
  const link = create('a', { href: url, download: `${file}.html`, hidden: true })
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
  say(t('receipt-saved'))
}
