// From the link to the receipt: every type of step, earlier steps, field errors, movements, and languages.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DESKTOP, PHONE, Visit, sees } from '../visit.mjs'
import { again, describedBy, doneHeading, errorOf, fill, onBoth, open, openLink, part, saveReceipt, says } from './form.mjs'
import { submissions, submit, submitButton, textbox, title } from './form.mjs'
import { Handover, STEPS } from './handover.mjs'
import { draw, expectL } from './strokes.mjs'

const { user_picker: witness, checklist, text, textarea, select, date, confirmation, signature } = STEPS
const complete = { type: 'complete', key: 'complete', label: 'Hand it over' }
const me = { ...witness, key: 'me', label: 'Who takes it?' }
const EVERY_TYPE = [me, witness, checklist, text, textarea, select, date, confirmation, signature, complete]

/** A PNG of a black and a white pixel. */
const DOT = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII='

/** Unusual but realistic values. */
const VALUES = {
  me: 'me',
  witness: 'grace.hopper@example.com',
  room: 'Bücherei, "Süd" <2.14> & 👩🏽‍💻',
  notes: 'Lid: one scratch.\n\n  Hinge: fine.\nשלום',
  floor: 'First',
  back: '2027-03-31',
}

/** A complete handover. The page shows the signer and the assets. */
async function handOver(scene, name, hand, options) {
  const what = { steps: [checklist, signature], name: 'Employee handover' }
  const { handover, visit, page } = await open(scene, what, options)
  const [asset] = handover.assets
  await sees(title(page, 'You receive 1 device'), 'the heading does not say what is signed for')
  const { name: organization } = await scene.api.get('/settings')
  for (const fact of [organization, handover.name]) await sees(page.getByText(fact, { exact: true }), `${fact} is not on the page`)
  for (const fact of ['Signing as Ada Lovelace', asset.asset_tag, asset.name, asset.model, asset.serial_number])
    await sees(page.getByText(fact), `${fact} is not on the page`)
  await visit.look(`${name}-open`)
  await fill(page, checklist)
  const size = await fill(page, signature, { hand })
  await visit.look(`${name}-drawn`)
  await submit(page)
  await visit.look(`${name}-done`)
  await handover.expectDoneOnce()
  expectL(await handover.signature(), size)
  assert.equal(await page.getByText(/[0-9a-f]{64}/).count(), 0, 'the page shows a hash, which is useless to people')
  assert.ok(readFileSync(await saveReceipt(page), 'utf8').includes(asset.asset_tag), 'the saved receipt does not name the asset')
  await page.reload()
  await sees(page.getByRole('button', { name: 'Save receipt' }), 'the receipt is not offered when the link is opened again')
}

/** The process continues after the link's steps. The receipt appears once others have submitted theirs. */
async function goesOn(scene) {
  const later = { ...confirmation, key: 'filed', label: 'Filed by the desk' }
  const { handover, visit, page } = await open(scene, { steps: [signature, later], link: { until: signature.key } }, PHONE)
  assert.equal(await page.getByText(later.label).count(), 0, "the page shows a step that is not the link's")
  await fill(page, signature, { hand: 'touch' })
  await submitButton(page).click()
  await sees(doneHeading(page), 'the page does not say that it is done')
  await visit.look('phone-goes-on')
  assert.equal(await page.getByRole('button', { name: 'Save receipt' }).count(), 0, 'an incomplete process has a receipt')
  const check = page.getByRole('button', { name: 'Check for the receipt' })
  await check.click()
  await says(page, 'There is no receipt yet.')
  await handover.advance({ filed: true })
  await check.click()
  await saveReceipt(page)
}

/** Fills in every type of step, and checks the stored values. */
async function everyType(scene, name, options) {
  const [ada, grace] = await Promise.all(['ada.lovelace', 'grace.hopper'].map((who) => scene.api.user(`${who}@example.com`)))
  const { handover, visit, page } = await open(scene, { steps: EVERY_TYPE, signer: { user_id: ada.id } }, options)
  for (const step of EVERY_TYPE) await fill(page, step, VALUES[step.key])
  await visit.look(`${name}-every-type`)
  await submit(page)
  await visit.look(`${name}-every-type-done`)
  await handover.expectDoneOnce()
  const { signature: image, complete: last, ...others } = await handover.stored()
  const expected = { ...VALUES, me: ada.id, witness: grace.id, handover: checklist.items, policy: true }
  assert.deepEqual(others, expected, 'the values of the API and the page differ')
  assert.match(image, /^(data:image\/png|\/v1\/)/, 'the signature is not stored')
  assert.ok([undefined, true].includes(last), 'the last step has a value')
}

