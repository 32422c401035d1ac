// Puts assets and people in.
import assert from 'node:assert/strict'
import { scan } from '../hands.mjs'
import { PHONE, Visit, newUser, sees, unique, until } from './visit.mjs'

const save = ({ page }) => page.getByRole('button', { name: 'Save', exact: true }).click()

/** A delivery of laptops: only the serial number of each is scanned. */
async function delivery(scene) {
  const { api } = scene
  const code = unique('T').replace(/\W/g, '').toUpperCase()
  const schema = { properties: { ram_gb: { type: 'integer' }, color: { enum: ['black', 'silver'] } }, required: ['color'] }
  const type = await api.post('/catalog/asset-types', { name: `Laptop ${code}`, code, kind: 'physical', custom_fields_schema: schema })
  const maker = await api.post('/catalog/manufacturers', { name: unique('Maker') })
  const model = await api.post('/catalog/models', { name: unique('X1'), manufacturer_id: maker.id, asset_type_id: type.id })
  const serials = [1, 2, 3].map((n) => `SN${code}${n}`)
  const visit = await Visit.open(scene, '#/new', { ...PHONE, failures: [422] })
  const { page } = visit
  await sees(page.getByRole('heading', { name: 'New asset' }), 'there is no form')
  await visit.label('Name').fill('ThinkPad')
  await visit.label('Model').fill(model.name)
  await page.getByRole('option', { name: model.name }).tap()
  assert.equal(await visit.label('Manufacturer').inputValue(), maker.name)
  await visit.label('Location').fill('Berlin / Store')
  await visit.label('Warranty until').fill('2030-01-31')
  await sees(visit.label('ram_gb'), 'the type’s fields are missing')
  await visit.look('new-asset')
  await visit.label('Serial number').fill(serials[0])
  await visit.press('Save, and next')
  await sees(page.locator('.field', { has: visit.label('color') }).locator('.wrong'), 'a required field may be empty')
  for (const [n, serial] of serials.entries()) {
    await visit.label('color').selectOption('silver')
    if (n === 0) await visit.press('Save, and next')
    else {
      await page.locator('body').click({ position: { x: 2, y: 2 } })
      await scan(page, serial)
    }
    await sees(page.getByText(`${n + 1} asset`), `${serial} is not put in`)
  }
  await visit.label('Serial number').fill(serials[0])
  await sees(page.getByText('This serial number exists already'), 'an equal serial number is not said')
  const found = await api.get(`/assets?asset_type_id=${type.id}`)
  assert.deepEqual(found.map(({ serial_number: serial }) => serial).sort(), serials)
  for (const asset of found) {
    const { name, model_id: of, location, warranty_until: until } = asset
    assert.deepEqual([name, of, location, until, asset.custom_fields], ['ThinkPad', model.id, 'Berlin / Store', '2030-01-31', { color: 'silver' }])
  }
}

/** An asset is copied, and deleted again. */
async function copy(scene) {
  const { api } = scene
  const asset = await api.post('/assets', { name: unique('Falcon'), location: 'Berlin', serial_number: unique('S') })
  const visit = await Visit.open(scene, `#/asset/${asset.id}`)
  const { page } = visit
  await page.getByRole('link', { name: 'Copy' }).click()
  await until(async () => (await visit.label('Name').inputValue()) === asset.name, 'the copy has no name')
  assert.equal(await visit.label('Serial number').inputValue(), '', 'the copy has the serial number')
  await save(visit)
  await sees(page.getByRole('button', { name: 'Change' }), 'the copy is not opened')
  const [made] = (await api.get(`/assets?q=${encodeURIComponent(asset.name)}`)).filter(({ id }) => id !== asset.id)
  assert.equal(made.location, 'Berlin')
  await visit.press('Change')
  await visit.press('Delete')
  await sees(page.getByRole('heading', { name: `Delete` }), 'nobody asks')
  await visit.look('delete-asset')
  await visit.press('Delete')
  await sees(page.getByText('is deleted'), 'it is not deleted')
  assert.equal((await fetch(`${api.base}/assets/${made.id}`, { headers: { authorization: `Bearer ${api.key}` } })).status, 404)
}

