// Finds, reads and changes assets.
import assert from 'node:assert/strict'
import { scan } from '../hands.mjs'
import { PHONE, Visit, hold, isPlan, newUser, refuse, sees, unique, until } from './visit.mjs'

const newAsset = (api, more = {}) => api.post('/assets', { name: unique('Falcon'), manufacturer: 'Acme', model: 'F1', ...more })

async function search(scene) {
  const { api } = scene
  const asset = await newAsset(api, { location: 'Berlin / 3rd floor', custom_fields: { cost_center: '0815' } })
  await api.patch(`/assets/${asset.id}`, { serial_number: `S-${asset.id}` })
  const visit = await Visit.open(scene)
  const { page } = visit
  await sees(page.getByRole('cell', { name: asset.asset_tag }), 'the list is empty')
  await sees(page.getByRole('heading', { name: 'By status' }), 'there is no chart of the statuses')
  await visit.look('inventory')
  await page.keyboard.press('/')
  await page.keyboard.type(asset.name)
  const row = page.getByRole('link', { name: asset.name })
  await until(async () => (await page.locator('a.row').count()) === 1, 'typing finds more than the asset')
  // The page can find the asset before the whole name is typed.
  const address = () => decodeURIComponent(page.url().replaceAll('+', ' '))
  await until(() => address().includes(`q=${asset.name}`), 'the fragment lacks the search')
  await sees(page.getByText('1 asset', { exact: false }), 'there is no total')
  const isReached = async () => {
    await page.keyboard.press('ArrowDown')
    return row.evaluate((link) => link === document.activeElement)
  }
  // The page can redraw the list for the last typed letters.
  await until(isReached, 'the arrow key leads to no row')
  await page.keyboard.press('Enter')
  await sees(page.getByRole('heading', { level: 1, name: asset.name }), 'Enter opens no asset')
  await sees(page.getByText('S-', { exact: false }), 'the history lacks the change')
  await sees(page.getByText('created it', { exact: false }), 'the history lacks the creation')
  await sees(page.getByRole('img', { name: /Label of/ }), 'there is no label')
  await visit.press('Verify the history')
  await sees(page.getByText(/2.* entries, unchanged/), 'the history is not verified')
  await visit.look('asset')
  await page.getByText('What can’t start, and why').click()
  await sees(page.getByText(/The status is .In stock., but must be/), 'the page does not say why a process can’t start')
  await page.keyboard.press('Escape')
  await sees(row, 'Escape does not lead back to the list')
  assert.equal(await page.getByRole('searchbox').inputValue(), asset.name, 'the search is lost')
}

/** Going back returns to the row. */
async function backToRow(scene) {
  const { api } = scene
  const place = unique('Shelf')
  const body = (n) => ({ name: `Thing ${n}`, location: place })
  for (let start = 0; start < 40; start += 20)
    await api.post('/assets/batch', { operations: Array.from({ length: 20 }, (_, n) => ({ op: 'create', body: body(start + n) })) })
  for (const device of [PHONE, {}]) {
    const visit = await Visit.open(scene, `#/assets?location=${encodeURIComponent(place)}&page=1`, device)
    const { page } = visit
    const row = page.locator('a.row').nth(37)
    await sees(row, 'the list is short')
    const name = await row.textContent()
    const choose = (options) => (device === PHONE ? row.tap(options) : row.click(options))
    // Waits until the row rests where it can be chosen.
    await choose({ trial: true })
    const { y } = await row.boundingBox()
    await choose()
    await sees(page.getByRole('heading', { level: 1, name }), 'the row opens another asset')
    await until(() => page.evaluate(() => scrollY === 0), 'an asset does not begin at its top')
    await page.goBack()
    await until(() => page.evaluate((name) => document.activeElement?.textContent === name, name), 'going back does not return to the row')
    await until(async () => Math.abs((await row.boundingBox()).y - y) < 3, 'the row is elsewhere on the screen')
    await page.goForward()
    await sees(page.getByRole('heading', { level: 1, name }), 'going forward leads elsewhere')
    await page.getByRole('link', { name: 'Inventory' }).click()
    await sees(row, 'the list is short')
    assert.equal(await page.evaluate(() => scrollY), 0, 'a link leads to a row')
    await visit.close()
  }
}

