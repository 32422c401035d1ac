// Keys, languages, devices, hostile names, a busy service, and QR codes.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { IMAGE, SCRIPT, expectNothing } from '../sign_page/hostile.mjs'
import { DESKTOP, PHONE, Visit, newUser, refuse, sees, unique, until } from './visit.mjs'

const APP = new URL('../../../functions/meta/app/', import.meta.url)

async function looker(scene) {
  const { api_key: key } = await scene.api.post('/keys', { name: 'looker', scopes: ['assets:read'] })
  // The page requests the list with names before it knows that the key can't read names.
  const visit = await Visit.open(scene, '#/assets', { key, failures: ['status of 403'] })
  const { page } = visit
  await sees(page.locator('a.row'), 'the list is empty')
  assert.equal(await page.getByRole('checkbox').count(), 0, 'assets can be selected for nothing')
  await page.locator('a.row').first().click()
  await sees(page.getByText(/This key lacks .assets:write/), 'the page does not say which scope the key lacks')
  assert.equal(await visit.button('Change').count(), 0)
  assert.deepEqual(await page.locator('#nav a').allTextContents(), ['Inventory'], 'a tab leads to a refusal')
  for (const [fragment, scope] of [['#/people', 'users:read'], ['#/hand-over', 'processes:read'], ['#/stock', 'assets:write']]) {
    await visit.go(fragment)
    await sees(page.getByText(new RegExp(`This key lacks .*${scope}`)), `${fragment} does not say that ${scope} is missing`)
  }
  await visit.look('scopes')
  await visit.go('#/key')
  await sees(page.locator('a[href="/v1/docs"]'), 'nothing leads to the API')
  await visit.press('Sign out')
  await sees(page.getByLabel('API key'), 'the key is kept')
  assert.equal(await page.evaluate(() => sessionStorage.length), 0)
}

/** What a key may not do isn't offered, or the page says which scope is missing. */
async function fewScopes(scene) {
  const { api } = scene
  const open = async (scopes, fragment, failures = []) => {
    const { api_key: key } = await api.post('/keys', { name: scopes.join(), scopes })
    const visit = await Visit.open(scene, fragment, { key, failures })
    await sees(visit.page.locator('#account:visible'), 'the key opens nothing')
    return { visit, page: visit.page, tabs: () => visit.page.locator('#nav a').allTextContents() }
  }
  const made = await api.post('/assets', { name: 'Tablet', status: 'in_use' })

  const lender = await open(['assets:read', 'processes:read', 'processes:write'], `#/asset/${made.id}`)
  assert.deepEqual(await lender.tabs(), ['Inventory', 'Take back', 'Open'])
  await sees(lender.page.getByRole('link', { name: 'Take back' }).last(), 'an asset can’t be taken back')
  assert.equal(await lender.page.getByRole('link', { name: 'Hand over' }).count(), 0, 'the page offers a handover to nobody')
  await lender.visit.go('#/hand-over')
  await sees(lender.page.getByText(/This key lacks .users:read/), 'a handover asks for a person who can’t be chosen')
  await lender.visit.go(`#/take-back?assets=${made.id}`)
  await lender.visit.press('Show the plan')
  await lender.visit.press('Do it')
  await lender.visit.press('Create a link')
  const signer = lender.page.locator('.field').filter({ hasText: 'Signer' })
  await sees(signer.getByText('Required.'), 'a button does nothing')
  await lender.visit.label('Signer').fill('Ada Guest')
  await lender.visit.press('Create a link')
  await sees(lender.page.getByText(/Ada Guest. scans this/), 'nobody can sign')
  await lender.visit.look('few-scopes')
  await lender.visit.go('#/key')
  await sees(lender.page.getByText(/Hand over.*This key lacks .users:read/), 'the page does not say what the key can’t do')
  await lender.visit.look('key-of-few-scopes')

  const counter = await open(['assets:write'], '#/stock')
  assert.deepEqual(await counter.tabs(), ['Stock-taking'])
  const field = counter.page.getByRole('combobox', { name: 'Location' })
  await field.fill('Somewhere')
  await counter.visit.press('Begin')
  await counter.page.keyboard.type(made.asset_tag)
  await counter.page.keyboard.press('Enter')
  await sees(counter.page.locator('.scans .o-elsewhere', { hasText: made.asset_tag }), 'a scan has no outcome')
  assert.equal(await counter.visit.button('Show what is missing').count(), 0, 'the page offers what the key may not read')
  assert.equal(await counter.page.locator('.scans a').count(), 0, 'a link leads to a refusal')
  await sees(counter.page.getByText(/This key lacks .assets:read/), 'the page does not say which scope is missing')
  await counter.visit.look('stock-with-few-scopes')

  const user = await newUser(api, unique('Bob'))
  const clerk = await open(['users:read', 'users:write'], `#/person/${user.id}`)
  assert.deepEqual(await clerk.tabs(), ['People'])
  await sees(clerk.page.getByText(/This key lacks .assets:read/), 'the page does not say why it shows no assets')
}

