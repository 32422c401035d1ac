// Suggestions under a finger, and keyboard scanners: codes at every speed, with every ending, wherever the focus is.
import assert from 'node:assert/strict'
import { BY_HAND, ENDS, SPEEDS, scan, swipeUp, tap, tapTwice } from '../hands.mjs'
import { PHONE, Visit, newUser, sees, unique, until } from './visit.mjs'

const options = (page) => page.locator('.suggestions:visible [role=option]')
const locationField = (page) => page.getByRole('combobox', { name: 'Location' })
const assetField = (page) => page.getByRole('combobox', { name: 'Add an asset' })
const added = (page) => page.locator('.assets .tag').allTextContents()
const newAsset = (api, more = {}) => api.post('/assets', { name: unique('Scanned'), ...more })

/** Returns the suggestion that covers the middle of an element. */
async function optionOver(page, element) {
  const { x, y, width, height } = await element.boundingBox()
  const text = await page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.closest('[role=option]')?.firstChild?.textContent, [x + width / 2, y + height / 2])
  assert.ok(text, 'no suggestion covers the element')
  return { text, option: options(page).filter({ has: page.getByText(text, { exact: true }) }) }
}

async function touched(scene) {
  const site = unique('Zürich')
  for (let n = 1; n <= 8; n++) await newAsset(scene.api, { location: `${site} ${n}` })
  const { page } = await Visit.open(scene, '#/stock', PHONE)
  const moves = page.getByRole('checkbox', { name: 'Move assets from elsewhere here' })
  await locationField(page).tap()
  await page.keyboard.type(site.toLowerCase())
  await until(async () => (await options(page).count()) === 8, 'the places are not suggested')
  await swipeUp(options(page).nth(2))
  assert.equal(await locationField(page).inputValue(), site.toLowerCase(), 'a swipe chooses a suggestion')
  const { text: place } = await optionOver(page, moves)
  await tapTwice(moves)
  await until(async () => (await locationField(page).inputValue()) === place, 'a tap does not choose the suggestion')
  await until(async () => (await options(page).count()) === 0, 'the list stays open')
  assert.equal(await moves.isChecked(), false, 'a double tap presses what lies under the suggestion')
  await moves.press('Space')
  assert.equal(await moves.isChecked(), true, 'the checkbox can’t be ticked')
}

async function touchedPerson(scene) {
  const { api } = scene
  const family = unique('Touch')
  const people = []
  for (const name of ['Ada', 'Bob', 'Cleo', 'Dan', 'Eve', 'Fay']) people.push(await newUser(api, `${name} ${family}`))
  const { id } = await newAsset(api)
  const visit = await Visit.open(scene, `#/hand-over?assets=${id}`, PHONE)
  const { page } = visit
  const who = visit.label('Who gets the asset?')
  await who.tap()
  await page.keyboard.type(family)
  await until(async () => (await options(page).count()) === people.length, 'the people are not suggested')
  const boxes = page.getByRole('checkbox')
  await swipeUp((await optionOver(page, boxes.first())).option)
  assert.equal(await who.inputValue(), family, 'a swipe chooses a person')
  const { text: name } = await optionOver(page, boxes.first())
  await tap(boxes.first())
  await until(async () => (await who.inputValue()) === name, 'a tap does not choose the person')
  for (const box of await boxes.all()) assert.equal(await box.isChecked(), false, 'a tap ticks what lies under the suggestion')
}

/** Enter can choose a person before the page looks for the list. */
async function chosenEarly(scene) {
  const { api } = scene
  const { display_name: name } = await newUser(api)
  const { id } = await newAsset(api)
  const visit = await Visit.open(scene, `#/hand-over?assets=${id}`, PHONE)
  const { page } = visit
  const who = visit.label('Who gets the asset?')
  await who.tap()
  await scan(page, name)
  await until(() => who.evaluate((field) => 'chosen' in field.dataset), 'the person is not chosen')
  // Longer than the page waits before it looks.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)))
  const asked = visit.requests.filter(({ request }) => new URL(request.url()).searchParams.get('q') === name)
  assert.equal(asked.length, 1, 'the page looks again for a chosen person')
  const box = page.getByRole('checkbox').first()
  await tap(box)
  assert.equal(await box.isChecked(), true, 'a tap does not tick the box')
  assert.equal(await who.inputValue(), name)
}

