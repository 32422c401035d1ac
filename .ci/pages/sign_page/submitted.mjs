// Nobody signs blind: what others submitted and the sentence to confirm are on the page before the signature.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { describedBy, fill, isDone, ready, submit, submitButton } from './form.mjs'
import { DESKTOP, PHONE, Visit, sees } from './visit.mjs'

const checklist = { ...STEPS.checklist, required: false }
const employee = { type: 'user_picker', key: 'employee', label: 'Who gets it?', required: true }
const signature = { ...STEPS.signature, statement: 'I received what is ticked above, and return it when I leave.' }

/** Every other type of step, and the text that the page shows for its value. */
const OTHERS = [
  [STEPS.text, '2.14', '2.14'],
  [{ type: 'textarea', key: 'notes', label: 'Scratches and dents' }, 'Lid: one scratch.\nHinge: fine.', 'Hinge: fine.'],
  [{ type: 'select', key: 'floor', label: 'Floor', options: ['Ground', 'First'] }, 'First', 'First'],
  [{ type: 'date', key: 'back', label: 'Expected back' }, '2027-03-31', 'March 31, 2027'],
  [{ type: 'confirmation', key: 'policy', label: 'Policy explained' }, true, 'Yes'],
  [{ type: 'text', key: 'nothing', label: 'Anything else' }, undefined, 'Nothing entered'],
]

/** Returns the value that the page shows beside a label. */
const shown = (page, { label }) =>
  page
    .getByRole('region', { name: 'Submitted so far' })
    .locator('dl > div')
    .filter({ has: page.getByRole('term').filter({ hasText: label }) })
    .getByRole('definition')

/** Starts a handover, and submits all steps before the signature as the office. */
async function prepared({ api }, others = [], assets = 1) {
  const steps = [employee, checklist, ...others.map(([step]) => step), signature]
  const handover = await api.handOver({ steps, assets, name: 'Employee handover' })
  const { id } = await api.user('grace.hopper@example.com')
  const values = others.filter(([, value]) => value !== undefined).map(([{ key }, value]) => [key, value])
  const step_data = { employee: id, handover: ['Device', 'Bag'], ...Object.fromEntries(values) }
  await api.post(`${handover.path}/advance`, { step_data, through: steps.at(-2).key })
  return handover
}

async function expectSubmitted(page) {
  await sees(shown(page, employee).getByText('Grace Hopper', { exact: true }), 'the picked person is not named')
  const lines = await shown(page, checklist).getByRole('listitem').allTextContents()
  assert.deepEqual(lines, ['✓Device, checked', '–Power supply, not checked', '✓Bag, checked'], 'the checklist reads otherwise')
  await sees(page.getByText(signature.statement), 'the statement is not on the page')
}

/** Fails unless an element is within the window, which was not scrolled. */
async function expectInView(page, locator, what) {
  const { y, height } = await locator.boundingBox()
  const [window, scrolled] = await page.evaluate(() => [innerHeight, scrollY])
  assert.equal(scrolled, 0, 'the page was scrolled')
  assert.ok(y >= 0 && y + height <= window, `${what} ends at ${Math.round(y + height)} of ${window} pixels`)
  return y
}

/** On a phone, all of a short handover is in view at once. */
async function short(scene, name, options) {
  const handover = await prepared(scene)
  const visit = await Visit.open(scene, handover.url, options)
  const { page } = visit
  await ready(page)
  await expectSubmitted(page)
  const places = [
    await expectInView(page, page.getByRole('region', { name: 'Submitted so far' }), 'what was submitted'),
    await expectInView(page, page.getByText(signature.statement), 'the statement'),
    await expectInView(page, page.locator('canvas'), 'the pad'),
    await expectInView(page, submitButton(page), 'the button'),
  ]
  assert.deepEqual(places, [...places].sort((a, b) => a - b), 'the signature stands before what it confirms')
  await describedBy(page.getByRole('group', { name: signature.label }), /return it when I leave/)
  await visit.look(`${name}-submitted`)
  await fill(page, signature)
  await submit(page)
  await visit.look(`${name}-submitted-done`)
  const { link } = await scene.api.receipts(handover)
  const stated = link.receipt.steps.map(({ step }) => step.statement)
  assert.deepEqual(stated, [undefined, undefined, signature.statement], 'the receipt does not repeat the statement')
  await visit.close()
}

/** Every type of step, for several assets; the second signer sees the first signature. */
async function everything(scene, name, options) {
  const handover = await prepared(scene, OTHERS, 2)
  const second = { ...STEPS.signature, key: 'second', label: 'Signature of the witness' }
  const { api } = scene
  const both = await api.handOver({ steps: [signature, second], link: { until: signature.key }, signer: { name: 'Ada Lovelace' } })
  const visit = await Visit.open(scene, handover.url, options)
  const { page } = visit
  await ready(page)
  await expectSubmitted(page)
  for (const [step, , text] of OTHERS) await sees(shown(page, step).getByText(text), `"${step.label}" is not ${text}`)
  await visit.look(`${name}-submitted-everything`)
  await visit.close()

  const first = await Visit.open(scene, both.url, options)
  await ready(first.page)
  await fill(first.page, signature)
  await submitButton(first.page).click()
  await sees(first.page.getByRole('heading', { name: 'Thank you' }), 'the first signature is not submitted')
  await first.close()
  const { url } = await api.link(both, { signer: { name: 'Mary' } })
  const witness = await Visit.open(scene, url, options)
  await ready(witness.page)
  await sees(shown(witness.page, signature).getByText(/^Signed by Ada Lovelace, /), 'the first signature has no author')
  await sees(witness.page.getByText('I confirm what is stated above.'), 'a step without a statement has no default')
  await witness.look(`${name}-second-signature`)
  await fill(witness.page, second)
  await submitButton(witness.page).click()
  await isDone(witness.page)
  await witness.close()
}

export const submitted = {
  'submitted before, on a phone': (scene) => short(scene, 'phone', PHONE),
  'submitted before, on a phone in the dark': (scene) => short(scene, 'phone-dark', { ...PHONE, colorScheme: 'dark' }),
  'all types submitted before, on a phone': (scene) => everything(scene, 'phone', PHONE),
  'all types submitted before, on a desktop in the dark': (scene) =>
    everything(scene, 'desktop-dark', { ...DESKTOP, colorScheme: 'dark' }),
}