async function filters(scene) {
  const place = unique('Site')
  const { asset_tag: one } = await newAsset(scene.api, { location: `${place} / 1`, custom_fields: { team: 'A, B' } })
  const { asset_tag: two } = await newAsset(scene.api, { location: `${place} / 2` })
  const visit = await Visit.open(scene, `#/assets?location=${encodeURIComponent(place)}&sort=-asset_tag`)
  const { page } = visit
  const shows = async (tags) => String(await page.locator('td.c-tag').allTextContents()) === String(tags)
  await until(() => shows([two, one]), 'a link with a filter shows something else')
  await sees(page.getByRole('row', { name: /1 1$/ }), 'there is no chart by location')
  await visit.press('Tag')
  await until(() => shows([one, two]), 'a heading does not sort')
  await page.getByLabel('Field', { exact: true }).fill('team')
  await page.getByLabel('Value', { exact: true }).fill('A, B')
  await page.keyboard.press('Tab')
  await until(() => shows([one]), 'a custom field does not filter')
  // An empty field filters nothing, and the other one stays.
  for (const [name, text, other] of [['Value', 'A, B', 'Field'], ['Field', 'team', 'Value']]) {
    const cleared = page.getByLabel(name, { exact: true })
    await cleared.fill('')
    await page.keyboard.press('Tab')
    await until(() => shows([one, two]), `an empty ${name} filters`)
    assert.notEqual(await page.getByLabel(other, { exact: true }).inputValue(), '')
    await cleared.fill(text)
    await page.keyboard.press('Tab')
    await until(() => shows([one]), 'a custom field does not filter again')
  }
  await visit.button('Clear filters').first().click()
  await until(async () => (await page.locator('td.c-tag').count()) > 2, 'the filters remain')
  await visit.go('#/assets?q=nothing-has-this-name')
  await sees(page.getByText('Nothing found'), 'an empty list has no message')
  await visit.look('nothing-found')
}

/** Returns the 15th of the month this many months ahead, and the month's name. */
function later(months) {
  const now = new Date()
  const day = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 15))
  return { day: day.toISOString().slice(0, 10), month: day.toLocaleDateString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' }) }
}

/** Opens the page for a location, waits for the warranty chart, and returns the months with warranties. */
async function openStrip(scene, place) {
  const visit = await Visit.open(scene, `#/assets?location=${encodeURIComponent(place)}`)
  const strip = visit.page.getByRole('table', { name: 'Expiring warranties' })
  await sees(strip, 'there is no strip of warranties')
  const months = async () => {
    const names = await strip.getByRole('columnheader').getByRole('link').evaluateAll((links) => links.map(({ ariaLabel }) => ariaLabel))
    const counts = (await strip.getByRole('cell').allTextContents()).map((text) => Number(text))
    assert.deepEqual([names.length, counts.length], [12, 12])
    return Object.fromEntries(names.map((name, n) => [name, counts[n]]).filter(([, count]) => count > 0))
  }
  const asked = () => visit.requests.filter(({ request }) => request.url().includes('warranty_from')).length
  return { visit, page: visit.page, months, asked }
}

