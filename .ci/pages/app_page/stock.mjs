// Stock-taking with a scanner, with a camera, and offline.
import assert from 'node:assert/strict'
import { PHONE, Visit, sees, unique, until } from './visit.mjs'

/** Starts at a new location with some assets. */
async function begin(scene, count, options) {
  const place = unique('Depot')
  const assets = []
  for (let n = 0; n < count; n++)
    assets.push(await scene.api.post('/assets', { name: `Thing ${n}`, location: place, serial_number: `${place} ${n}` }))
  const visit = await Visit.open(scene, '#/stock', { ...PHONE, ...options })
  const { page } = visit
  await page.getByRole('combobox', { name: 'Location' }).fill(place)
  await visit.press('Begin')
  return { visit, page, assets }
}

const outcome = (page, name, tag) => sees(page.locator(`.scans .o-${name}`, { hasText: tag }), `${tag} is not ${name}`)

async function lostConnection(scene) {
  const elsewhere = await scene.api.post('/assets', { name: 'Stray', location: 'Elsewhere' })
  const { visit, page, assets } = await begin(scene, 4, { failures: ['ERR_INTERNET_DISCONNECTED', 'ERR_FAILED'] })
  const [first, second, third, missing] = assets
  const scan = async (code, result, tag = code) => {
    await visit.label(/Scan or type/).fill(code)
    await page.keyboard.press('Enter')
    await outcome(page, result, tag)
  }
  await scan(first.asset_tag, 'seen')
  await scan(elsewhere.asset_tag, 'elsewhere')
  await scan(second.serial_number, 'seen', second.asset_tag)
  // Both codes of an asset count as one.
  await scan(second.asset_tag, 'seen')
  await until(async () => (await page.locator('.scans .o-seen').count()) === 2, 'an asset counts twice')
  await scan('NO-SUCH-TAG', 'unknown')
  await visit.look('stock-taking')
  // The request arrives, but its response is lost.
  const lose = async (route) => {
    await route.fetch()
    await route.abort('failed')
  }
  await page.route('**/assets/seen', lose, { times: 1 })
  await scan(third.asset_tag, 'seen')
  await visit.context.setOffline(true)
  await scan(`https://labels.example/t/${missing.asset_tag}`, 'waiting', missing.asset_tag)
  await sees(page.getByText('No connection'), 'the page does not report a lost connection')
  await visit.press('Finish')
  await sees(page.getByText('Some scans are not sent yet.'), 'scans are discarded')
  await visit.look('offline')
  await visit.context.setOffline(false)
  await outcome(page, 'seen', missing.asset_tag)
  // A reload keeps the stock-taking of this tab; another tab has a separate stock-taking.
  await page.reload()
  await outcome(page, 'seen', missing.asset_tag)
  for (const { id, asset_tag: tag } of assets) {
    const seen = (await scene.api.get(`/assets/${id}/history`)).filter(({ type }) => type === 'asset.seen')
    assert.equal(seen.length, tag === second.asset_tag ? 2 : 1, `${tag} was seen another number of times`)
  }
  await visit.press('Show what is missing')
  await sees(page.getByText('Everything was found.'), 'something is missing')
}

async function camera(scene) {
  const { visit, page, assets: [seen, missing] } = await begin(scene, 2)
  assert.equal(await visit.button('Use the camera').count(), 0, 'a browser without BarcodeDetector offers the camera')
  await visit.context.addInitScript((tag) => {
    globalThis.BarcodeDetector = class {
      detect = async () => [{ rawValue: tag }]
    }
    navigator.mediaDevices.getUserMedia = async () => document.createElement('canvas').captureStream(5)
    Object.defineProperty(HTMLVideoElement.prototype, 'readyState', { get: () => 4 })
  }, seen.asset_tag)
  await page.reload()
  await visit.press('Use the camera')
  await outcome(page, 'seen', seen.asset_tag)
  await visit.press('Stop the camera')
  await visit.press('Show what is missing')
  await sees(page.getByRole('link', { name: new RegExp(missing.asset_tag) }), 'the page does not list the missing assets')
  await until(async () => (await page.locator('.scans li').count()) === 1, 'the same code counts twice')
}

export const stock = { 'stock-taking with a lost connection': lostConnection, 'stock-taking with a camera': camera }