/** Optional steps can be left out, after a warning about checklists without a tick. */
async function optional(scene) {
  const steps = [witness, checklist, text, textarea, select, date, signature].map((step) => ({ ...step, required: false }))
  const { handover, visit, page } = await open(scene, { steps })
  await submitButton(page).click()
  await says(page, 'Nothing is ticked under')
  await visit.look('desktop-nothing-ticked')
  await handover.expectUntouched()
  await submit(page)
  await handover.expectDoneOnce()
}

/** Shows values that other users stored in advance. Another user's signature doesn't count as the signer's. */
async function filledAhead(scene) {
  const ticks = { ...checklist, required: false }
  const steps = [{ ...text, key: 'first' }, text, ticks, select, date, witness, signature]
  const handover = await Handover.make(scene.api, { steps })
  const { id } = await scene.api.user(VALUES.witness)
  const ahead = { room: '2.14', handover: ['Device'], floor: 'Second', back: '2027-01-02', witness: id, signature: DOT }
  await handover.advance({ first: 'By the desk', ...ahead })
  const { visit, page } = await openLink(scene, handover)
  assert.equal(await textbox(page, text).inputValue(), '2.14', 'a stored text is not shown')
  assert.equal(await page.locator('option:checked').innerText(), 'Second', 'a stored choice is not shown')
  assert.equal(await page.locator('input[type="date"]').inputValue(), '2027-01-02', 'a stored date is not shown')
  assert.ok(await part(page, ticks).getByRole('checkbox', { name: 'Device' }).isChecked(), 'a stored check mark is not shown')
  await sees(part(page, witness).getByText('Grace Hopper'), 'the previously picked person is not named')
  await visit.look('desktop-filled-ahead')
  await fill(page, ticks, ['Bag'])
  await submitButton(page).click()
  await sees(errorOf(page, signature), 'a stored signature counts as the signer’s')
  await draw(page)
  await submit(page)
  const [{ status, step_data: stored }] = await handover.instances()
  assert.deepEqual([status, stored.handover, stored.witness], ['completed', ['Device', 'Bag'], id], 'the API has different values')
  assert.notEqual(stored.signature, DOT, 'the earlier signature is kept')
}

/** Checks that an omitted optional signature stays empty, even if a signature was stored. */
async function storedSignature(scene) {
  const handover = await Handover.make(scene.api, { steps: [{ ...text, key: 'first' }, { ...signature, required: false }] })
  await handover.advance({ first: 'By the desk', signature: DOT })
  const { page } = await openLink(scene, handover)
  await submit(page)
  await sees(page.getByText('Nothing entered'), 'the page does not say that nothing was entered')
  assert.equal((await handover.stored()).signature ?? null, null, 'a stored signature counts as the signer’s')
}

/** Errors of the service and the page are shown as text next to the field, and disappear once the field is corrected. */
async function errors(scene, name, options) {
  const steps = [witness, checklist, text, signature]
  const { handover, visit, page } = await open(scene, { steps }, options)
  visit.expectFailures('status of 422')
  await submitButton(page).click()
  for (const step of steps) await sees(errorOf(page, step), `"${step.label}" is required and missing, without an error beside it`)
  await says(page, '4 entries need a second look')
  await visit.look(`${name}-required`)
  await fill(page, witness, 'former.colleague@example.com')
  await fill(page, checklist, ['Device'])
  await fill(page, text, '2.14')
  await draw(page)
  await says(page, '1 entry needs a second look')
  await submitButton(page).click()
  await sees(errorOf(page, checklist), 'an unticked item has no error beside it')
  await fill(page, checklist)
  assert.equal(await page.locator('#problem').innerText(), '', 'the error of a corrected field remains')
  await submitButton(page).click()
  await sees(errorOf(page, witness).filter({ hasText: 'active' }), 'the error does not say what is wrong with the person')
  await describedBy(textbox(page, witness), /active/)
  await visit.look(`${name}-error`)
  await handover.expectUntouched()
  await fill(page, witness, VALUES.witness)
  await submit(page)
  await handover.expectDoneOnce()
}

const STATED = { ...signature, statement: 'I received what is ticked above, and return it when I leave.' }
const EMPLOYEE = { ...witness, key: 'employee', label: 'Who gets it?' }
const TICKED = { ...checklist, required: false }

/** Types of steps that the office submits, and the text that the page shows for their values. */
const SUBMITTED = [
  [text, '2.14', '2.14'],
  [textarea, 'Lid: one scratch.\nHinge: fine.', 'Hinge: fine.'],
  [select, 'First', 'First'],
  [date, '2027-03-31', 'March 31, 2027'],
  [confirmation, true, 'Yes'],
  [{ ...text, key: 'nothing', label: 'Anything else', required: false }, undefined, 'Nothing entered'],
]

