// Stock-taking with a scanner, with a camera, and offline.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { ENDS, SPEEDS, scan as type, tap } from '../hands.mjs'
import { PHONE, Visit, hold, newUser, sees, unique, until } from './visit.mjs'

/** Starts at a new location with some assets. */
async function begin(scene, count, options) {
  const place = unique('Depot')
  const assets = []
  for (let n = 0; n < count; n++)
    assets.push(await scene.api.post('/assets', { name: `Thing ${n}`, location: place, serial_number: `${place} ${n}` }))
  const visit = await Visit.open(scene, '#/stock', { ...PHONE, ...options })
  const { page } = visit
  await tap(page.getByRole('combobox', { name: 'Location' }))
  await type(page, place)
  await sees(page.getByRole('heading', { level: 1, name: place }), 'Enter does not begin')
  return { visit, page, assets }
}

const outcome = (page, name, tag) => sees(page.locator(`.scans .o-${name}`, { hasText: tag }), `${tag} is not ${name}`)

async function lostConnection(scene) {
  const elsewhere = await scene.api.post('/assets', { name: 'Stray', location: 'Elsewhere' })
  const { visit, page, assets } = await begin(scene, 4, { failures: ['ERR_INTERNET_DISCONNECTED', 'ERR_FAILED'] })
  const [first, second, third, missing] = assets
  const scan = async (code, result, tag = code) => {
    await type(page, code)
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
  await scan(`https://labels.example/by-tag/${missing.asset_tag}`, 'waiting', missing.asset_tag)
  await sees(page.getByText('No connection'), 'the page does not report a lost connection')
  await visit.press('Finish')
  const unsent = page.locator('main').getByText('Some scans are not sent yet.')
  await sees(unsent, 'scans are discarded')
  await visit.look('offline')
  await visit.context.setOffline(false)
  await outcome(page, 'seen', missing.asset_tag)
  assert.equal(await unsent.count(), 0, 'a sent scan waits')
  // A reload keeps the stock-taking of this tab; another tab has a separate stock-taking.
  await page.reload()
  await outcome(page, 'seen', missing.asset_tag)
  for (const { id, asset_tag: tag } of assets) {
    const seen = (await scene.api.get(`/assets/${id}/history`)).filter(({ type }) => type === 'asset.seen')
    // The page knows the server's time to the second, so the second of two scans can have an earlier time, which changes nothing.
    const times = tag === second.asset_tag ? [1, 2] : [1]
    assert.ok(times.includes(seen.length), `${tag} was seen ${seen.length} times`)
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

/** The lock screen takes the camera away; afterwards it goes on. */
async function lockScreen(scene) {
  const { visit, page, assets } = await begin(scene, 2)
  await visit.context.addInitScript(() => {
    globalThis.BarcodeDetector = class {
      detect = async () => (globalThis.codes ?? []).map((rawValue) => ({ rawValue }))
    }
    globalThis.cameras = []
    navigator.mediaDevices.getUserMedia = async () => {
      const stream = document.createElement('canvas').captureStream(5)
      globalThis.cameras.push(stream)
      return stream
    }
    Object.defineProperty(HTMLVideoElement.prototype, 'readyState', { get: () => 4 })
    Object.defineProperty(document, 'hidden', { get: () => Boolean(globalThis.isLocked) })
  })
  await page.reload()
  await visit.press('Use the camera')
  await sees(page.locator('video'), 'there is no picture')
  const lock = (is) => page.evaluate((is) => ((globalThis.isLocked = is), document.dispatchEvent(new Event('visibilitychange'))), is)
  await lock(true)
  assert.equal(await page.evaluate(() => cameras[0].getTracks()[0].readyState), 'ended', 'the camera stays on')
  await lock(false)
  await until(() => page.evaluate(() => cameras.length === 2 && document.querySelector('video')?.srcObject === cameras[1]), 'the picture is frozen')
  await page.evaluate((tag) => (globalThis.codes = [tag]), assets[0].asset_tag)
  await outcome(page, 'seen', assets[0].asset_tag)
  await visit.press('Stop the camera')
  await lock(true)
  await lock(false)
  assert.equal(await page.evaluate(() => cameras.length), 2, 'a camera that was stopped starts')
}

/** The result is kept, shown and saved as a file at the end. */
async function kept(scene) {
  const { visit, page, assets: [seen, missing] } = await begin(scene, 2)
  const elsewhere = await scene.api.post('/assets', { name: '=1+1', location: 'Elsewhere' })
  await type(page, seen.asset_tag)
  await outcome(page, 'seen', seen.asset_tag)
  await sees(page.getByText(/^.?1.? of .?2.? found$/), 'the page does not say how many are found')
  await type(page, elsewhere.asset_tag)
  await outcome(page, 'elsewhere', elsewhere.asset_tag)
  await type(page, 'NO-SUCH-TAG')
  await outcome(page, 'unknown', 'NO-SUCH-TAG')
  await visit.press('Finish')
  for (const reload of [false, true]) {
    if (reload) await page.reload()
    await sees(page.getByRole('region', { name: /^1 missing/ }).getByText(missing.asset_tag), 'the result is thrown away')
    await sees(page.getByRole('region', { name: /To be cleared up: 2/ }).getByText('NO-SUCH-TAG'), 'the result lacks what is unclear')
  }
  await visit.look('result')
  const download = page.waitForEvent('download')
  await visit.press('Save as a file')
  const lines = readFileSync(await (await download).path(), 'utf8').trimEnd().split('\r\n')
  assert.equal(lines[0], '\ufeff"Status","Tag","Name","Location","Person","Last seen"')
  assert.ok(lines.some((line) => line.startsWith(`"here","${seen.asset_tag}","Thing 0","${seen.location}"`)), 'the file lacks what was found')
  assert.ok(lines.some((line) => line.startsWith(`"missing","${missing.asset_tag}"`)), 'the file lacks what is missing')
  assert.ok(lines.some((line) => line.startsWith(`"from elsewhere","${elsewhere.asset_tag}","'=1+1","Elsewhere"`)), 'a spreadsheet would calculate a name')
  await visit.press('Go on scanning')
  await type(page, missing.asset_tag)
  await outcome(page, 'seen', missing.asset_tag)
  await visit.press('Finish')
  await sees(page.getByText('Everything was found.'), 'the result is not the latest')
  await visit.press('Another stock-taking')
  await sees(page.getByRole('button', { name: 'Begin' }), 'there is no other stock-taking')
}

/** A scanner's codes count wherever the focus is. */
async function withoutFocus(scene) {
  const { visit, page, assets } = await begin(scene, SPEEDS.length * ENDS.length + 5)
  const left = assets.values()
  const scanNext = async (options) => {
    const { asset_tag: tag } = left.next().value
    await type(page, tag, options)
    await outcome(page, 'seen', tag)
  }
  for (const pause of SPEEDS) for (const end of ENDS) await scanNext({ pause, end })
  await visit.press('Show what is missing')
  await sees(page.getByRole('heading', { name: /missing/ }), 'the page does not show what is missing')
  await scanNext({ end: 'Tab' })
  await tap(page.getByRole('heading', { level: 1 }))
  await scanNext()
  for (const name of ['Show what is missing', 'Finish', 'Add']) {
    await visit.button(name).focus()
    await scanNext({ end: name === 'Add' ? 'Tab' : 'Enter' })
  }
  assert.equal(await page.locator('.scans li').count(), assets.length, 'a scan is split or counts as another')
}

/** A place where nothing is recorded is probably mistyped. */
async function mistyped(scene) {
  const site = unique('London')
  await scene.api.post('/assets', { name: 'Thing', location: site })
  const visit = await Visit.open(scene, '#/stock', PHONE)
  const { page } = visit
  const field = page.getByRole('combobox', { name: 'Location' })
  const wrong = site.replace('n', '')
  await field.fill(wrong)
  await visit.press('Begin')
  await sees(page.getByText(new RegExp(`No asset is recorded at .${wrong}`)), 'a mistyped place is accepted')
  await visit.look('mistyped')
  const { asset_tag: tag } = await scene.api.post('/assets', { name: 'Thing', location: site })
  await type(page, tag)
  await outcome(page, 'waiting', tag)
  const unsent = page.locator('main').getByText('Some scans are not sent yet.')
  await visit.press('Finish')
  await sees(unsent, 'the page does not say why it can’t finish')
  await visit.press('Another place')
  await sees(unsent, 'the page does not say that a scan waits for the place')
  await visit.look('waiting')
  assert.equal(await field.inputValue(), wrong)
  const check = await hold(page, ({ pathname, searchParams }) => pathname === '/v1/assets' && searchParams.get('limit') === '1')
  await visit.press('Begin')
  await check.asked
  assert.equal(await visit.button('Count here anyway').count(), 0, 'the question about the earlier place stays')
  await check.release()
  await visit.press('Count here anyway')
  await outcome(page, 'elsewhere', tag)
  assert.equal(await unsent.count(), 0, 'a sent scan waits')
  await visit.press('Show what is missing')
  await sees(page.locator('.card').getByText(new RegExp(`No asset is recorded at .${wrong}`)), 'nothing is recorded here, but everything was found')
  await visit.press('Finish')
  await visit.press('Another stock-taking')
  await field.fill(site)
  await page.keyboard.press('Enter')
  await sees(visit.label(/Scan or type/), 'a known place is refused')
}

/** Scans that waited count from their own time. */
async function corrected(scene) {
  const site = unique('Paris')
  const { asset_tag: missing } = await scene.api.post('/assets', { name: 'Thing', location: site })
  const { asset_tag: tag } = await scene.api.post('/assets', { name: 'Thing', location: site })
  const visit = await Visit.open(scene, '#/stock', PHONE)
  const { page } = visit
  const field = page.getByRole('combobox', { name: 'Location' })
  await field.fill(site.replace('r', ''))
  await visit.press('Begin')
  await type(page, tag)
  await outcome(page, 'waiting', tag)
  // As if the scan had waited for a minute.
  await page.evaluate(() => {
    const [name] = Object.keys(sessionStorage).filter((name) => name.startsWith('stock-'))
    const state = JSON.parse(sessionStorage[name])
    state.since = state.scans[0].at = new Date(Date.parse(state.since) - 60_000).toISOString()
    sessionStorage[name] = JSON.stringify(state)
  })
  await page.reload()
  await visit.press('Another place')
  await field.fill(site)
  await visit.press('Begin')
  await outcome(page, 'seen', tag)
  await visit.press('Show what is missing')
  const tags = page.getByRole('region', { name: /1 missing/ }).locator('.tag')
  await until(async () => String(await tags.allTextContents()) === missing, 'a scanned asset is missing')
}

/** Nothing can be counted at a place that can't exist, and no scan is lost. */
async function impossible(scene) {
  const site = unique('Rome')
  const { asset_tag: tag } = await scene.api.post('/assets', { name: 'Thing', location: site })
  const visit = await Visit.open(scene, '#/stock', { ...PHONE, failures: ['status of 422', 'ERR_INTERNET_DISCONNECTED'] })
  const { page } = visit
  const field = page.getByRole('combobox', { name: 'Location' })
  const wrong = page.locator('.field').filter({ has: field }).getByText('No empty level', { exact: false })
  await field.fill(`${site}/`)
  await visit.press('Begin')
  await sees(wrong, 'an impossible place is accepted')
  assert.equal(await visit.button('Count here anyway').count(), 0)
  await visit.look('impossible')
  await visit.context.setOffline(true)
  await field.fill(`${site}//B`)
  await visit.press('Begin')
  await type(page, tag)
  await outcome(page, 'waiting', tag)
  await visit.context.setOffline(false)
  await sees(wrong, 'an impossible place is accepted without a connection')
  await field.fill(site)
  await visit.press('Begin')
  await outcome(page, 'seen', tag)
}

/** An asset can be created or corrected between two scans of its code. */
async function scannedAgain(scene) {
  const { page, assets: [{ location }] } = await begin(scene, 1)
  const { id, asset_tag: stray } = await scene.api.post('/assets', { name: 'Stray', location: 'Elsewhere' })
  const tag = unique('TAG').replace(' ', '-').toUpperCase()
  await type(page, tag)
  await outcome(page, 'unknown', tag)
  await type(page, stray)
  await outcome(page, 'elsewhere', stray)
  await scene.api.post('/assets', { name: 'Thing', asset_tag: tag, location })
  await scene.api.patch(`/assets/${id}`, { location })
  for (const code of [tag, stray]) {
    await type(page, code)
    await outcome(page, 'seen', code)
  }
  assert.equal(await page.locator('.scans li').count(), 2, 'a code counts twice')
}

/** What a person has is not missing, and a scrapped asset is not expected. */
async function held(scene) {
  const { visit, page, assets: [lost, scrapped, lent] } = await begin(scene, 3)
  const user = await newUser(scene.api)
  await scene.api.patch(`/assets/${scrapped.id}`, { status: 'scrapped' })
  await scene.api.patch(`/assets/${lent.id}`, { status: 'in_use', assigned_to: user.id })
  await visit.press('Show what is missing')
  const card = (name) => page.getByRole('region', { name })
  const tags = async (name) => String(await card(name).locator('.tag').allTextContents())
  await until(async () => (await tags(/1 missing/)) === lost.asset_tag, 'a scrapped or a held asset is missing')
  await until(async () => (await tags(/1 with a person/)) === lent.asset_tag, 'the page does not list what a person has')
  await sees(card(/1 with a person/).getByText(new RegExp(`with .${user.display_name}. since`)), 'the page does not say who has it, and since when')
  await visit.look('held')
  await type(page, lost.asset_tag)
  await outcome(page, 'seen', lost.asset_tag)
  await visit.press('Show what is missing')
  await sees(page.getByText('Everything was found.'), 'what a person has is missing')
}

/** A scan removes its asset from what is missing. */
async function found(scene) {
  const { visit, page, assets } = await begin(scene, 3)
  const user = await newUser(scene.api)
  const lent = await scene.api.post('/assets', { name: 'Lent', location: assets[0].location, status: 'in_use', assigned_to: user.id })
  await visit.press('Show what is missing')
  const tags = (name) => page.getByRole('region', { name }).locator('.tag').allTextContents()
  const lists = (name, expected) =>
    until(async () => String((await tags(name)).sort()) === String(expected.map(({ asset_tag: tag }) => tag).sort()), `the page does not list ${expected.length} as ${name}`)
  await lists(/^3 missing/, assets)
  for (let left = assets; left.length;) {
    const [{ asset_tag: tag, serial_number: serial }] = left
    await type(page, left.length === 2 ? serial : tag)
    await outcome(page, 'seen', tag)
    left = left.slice(1)
    await lists(new RegExp(`^${left.length} missing`), left)
    await lists(/^1 with a person/, [lent])
  }
  await sees(page.getByRole('region', { name: /^0 missing/ }).getByText('Everything was found.'), 'the page does not say that nothing is missing')
  await type(page, lent.asset_tag)
  await outcome(page, 'seen', lent.asset_tag)
  await until(async () => (await page.getByRole('region', { name: /with a person/ }).count()) === 0, 'a scanned asset is still with a person')
  await visit.look('found')
}

/** A list that is too long to show loses assets that it doesn't show, too. */
async function longList(scene) {
  const { visit, page, assets: [{ asset_tag: oldest }] } = await begin(scene, 5)
  // As if more assets were missing than the page asks for at once.
  const shorten = (route) => route.continue({ url: route.request().url().replace('limit=100', 'limit=2') })
  await page.route((url) => url.searchParams.get('limit') === '100', shorten)
  await visit.press('Show what is missing')
  const card = (name) => page.getByRole('region', { name })
  await sees(card(/^5 missing/).getByText('and 3 more'), 'the page does not count what is missing')
  assert.equal(await card(/missing/).getByText(oldest, { exact: true }).count(), 0)
  await type(page, oldest)
  await sees(card(/^4 missing/).getByText('and 2 more'), 'a scanned asset counts as missing')
}

/** The organization's template says where the tag of an address is. */
const labels = ({ api, ...scene }) =>
  api.withSettings({ label_url_template: 'https://h.example/a/{asset_tag}?src=qr&v=2' }, async () => {
    const { visit, page, assets: [one, two] } = await begin({ api, ...scene }, 2)
    await api.post('/assets', { name: 'Another', asset_tag: '2', location: 'Elsewhere' })
    for (const [asset, code] of [[one, `https://h.example/a/${one.asset_tag}?src=qr&v=2`], [two, `]C1${two.asset_tag}`]]) {
      await type(page, code)
      await outcome(page, 'seen', asset.asset_tag)
    }
    assert.equal(await page.locator('.scans li').count(), 2, 'a label finds another asset')
    await visit.go('#/hand-over')
    await sees(page.getByRole('combobox', { name: 'Add an asset' }), 'there is no field for assets')
    await type(page, `HTTPS://H.EXAMPLE/a/${one.asset_tag}?src=qr&v=2`)
    await until(async () => String(await page.locator('.assets .tag').allTextContents()) === one.asset_tag, 'a label adds another asset')
    await visit.close()
  })

/** Each scan has its own time, also the first one without a connection. */
async function ownTime(scene) {
  const { visit, page, assets: [{ id, asset_tag: tag }] } = await begin(scene, 1, { failures: ['ERR_INTERNET_DISCONNECTED', 'ERR_FAILED'] })
  await visit.context.setOffline(true)
  await type(page, tag)
  await sees(page.getByText('No connection'), 'the page does not report a lost connection')
  const [scan] = await page.evaluate(() => Object.entries(sessionStorage).flatMap(([name, text]) => name.startsWith('stock-') ? JSON.parse(text).scans : []))
  await visit.context.setOffline(false)
  await outcome(page, 'seen', tag)
  assert.equal((await scene.api.get(`/assets/${id}`)).last_seen_at, scan.at, 'a scan has the time of the connection')
}

async function scrapped(scene) {
  const { visit, page, assets: [{ id, asset_tag: tag }] } = await begin(scene, 2)
  await scene.api.patch(`/assets/${id}`, { status: 'scrapped' })
  await type(page, tag)
  await sees(page.locator('.scans li', { hasText: tag }).getByText('Scrapped'), 'the page does not say that an asset is scrapped')
  await visit.look('scrapped')
}

export const labelCodes = { 'labels with an address': labels }
export const stock = {
  'stock-taking with a lost connection': lostConnection,
  'stock-taking with a camera': camera,
  'stock-taking after the lock screen': lockScreen,
  'the result of a stock-taking': kept,
  'stock-taking with a scanner and no focus': withoutFocus,
  'stock-taking at a mistyped place': mistyped,
  'stock-taking at a corrected place': corrected,
  'stock-taking at an impossible place': impossible,
  'stock-taking of codes scanned again': scannedAgain,
  'stock-taking of what people have': held,
  'stock-taking until everything is found': found,
  'stock-taking of more than fits the list': longList,
  'stock-taking with the time of each scan': ownTime,
  'stock-taking of a scrapped asset': scrapped,
}
