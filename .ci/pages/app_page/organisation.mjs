// The organization: types with their own fields, manufacturers, keys, settings, webhooks; the account, and what is open.
import assert from 'node:assert/strict'
import { PHONE, Visit, newUser, refuse, sees, sign, unique, until } from './visit.mjs'

/** Opens a view, and checks that it is accessible there. */
async function at(scene, fragment, options) {
  const visit = await Visit.open(scene, fragment, options)
  return { visit, page: visit.page, main: visit.page.locator('#main') }
}

const code = () => `T${Math.random().toString(36).slice(2, 8).toUpperCase()}`
const typeOf = (api, code) => api.get(`/catalog/asset-types?code=${code}`).then(([type]) => type)
const rule = (page, n) => page.locator('.rules > li').nth(n)

async function typeWithFields(scene) {
  const { visit, page, main } = await at(scene, '#/organisation', { ...PHONE, failures: ['status of 409'] })
  await sees(page.getByRole('heading', { level: 1, name: 'Types' }), 'the organization does not begin with types')
  await visit.look('types-phone')
  await main.getByRole('link', { name: 'New type' }).click()
  const [name, short] = [unique('Tablet'), code()]
  await visit.label('Name').fill(name)
  assert.equal(await visit.label('Code').inputValue(), 'TAB', 'no code is proposed')
  await visit.label('Code').fill('lap')
  await visit.press('Save')
  await sees(page.locator('.field', { has: visit.label('Code') }).getByText('This value is already taken.'), 'a taken code is not told beside its field')
  await visit.label('Code').fill(short.toLowerCase())
  assert.equal(await page.locator('.wrong').count(), 0, 'an error outlives its edit')
  await visit.press('Add a field')
  await rule(page, 0).getByLabel('Name').fill('Screen size')
  await rule(page, 0).getByLabel('Kind').selectOption('Number')
  await visit.press('Add a field')
  await visit.press('Save')
  await sees(rule(page, 1).getByText('Required.'), 'a field without a name is accepted')
  await rule(page, 1).getByLabel('Name').fill('Screen size')
  await visit.press('Save')
  await sees(rule(page, 1).getByText('Contains an entry twice.'), 'two fields have the same name')
  await rule(page, 1).getByLabel('Name').fill('Color')
  await rule(page, 1).getByLabel('Kind').selectOption('Choice')
  await visit.press('Save')
  await sees(rule(page, 1).getByText('Required.'), 'a choice without choices is accepted')
  await rule(page, 1).getByLabel('Choices').fill('red\n\n blue \nred')
  await rule(page, 1).getByLabel('Must be filled in').check()
  await rule(page, 1).getByRole('button', { name: 'Move up' }).click()
  assert.equal(await rule(page, 0).getByLabel('Name').inputValue(), 'Color', 'a field does not move')
  await visit.look('type-phone')
  await visit.press('Save')
  await sees(main.getByRole('link', { name }), 'the new type is not listed')
  await sees(page.getByText('Saved.'), 'the page does not say that the type is saved')
  const { custom_fields_schema: schema, kind } = await typeOf(scene.api, short)
  const properties = { Color: { type: 'string', enum: ['red', 'blue'] }, 'Screen size': { type: 'number' } }
  assert.deepEqual({ kind, schema }, { kind: 'physical', schema: { type: 'object', properties, required: ['Color'] } })
  assert.deepEqual(Object.keys(schema.properties), ['Color', 'Screen size'], 'the order of the fields is lost')
  await scene.api.post('/assets', { name, asset_type_id: (await typeOf(scene.api, short)).id, custom_fields: { Color: 'red' } })

  await main.getByRole('link', { name }).click()
  await visit.press('Delete')
  await sees(page.getByText(/still used .*1.* time/), 'the page does not say why a used type stays')
  await rule(page, 1).getByRole('button', { name: 'Remove' }).click()
  await rule(page, 0).getByLabel('Choices').fill('red\nblue\ngreen')
  await visit.press('Save')
  await sees(page.getByText('Saved.'), 'the type can’t be changed')
  const changed = (await typeOf(scene.api, short)).custom_fields_schema
  assert.deepEqual(changed, { type: 'object', properties: { Color: { type: 'string', enum: ['red', 'blue', 'green'] } }, required: ['Color'] })
}