/** Returns the value that the page shows beside a label. */
const shown = (page, { label }) =>
  page
    .getByRole('region', { name: 'Submitted so far' })
    .locator('dl > div')
    .filter({ has: page.getByRole('term').filter({ hasText: label }) })
    .getByRole('definition')

/** Opens the link of a handover whose steps before the signature were submitted by the office. */
async function openSubmitted(scene, others, assets, options) {
  const steps = [EMPLOYEE, TICKED, ...others.map(([step]) => step), STATED]
  const handover = await Handover.make(scene.api, { steps, assets, name: 'Employee handover' })
  const { id } = await scene.api.user(VALUES.witness)
  const values = Object.fromEntries(others.map(([{ key }, value]) => [key, value]))
  await handover.advance({ employee: id, handover: ['Device', 'Bag'], ...values }, steps.at(-2).key)
  const { visit, page } = await openLink(scene, handover, options)
  await sees(shown(page, EMPLOYEE).getByText('Grace Hopper', { exact: true }), 'the picked person is not named')
  const lines = await shown(page, TICKED).getByRole('listitem').allTextContents()
  assert.deepEqual(lines, ['✓Device, checked', '–Power supply, not checked', '✓Bag, checked'], 'another checklist')
  await sees(page.getByText(STATED.statement), 'the statement is not on the page')
  return { visit, page }
}

/** On a phone, a short handover is completely visible, in reading order. */
async function shortOnPhone(scene) {
  const { visit, page } = await openSubmitted(scene, [], 1, PHONE)
  const region = page.getByRole('region', { name: 'Submitted so far' })
  const places = [region, page.getByText(STATED.statement), page.locator('canvas'), submitButton(page)]
  const boxes = await Promise.all(places.map((place) => place.boundingBox()))
  assert.equal(await page.evaluate(() => scrollY), 0, 'the page was scrolled')
  boxes.reduce((before, { y, height }, n) => {
    assert.ok(y >= before && y + height <= PHONE.viewport.height, `part ${n} is from ${y} to ${y + height}, after ${before}`)
    return y
  }, 0)
  await describedBy(page.getByRole('group', { name: STATED.label }), /return it when I leave/)
  await visit.look('phone-submitted')
  await fill(page, STATED)
  await submit(page)
  await visit.look('phone-submitted-done')
}

/** Every type of step, for several assets. */
async function submittedBefore(scene, name, options) {
  const { visit, page } = await openSubmitted(scene, SUBMITTED, 2, options)
  for (const [step, , value] of SUBMITTED) await sees(shown(page, step).getByText(value), `"${step.label}" is not ${value}`)
  await visit.look(`${name}-submitted-everything`)
}

/** The second signer sees the first signature. */
async function secondSignature(scene) {
  const second = { ...signature, key: 'second', label: 'Signature of the witness' }
  const { handover, page } = await open(scene, { steps: [STATED, second], link: { until: STATED.key } }, PHONE)
  await fill(page, STATED)
  await submitButton(page).click()
  await sees(page.getByRole('heading', { name: 'Thank you' }), 'the first signature is not submitted')
  const witnesses = await openLink(scene, await handover.link({ signer: { name: 'Mary' } }), PHONE)
  await sees(shown(witnesses.page, STATED).getByText(/^Signed by Ada Lovelace, /), 'the first signature has no author')
  await sees(witnesses.page.getByText('I confirm what is stated above.'), 'a step without a statement has no default')
  await witnesses.visit.look('phone-second-signature')
  await fill(witnesses.page, second)
  await submit(witnesses.page)
}

/** Signs for several assets. Returns the number of requests that submitted the form. */
async function move(scene, assets, steps, interrupt = () => {}) {
  const { handover, visit, page } = await open(scene, { steps, assets, name: 'New hires' }, PHONE)
  visit.expectFailures('status of 422')
  await sees(title(page, `You receive ${assets} devices`), 'the heading does not say how many devices are signed for')
  const devices = page.getByRole('region', { name: 'Devices' })
  for (const { asset_tag: tag } of handover.assets) await sees(devices.getByText(tag), `${tag} is not on the page`)
  await visit.look(`phone-movement-${assets}`)
  for (const step of steps) await fill(page, step, step.type === 'text' ? `some ${step.key}` : undefined)
  await interrupt(visit, page)
  await submit(page)
  await visit.look(`phone-movement-${assets}-done`)
  await handover.expectDoneOnce()
  for (const { step_data: stored } of await handover.instances())
    for (const { key } of steps.filter(({ type }) => type === 'text')) assert.equal(stored[key], `some ${key}`, 'another value')
  return submissions(visit).length
}

