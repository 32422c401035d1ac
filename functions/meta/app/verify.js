// Verifies a saved receipt, and shows what was signed.
import { Problem, get } from './api.js'
import { assetLink } from './asset.js'
import { h, hint, own, show } from './elements.js'
import { input } from './fields.js'
import { field, problemBox } from './form.js'
import { builtIn, card, facts, heading } from './page.js'
import { isSignedBy, signedIn } from './receipts.js'
import { t } from './texts.js'
import { moment } from './values.js'

export function verify(main, _, signal) {
  const outcome = h('div')
  const told = (text) => show(outcome, h('div.problem', { role: 'alert' }, h('p', text)))
  async function check(file) {
    show(outcome)
    const signed = file && signedIn(await file.text())
    if (!signed) return told(t('verify-none'))
    try {
      const { keys } = await get('/.well-known/receipt-keys', signal, { tenant: signed.receipt.tenant_id })
      const isValid = await isSignedBy(signed, keys)
      if (!isValid) return told(t('verify-invalid'))
      show(outcome, h('p.signed', { role: 'status' }, h('span', { ariaHidden: 'true' }, '✓ '), t('verify-valid')), contents(signed.receipt))
    } catch (error) {
      if (error instanceof Problem) show(outcome, problemBox(error))
      // The browser lacks Ed25519, or the page has no encrypted connection.
      else if (!signal.aborted) told(t('verify-cannot'))
    }
  }
  const file = input('file', '', { accept: '.html,.json', change: ({ target }) => check(target.files[0]) })
  const place = h('section.card', {
    dragover: (event) => event.preventDefault(),
    drop: (event) => (event.preventDefault(), check(event.dataTransfer.files[0])),
  }, hint(t('verify-hint')), field(t('receipt'), file))
  show(main, heading(t('verify')), place, outcome)
  return { title: t('verify') }
}

/** Shows the signed receipt of a process or of a movement. */
function contents(receipt) {
  const assets = receipt.instances?.map(({ asset }) => asset) ?? [receipt.asset]
  const by = ({ submitted_by: by }) => by?.user_name ?? by?.key_name ?? ''
  return [
    card(t('assets-of'), h('ul.plain-list', assets.map((asset) => h('li', assetLink(asset))))),
    card(own(builtIn(receipt.process.name)), facts([[t('run.completed'), moment(receipt.completed_at)],
      ...receipt.steps.map((step) => [own(step.step.label), [own(by(step)), ' ', moment(step.submitted_at)]])]))]
}