async function pasted(scene) {
  const visit = await Visit.open(scene, '#/people', { key: null, failures: ['status of 401'] })
  const { page } = visit
  await visit.look('key')
  const paste = async (key) => {
    await visit.label('API key').fill(key)
    await page.keyboard.press('Enter')
  }
  await paste('apl_wrong')
  await sees(page.getByText('This key is not valid.'), 'an invalid key is accepted')
  await paste(scene.api.key)
  await sees(page.getByRole('heading', { name: 'People' }), 'the address is lost after the key was entered')
  await page.reload()
  await sees(page.getByRole('heading', { name: 'People' }), 'the key is lost')
}

async function busy(scene) {
  const visit = await Visit.open(scene, '#/people', { failures: ['status of 429', 'status of 503', 'status of 500'] })
  const { page } = visit
  await sees(page.locator('a.row'), 'the list is empty')
  // Playwright uses the most recently added route first, so the 429 comes before the 503.
  for (const [status, code] of [[503, 'UNAVAILABLE'], [429, 'RATE_LIMITED']])
    await refuse(page, '**/v1/assets?*', { status, code }, { headers: { 'retry-after': '1' }, times: 1 })
  await visit.go('#/assets')
  await sees(page.getByText(/Busy\. Retrying in/), 'the page does not say that the service is busy')
  await sees(page.locator('td.c-tag'), 'the page gives up')
  await refuse(page, '**/v1/users?*', { status: 500, code: 'INTERNAL_ERROR', request_id: 'r-1' })
  await visit.go('#/people?q=zzz')
  await sees(page.getByText(/give this ID: .r-1/), 'the page does not show the ID of the request')
  await page.unroute('**/v1/users?*')
  await visit.press('Try again')
  await sees(page.getByText('Nothing found'), 'trying again does nothing')
}

/** Opens every view in every language on each device, and checks for missing or overflowing texts. */
async function languages(scene) {
  const first = async (path) => (await scene.api.get(`${path}limit=1`))[0]?.id
  const views = ['#/assets', '#/people', '#/hand-over', '#/take-back', '#/stock', '#/changes', '#/key', '#/open']
  views.push(...['types', 'types/new', 'manufacturers', 'keys', 'settings', 'webhooks'].map((name) => `#/organisation/${name}`))
  views.push(`#/asset/${await first('/assets?status=in_use&')}`, `#/person/${await first('/users?')}`)
  views.push(`#/run/instances/${await first('/processes/instances?')}`)
  const lines = readFileSync(new URL('texts.txt', APP), 'utf8').split('\n').map((line) => line.split('|'))
  for (const [n, [locale, scheme, options]] of [
    ['en-GB', 'light', PHONE],
    ['de-CH', 'dark', { viewport: { width: 1024, height: 768 } }],
    ['fr-FR', 'light', { viewport: { width: 1920, height: 1080 } }],
    ['es-MX', 'dark', DESKTOP],
  ].entries()) {
    const texts = Object.fromEntries(lines.map((line) => [line[0], line[n + 1]]))
    const visit = await Visit.open(scene, views[0], { ...options, locale })
    const { page } = visit
    await sees(page.getByRole('link', { name: texts['nav.people'], exact: true }), `${locale}: the texts are missing`)
    assert.equal(await page.locator('html').getAttribute('lang'), locale.slice(0, 2))
    for (const view of views) {
      await visit.go(view)
      await page.waitForLoadState('networkidle')
      await until(async () => (await page.locator('#main .skeleton:visible').count()) === 0, `${view} keeps loading`)
      const words = (await page.locator('body').innerText()).split(/\s+/)
      const keys = Object.keys(texts).filter((key) => /[.-]/.test(key) && words.includes(key))
      assert.deepEqual(keys, [], `${locale} ${view}`)
      await visit.look(`${locale}-${view.split('/').slice(1).join('-').slice(0, 30)}`, page, [scheme])
    }
    await visit.close()
  }
}

async function unknownLanguage(scene) {
  const { page } = await Visit.open(scene, '#/assets', { locale: 'nl-NL' })
  await sees(page.getByRole('link', { name: 'Inventory', exact: true }), 'a Dutch reader does not get English')
}