async function ofThree(scene) {
  assert.equal(await move(scene, 3, [checklist, text, signature]), 1, 'three assets took several requests')
}

/** 20 assets and 6 steps exceed the 100 items of a transaction. The connection is lost between two of the requests. */
async function ofTwenty(scene) {
  const texts = ['room', 'floor', 'desk', 'team'].map((key) => ({ ...text, key, label: `The ${key} of all` }))
  const interrupt = async (visit, page) => {
    let successes = 0
    visit.expectFailures('ERR_')
    await page.route('**/v1/sign/advance', async (route) => {
      if (successes++ === 1) return route.abort('connectionreset')
      const response = await route.fetch()
      if (!response.ok()) successes--
      return route.fulfill({ response })
    })
    await submitButton(page).click()
    await sees(again(page), 'after a lost connection, there is no button to try again')
    await says(page, /reached|offline|connection/i)
  }
  assert.ok((await move(scene, 20, [...texts, checklist, signature], interrupt)) > 1, 'this tests nothing')
}

/** Signs with a German browser. All texts of the page are German. */
async function german(scene) {
  const steps = [
    { ...witness, label: 'Zeuge' },
    { ...checklist, label: 'Übergeben', items: ['Gerät', 'Netzteil'], required: false },
    { ...signature, label: 'Unterschrift', statement: 'Ich habe alles erhalten.' },
  ]
  const handover = await Handover.make(scene.api, { steps, assets: 2, name: 'Übergabe' })
  const visit = await Visit.open(scene, handover.url, { ...PHONE, locale: 'de-AT', failures: ['status of 422'] })
  const { page } = visit
  const button = page.getByRole('button', { name: 'Unterschreiben und senden' })
  const address = part(page, steps[0]).getByRole('textbox', { name: 'E-Mail-Adresse' })
  await sees(button, 'the button is not in German')
  await sees(title(page, 'Sie erhalten 2 Geräte'), 'the heading is wrong')
  assert.equal(await page.locator('html').getAttribute('lang'), 'de', 'the page does not say its language')
  await sees(page.getByText(/^Dieser Link ist offen bis \d+\. \p{L}+ \d{4}/u), 'the date is not in the German format')
  await button.click()
  await says(page, '2 Eingaben brauchen einen zweiten Blick')
  await address.fill('nobody@example.com')
  await draw(page, { hand: 'touch', scope: part(page, steps[2]) })
  await button.click()
  await says(page, 'ist nichts angekreuzt')
  await button.click()
  await sees(errorOf(page, steps[0]).getByText('Keine aktive Person'), 'the error of the API is not in German')
  await address.fill(VALUES.witness)
  await visit.look('phone-german')
  await button.click()
  for (const name of ['Danke', 'Beleg']) await sees(page.getByRole('heading', { name }), 'the final view is not in German')
  await visit.look('phone-german-done')
  assert.doesNotMatch(await page.locator('body').innerText(), /\b(the|you|your|this|receipt|signed)\b/i, 'a text is in English')
  await handover.expectDoneOnce()
  assert.match(readFileSync(await saveReceipt(page, 'Beleg speichern'), 'utf8'), /<html lang="de">/, 'the receipt is not in German')
}

/** Japanese is unsupported, so the page uses the organization's language. */
const organizationsLanguage = (scene) =>
  scene.api.withSettings({ locale: 'fr-CH' }, async () => {
    const { url } = await Handover.make(scene.api, { steps: [signature] })
    const visit = await Visit.open(scene, url, { ...PHONE, locale: 'ja-JP' })
    await sees(title(visit.page, 'Vous recevez 1 appareil'), 'the page is not in French')
    await sees(visit.page.getByText('Je confirme ce qui est indiqué ci-dessus.'), 'the default statement is not in French')
    await visit.look('phone-french')
  })

export const organizations = { 'in the language of the organization': organizationsLanguage }
export const signing = {
  'phone, by finger': (scene) => handOver(scene, 'phone', 'touch', PHONE),
  'desktop, by mouse': (scene) => handOver(scene, 'desktop', 'mouse', DESKTOP),
  'desktop, by pen': (scene) => handOver(scene, 'desktop-pen', 'pen', DESKTOP),
  'a process that goes on': goesOn,
  ...onBoth('every type of step', everyType),
  'nothing that is optional': optional,
  'values from before': filledAhead,
  'a signature from before': storedSignature,
  ...onBoth('errors beside fields', errors),
  'submitted before, all in view': shortOnPhone,
  ...onBoth('all types submitted before', submittedBefore),
  'a second signature': secondSignature,
  'a movement of 3 assets': ofThree,
  'a movement of 20 assets, in several requests': ofTwenty,
  'in German': german,
}