/** Each chart has a table with its numbers, and links to the counted assets. */
async function pictures(scene) {
  const place = unique('Hall')
  const [soon, late] = [later(2), later(5)]
  const create = (count, more) =>
    scene.api.post('/assets/batch', {
      operations: Array.from({ length: count }, () => ({ op: 'create', body: { name: 'Thing', location: place, ...more } })),
    })
  await create(2, { warranty_until: soon.day })
  await create(1, { warranty_until: late.day, status: 'in_use' })
  await create(1, { warranty_until: '2020-05-31', location: `${place} / 2` })
  const { visit, page, months, asked } = await openStrip(scene, place)
  assert.deepEqual(await months(), { [soon.month]: 2, [late.month]: 1 })
  assert.equal(asked(), 1, 'a strip with few warranties takes several requests')
  const first = (path) => visit.requests.findIndex(({ request }) => request.url().includes(path))
  assert.ok(first('/v1/assets?') < first('/v1/stats'), 'the charts are requested before the rows')
  const row = (table, name) => page.getByRole('table', { name: table }).getByRole('row', { name })
  for (const name of [/In stock 3$/, /In use 1$/, /Scrapped 0$/]) await sees(row('By status', name), `no row is ${name}`)
  const arcs = await page
    .locator('.ring [class]')
    .evaluateAll((all) => all.map((arc) => ['stroke-dasharray', 'stroke-dashoffset'].map((name) => parseFloat(arc.getAttribute(name)))))
  assert.deepEqual(arcs, [[74, 0], [24, -75]], 'the ring has the wrong shares')
  await sees(row('By location', /^2 1$/), 'no bar shows the place below')
  const widths = await page.locator('table:not(.strip) .bar rect').evaluateAll((all) => all.map((bar) => parseInt(bar.getAttribute('width'))))
  assert.deepEqual(widths, [100, 33], 'the bars have the wrong lengths')
  assert.equal(await page.locator('.pictures svg:not([aria-hidden=true])').count(), 0, 'a chart is read without its table')
  await visit.look('pictures')
  await page.getByRole('link', { name: soon.month, exact: true }).click()
  await until(async () => (await page.locator('a.row').count()) === 2, 'a month leads to other assets')
  await sees(page.locator('.strip [aria-current=true]'), 'the page does not show which month is selected')
  assert.deepEqual(await months(), { [soon.month]: 2, [late.month]: 1 }, 'the strip loses the other months')
  await visit.go(`#/assets?location=${encodeURIComponent(place)}`)
  await page.getByRole('link', { name: 'Expired' }).click()
  await until(async () => (await page.locator('a.row').count()) === 1, 'the expired warranty is not found')
  await visit.close()
}

/** Creates more warranties than one request returns: the first 100 cover some months; the other 7 need one each. */
async function manyWarranties(scene) {
  const place = unique('Hall')
  const [soon, late] = [later(2), later(5)]
  for (const { day, count } of [{ day: soon.day, count: 60 }, { day: late.day, count: 41 }]) {
    for (let left = count; left > 0; left -= 20) {
      const body = { name: 'Thing', location: place, warranty_until: day }
      await scene.api.post('/assets/batch', { operations: Array.from({ length: Math.min(left, 20) }, () => ({ op: 'create', body })) })
    }
  }
  const { months, asked } = await openStrip(scene, place)
  assert.deepEqual(await months(), { [soon.month]: 60, [late.month]: 41 })
  assert.equal(asked(), 1 + 7, 'the strip takes a different number of requests')
}

async function conflict(scene) {
  const { api } = scene
  const { id } = await newAsset(api)
  const visit = await Visit.open(scene, `#/asset/${id}`, { failures: ['status of 412', 'status of 422'] })
  const { page } = visit
  await visit.press('Change')
  await visit.label('Price').fill('12x')
  await visit.press('Preview')
  await sees(page.locator('.field').filter({ hasText: 'Price' }).locator('.wrong'), 'the error is not next to its field')
  await visit.label('Price').fill('1,249.50')
  // For a day that doesn't exist, the field has no value.
  await visit.label('Purchased').pressSequentially('02312026')
  await visit.press('Preview')
  await sees(page.locator('.field').filter({ hasText: 'Purchased' }).getByText('Not a valid date.'), 'a day that does not exist is accepted')
  await visit.label('Purchased').fill('')
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'People' }).click()
  await until(async () => visit.questions === 2, 'edits are discarded without a question')
  await visit.press('Preview')
  await sees(page.getByRole('heading', { name: 'This would happen' }), 'there is no preview')
  await visit.look('change')
  assert.equal((await api.get(`/assets/${id}`)).purchase_price, null, 'the preview changes something')
  await api.patch(`/assets/${id}`, { notes: 'meanwhile' })
  await visit.press('Save')
  await sees(page.getByText('Someone else changed this in the meantime'), 'the page does not report a conflict')
  await sees(page.getByRole('alert').getByText('meanwhile', { exact: true }), 'the page does not list the changes')
  await visit.press('Preview')
  await visit.press('Save')
  await sees(page.getByText('Saved.'), 'nothing is saved')
  await sees(page.locator('.facts').getByText('1,249.50'), 'the change is not shown')
  const { purchase_price: price, notes } = await api.get(`/assets/${id}`)
  assert.deepEqual([price, notes], [1249.5, 'meanwhile'], 'a change was lost')
}