async function wedge(scene) {
  const { api } = scene
  const visit = await Visit.open(scene, '#/hand-over')
  const { page } = visit
  await sees(assetField(page), 'there is no field for assets')
  const expected = []
  for (const [n, pause] of SPEEDS.entries()) {
    for (const end of ENDS) {
      const asset = await newAsset(api, { serial_number: unique('SER') })
      const code = n % 2 ? asset.serial_number : asset.asset_tag
      await assetField(page).focus()
      await scan(page, code, { pause, end })
      expected.push(asset.asset_tag)
    }
  }
  await until(async () => (await added(page)).length >= expected.length, 'scans vanish')
  assert.deepEqual(await added(page), expected, 'a scan adds another asset')
  // Part of a tag belongs to no asset, although the search finds some.
  await scan(page, expected[0].slice(0, -1))
  await sees(page.locator('.unclear', { hasText: `${expected[0].slice(0, -1)}: unknown` }), 'the page does not say that a code is unknown')
  const { asset_tag: next } = await newAsset(api)
  await scan(page, next)
  await until(async () => (await added(page)).includes(next), 'the next scan does not replace an unknown code')
  assert.deepEqual(await added(page), [...expected, next], 'an unknown code adds an asset')
  await visit.look('scanned')
  // The page must not apply a plan because a scanner ends with Enter.
  const person = await newUser(api)
  await visit.label('Who gets the asset?').fill(person.display_name)
  await page.keyboard.press('Enter')
  await until(() => visit.label('Who gets the asset?').evaluate((field) => 'chosen' in field.dataset), 'the person is not chosen')
  for (const focus of [() => {}, () => page.getByRole('heading', { level: 1 }).click(), () => page.getByLabel('Process', { exact: true }).focus(), () => visit.button('Show the plan').focus()]) {
    const { asset_tag: tag } = await newAsset(api)
    await focus()
    await scan(page, tag)
    await until(async () => (await added(page)).includes(tag), 'a scan vanishes when another control has the focus')
  }
  assert.equal(await visit.label('Who gets the asset?').inputValue(), person.display_name, 'a scan changes the person')
  assert.equal(await page.getByRole('heading', { name: 'This would happen' }).count(), 0, 'the end of a scan presses a button')
}

async function ambiguous(scene) {
  const serial = unique('Twice')
  const [one, other] = [await newAsset(scene.api, { serial_number: serial }), await newAsset(scene.api, { serial_number: serial })]
  const visit = await Visit.open(scene, '#/hand-over')
  const { page } = visit
  await assetField(page).focus()
  await scan(page, serial)
  await sees(page.locator('.unclear', { hasText: 'several matches' }), 'a serial number of two assets chooses one')
  assert.deepEqual(await added(page), [])
  await page.locator('.unclear').getByRole('button', { name: other.asset_tag, exact: true }).click()
  await until(async () => String(await added(page)) === other.asset_tag, `${one.asset_tag} can’t be told from the other`)
  assert.equal(await page.locator('.unclear li').count(), 0, 'a solved question stays')
}