/** What the form can't show stays as it is, in any kind of field. */
async function keptRules(scene) {
  const { api } = scene
  const short = code()
  const properties = {
    IMEI: { type: ['string', 'null'], title: 'Number', pattern: '^[0-9]{15}$', description: 'On the back' },
    'a/b': { type: 'integer', minimum: 1, default: 4 },
    ports: { type: 'array', items: { type: 'string' }, maxItems: 3 },
    level: { enum: [1, 2, null] },
    bought: { type: 'string', format: 'date' },
  }
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Phone', properties, required: ['x', 'IMEI'], additionalProperties: false }
  const { id } = await api.post('/catalog/asset-types', { name: unique('Phone'), code: short, kind: 'physical', custom_fields_schema: schema })
  const { visit, page } = await at(scene, `#/organisation/types/${id}`, { failures: ['status of 412', 'status of 422'] })
  await sees(rule(page, 0).getByText(/Further rules stay.*pattern/), 'the page does not say that it keeps a pattern')
  assert.equal(await rule(page, 2).getByLabel('Kind').inputValue(), 'other')
  await visit.look('type-with-rules')
  await visit.press('Save')
  await sees(page.getByText('Nothing would change.'), 'a form that nobody edited changes something')
  await rule(page, 1).getByLabel('Name').fill('c/d')
  await rule(page, 3).getByLabel('Choices').fill('1\n2\n3')
  await rule(page, 4).getByLabel('Must be filled in').check()
  // Meanwhile, someone else renames the type.
  await api.patch(`/catalog/asset-types/${id}`, { name: 'Other name' })
  await visit.press('Save')
  await sees(page.getByText(/Someone else changed this/), 'a conflict is lost')
  await sees(page.locator('.problem').getByText('Other name'), 'the page does not say what someone else has changed')
  await visit.press('Save')
  await sees(page.getByRole('heading', { level: 1, name: 'Types' }), 'the type can’t be saved after a conflict')
  const saved = await api.get(`/catalog/asset-types/${id}`)
  const { 'a/b': renamed, ...others } = properties
  assert.deepEqual(saved.custom_fields_schema, { ...schema, properties: { ...others, 'c/d': renamed, level: { enum: [1, 2, 3, null] } }, required: ['IMEI', 'bought', 'x'] })
  assert.equal(saved.name, 'Other name', 'the change of someone else is undone')

  await visit.go(`#/organisation/types/${id}`)
  await rule(page, 1).getByLabel('Kind').selectOption('Date')
  await sees(rule(page, 1).getByText(/former kind no longer apply/), 'rules are dropped without a word')
  await refuse(page, `**/v1/catalog/asset-types/${id}`, { status: 422, code: 'VALIDATION_ERROR', errors: [{ pointer: '/custom_fields_schema/properties/c~1d/type', code: 'unknown_value', detail: 'x' }] }, { times: 1 })
  await visit.press('Save')
  await sees(rule(page, 1).getByText('Not one of the permitted values.'), 'a refusal is not beside its field')
  await visit.press('Cancel')
  assert.equal(visit.questions, 1, 'edits are dropped without a question')
}

