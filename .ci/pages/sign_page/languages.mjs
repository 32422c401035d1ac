// The page in the language of the browser, else in the organization's.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { STEPS } from './api.mjs'
import { errorOf, part, says } from './form.mjs'
import { draw } from './strokes.mjs'
import { PHONE, Visit, expectAccessible, sees } from './visit.mjs'

const witness = { type: 'user_picker', key: 'witness', label: 'Zeuge', required: true }
const signature = { ...STEPS.signature, label: 'Unterschrift', statement: 'Ich habe alles erhalten.' }
const checklist = { ...STEPS.checklist, label: 'Übergeben', items: ['Gerät', 'Netzteil'], required: false }

/** Signs with a browser in German: no text of the page is in another language. */
async function german(scene) {
  const handover = await scene.api.handOver({ steps: [witness, checklist, signature], assets: 2, name: 'Übergabe' })
  const visit = await Visit.open(scene, handover.url, { ...PHONE, locale: 'de-AT' })
  visit.expectFailures('status of 422')
  const { page } = visit
  const button = page.getByRole('button', { name: 'Unterschreiben und senden' })
  await sees(button, 'the button is not in German')
  await sees(page.getByRole('heading', { level: 1, name: 'Sie erhalten 2 Geräte', exact: true }), 'the heading is another')
  assert.equal(await page.locator('html').getAttribute('lang'), 'de', 'the page does not say its language')
  await sees(page.getByText(/^Dieser Link ist offen bis \d+\. \p{L}+ \d{4}/u), 'the date is not as in German')
  await button.click()
  await says(page, '2 Eingaben brauchen einen zweiten Blick', 'what is missing')
  await part(page, witness).getByRole('textbox', { name: 'E-Mail-Adresse' }).fill('nobody@example.com')
  await draw(page, { hand: 'touch', scope: part(page, signature) })
  await button.click()
  await says(page, 'ist nichts angekreuzt', 'a list without a tick')
  await button.click()
  await sees(errorOf(page, witness).getByText('Keine aktive Person'), 'the error of the API is not in German')
  await part(page, witness).getByRole('textbox', { name: 'E-Mail-Adresse' }).fill('grace.hopper@example.com')
  await visit.look('phone-german')
  await button.click()
  await sees(page.getByRole('heading', { name: 'Danke' }), 'the end is not in German')
  await sees(page.getByRole('heading', { name: 'Beleg' }), 'the receipt is not in German')
  await visit.look('phone-german-done')
  const text = await page.locator('body').innerText()
  assert.doesNotMatch(text, /\b(the|you|your|this|receipt|signed)\b/i, 'a text is in English')
  await scene.api.expectDoneOnce(handover)
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Beleg speichern' }).click()])
  assert.match(readFileSync(await download.path(), 'utf8'), /<html lang="de">/, 'the saved receipt is not in German')
  await visit.close()
}

/** The page has no Japanese: then it has the organization's language. */
async function organizations(scene) {
  const { api } = scene
  await api.call('PATCH', '/settings', { locale: 'fr-CH' })
  try {
    const { url } = await api.handOver({ steps: [STEPS.signature] })
    const visit = await Visit.open(scene, url, { ...PHONE, locale: 'ja-JP' })
    const { page } = visit
    await sees(page.getByRole('heading', { level: 1, name: 'Vous recevez 1 appareil', exact: true }), 'the page is not in French')
    await sees(page.getByText('Je confirme ce qui est indiqué ci-dessus.'), 'the default statement is not in French')
    await expectAccessible('the page in French', page)
    await visit.close()
  } finally {
    await api.call('PATCH', '/settings', { locale: 'en' })
  }
}

export const languages = {
  'in German': german,
  'in the language of the organization': organizations,
}