async function typed(scene) {
  const family = unique('Lovelace')
  const [first, second] = [await newUser(scene.api, `Aaron ${family}`), await newUser(scene.api, `Ada ${family}`)]
  const visit = await Visit.open(scene, '#/hand-over')
  const { page } = visit
  const who = visit.label('Who gets the asset?')
  const isChosen = (name) => until(async () => (await who.inputValue()) === name && (await who.evaluate((field) => 'chosen' in field.dataset)), `Enter does not choose ${name}`)
  for (const pause of SPEEDS) {
    await who.fill('')
    await who.focus()
    await page.keyboard.type('a')
    await sees(options(page), 'nobody is suggested')
    await scan(page, `da ${family.toLowerCase()}`, { pause })
    await isChosen(second.display_name)
  }
  // A slow answer to an older text comes after the answer to the text.
  const isSlow = (url) => url.pathname === '/v1/users' && url.searchParams.get('q') === 'a'
  await page.route(isSlow, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 700))
    await route.continue().catch(() => {})
  })
  await who.fill('')
  await page.keyboard.type('a')
  await page.waitForRequest((request) => isSlow(new URL(request.url())))
  await scan(page, `aron ${family}`, { end: 'Tab' })
  await isChosen(first.display_name)
  // Several people have this name, so Enter chooses nobody.
  await who.fill(family)
  await page.keyboard.press('Enter')
  await until(async () => (await options(page).count()) === 2, 'the list does not open')
  assert.equal(await who.inputValue(), family)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  const marked = await options(page).locator('xpath=self::*[@aria-selected="true"]/bdi[1]').textContent()
  await page.keyboard.press('Enter')
  await isChosen(marked)
}

async function found(scene) {
  const asset = await newAsset(scene.api)
  const { asset_tag: last } = await newAsset(scene.api)
  const visit = await Visit.open(scene)
  const { page } = visit
  for (const pause of SPEEDS) {
    await sees(page.getByRole('cell', { name: last }), 'the list is empty')
    await page.getByRole('searchbox').focus()
    await scan(page, asset.asset_tag, { pause })
    await sees(page.getByRole('heading', { level: 1, name: asset.name }), 'a scanned tag opens another asset')
    await page.keyboard.press('Escape')
    await sees(page.locator('a.row', { hasText: asset.name }), 'the list lacks the asset')
    await page.getByRole('searchbox').fill('')
  }
  const search = page.getByRole('searchbox')
  const isWhole = () => until(async () => page.url().endsWith('#/assets') && (await page.locator('a.row').count()) > 1, 'the list is short')
  for (const focus of [() => search.focus(), () => page.evaluate(() => /** @type {any} */ (document.activeElement).blur())])
    for (const pause of SPEEDS) {
      await isWhole()
      await focus()
      await scan(page, asset.asset_tag, { pause, end: 'Tab' })
      await sees(page.getByRole('heading', { level: 1, name: asset.name }), 'a tag scanned with Tab does not open its asset')
      await page.goBack()
      await sees(page.locator('a.row', { hasText: asset.name }), 'the list lacks the asset')
      await search.fill('')
    }
  await isWhole()
  await search.focus()
  await scan(page, asset.asset_tag, { pause: BY_HAND, end: 'Tab' })
  await sees(page.locator('a.row', { hasText: asset.name }), 'a typed tag does not search')
  await until(async () => (await page.locator('a.row').count()) === 1, 'a typed tag does not search')
  assert.equal(await search.evaluate((field) => field === document.activeElement), false, 'Tab does not leave the field')
  assert.ok(page.url().includes('#/assets?'), 'Tab opens an asset that was typed by hand')
  const part = asset.asset_tag.slice(0, -1)
  await page.getByRole('searchbox').focus()
  await scan(page, part)
  await until(async () => new URL(page.url()).hash.includes(`q=${part}`), 'Enter does not search')
  await scan(page, asset.asset_tag)
  await sees(page.getByRole('heading', { level: 1, name: asset.name }), 'the next scan does not replace an unknown code')
}

