// All types of steps, and errors beside the fields that they belong to.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { describedBy, errorOf, fill, open, part, ready, says, submit, submitButton } from './form.mjs'
import { draw } from './strokes.mjs'
import { DESKTOP, PHONE, Visit, sees } from './visit.mjs'

const EVERY_TYPE = [
  { type: 'user_picker', key: 'me', label: 'Who takes it?', required: true },
  { type: 'user_picker', key: 'witness', label: 'Who saw it?', required: true },
  STEPS.checklist,
  STEPS.text,
  { type: 'textarea', key: 'notes', label: 'Scratches and dents' },
  { type: 'select', key: 'floor', label: 'Floor', required: true, options: ['Ground', 'First', 'Second'] },
  { type: 'date', key: 'back', label: 'Expected back', required: true },
  { type: 'confirmation', key: 'policy', label: 'I have read the usage policy' },
  STEPS.signature,
  { type: 'complete', key: 'complete', label: 'Hand it over' },
]

/** A PNG of a black and a white pixel. */
const DOT =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII='

/** Values that are as awkward as people's. */
const VALUES = {
  me: 'me',
  witness: 'grace.hopper@example.com',
  room: 'Bücherei, "Süd" <2.14> & 👩🏽‍💻',
  notes: 'Lid: one scratch.\n\n  Hinge: fine.\nשלום',
  floor: 'First',
  back: '2027-03-31',
}

/** Fills in every type of step, and compares what the API has. */
async function everyType(scene, name, options) {
  const { api } = scene
  const [ada, grace] = await Promise.all(['ada.lovelace', 'grace.hopper'].map((who) => api.user(`${who}@example.com`)))
  const { handover, visit, page } = await open(scene, { steps: EVERY_TYPE, name: 'Loan', signer: { user_id: ada.id } }, options)
  await visit.look(`${name}-every-type`)
  for (const step of EVERY_TYPE) await fill(page, step, VALUES[step.key])
  await visit.look(`${name}-every-type-filled`)
  await submit(page)
  await visit.look(`${name}-every-type-done`)
  await api.expectDoneOnce(handover)
  const [{ step_data: stored }] = await api.instances(handover)
  const { signature, complete, ...others } = stored
  const expected = { ...VALUES, me: ada.id, witness: grace.id, handover: STEPS.checklist.items, policy: true }
  assert.deepEqual(others, expected, 'the API has other values than the page')
  assert.match(signature, /^(data:image\/png|\/v1\/)/, 'the signature is not stored')
  assert.ok([undefined, true].includes(complete), 'the last step has a value')
  await visit.close()
}

