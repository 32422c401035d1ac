// Stock-taking: by a scanner, by a camera, and without a connection.
import assert from 'node:assert/strict'
import { PHONE, Visit, sees, until } from './visit.mjs'

async function newPlace(api, count) {
  const place = `Depot ${Math.random().toString(36).slice(2, 8)}`
  const assets = []
  for (let n = 0; n < count; n++) assets.push(await api.post('/assets', { name: `Thing ${n}`, location: place, serial_number: `${place} ${n}` }))
  return { place, assets }
}

async function begin(scene, place, options) {
  const visit = await Visit.open(scene, '#/stock', { ...PHONE, ...options })
  const { page } = visit
  await page.getByRole('combobox', { name: 'Location' }).fill(place)
  await page.getByRole('button', { name: 'Begin' }).click()
  const scan = async (code) => {
    await page.getByLabel(/Scan or type/).fill(code)
    await page.keyboard.press('Enter')
  }
  return { visit, page, scan }
}

const outcome = (page, name, tag) => sees(page.locator(`.scans .o-${name}`, { hasText: tag }), `${tag} is not ${name}`)
const sightings = async (api, { id }) => (await api.get(`/assets/${id}/history`)).filter(({ type }) => type === 'asset.seen').length

async function lostConnection(scene) {
  const { api } = scene
  const { place, assets: [first, second, third, missing] } = await newPlace(api, 4)
  const elsewhere = await api.post('/assets', { name: 'Stray', location: 'Elsewhere' })
  const { visit, page, scan } = await begin(scene, place, { failures: ['ERR_INTERNET_DISCONNECTED', 'ERR_FAILED'] })
  await scan(first.asset_tag)
  await outcome(page, 'seen', first.asset_tag)
  await scan(elsewhere.asset_tag)
  await outcome(page, 'elsewhere', elsewhere.asset_tag)
  await scan(second.serial_number)
  await outcome(page, 'seen', second.asset_tag)
  await scan('NO-SUCH-TAG')
  await outcome(page, 'unknown', 'NO-SUCH-TAG')
  await visit.look('stock-taking')
  // The request arrives, and its response doesn't.
  let lost = 0
  await page.route('**/assets/seen', async (route) => {
    if (lost++) return route.continue()
    await route.fetch()
    await route.abort('failed')
  })
  await scan(third.asset_tag)
  await outcome(page, 'seen', third.asset_tag)
  await page.unroute('**/assets/seen')
  await visit.context.setOffline(true)
  await scan(`https://labels.example/t/${missing.asset_tag}`)
  await outcome(page, 'waiting', missing.asset_tag)
  await sees(page.getByText('No connection'), 'a lost connection is not told')
  await page.getByRole('button', { name: 'Finish' }).click()
  await sees(page.getByText('Some scans are not sent yet.'), 'scans are thrown away')
  await visit.look('offline')
  await visit.context.setOffline(false)
  await outcome(page, 'seen', missing.asset_tag)
  // Another tab has its own; this one goes on where it was.
  await page.reload()
  await outcome(page, 'seen', missing.asset_tag)
  for (const asset of [first, second, third, missing]) assert.equal(await sightings(api, asset), 1, `${asset.asset_tag} was not seen once`)
  await page.getByRole('button', { name: 'Show what is missing' }).click()
  await sees(page.getByText('Everything was found.'), 'something is missing')
  await visit.close()
}

async function camera(scene) {
  const { api } = scene
  const { place, assets: [seen, missing] } = await newPlace(api, 2)
  const { visit, page } = await begin(scene, place)
  assert.equal(await page.getByRole('button', { name: 'Use the camera' }).count(), 0, 'a browser without BarcodeDetector offers the camera')
  await visit.context.addInitScript((tag) => {
    globalThis.BarcodeDetector = class {
      detect = async () => [{ rawValue: tag }]
    }
    navigator.mediaDevices.getUserMedia = async () => document.createElement('canvas').captureStream(5)
    Object.defineProperty(HTMLVideoElement.prototype, 'readyState', { get: () => 4 })
  }, seen.asset_tag)
  await page.reload()
  await page.getByRole('button', { name: 'Use the camera' }).click()
  await outcome(page, 'seen', seen.asset_tag)
  await page.getByRole('button', { name: 'Stop the camera' }).click()
  await page.getByRole('button', { name: 'Show what is missing' }).click()
  await sees(page.getByRole('link', { name: new RegExp(missing.asset_tag) }), 'what is missing is not told')
  await until(async () => (await page.locator('.scans li').count()) === 1, 'the same code counts twice')
  await visit.close()
}

export const stock = { 'stock-taking with a lost connection': lostConnection, 'stock-taking with a camera': camera }