/** The preview and the fields show the same. */
async function outdated(scene) {
  const { id } = await newAsset(scene.api)
  const visit = await Visit.open(scene, `#/asset/${id}`)
  const { page } = visit
  const plan = page.getByRole('heading', { name: 'This would happen' })
  await visit.press('Change')
  const name = visit.label('Name')
  await name.fill('One')
  const { asked, release } = await hold(page, isPlan)
  await visit.press('Preview')
  await asked
  await name.fill('Two')
  await release()
  assert.equal(await plan.count(), 0, 'the preview shows an older name')
  await visit.press('Preview')
  await sees(plan, 'there is no preview')
  const saving = await hold(page, ({ pathname, search }) => pathname.endsWith(id) && !search)
  await visit.press('Save')
  await saving.asked
  assert.equal(await name.evaluate((field) => field.closest('[inert]') !== null), true, 'a name can be typed that is not saved')
  await saving.release()
  await sees(page.getByRole('heading', { level: 1, name: 'Two' }), 'another name is saved')
}

async function label(scene) {
  const asset = await newAsset(scene.api)
  const { page } = await Visit.open(scene)
  await sees(page.locator('a.row'), 'the list is empty')
  await page.goto(`${scene.api.base}/assets/by-tag/${asset.asset_tag}`)
  await sees(page.getByRole('heading', { level: 1, name: asset.name }), 'the address of a label leads elsewhere')
}

async function asOf(scene) {
  // Picks an older asset: the clocks of the page and the server can differ by a second.
  const [{ id }] = await scene.api.get('/assets?sort=created_at&limit=1')
  const visit = await Visit.open(scene, `#/asset/${id}?day=2020-01-01`, { failures: ['status of 404'] })
  await sees(visit.page.getByText('The asset did not exist then.'), 'a day before the creation shows an asset')
  await visit.label('As it was on').fill(await visit.page.evaluate(() => new Date().toLocaleDateString('sv')))
  await sees(visit.page.getByText('This is how the asset was'), 'a day is not shown')
  await until(async () => (await visit.button('Change').count()) === 0, 'the past can be changed')
  await visit.press('Back to now')
  await until(async () => !visit.page.url().includes('day'), 'the day is still selected')
  await sees(visit.button('Change'), 'the asset can no longer be changed')
  await visit.go(`#/asset/${id}?day=2026-02-31`)
  await sees(visit.button('Change'), 'a day that does not exist is shown')
  await visit.page.keyboard.press('/')
  await until(() => visit.page.evaluate(() => document.activeElement?.id === 'search'), 'a slash does not lead to the search')
}

/** "Today" is the organization's day, wherever the browser is. */
const today = ({ api, ...scene }) => {
  // Of these zones, at least one has another day than UTC.
  const isAhead = new Date().getUTCHours() >= 10
  const [timeZone, elsewhere] = isAhead ? ['Pacific/Kiritimati', 'Pacific/Pago_Pago'] : ['Pacific/Pago_Pago', 'Pacific/Kiritimati']
  const day = () => new Date().toLocaleDateString('sv', { timeZone })
  return api.withSettings({ time_zone: timeZone }, async () => {
    // Older than the clocks can differ.
    const [{ id }] = await api.get('/assets?sort=created_at&limit=1')
    const visit = await Visit.open({ api, ...scene }, `#/asset/${id}`, { timezoneId: elsewhere })
    const field = visit.label('As it was on')
    await sees(field, 'there is no field for a day')
    await field.focus()
    await until(async () => (await field.getAttribute('max')) === day(), 'today can’t be picked')
    await field.fill(day())
    const shown = new Date().toLocaleDateString('en-US', { dateStyle: 'medium', timeZone })
    await sees(visit.page.getByText(new RegExp(`This is how the asset was.*${shown}`)), `the page does not say ${shown}`)
    await visit.close()
  })
}

