// The main ways of both pages.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { newUser, unique } from '../api.mjs'
import { Handover, STEPS } from '../sign_page/handover.mjs'
import { L, expectL } from '../sign_page/strokes.mjs'
import { PHONE, until } from '../visit.mjs'
import { Page } from './page.mjs'

/** Opens the inventory page at a fragment such as `#/assets`. */
const open = (scene, fragment) => Page.open(scene, `${scene.api.base}/app#key=${scene.api.key}&${fragment.slice(1)}`)

/** Draws a signature and submits it. Returns the size of the drawing. */
async function sign(page, { folder }) {
  const size = await page.draw(L)
  await page.tab.screenshot({ path: `${folder}/sign.png` })
  await page.press('button', 'Sign and submit')
  await page.sees('h2', /Done|Thank you/, 'the page does not say that it is done')
  return size
}

/** A link is opened, and signed by drawing. */
async function signing(scene) {
  const { checklist, text, select, date, signature } = STEPS
  const handover = await Handover.make(scene.api, { steps: [checklist, text, select, date, signature] })
  const page = await Page.open(scene, handover.url, PHONE)
  await page.sees('h1', 'You receive 1 device', 'the heading does not say what is signed for')
  for (const item of checklist.items) await page.tick(item)
  await page.fill('Room', '2.14')
  await page.set('Floor', 'First')
  await page.set('Expected back', '2030-03-31')
  const size = await sign(page, scene)
  await page.sees('h2, h3', 'Receipt', 'the page does not show the receipt')
  await handover.expectDoneOnce()
  expectL(await handover.signature(), size)
  const { signature: _, ...stored } = await handover.stored()
  assert.deepEqual(stored, { handover: checklist.items, room: '2.14', floor: 'First', back: '2030-03-31' })
}

/** The inventory has its controls in lines, and its ring beside the ring's words. */
async function inventory(scene) {
  const page = await open(scene, '#/assets')
  await page.sees('a.row', '', 'the list is empty')
  const label = (name) => page.sees('.filters label', name, `there is no filter ${name}`)
  const [status, place] = [await label('Status'), await label('Location')]
  assert.equal(status.y, place.y, 'the labels of the filters stand on two lines')
  const { x, width } = await page.sees('.ring', '', 'there is no ring')
  const words = await page.find('.shares table')
  assert.ok(x + width <= words.x, 'the ring lies under its words')
  await page.tab.screenshot({ path: `${scene.folder}/inventory.png` })
}

/** Two assets are handed over, with a signature in another tab. */
async function handingOver(scene) {
  const { api } = scene
  const user = await newUser(api)
  const made = []
  for (const n of [1, 2]) made.push(await api.post('/assets', { name: `Laptop ${n} of ${user.display_name}` }))
  const page = await open(scene, `#/assets?q=${encodeURIComponent(user.display_name)}`)
  for (const { asset_tag: tag } of made) await page.tick(new RegExp(tag))
  await page.press('.basket a', 'Hand over')
  await page.fill('Who gets the asset?', user.display_name)
  await page.press('option', user.display_name)
  await until(async () => (await page.find('field', 'Who gets the asset?')).chosen, 'nobody is chosen')
  await page.tick('Power supply')
  await page.press('button', 'Show the plan')
  await page.press('button', /^First/)
  await page.tick('Disk encrypted')
  await page.press('button', 'Do it')
  await page.sees('heading', 'This would happen', 'there is no plan')
  await page.press('button', 'Do it')
  await page.sees('picture', /QR code/, 'there is no code')
  const { href } = await page.sees('link', 'Open the link here', 'there is no link')
  const signer = await Page.open(scene, href)
  await sign(signer, scene)
  await signer.close()
  await page.sees('main', /Signed by .* at /, 'the page does not see the signature')
  for (const { id } of made) {
    const { status, assigned_to: holder } = await api.get(`/assets/${id}`)
    assert.deepEqual([status, holder], ['in_use', user.id], 'the asset is not handed over')
  }
}

/** A list is looked at, and brought in. */
async function importing(scene) {
  const { api, folder } = scene
  const mark = unique('G').replace(/\W/g, '')
  const rows = Array.from({ length: 120 }, (_, n) => `Gerät ${n};${mark}-${n};Büro / 2.${n % 9};${(n % 28) + 1}.03.2024;1.${100 + n},50;Lager`)
  const file = `${folder}/list.csv`
  writeFileSync(file, `Bezeichnung;Seriennummer;Standort;Kaufdatum;Preis;Status\r\n${rows.join('\r\n')}\r\n`, 'latin1')
  const page = await open(scene, '#/import')
  await page.sees('field', 'File', 'no file can be chosen')
  await page.tab.upload('input[type=file]', file)
  await page.sees('main', '120 rows', 'the file is not looked at')
  await page.press('button', 'See what would happen')
  await page.press('button', 'Import 120 rows')
  await page.sees('heading', 'Done', 'the import is not done')
  const asset = (await api.get(`/assets?q=${mark}-7`)).find(({ serial_number: serial }) => serial === `${mark}-7`)
  assert.deepEqual([asset.name, asset.location, asset.purchase_date, String(asset.purchase_price)], ['Gerät 7', 'Büro / 2.7', '2024-03-08', '1107.5'])
  const { meta: all } = await (await api.send('GET', `/assets?q=${mark}&limit=1`)).json()
  assert.equal(all.total, 120, 'not all rows are in')
}

/** An asset is put in. */
async function creating(scene) {
  const serial = unique('S')
  const page = await open(scene, '#/new')
  await page.fill(/^Name/, 'ThinkPad')
  await page.fill('Serial number', serial)
  await page.fill('Location', 'Berlin / Store')
  await page.set('Purchased', '2024-01-31')
  await page.press('button', /^Save$/)
  await page.sees('button', 'Change', 'the asset is not opened')
  const [{ name, location, purchase_date: date }] = await scene.api.get(`/assets?q=${encodeURIComponent(serial)}`)
  assert.deepEqual([name, location, date], ['ThinkPad', 'Berlin / Store', '2024-01-31'])
}

/** Stock is taken with a scanner. */
async function stockTaking(scene) {
  const { api } = scene
  const place = unique('Depot')
  const make = (location) => api.post('/assets', { name: 'Thing', location })
  const [seen, missing, elsewhere] = [await make(place), await make(place), await make('Elsewhere')]
  const page = await open(scene, '#/stock')
  await page.press('field', 'Location')
  await page.scan(place)
  await page.sees('h1', place, 'Enter does not begin')
  for (const [{ asset_tag: tag }, outcome] of [[seen, 'seen'], [elsewhere, 'elsewhere']]) {
    await page.scan(tag)
    await page.sees(`.scans .o-${outcome}`, tag, `${tag} is not ${outcome}`)
  }
  // Wherever the focus is.
  await page.press('h1', place)
  await page.scan('NO-SUCH-TAG')
  await page.sees('.scans .o-unknown', 'NO-SUCH-TAG', 'an unknown code is not said')
  await page.press('button', 'Finish')
  for (const reload of [false, true]) {
    if (reload) await page.reload()
    const { text } = await page.sees('region', /^1 missing/, 'the result is thrown away')
    assert.ok(text.includes(missing.asset_tag), 'the result lacks what is missing')
  }
  const { last_seen_at: at } = await api.get(`/assets/${seen.id}`)
  assert.ok(at, 'the scan is not recorded')
}

export const ways = {
  'the inventory': inventory,
  'a signature by drawing': signing,
  'a handover': handingOver,
  'a list': importing,
  'a new asset': creating,
  'stock-taking with a scanner': stockTaking,
}