async function manufacturers(scene) {
  const { visit, page, main } = await at(scene, '#/organisation/manufacturers', { failures: ['status of 409'] })
  await sees(main.getByRole('link').first(), 'there are no manufacturers')
  await visit.look('manufacturers')
  const name = unique('Acme')
  await visit.press('New manufacturer')
  await visit.label('Name').fill(name)
  await visit.press('Save')
  await sees(page.getByRole('heading', { level: 1, name }), 'the new manufacturer does not open')
  await visit.press('New model')
  await page.getByRole('form', { name: 'New model' }).getByLabel('Name').fill('Model 1')
  await page.getByRole('form', { name: 'New model' }).getByLabel('Type').selectOption('Laptop')
  await page.getByRole('form', { name: 'New model' }).getByRole('button', { name: 'Save' }).click()
  const models = page.getByRole('region', { name: 'Models' })
  await sees(models.getByText('Model 1'), 'the new model is not listed')
  await models.getByRole('button', { name: 'Change' }).click()
  await models.getByLabel('Name').fill('Model 2')
  await models.getByRole('button', { name: 'Save' }).click()
  await sees(models.getByText('Model 2'), 'the model is not renamed')
  await visit.look('manufacturer')
  await page.getByRole('button', { name: 'Delete' }).last().click()
  await sees(page.getByText(/still used .*1.* time/), 'the page does not say why a used manufacturer stays')
  await models.getByRole('button', { name: 'Delete' }).click()
  await sees(models.getByText(/Delete .Model 2.\?/), 'a model is deleted without a question')
  await models.getByRole('button', { name: 'Delete' }).click()
  await sees(models.getByText('No models yet'), 'the model is still listed')
  await page.getByRole('button', { name: 'Delete' }).last().click()
  await sees(page.getByText(new RegExp(`Delete .${name}.\\?`)), 'a manufacturer is deleted without a question')
  await page.getByRole('button', { name: 'Delete' }).last().click()
  await sees(page.getByText(new RegExp(`${name}. is deleted`)), 'the page does not say that the manufacturer is deleted')
  assert.equal((await scene.api.get(`/catalog/manufacturers?q=${encodeURIComponent(name)}`)).length, 0)
}

/** A key that is made for a colleague opens the page in another browser, until it is revoked. */
async function colleague(scene) {
  const { api } = scene
  const user = await newUser(api, unique('Grace'))
  const { visit, page, main } = await at(scene, '#/organisation/keys')
  await sees(main.getByText('This key'), 'the list does not show which key this is')
  await visit.look('keys')
  await visit.press('Key for a colleague')
  await visit.label(/^Person/).fill(user.display_name)
  await page.getByRole('option', { name: user.display_name }).click()
  assert.equal(await visit.label('Name').inputValue(), user.display_name, 'the key has no name')
  await visit.label('May').selectOption('Look only')
  await visit.look('key-form')
  await visit.press('Make the key')
  const made = page.getByRole('region', { name: /is ready/ })
  await sees(made, 'the new key is not shown')
  const address = await made.locator('code').innerText()
  assert.match(address, /\/v1\/app#key=apl_[0-9A-Za-z]{94}$/)
  await sees(made.getByRole('button', { name: 'Copy the link' }), 'the link can’t be copied')
  const [, key] = address.split('#key=')
  assert.ok(!(await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, history.state, location.href]))).includes(key), 'the page keeps the key')
  await page.evaluate(() => (document.querySelector('code.secret').textContent = 'apl_…'))
  await visit.look('key-made')
  await made.getByRole('button', { name: 'Close' }).click()
  assert.equal(await made.count(), 0, 'the key stays on the screen')
  await sees(main.locator('.line', { hasText: user.display_name }), 'the new key is not listed')
  assert.ok(!(await page.content()).includes(key), 'the key is shown twice')

  const theirs = await Visit.open(scene, '#/assets', { key, failures: ['status of 401'] })
  await sees(theirs.page.locator('a.row'), 'the key opens nothing')
  assert.deepEqual(await theirs.page.locator('#nav a').allTextContents(), ['Inventory', 'People', 'Open'])
  assert.equal(await theirs.page.locator('#account').innerText(), user.display_name)
  await theirs.go('#/organisation')
  await sees(theirs.page.getByRole('heading', { level: 1, name: 'Types' }), 'who may look sees no types')
  assert.deepEqual(await theirs.page.locator('.sections a').allTextContents(), ['Types', 'Manufacturers and models', 'Settings'])
  assert.equal(await theirs.page.getByRole('link', { name: 'New type' }).count(), 0, 'a link leads to a refusal')
  for (const [section, text] of [['manufacturers', 'Manufacturers and models'], ['settings', 'Settings']]) {
    await theirs.go(`#/organisation/${section}`)
    await sees(theirs.page.getByRole('heading', { level: 1, name: text }), `${section} can’t be read`)
    assert.equal(await theirs.page.locator('#main button').count(), 0, `${section} offers a change`)
  }
  await theirs.go('#/organisation/keys')
  await sees(theirs.page.getByText(/lacks .keys:read/), 'the page does not say which scope is missing')

  const line = main.locator('.line', { hasText: user.display_name })
  await line.getByRole('button', { name: 'Revoke' }).click()
  await sees(line.getByText(/stops working at once/), 'a key is revoked without a question')
  await visit.look('key-revoke')
  await line.getByRole('button', { name: 'Cancel' }).click()
  await line.getByRole('button', { name: 'Revoke' }).click()
  await line.getByRole('button', { name: 'Revoke' }).click()
  await until(async () => (await line.count()) === 0, 'the revoked key is still listed')
  assert.ok(await main.locator('.lines').evaluate((list) => list.contains(document.activeElement)), 'the focus is lost')
  await theirs.go('#/people')
  await sees(theirs.page.getByText('This key is not valid.'), 'a revoked key opens the page')
}