/** What a field had before is no part of a scanned code. */
async function afterText(scene) {
  const asset = await newAsset(scene.api)
  const { page } = await Visit.open(scene)
  const search = page.getByRole('searchbox')
  for (const end of ENDS) {
    await search.fill('latit')
    await search.press('End')
    await scan(page, asset.asset_tag, { pause: 10, end })
    await sees(page.getByRole('heading', { level: 1, name: asset.name }), `a code behind other text opens nothing with ${end}`)
    await page.goBack()
    await sees(page.locator('a.row').first(), 'the list is empty')
  }
  const { page: handOver } = await Visit.open(scene, '#/hand-over')
  await assetField(handOver).fill('AST')
  await assetField(handOver).press('End')
  await scan(handOver, asset.asset_tag, { pause: 10 })
  await until(async () => String(await added(handOver)) === asset.asset_tag, 'a code behind other text is not added')
}

async function twoPeople(scene) {
  const { api } = scene
  const [ada, bob] = [await newUser(api), await newUser(api, unique('Bob'))]
  const make = (user) => newAsset(api, { status: 'in_use', assigned_to: user.id })
  const made = [await make(ada), await make(bob), await make(ada)]
  const visit = await Visit.open(scene, `#/take-back?assets=${made[0].id}`)
  const { page } = visit
  await until(async () => (await added(page)).length === 1, 'the asset is missing')
  for (const { asset_tag: tag } of made.slice(1)) await scan(page, tag)
  await sees(page.getByText('One person at a time'), 'one person can sign for another')
  await visit.look('two-people')
  await visit.press('Show the plan')
  await until(async () => (await page.getByRole('heading', { name: 'This would happen' }).count()) === 0 && (await visit.button(/^Bob/).isVisible()), 'two people’s assets are taken back at once')
  await visit.press(new RegExp(ada.display_name))
  await until(async () => String(await added(page)) === String([made[0].asset_tag, made[2].asset_tag]), 'another person’s assets stay')
  await visit.press('Show the plan')
  await sees(page.getByRole('heading', { name: 'This would happen' }), 'one person’s assets can’t be taken back')
}

/** A scan opens its asset wherever the focus is, and changes nothing else. */
async function anywhere(scene) {
  const site = unique('Depot')
  const left = []
  for (let n = 0; n < 10; n++) left.push(await newAsset(scene.api, { location: site, serial_number: `${site} ${n}` }))
  const visit = await Visit.open(scene)
  const { page } = visit
  const opens = async (pause, end, code = ({ asset_tag: tag }) => tag) => {
    const asset = left.pop()
    await scan(page, code(asset), { pause, end })
    await sees(page.getByRole('heading', { level: 1, name: asset.name }), 'a scan does not open its asset')
    assert.ok(!page.url().includes('?'), 'a scan changes something else')
  }
  const status = visit.label('Status')
  await sees(status, 'there are no filters')
  await status.focus()
  await opens(10, 'Enter')
  await opens(0, 'Enter')
  await visit.button('Change').focus()
  await opens(40, 'Tab', ({ serial_number: serial }) => serial)
  assert.equal(await visit.button('Preview').count(), 0, 'a scan presses a button')
  for (let n = 0; n < 3; n++) await page.goBack()
  await sees(page.locator('a.row').first(), 'the list is empty')
  await opens(0, 'Enter')
  await page.goBack()
  await sees(locationField(page), 'there are no filters')
  for (const field of ['Location', 'Person']) {
    await page.getByRole('combobox', { name: field }).focus()
    await opens(40, 'Enter')
    await page.goBack()
    await sees(locationField(page), 'there are no filters')
  }
  await page.getByRole('checkbox').nth(1).focus()
  await opens(40, 'Enter')
}