async function decimals(scene) {
  const { api } = scene
  const schema = { type: 'object', properties: { weight: { type: 'number' }, ports: { type: ['integer', 'null'] } } }
  const code = unique('S').replace(' ', '').toUpperCase()
  const { id: type } = await api.post('/catalog/asset-types', { name: unique('Scale'), code, kind: 'physical', custom_fields_schema: schema })
  const { id, asset_tag: tag } = await newAsset(api, { asset_type_id: type, custom_fields: { weight: 1.249, height: 2 } })
  const fields = async () => (await api.get(`/assets/${id}`)).custom_fields
  for (const [locale, words, entries, expected] of [
    ['de-DE', ['Ändern', 'Vorschau', 'Speichern', 'Gespeichert.', '1,249', ['Feld', 'Wert']], { weight: '1,5', ports: '3', height: '1.234,5' }, { weight: 1.5, ports: 3, height: 1234.5 }],
    ['en-US', ['Change', 'Preview', 'Save', 'Saved.', '1.5', ['Field', 'Value']], { weight: '2,5', ports: '4', height: '-0.25' }, { weight: 2.5, ports: 4, height: -0.25 }],
  ]) {
    const visit = await Visit.open(scene, `#/asset/${id}`, { locale })
    const [change, preview, save, saved, weight, controls] = words
    await sees(visit.page.getByRole('definition').getByText(weight, { exact: true }), 'a number is not shown as the form reads it')
    await visit.press(change)
    assert.equal(await visit.label('weight').inputValue(), weight, 'a number is not written as readers write it')
    for (const [name, text] of Object.entries(entries)) await visit.label(name).fill(text)
    await visit.press(preview)
    const written = (value) => value.toLocaleString(locale, { useGrouping: false })
    for (const name of ['weight', 'height'])
      await sees(visit.page.locator('.plan ins').getByText(written(expected[name]), { exact: true }), 'a number is not previewed as the form reads it')
    await visit.press(save)
    await sees(visit.page.getByText(saved), 'nothing is saved')
    await visit.go('#/assets')
    for (const name of ['weight', 'height']) {
      for (const [n, text] of [name, entries[name]].entries()) await visit.page.getByLabel(controls[n], { exact: true }).fill(text)
      await visit.page.keyboard.press('Tab')
      await until(async () => String(await visit.page.locator('td.c-tag').allTextContents()) === tag, `${entries[name]} does not find the asset`)
    }
    assert.deepEqual(await fields(), { weight: expected.weight, height: expected.height, ports: expected.ports })
    await visit.close()
  }
}

/** A choice is sent as the schema has it, whatever its type. */
async function choices(scene) {
  const { api } = scene
  const schema = { type: 'object', properties: { ram: { enum: [8, 16] }, screen: { type: 'number', enum: [13.3, 1.234] } } }
  const code = unique('C').replace(' ', '').toUpperCase()
  const { id: type } = await api.post('/catalog/asset-types', { name: unique('Chosen'), code, kind: 'physical', custom_fields_schema: schema })
  const { id } = await newAsset(api, { asset_type_id: type, custom_fields: { ram: 8 } })
  const visit = await Visit.open(scene, `#/asset/${id}`, { locale: 'de-DE' })
  await visit.press('Ändern')
  await visit.label('ram').selectOption('16')
  await visit.label('screen').selectOption('1.234')
  await visit.press('Vorschau')
  await visit.press('Speichern')
  await sees(visit.page.getByText('Gespeichert.'), 'nothing is saved')
  assert.deepEqual((await api.get(`/assets/${id}`)).custom_fields, { ram: 16, screen: 1.234 })
  await visit.press('Ändern')
  await visit.label('screen').selectOption('–')
  await visit.press('Vorschau')
  await visit.press('Speichern')
  await until(async () => !('screen' in (await api.get(`/assets/${id}`)).custom_fields), 'a choice can’t be removed')
}