/** A key grants at most what it may itself. */
async function smallerKeys(scene) {
  const { api_key: key } = await scene.api.post('/keys', { name: 'maker', scopes: ['assets:read', 'keys:write', 'users:read', 'processes:read'] })
  const { visit, page } = await at(scene, '#/organisation/keys', { key, failures: ['status of 403'] })
  await sees(page.getByText(/lacks .keys:read/), 'the page does not say why it lists no keys')
  await visit.press('Key for a colleague')
  assert.deepEqual(await visit.label('May').locator('option').allTextContents(), ['Look only', 'Everything that this key may'])
  const admin = await scene.api.post('/users', { display_name: unique('Admin'), email: `${code()}@example.com`, role: 'admin' })
  await visit.label(/^Person/).fill(admin.display_name)
  await page.getByRole('option', { name: admin.display_name }).click()
  await visit.press('Make the key')
  await sees(page.locator('.problem').getByText(/isn’t allowed/), 'a refusal has no words')
  // A repeated response has no secret.
  await page.route('**/v1/keys', (route) => route.fulfill({ status: 201, json: { data: { id: '1', name: 'Lost' } } }))
  await visit.press('Make the key')
  await sees(page.getByText(/connection was lost before it could be shown/), 'the page shows a key that it does not have')
  assert.equal(await page.getByText(/undefined/).count(), 0)
}

const settings = ({ api, ...scene }) => {
  const before = { name: null, time_zone: null, locale: null, asset_tag_template: null, label_url_template: null, status_transitions: null }
  return api.get('/settings').then((now) => api.withSettings(Object.fromEntries(Object.keys(before).map((name) => [name, now[name]])), async () => {
    const { visit, page } = await at({ api, ...scene }, '#/organisation/settings', { failures: ['status of 422'] })
    await visit.label('Name of the organization').fill('Acme GmbH')
    await visit.label('Time zone').fill('berl')
    await page.getByRole('option', { name: 'Europe/Berlin' }).click()
    await visit.label(/^Language and dates/).selectOption('de-DE')
    await visit.label(/^New tags/).fill('X-NN')
    await visit.press('Save')
    await sees(page.locator('.field', { has: visit.label(/^New tags/) }).getByText(/Not in the expected format/), 'a refusal is not beside its field')
    await visit.label(/^New tags/).fill('{PREFIX}-{YYYY}-NNNN')
    await visit.press('Save')
    await sees(page.locator('#home').getByText('Acme GmbH'), 'the page keeps the former name')
    await sees(page.getByText('Saved.'), 'the page does not say that the settings are saved')
    const { name, time_zone, locale, asset_tag_template } = await api.get('/settings')
    assert.deepEqual([name, time_zone, locale, asset_tag_template], ['Acme GmbH', 'Europe/Berlin', 'de-DE', '{PREFIX}-{YYYY}-NNNN'])
    await visit.look('settings')
    await visit.label('Any status may follow any other').uncheck()
    const scrapped = page.getByRole('group', { name: /From .*Scrapped/ })
    for (const box of await scrapped.getByRole('checkbox').all()) await box.uncheck()
    await page.getByRole('group', { name: /From .*Returned/ }).getByLabel('In use').uncheck()
    await visit.look('transitions')
    await visit.press('Save')
    await until(async () => (await api.get('/settings')).status_transitions, 'the permitted changes of status are not saved')
    const { status_transitions: transitions } = await api.get('/settings')
    assert.deepEqual(transitions, { scrapped: [], returned: ['in_stock', 'preparing', 'in_service', 'scrapped'] })
    await until(() => visit.label('Any status may follow any other').isChecked().then((is) => !is), 'the form does not show what is saved')
    await visit.label('Any status may follow any other').check()
    await visit.press('Save')
    await until(async () => (await api.get('/settings')).status_transitions === null, 'not every change of status is permitted again')
    await page.setViewportSize(PHONE.viewport)
    await visit.look('settings-phone')
    await visit.close()
  }))
}