/** A scan goes to the assets, whichever field of a process has the focus. What was typed by hand stays. */
async function otherFields(scene) {
  const { api } = scene
  const user = await newUser(api)
  const visit = await Visit.open(scene, '#/take-back')
  let { page } = visit
  const notes = visit.label('Condition and damage')
  await sees(notes, 'there is no form')
  const expected = []
  const addBy = async (pause, end) => {
    const { asset_tag: tag } = await newAsset(api)
    await scan(page, tag, { pause, end })
    expected.push(tag)
    await until(async () => String(await added(page)) === String(expected), 'a scan vanishes in another field')
  }
  await notes.focus()
  for (const pause of SPEEDS) for (const end of ENDS) {
    await notes.focus()
    await addBy(pause, end)
  }
  assert.equal(await notes.inputValue(), '', 'a scan stays in another field')
  await scan(page, 'A scratch', { pause: BY_HAND, end: '' })
  await notes.focus()
  await addBy(0)
  await scan(page, ' below', { pause: BY_HAND })
  assert.equal(await notes.inputValue(), 'A scratch below\n', 'a scan changes what was typed by hand')
  const other = await Visit.open(scene, '#/hand-over', { failures: ['status of 409'] })
  page = other.page
  const who = other.label('Who gets the asset?')
  await sees(who, 'nobody can be chosen')
  expected.splice(0)
  for (const text of ['', user.display_name.slice(0, 4)]) {
    await who.fill(text)
    await addBy(10)
    assert.equal(await who.inputValue(), text, 'a scan changes the person')
  }
  await who.fill('')
  await scan(page, user.display_name)
  const isChosen = () => who.evaluate((field) => 'chosen' in field.dataset)
  await until(isChosen, 'a person who is typed fast is not chosen')
  await who.selectText()
  await addBy(40)
  assert.deepEqual([await who.inputValue(), await isChosen()], [user.display_name, true], 'a scan takes the person away')
  await other.press('Show the plan')
  await until(async () => (await who.getAttribute('aria-invalid')) === null, 'the chosen person is refused')
}

/** The plan has the asset whose tag is only typed. */
async function typedTag(scene) {
  const asset = await newAsset(scene.api, { status: 'in_use' })
  const visit = await Visit.open(scene, '#/take-back')
  const { page } = visit
  await assetField(page).fill(asset.asset_tag.slice(0, -1))
  await visit.press('Show the plan')
  await sees(page.locator('.field').filter({ has: assetField(page) }).getByText('Choose from the suggestions.'), 'a typed tag is left out')
  await visit.button(/^Remove/).click()
  await assetField(page).fill(asset.asset_tag)
  await visit.press('Show the plan')
  await sees(page.locator('.plan').getByText(asset.asset_tag), 'a typed tag is left out of the plan')
}

/** The field shows the person of the filter, or says that it doesn't. */
async function personFilter(scene) {
  const { api } = scene
  const user = await newUser(api)
  const asset = await newAsset(api, { status: 'in_use', assigned_to: user.id })
  const visit = await Visit.open(scene)
  const { page } = visit
  const who = page.getByRole('combobox', { name: 'Person' })
  const isFiltered = () => page.url().includes(user.id)
  const wrong = page.locator('.field').filter({ has: who }).getByText('Choose from the suggestions.')
  await sees(who, 'there is no filter')
  await who.focus()
  await scan(page, user.display_name, { pause: BY_HAND, end: 'Tab' })
  await until(isFiltered, 'a full name is no filter')
  await until(async () => String(await page.locator('td.c-tag').allTextContents()) === asset.asset_tag, 'the list has other assets')
  await who.press('End')
  await who.press('Backspace')
  assert.equal(isFiltered(), true, 'the filter ends, but its text stays')
  await who.press('x')
  await who.press('Tab')
  await until(async () => (await who.inputValue()) === user.display_name, 'the field does not show the filter')
  assert.equal(isFiltered(), true)
  await who.fill('')
  await until(async () => !isFiltered(), 'an empty field filters')
  await scan(page, 'nobody at all', { pause: BY_HAND, end: 'Tab' })
  await sees(wrong, 'the field does not say that it filters nothing')
  await visit.look('person-filter')
  await who.fill('')
  await until(async () => (await wrong.count()) === 0, 'an empty field is wrong')
}