/** A colleague is put in, and changed. */
async function colleague(scene) {
  const { api } = scene
  const name = unique('Grace')
  const visit = await Visit.open(scene, '#/people', { failures: [422] })
  const { page } = visit
  await page.getByRole('link', { name: 'New person' }).click()
  await visit.label('Name').fill(name)
  await save(visit)
  await sees(page.locator('.wrong'), 'a person needs no address')
  const email = `${name.replaceAll(' ', '.').toLowerCase()}@example.com`
  await visit.label('E-mail').fill(email)
  await visit.look('new-person')
  await save(visit)
  await sees(page.getByRole('heading', { level: 1, name }), 'the person is not opened')
  await visit.press('Change')
  await visit.label('Name').fill(`${name} H.`)
  await visit.label('Role').selectOption('helpdesk')
  await visit.look('change-person')
  await save(visit)
  await sees(page.getByRole('heading', { level: 1, name: `${name} H.` }), 'the name is not changed')
  const user = await api.user(email)
  assert.deepEqual([user.display_name, user.role], [`${name} H.`, 'helpdesk'])
}

/** All that the filters find is selected, changed and labelled, and exported. */
async function allOfThem(scene) {
  const { api } = scene
  const place = unique('Hall')
  for (let part = 0; part < 6; part++)
    await api.post('/assets/batch', { operations: Array.from({ length: 20 }, (_, n) => ({ op: 'create', body: { name: `Box ${part * 20 + n}`, location: place } })) })
  const visit = await Visit.open(scene, `#/assets?location=${encodeURIComponent(place)}`)
  const { page } = visit
  await page.locator('td.c-box input').first().check()
  await visit.press('Select all 120')
  await sees(page.getByText('120 selected'), 'not all are selected')
  await visit.press('Change')
  const basket = page.getByRole('region', { name: 'Selected' })
  await basket.getByLabel('Change').selectOption({ label: 'Warranty until' })
  await basket.getByLabel('New value').fill('2031-05-31')
  await visit.press('Change 120')
  await sees(basket.getByText('70 more'), 'the plan is not shown')
  await visit.shot('change-all')
  await visit.press('Do it')
  await sees(page.getByText('120 assets changed.'), 'the change is not reported')
  const exported = page.waitForEvent('download')
  await visit.press('Export')
  const read = async (download) => (await (await (await download).createReadStream()).toArray()).join('')
  const rows = (await read(exported)).trim().split(/\r?\n/)
  assert.equal(rows.length, 121)
  assert.ok(rows.slice(1).every((row) => row.includes('2031-05-31')), rows[1])
  await page.locator('td.c-box input').first().check()
  await visit.press('Labels')
  const labels = page.waitForEvent('download')
  await basket.getByRole('button', { name: 'Save' }).click()
  assert.match(await read(labels), /<svg/)
}

/** An admin saves a report about somebody who has left, and erases them. */
async function leaver(scene) {
  const { api } = scene
  const user = await newUser(api, unique('Mary'))
  await api.patch(`/users/${user.id}`, { is_active: false })
  const visit = await Visit.open(scene, `#/person/${user.id}`, { failures: [409] })
  const { page } = visit
  const saving = page.waitForEvent('download')
  await visit.press('Save a report')
  const report = (await (await (await saving).createReadStream()).toArray()).join('')
  assert.ok(report.includes(user.display_name), 'the report names nobody')
  const erase = page.getByRole('button', { name: 'Erase' })
  await erase.click()
  await sees(page.getByText('This is possible from'), 'the page does not say when')
  const asks = page.getByText('for ever?')
  await until(async () => (await erase.click(), await page.waitForTimeout(1000), asks.count()), 'it never becomes possible', 90_000)
  await visit.look('erase')
  await erase.click()
  await sees(page.getByRole('heading', { level: 1, name: /Erased user/ }), 'nobody is erased')
  assert.equal(await erase.count(), 0)
}

export const puttingIn = {
  'a leaver who is erased': leaver,
  'all of them': allOfThem,
  'a delivery of laptops': delivery,
  'a copy that is deleted again': copy,
  'a new colleague': colleague,
}