async function move(scene) {
  const { api } = scene
  const [from, to] = [1, 2].map(() => `Room ${Math.random().toString(36).slice(2, 8)}`)
  const made = []
  for (let n = 0; n < 22; n++) made.push(await newAsset(api, { location: from }))
  const visit = await Visit.open(scene, `#/assets?location=${from.replace(' ', '+')}`, { failures: ['status of 404'] })
  const { page } = visit
  const boxes = page.locator('td.c-box input')
  await until(async () => (await boxes.count()) === made.length, 'the list lacks assets')
  await page.getByRole('checkbox', { name: 'Select all on this page' }).check()
  await boxes.first().uncheck()
  const basket = page.getByRole('region', { name: 'Selected' })
  await sees(basket.getByText('the limit is 20.', { exact: false }), 'the page does not say why 21 assets can’t be handed over')
  await basket.getByRole('button', { name: 'Change' }).click()
  await basket.getByLabel('New value').focus()
  // The basket must not cover the end of the page.
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
  await scan(page, to)
  await sees(basket.getByText(`${made[1].asset_tag} ${made[1].name} → ${to}`), 'there is no preview')
  await boxes.nth(1).uncheck()
  await boxes.nth(1).check()
  assert.equal(await basket.getByLabel('New value').inputValue(), to, 'another selection drops the typed place')
  await basket.getByRole('button', { name: 'Change 21' }).click()
  await sees(basket.getByText(`${made[1].asset_tag} ${made[1].name} → ${to}`), 'there is no preview of the selection')
  await visit.look('move')
  assert.equal((await api.get(`/assets?location=${to.replace(' ', '+')}`)).length, 0, 'the preview moves something')
  // The list is newest first, so this asset is in the second batch.
  await api.call('DELETE', `/assets/${made[0].id}`)
  await basket.getByRole('button', { name: 'Do it' }).click()
  await sees(basket.getByText('Not found.'), 'a deleted asset is moved')
  await basket.getByRole('button', { name: 'Change 20' }).click()
  await basket.getByRole('button', { name: 'Do it' }).click()
  await sees(page.getByText(/20.* assets changed/), 'the page does not report the change')
  await until(async () => (await boxes.count()) === 1, 'the list shows the old locations')
  assert.equal((await api.get(`/assets?location=${to.replace(' ', '+')}&limit=100`)).length, made.length - 2)
  // Shift selects all rows between two checkboxes.
  await visit.go(`#/assets?location=${to.replace(' ', '+')}`)
  await until(async () => (await boxes.count()) === made.length - 2, 'the moved assets are not at the new location')
  await boxes.nth(1).click()
  await boxes.nth(5).click({ modifiers: ['Shift'] })
  await sees(basket.getByText('5 selected'), 'the Shift key selects the wrong rows')
  await visit.close()
}

/** The search finds people and places, too, inner levels as well, and the cells of a row lead to them. */
async function others(scene) {
  const { api } = scene
  const word = unique('Qx').replace(/\W/g, '')
  const person = await newUser(api, `Ada ${word}`)
  const place = `Site ${word} / 2.01 ${word}x`
  const asset = await newAsset(api, { location: place, assigned_to: person.id, status: 'in_use' })
  const visit = await Visit.open(scene)
  const { page } = visit
  await page.getByRole('searchbox').fill(word.toLowerCase())
  const others = page.getByRole('group', { name: 'People and places' })
  await sees(others.getByRole('link', { name: person.display_name }), 'the search finds no person')
  await visit.look('search')
  await others.getByRole('link', { name: `Site ${word} 1` }).click()
  await sees(page.getByRole('link', { name: asset.name }), 'a place does not lead to its assets')
  await page.getByRole('link', { name: place }).click()
  await until(() => decodeURIComponent(page.url().replaceAll('+', ' ')).includes(`location=${place}`), 'the cell of a place does not lead there')
  await page.getByRole('combobox', { name: 'Location' }).fill(`2.01 ${word}`.toLowerCase())
  await sees(page.getByRole('option', { name: place }), 'an inner level is not suggested')
  await page.getByRole('link', { name: person.display_name }).first().click()
  await sees(page.getByRole('heading', { level: 1, name: person.display_name }), 'the cell of a person does not lead there')
}

async function changes(scene) {
  const visit = await Visit.open(scene, '#/assets')
  const { page } = visit
  await page.getByRole('link', { name: 'Changes' }).click()
  await sees(page.getByRole('listitem').filter({ hasText: 'AST-' }).getByText('created it', { exact: false }), 'the page does not say who did what')
  await visit.look('changes')
  await page.getByLabel('From').fill('2020-01-01')
  await page.getByLabel('Until').fill('2020-02-01')
  await sees(page.getByText('Nothing found'), 'a period without changes shows some')
  await visit.close()
}