/** Fields say when nothing matches. */
async function nothingMatches(scene) {
  const visit = await Visit.open(scene)
  const { page } = visit
  for (const name of ['Location', 'Person']) {
    const field = page.getByRole('combobox', { name })
    await sees(field, 'there is no filter')
    await field.pressSequentially('zzzyx')
    const words = page.locator('.combobox').filter({ has: field }).getByRole('status')
    await sees(words.getByText('Nothing found'), `${name} says nothing`)
    await visit.shot(`nothing-${name}`)
    await field.fill('')
    await until(async () => !(await words.isVisible()), `${name} goes on saying it`)
    await page.keyboard.press('Tab')
  }
}

/** Suggestions stay on the screen, wherever their field is. */
async function onScreen(scene) {
  const site = unique('Harbour')
  for (let n = 0; n < 9; n++) await newAsset(scene.api, { location: `${site} ${n}` })
  const visit = await Visit.open(scene, `#/assets?q=${encodeURIComponent(site)}`, { ...PHONE, viewport: { width: 390, height: 500 } })
  const { page } = visit
  const within = async (field, name) => {
    await field.tap()
    await page.keyboard.type(site)
    await sees(options(page), 'nothing is suggested')
    const { x, y, width, height } = await page.locator('.suggestions:not([hidden])').boundingBox()
    assert.ok(x >= 0 && y >= 0 && x + width <= 390 && y + height <= 500, `${name}: from ${x}, ${y}: ${width} × ${height}`)
    await visit.shot(`suggestions-${name}`)
    await page.keyboard.press('Escape')
  }
  await page.getByText('Filters', { exact: true }).tap()
  await locationField(page).evaluate((field) => field.scrollIntoView({ block: 'end' }))
  await within(locationField(page), 'filter')
  await visit.go('#/assets')
  await page.getByRole('checkbox').nth(1).tap()
  await page.getByRole('region', { name: 'Selected' }).getByRole('button', { name: 'Change' }).tap()
  await within(page.getByLabel('New value'), 'basket')
}

/** On a phone, the suggestions of a filter are as wide as the screen permits. */
async function wideSuggestions(scene) {
  const { display_name: name } = await newUser(scene.api, unique('Maximiliane Katharina Oberhuber-Winterstein'))
  const site = unique('Hall')
  for (let n = 0; n < 3; n++) await newAsset(scene.api, { location: `${site} ${n}` })
  const visit = await Visit.open(scene, '#/assets', PHONE)
  const { page } = visit
  await page.getByText('Filters', { exact: true }).tap()
  const place = locationField(page)
  await place.tap()
  await page.keyboard.type(site)
  await sees(options(page), 'the places are not suggested')
  await tapTwice(options(page).last())
  await until(async () => (await place.inputValue()) === `${site} 2`, 'a double tap does not choose the suggestion')
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'combobox', 'a double tap leads to the field beneath')
  await visit.button('Clear filters').first().tap()
  const who = page.getByRole('combobox', { name: 'Person' })
  await until(async () => (await place.inputValue()) === '', 'the filter stays')
  await who.tap()
  await page.keyboard.type(name.slice(0, 12))
  await sees(options(page).first(), 'nobody is suggested')
  const { width } = await options(page).first().boundingBox()
  assert.ok(width > 300, `the suggestions are ${width} pixels wide`)
  await visit.shot('wide-suggestions')
}

export const scanning = {
  'a scanner anywhere on the page': anywhere,
  'a scanner in other fields': otherFields,
  'a tag that is only typed': typedTag,
  'a person who filters the list': personFilter,
  'suggestions on a phone': wideSuggestions,
  'suggestions within the screen': onScreen,
  'nothing that matches': nothingMatches,
  'a suggestion under a finger': touched,
  'a person under a finger': touchedPerson,
  'a person chosen before the list': chosenEarly,
  'a scanner in a handover': wedge,
  'a serial number of two assets': ambiguous,
  'a person typed faster than the list': typed,
  'a scanner in the search': found,
  'a scanner behind other text': afterText,
  'a take-back from two people': twoPeople,
}