const names = ({ api, ...scene }) =>
  api.withSettings({ name: `Org ${IMAGE}` }, async () => {
    const user = await api.post('/users', { display_name: `User ${IMAGE}`, email: `h${Math.random()}@example.com` })
    const fields = { manufacturer: IMAGE, model: SCRIPT, notes: SCRIPT, custom_fields: { [IMAGE]: SCRIPT } }
    fields.location = `Place ${IMAGE}`
    const { id, name } = await api.post('/assets', { name: `Asset ${SCRIPT}`, status: 'in_use', assigned_to: user.id, ...fields })
    const steps = [{ type: 'text', key: 'text', label: `Label ${IMAGE}` }, { type: 'complete', key: 'complete', label: SCRIPT }]
    await api.post('/processes', { name: `Process ${IMAGE}`, trigger_status: 'in_use', target_status: 'in_stock', steps })
    const maker = await api.post('/catalog/manufacturers', { name: unique(`Maker ${IMAGE}`) })
    const schema = { properties: { [IMAGE]: { enum: [SCRIPT] } } }
    const code = `H${Math.random().toString(36).slice(2, 8).toUpperCase()}`
    const type = await api.post('/catalog/asset-types', { name: `Type ${IMAGE}`, code, kind: 'physical', custom_fields_schema: schema })
    const visit = await Visit.open({ api, ...scene }, `#/asset/${id}`)
    for (const [fragment, text] of [
      [`#/asset/${id}`, name],
      ['#/assets?q=Asset', name],
      [`#/assets?q=${encodeURIComponent(SCRIPT)}`, name],
      ['#/people?q=User', user.display_name],
      [`#/person/${user.id}`, user.display_name],
      [`#/take-back?assets=${id}`, name],
      [`#/${encodeURIComponent(IMAGE)}`, 'Not found.'],
      ['#/key', `Org ${IMAGE}`],
      ['#/organisation/manufacturers', maker.name],
      [`#/organisation/types/${type.id}`, type.name],
    ]) {
      await visit.go(fragment)
      await sees(visit.page.getByText(text), `${fragment} lacks ${text}`)
      await visit.page.waitForLoadState('networkidle')
      await expectNothing(visit.page, `at ${fragment}`)
    }
    await visit.close()
  })

/** Older texts can have characters that nobody sees. */
async function hidden(scene) {
  const { id } = await scene.api.post('/assets', { name: 'Laptop' })
  const visit = await Visit.open(scene, '#/key')
  const { page } = visit
  await page.route(`**/v1/assets/${id}`, async (route) => {
    const response = await route.fetch()
    const { data } = await response.json()
    return route.fulfill({ response, json: { data: { ...data, name: 'Lap\u200btop \u202e1', location: '\u200b' } } })
  })
  await visit.go(`#/asset/${id}`)
  await sees(page.getByRole('heading', { level: 1, name: 'LapU+200Btop U+202E1' }), 'a heading hides a character')
  await sees(page.locator('.facts').getByText('U+200B', { exact: true }), 'a place looks empty')
  await visit.look('hidden')
}

/** Mail programs encode the # of links. */
async function encoded(scene) {
  const visit = await Visit.open(scene, '#/key')
  await sees(visit.page.getByRole('heading', { name: 'This key' }), 'the key is lost')
  await visit.page.goto(`${scene.api.base}/app%23/people?q=nobody-has-this-name`)
  await sees(visit.page.getByText('0 people'), 'an encoded address leads elsewhere')
  assert.equal(await visit.page.getByRole('searchbox').inputValue(), 'nobody-has-this-name')
  await visit.page.goto(`${scene.api.base}/app%23%2Fpeople%3Fq%3Dno%20such%20name`)
  await until(async () => (await visit.page.getByRole('searchbox').inputValue()) === 'no such name', 'an encoded slash leads elsewhere')
}

/** Maximum bytes of versions 1 to 15. A phone's camera has read a code of each version, so the codes must not change. */
const LENGTHS = [14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412]
const READ = '8e291b01a8936e4d796b5c49b6085ac215f70f9873eaa7fcde0aefb5adb7a358'

/** Returns the QR codes that the page draws. Runs only the script's encoder, because drawing needs a document. */
async function codes() {
  const script = readFileSync(new URL('qr.js', APP), 'utf8').replace(/^import .*$/m, 'const svg = () => {}')
  const { modules } = await import(`data:text/javascript,${encodeURIComponent(script)}`)
  const text = `https://x.example/v1/sign#sgn_${'aZ09-_'.repeat(100)}`
  const hash = createHash('sha256')
  for (const length of LENGTHS) hash.update(modules(text.slice(0, length)).map((row) => row.join('')).join('\n'))
  assert.equal(hash.digest('hex'), READ, 'a code differs from the one that was read')
  assert.throws(() => modules('x'.repeat(413)), RangeError)
}

export const hostileNames = { 'hostile names': names }
export const surroundings = {
  'the code of an address': codes,
  'a key that can only look': looker,
  'keys with few scopes': fewScopes,
  'a pasted key': pasted,
  'a busy service': busy,
  'characters that nobody sees': hidden,
  'an address with an encoded #': encoded,
  'every view in every language': languages,
  'a language that the page lacks': unknownLanguage,
}