async function german(scene) {
  const asset = await newAsset(scene.api)
  const visit = await Visit.open(scene, `#/asset/${asset.id}`, { locale: 'de-DE', failures: ['status of 422'] })
  const { page } = visit
  await page.getByRole('button', { name: 'Ändern' }).click()
  await page.getByLabel('Preis').fill('1.249,5')
  await page.getByRole('button', { name: 'Vorschau' }).click()
  await sees(page.getByText('1.249,50', { exact: true }), 'a German amount is misread')
  await page.getByLabel('Name').fill('')
  await page.getByLabel('Ort', { exact: true }).fill('a//b')
  await page.getByRole('button', { name: 'Vorschau' }).click()
  await sees(page.getByText('Keine leere Ebene: A / B / C.', { exact: true }), 'an empty level is not explained in German')
  await page.getByLabel('Ort', { exact: true }).fill('1/2/3/4/5/6/7/8/9')
  await page.getByLabel('Seriennummer').fill('x'.repeat(256))
  await page.getByLabel('Preis').fill('12x')
  await page.getByLabel('Person').fill('nobody at all')
  await page.getByRole('button', { name: 'Vorschau' }).click()
  for (const [label, text] of [
    ['Name', 'Das wird gebraucht.'],
    ['Ort', 'Höchstens 8 Ebenen: A / B / C.'],
    ['Seriennummer', 'Höchstens 255 Zeichen.'],
    ['Preis', 'Ein Betrag mit höchstens 4 Nachkommastellen.'],
    ['Person', 'Wählen Sie aus den Vorschlägen.'],
  ]) {
    const wrong = page.locator('.field').filter({ has: page.getByLabel(label, { exact: true }) }).locator('.wrong')
    await sees(wrong.getByText(text, { exact: true }), `${label} is not explained in German`)
  }
  await visit.look('german')
  await page.getByRole('button', { name: 'Abbrechen' }).click()
  await visit.go('#/assets?status=lost')
  await sees(page.getByRole('alert').getByText('Status: Keiner der möglichen Werte.'), 'a refused filter has no German message')
  const errors = [
    { parameter: 'q', detail: 'must be new', code: 'brand_new' },
    { parameter: 'sort', detail: 'must be short', code: 'invalid_format' },
  ]
  await refuse(page, '**/v1/assets?*', { status: 422, code: 'VALIDATION_ERROR', errors }, { times: 1 })
  await visit.go('#/assets?q=old')
  await sees(page.getByRole('alert').getByText('q: Nicht angenommen (englisch): must be new'), 'an unknown code hides the error')
  await sees(page.getByText('sort: Nicht in der erwarteten Form. must be short'), 'the page does not say which format is expected')
  await visit.close()
}

/** The page finds the asset that keeps a custom field out of lists. */
async function unlisted(scene) {
  const field = unique('note').replace(' ', '_')
  const long = await newAsset(scene.api, { custom_fields: { [field]: 'x'.repeat(201) } })
  await newAsset(scene.api, { custom_fields: { [field]: 'x' } })
  const visit = await Visit.open(scene, `#/assets?cf=${field}&cv=x`, { failures: ['status of 422'] })
  const { page } = visit
  await page.getByRole('link', { name: 'Show these assets' }).first().click()
  await until(async () => String(await page.locator('td.c-tag').allTextContents()) === long.asset_tag, 'the asset is not found')
  await sees(page.getByText(/Assets with a .*can’t filter/), 'the page does not say what it lists')
  await visit.look('unlisted')
}

/** A filter that someone leaves keeps what they type next. */
async function leftFilter(scene) {
  const place = unique('Annex')
  await newAsset(scene.api, { location: place })
  const visit = await Visit.open(scene)
  const { page } = visit
  const field = page.getByRole('combobox', { name: 'Location' })
  const who = page.getByRole('combobox', { name: 'Person' })
  for (const text of [place, '']) {
    await sees(field, 'there is no filter')
    await field.fill(text)
    await page.keyboard.press('Tab')
    await page.keyboard.type('Nobody', { delay: 120 })
    assert.equal(await who.inputValue(), 'Nobody', 'what is typed next is lost')
    await until(() => page.evaluate((text) => location.hash.includes('location') === Boolean(text), text), 'the place filters nothing')
    assert.equal(await who.evaluate((field) => field === document.activeElement), true, 'the focus is lost')
    await who.fill('')
  }
}

