// A whole handover on a phone and on a desktop, in light and dark: from the link to the receipt.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { STEPS } from './api.mjs'
import { doneHeading, fill, open, says, submit, submitButton } from './form.mjs'
import { expectL } from './png.mjs'
import { DESKTOP, PHONE, sees } from './visit.mjs'

/** Fails unless the page says whom and what the handover is about. */
async function expectFacts({ page }, { name, assets: [asset], signer }, organization) {
  const title = page.getByRole('heading', { level: 1, name: 'You receive 1 device', exact: true })
  await sees(title, 'the heading does not say what is signed for')
  for (const text of [organization, name]) await sees(page.getByText(text, { exact: true }), `${text} is not on the page`)
  await sees(page.getByText(`Signing as ${signer.name}`), 'the page does not say who signs')
  for (const fact of [asset.asset_tag, asset.name, asset.model, asset.serial_number]) {
    await sees(page.getByText(fact), `the asset's ${fact} is not on the page`)
  }
}

/** Saves the receipt with the page's button, and fails unless it shows the asset. */
async function saveReceipt({ page }, [asset]) {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save receipt' }).click(),
  ])
  assert.match(download.suggestedFilename(), /\.(html|json)$/, 'the receipt has no name that says what it is')
  const saved = readFileSync(await download.path(), 'utf8')
  assert.ok(saved.includes(asset.asset_tag), 'the saved receipt does not name the asset')
}

async function handOver(scene, name, options, hand) {
  const { api } = scene
  const steps = [STEPS.checklist, STEPS.signature]
  const { handover, visit, page } = await open(scene, { steps, name: 'Employee handover' }, options)
  await expectFacts(visit, handover, (await api.get('/settings')).name)
  await visit.look(`${name}-open`)
  await fill(page, STEPS.checklist)
  const size = await fill(page, STEPS.signature, { hand })
  await visit.look(`${name}-drawn`)
  await submit(page)
  await visit.look(`${name}-done`)

  await api.expectDoneOnce(handover)
  const image = await api.signature(handover, STEPS.signature.key)
  expectL(image, size)
  const sha256 = createHash('sha256').update(image).digest('hex')
  const { link, key } = await api.receipts(handover)
  assert.deepEqual(link, key, 'the link has another receipt than the API')
  assert.ok(JSON.stringify(link.receipt.steps).includes(sha256), "the receipt does not have the signature's SHA-256")
  assert.equal(await page.getByText(/[0-9a-f]{64}/).count(), 0, 'the page shows a hash, which people can do nothing with')
  await saveReceipt(visit, handover.assets)

  await page.reload()
  await sees(page.getByRole('button', { name: 'Save receipt' }), 'the receipt is not offered when the link is opened again')
  await visit.close()
}

/** The process goes on after the link's steps: the receipt comes when others have done theirs. */
async function goesOn(scene) {
  const { api } = scene
  const later = { type: 'confirmation', key: 'filed', label: 'Filed by the desk' }
  const what = { steps: [STEPS.signature, later], link: { until: STEPS.signature.key } }
  const { handover, visit, page } = await open(scene, what, PHONE)
  assert.equal(await page.getByText(later.label).count(), 0, "the page shows a step that is not the link's")
  await fill(page, STEPS.signature, { hand: 'touch' })
  await submitButton(page).click()
  await sees(doneHeading(page), 'the page does not say that it is done')
  await visit.look('phone-goes-on')
  assert.equal(
    await page.getByRole('button', { name: 'Save receipt' }).count(),
    0,
    'there is a receipt of what is not completed',
  )
  const check = page.getByRole('button', { name: 'Check for the receipt' })
  await check.click()
  await says(page, 'There is no receipt yet.', 'a receipt that is not there')
  await api.post(`${handover.path}/advance`, { step_data: { filed: true } })
  await check.click()
  await saveReceipt(visit, handover.assets)
  await visit.close()
}

export const devices = {
  'a process that goes on': goesOn,
  'phone, by finger': (scene) => handOver(scene, 'phone', PHONE, 'touch'),
  'phone in the dark, by finger': (scene) => handOver(scene, 'phone-dark', { ...PHONE, colorScheme: 'dark' }, 'touch'),
  'desktop, by mouse': (scene) => handOver(scene, 'desktop', DESKTOP, 'mouse'),
  'desktop in the dark, by pen': (scene) => handOver(scene, 'desktop-dark', { ...DESKTOP, colorScheme: 'dark' }, 'pen'),
}