/** What can be left out, can be left out, after a warning of lists without a tick. */
async function optional(scene) {
  const { checklist, signature, text } = STEPS
  const steps = [...EVERY_TYPE.slice(1, 2), checklist, text, EVERY_TYPE[4], EVERY_TYPE[5], EVERY_TYPE[6], signature].map(
    (step) => ({ ...step, required: false }),
  )
  const { handover, visit } = await open(scene, { steps })
  await submitButton(visit.page).click()
  await says(visit.page, 'Nothing is ticked at', 'a list without a tick')
  await visit.look('desktop-nothing-ticked')
  await scene.api.expectUntouched(handover)
  await submit(visit.page)
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

/** Shows what others have filled in before. */
async function filledBefore(scene) {
  const { api } = scene
  const checklist = { ...STEPS.checklist, required: false }
  const witness = EVERY_TYPE[1]
  const steps = [STEPS.text, checklist, EVERY_TYPE[5], EVERY_TYPE[6], witness, STEPS.signature]
  const handover = await api.handOver({ steps: [{ ...EVERY_TYPE[4], key: 'first' }, ...steps] })
  const { id } = await api.user(VALUES.witness)
  const step_data = {
    first: 'By the desk',
    room: '2.14',
    handover: ['Device'],
    floor: 'Second',
    back: '2027-01-02',
    witness: id,
    signature: DOT,
  }
  await api.post(`${handover.path}/advance`, { step_data })
  const visit = await Visit.open(scene, handover.url)
  const { page } = visit
  await ready(page)
  assert.equal(await part(page, STEPS.text).getByRole('textbox').inputValue(), '2.14', 'a stored text is not shown')
  assert.ok(
    await part(page, STEPS.checklist).getByRole('checkbox', { name: 'Device' }).isChecked(),
    'a stored tick is not shown',
  )
  assert.equal(
    await part(page, EVERY_TYPE[5]).getByRole('combobox').locator('option:checked').innerText(),
    'Second',
    'a stored choice is not shown',
  )
  assert.equal(await page.locator('input[type="date"]').inputValue(), '2027-01-02', 'a stored date is not shown')
  await sees(part(page, witness).getByText('Grace Hopper'), 'the person who was picked before is not named')
  await visit.look('desktop-filled-before')
  await fill(page, checklist, ['Bag'])
  // The signature of before is not the signer's.
  await submitButton(page).click()
  await sees(errorOf(page, STEPS.signature), 'a stored signature counts as the signer’s')
  await draw(page)
  await submit(page)
  const [{ status, step_data: stored }] = await api.instances(handover)
  assert.deepEqual(
    [status, stored.handover, stored.witness],
    ['completed', ['Device', 'Bag'], id],
    'the API has other values than the page',
  )
  assert.notEqual(stored.signature, DOT, 'the signature of before is kept')
  await visit.close()
}

/** Who leaves out a signature that can be left out has not signed, whatever was stored. */
async function storedSignature(scene) {
  const { api } = scene
  const signature = { ...STEPS.signature, required: false }
  const handover = await api.handOver({ steps: [{ ...STEPS.text, key: 'first' }, signature] })
  await api.post(`${handover.path}/advance`, { step_data: { first: 'By the desk', signature: DOT } })
  const visit = await Visit.open(scene, handover.url)
  await ready(visit.page)
  await submit(visit.page)
  await sees(visit.page.getByText('Nothing entered'), 'the page does not say that nothing was entered')
  const [{ step_data: stored }] = await api.instances(handover)
  assert.equal(stored.signature ?? null, null, 'a stored signature counts as the signer’s')
  await visit.close()
}

/** The service's and the page's errors are in words, beside the field, and go when it is corrected. */
async function errors(scene, name, options) {
  const { api } = scene
  const witness = EVERY_TYPE[1]
  const { handover, visit, page } = await open(scene, { steps: [witness, STEPS.checklist, STEPS.text, STEPS.signature] }, options)
  visit.expectFailures('status of 422')
  await submitButton(page).click()
  for (const step of [witness, STEPS.checklist, STEPS.text, STEPS.signature]) {
    await sees(errorOf(page, step), `"${step.label}" is required and missing, without an error beside it`)
  }
  await says(page, '4 entries need a second look', 'what is missing')
  await visit.look(`${name}-required`)
  await fill(page, witness, 'former.colleague@example.com')
  await fill(page, STEPS.checklist, ['Device'])
  await fill(page, STEPS.text, '2.14')
  await draw(page)
  await says(page, '1 entry needs a second look', 'what is still missing')
  await submitButton(page).click()
  await sees(errorOf(page, STEPS.checklist), 'an unticked item has no error beside it')
  await fill(page, STEPS.checklist)
  assert.equal(await page.locator('#problem').innerText(), '', 'an error of what is corrected stays')
  await submitButton(page).click()
  const error = errorOf(page, witness)
  await sees(error, 'an inactive person has no error beside the field')
  assert.match(await error.innerText(), /active/, 'the error does not say what is wrong with the person')
  await describedBy(part(page, witness).getByRole('textbox'), /active/)
  await visit.look(`${name}-error`)
  await api.expectUntouched(handover)
  await fill(page, witness, VALUES.witness)
  await submit(page)
  await api.expectDoneOnce(handover)
  await visit.close()
}

export const fields = {
  'every type of step, on a phone': (scene) => everyType(scene, 'phone', PHONE),
  'every type of step, on a desktop in the dark': (scene) =>
    everyType(scene, 'desktop-dark', { ...DESKTOP, colorScheme: 'dark' }),
  'nothing that is optional': optional,
  'values from before': filledBefore,
  'a signature from before': storedSignature,
  'errors beside fields, on a phone': (scene) => errors(scene, 'phone', PHONE),
  'errors beside fields, in the dark': (scene) => errors(scene, 'desktop-dark', { ...DESKTOP, colorScheme: 'dark' }),
}