/** Each active filter is visible, and can be removed. */
async function activeFilters(scene) {
  const place = unique('Vault')
  const tags = []
  for (const warranty_until of ['2031-03-01', '2031-03-31', '2031-04-01'])
    tags.push((await newAsset(scene.api, { location: place, warranty_until })).asset_tag)
  const visit = await Visit.open(scene, `#/assets?location=${encodeURIComponent(place)}&from=2031-03-01&before=2031-04-01&status=in_stock&sort=asset_tag`)
  const { page } = visit
  const shows = async (tags) => String(await page.locator('td.c-tag').allTextContents()) === String(tags)
  await until(() => shows(tags.slice(0, 2)), 'a month does not filter')
  const chip = (name) => page.getByRole('button', { name })
  await sees(chip(/^Status: In stock/), 'the status is invisible')
  await sees(chip(/^Warranty until: March 2031/), 'the month is invisible')
  await visit.look('chips')
  await page.setViewportSize({ width: 390, height: 844 })
  await visit.look('chips-phone')
  await chip(/^Warranty until:/).click()
  await until(() => shows(tags), 'the month still filters')
  assert.equal(await page.evaluate(() => document.activeElement?.className), 'chip', 'the focus is lost')
  await chip(/^Location:/).click()
  await until(async () => (await chip(/^Location:/).count()) === 0, 'the place still filters')
  assert.equal(await page.getByRole('combobox', { name: 'Location' }).inputValue(), '', 'the field shows a filter that is gone')
}

/** Going back returns to the link that was followed, also in what loads slowly. */
async function backInHistory(scene) {
  const { api } = scene
  const asset = await newAsset(api, { name: unique('Much changed'), status: 'in_use' })
  const { id: process } = (await api.get('/processes')).find(({ slug }) => slug === 'device-return')
  await api.post(`/processes/${process}/start`, { asset_id: asset.id })
  for (let n = 0; n < 15; n++) await api.patch(`/assets/${asset.id}`, { notes: `Change ${n}` })
  for (const width of [1440, 390]) {
    const visit = await Visit.open(scene, `#/asset/${asset.id}`, { viewport: { width, height: 500 } })
    const { page } = visit
    const followed = page.locator('.timeline').getByRole('link', { name: 'Device Return' })
    await sees(followed, 'the process is not in the history')
    await followed.scrollIntoViewIfNeeded()
    const { y } = await followed.boundingBox()
    await followed.click()
    await sees(page.getByRole('heading', { level: 1, name: 'Device Return' }), 'the link leads elsewhere')
    await page.goBack()
    await sees(followed, 'the process is gone')
    await until(async () => Math.abs((await followed.boundingBox()).y - y) < 3, 'going back returns elsewhere')
    assert.equal(await followed.evaluate((link) => link === document.activeElement), true, 'the focus is elsewhere')
    // A reload on the way changes nothing.
    await followed.click()
    await sees(page.getByRole('heading', { level: 1, name: 'Device Return' }), 'the link leads elsewhere')
    await page.reload()
    await sees(page.getByRole('heading', { level: 1, name: 'Device Return' }), 'a reload leads elsewhere')
    await page.goBack()
    await until(async () => (await followed.count()) && Math.abs((await followed.boundingBox()).y - y) < 3, 'going back after a reload returns elsewhere')
    await visit.close()
  }
}

export const otherDays = { 'today in another time zone': today }
export const assets = {
  'from a search to an asset and its history': search,
  'filters and sorting': filters,
  'pictures with tables and links': pictures,
  'many warranties': manyWarranties,
  'back to the row': backToRow,
  'back to a link in a history': backInHistory,
  'a filter that is left': leftFilter,
  'active filters': activeFilters,
  'a change with a conflict': conflict,
  'a preview of changed fields': outdated,
  'the address of a label': label,
  'an asset as it was': asOf,
  'decimal commas and points': decimals,
  'choices of a custom field': choices,
  'many assets that move': move,
  'people and places in a search': others,
  'the changes of a period': changes,
  'a custom field that lists lack': unlisted,
  'refused fields in German': german,
}