async function webhooks(scene) {
  const { visit, page, main } = await at(scene, '#/organisation/webhooks', { failures: ['status of 422'] })
  await sees(page.getByRole('heading', { level: 1, name: 'Webhooks' }), 'there are no webhooks')
  const url = `https://hooks.example.com/${code()}`
  await visit.press('New webhook')
  await visit.label(/^Address/).fill('ftp://x')
  await visit.label('Everything').uncheck()
  await visit.press('Save')
  await sees(page.locator('.wrong').first(), 'a refusal is not beside its field')
  await visit.label(/^Address/).fill(url)
  await visit.label('Keys').check()
  await visit.label(/^Types, manufacturers/).check()
  await visit.look('webhook-form')
  let asked
  await page.route('**/v1/webhooks', (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    asked = route.request().postDataJSON()
    // No such event happens meanwhile, so that nothing is sent.
    return route.continue({ postData: JSON.stringify({ ...asked, events: ['receipt_keys.*'] }) })
  })
  await visit.press('Save')
  const made = page.getByRole('region', { name: /is ready/ })
  assert.match(await made.locator('code').innerText(), /^whsec_/)
  assert.deepEqual(asked, { url, events: ['asset_type.*', 'manufacturer.*', 'model.*', 'key.*'] })
  const line = main.locator('.line', { hasText: url })
  await sees(line.getByText('Active'), 'the webhook is not listed')
  const state = async () => (await scene.api.get('/webhooks')).find((one) => one.url === url)?.is_active
  await line.getByRole('button', { name: 'Pause' }).click()
  await sees(line.getByText('Paused'), 'the webhook is not paused')
  assert.equal(await state(), false)
  const { id } = (await scene.api.get('/webhooks')).find((one) => one.url === url)
  await page.route(`**/v1/webhooks/${id}/deliveries*`, (route) =>
    route.fulfill({ json: { data: [{ attempts: [{ at: new Date(Date.now() - 7_200_000).toISOString(), status: 503, error: null }] }], meta: {} } }))
  await line.getByRole('button', { name: 'Resume' }).click()
  await sees(line.getByText(/Last failure: 2 hours ago · 503/), 'the last failure is not shown')
  assert.equal(await state(), true)
  await visit.look('webhooks')
  await line.getByRole('button', { name: 'Delete' }).click()
  await sees(line.getByText(/can’t be undone/), 'a webhook is deleted without a question')
  await line.getByRole('button', { name: 'Delete' }).click()
  await until(async () => (await line.count()) === 0, 'the webhook is still listed')
  assert.equal(await state(), undefined)
}

async function openWork(scene) {
  const { api } = scene
  const user = await newUser(api, unique('Ada'))
  const assets = []
  for (const n of [1, 2]) assets.push(await api.post('/assets', { name: `Laptop ${n} of ${user.display_name}`, status: 'preparing' }))
  const process = (await api.get('/processes')).find(({ slug }) => slug === 'employee-onboarding')
  const ids = assets.map(({ id }) => id)
  const movement = await api.post(`/processes/${process.id}/start`, { asset_ids: ids, step_data: { employee: user.id }, through: 'handover' })
  const { visit, page, main } = await at(scene, '#/open', PHONE)
  const waiting = page.getByRole('region', { name: /^Waiting for a signature/ })
  const line = waiting.locator('.runs > li', { hasText: assets[0].asset_tag })
  await sees(line.getByText(assets[1].asset_tag), 'the assets of a movement are not in one line')
  await sees(line.getByRole('link', { name: user.display_name, exact: true }), 'the list does not say who signs')
  await sees(line.getByText('There is no valid link to sign.'), 'the list does not say that a link is missing')
  await sees(page.getByText(/has a link until/), 'the list does not say that there is a link')
  await sees(page.getByRole('region', { name: /^Waiting for IT/ }), 'nothing waits for IT')
  const times = await waiting.locator('time').evaluateAll((all) => all.map((time) => time.dateTime))
  assert.deepEqual(times, [...times].sort(), 'the oldest is not first')
  await visit.look('open-phone')
  await page.setViewportSize({ width: 1440, height: 900 })
  await visit.look('open')
  await line.getByRole('link', { name: process.name }).click()
  await sees(page.getByText('A signature is needed.'), 'a line does not lead to its process')
  const { url } = await api.post(`/movements/${movement.id}/links`, { signer: { user_id: user.id } })
  await sign(scene, url)
  await visit.go('#/open')
  await sees(main.locator('.runs'), 'nothing is open any more')
  assert.equal(await line.count(), 0, 'what is signed still waits')
  await page.route('**/v1/processes/instances?*', (route) => route.fulfill({ json: { data: [], meta: { total: 0, page: 1, total_pages: 0 } } }))
  await visit.go('#/people')
  await visit.go('#/open')
  await sees(page.getByText('Nothing is open'), 'an empty list has no words')
  await visit.look('open-empty')
}

async function account(scene) {
  const { visit, page } = await at(scene, '#/open')
  await page.locator('#account').click()
  await sees(page.getByText(/Version: .+\..+/), 'the version is missing')
  await visit.look('account')
  await visit.label('Language').selectOption('Deutsch')
  await sees(page.getByRole('heading', { level: 1, name: 'Konto' }), 'the language does not change')
  await sees(page.locator('#nav').getByText('Bestand'), 'the tabs keep their language')
  await page.reload()
  await sees(page.getByRole('heading', { level: 1, name: 'Konto' }), 'a reload loses the language')
  assert.equal(await page.locator('html').getAttribute('lang'), 'de')
  await page.setViewportSize(PHONE.viewport)
  await visit.look('account-phone')
  await page.locator('#main').getByRole('link', { name: 'Organisation' }).click()
  await sees(page.getByRole('heading', { level: 1, name: 'Typen' }), 'nothing leads to the organization')
}

/** Files that are seldom needed aren't part of the first view. */
async function laterFiles(scene) {
  const { visit, page } = await at(scene, '#/assets', { failures: ['ERR_FAILED'] })
  await sees(page.locator('a.row'), 'the list is empty')
  const loaded = () => visit.requests.map(({ request }) => new URL(request.url()).pathname.split('/').at(-1))
  const of = ['organisation.js', 'types.js', 'schema.js', 'keys.js', 'settings.js', 'webhooks.js', 'open.js', 'account.js']
  assert.deepEqual(of.filter((name) => loaded().includes(name)), [], 'the first view loads the organization')
  await page.route('**/open.js', (route) => route.abort(), { times: 1 })
  await visit.go('#/open')
  await sees(page.getByText(/can’t be reached/), 'a lost connection has no words')
  await visit.press('Try again')
  await sees(page.getByRole('heading', { level: 1, name: 'Open' }), 'trying again does nothing')
}

export const ownSettings = { 'settings of the organization': settings }
export const organisation = {
  'a type with its own fields': typeWithFields,
  'a schema that the form can’t show': keptRules,
  'manufacturers and models': manufacturers,
  'a key for a colleague': colleague,
  'a key that grants less': smallerKeys,
  'webhooks': webhooks,
  'what is open': openWork,
  'the account and its language': account,
  'files that are loaded later': laterFiles,
}
