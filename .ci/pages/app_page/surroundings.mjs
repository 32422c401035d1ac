// Keys, languages, devices, and a service that is busy.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DESKTOP, PHONE, Visit, sees, until } from './visit.mjs'

async function looker(scene) {
  const { api } = scene
  const { api_key: key } = await api.post('/keys', { name: 'looker', scopes: ['assets:read'] })
  const visit = await Visit.open(scene, '#/assets', { key })
  const { page } = visit
  await sees(page.locator('a.row'), 'the list is empty')
  await page.locator('a.row').first().click()
  await sees(page.getByText(/this key lacks .assets:write/), 'nobody is told what the key lacks')
  assert.equal(await page.getByRole('button', { name: 'Change' }).count(), 0)
  for (const [fragment, scope] of [['#/people', 'users:read'], ['#/hand-over', 'processes:read'], ['#/stock', 'assets:write']]) {
    await visit.go(fragment)
    await sees(page.getByText(new RegExp(`This key lacks .*${scope}`)), `${fragment} does not say that ${scope} is missing`)
  }
  await visit.look('scopes')
  await visit.go('#/key')
  await page.getByRole('button', { name: 'Forget the key' }).click()
  await sees(page.getByLabel('API key'), 'the key is kept')
  assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage })), '{}')
  await visit.close()
}

async function pasted(scene) {
  const { api } = scene
  const visit = await Visit.open(scene, '#/people', { key: null, failures: ['status of 401'] })
  const { page } = visit
  await visit.look('key')
  await page.getByLabel('API key').fill('apl_wrong')
  await page.keyboard.press('Enter')
  await sees(page.getByText('This key is not valid.'), 'a wrong key is taken')
  await page.getByLabel('API key').fill(api.key)
  await page.keyboard.press('Enter')
  await sees(page.getByRole('heading', { name: 'People' }), 'the address is lost on the way')
  await page.reload()
  await sees(page.getByRole('heading', { name: 'People' }), 'the key is lost')
  await visit.close()
}

async function busy(scene) {
  const visit = await Visit.open(scene, '#/people', { failures: ['status of 429', 'status of 503', 'status of 500', 'ERR_FAILED'] })
  const { page } = visit
  await sees(page.locator('a.row'), 'the list is empty')
  const answers = [429, 503]
  await page.route('**/v1/assets?*', (route) => {
    const status = answers.shift()
    if (!status) return route.continue()
    return route.fulfill({ status, headers: { 'retry-after': '1', 'content-type': 'application/problem+json' }, body: JSON.stringify({ code: status === 429 ? 'RATE_LIMITED' : 'UNAVAILABLE' }) })
  })
  await visit.go('#/assets')
  await sees(page.getByText(/Busy\. Again in/), 'nobody learns that the service is busy')
  await sees(page.locator('td.c-tag'), 'the page gives up')
  await page.unroute('**/v1/assets?*')
  await page.route('**/v1/users?*', (route) => route.fulfill({ status: 500, contentType: 'application/problem+json', body: JSON.stringify({ code: 'INTERNAL_ERROR', request_id: 'r-1' }) }))
  await visit.go('#/people?q=zzz')
  await sees(page.getByText(/give this number: .r-1/), 'the number of the request is not told')
  await page.unroute('**/v1/users?*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await sees(page.getByText('Nothing found'), 'trying again does nothing')
  await visit.close()
}

/** Opens every view in every language, on each device, and looks for texts that are missing or too wide. */
async function languages(scene) {
  const { api } = scene
  const [asset] = await api.get('/assets?limit=1&status=in_use')
  const [user] = await api.get('/users?limit=1')
  const [instance] = await api.get('/processes/instances?limit=1')
  const views = ['#/assets', `#/asset/${asset.id}`, '#/people', `#/person/${user.id}`, '#/hand-over', '#/take-back', '#/stock', '#/key']
  if (instance) views.push(`#/run/instances/${instance.id}`)
  const devices = [[PHONE, 'light'], [{ viewport: { width: 1024, height: 768 } }, 'dark'], [{ viewport: { width: 1920, height: 1080 } }, 'light'], [DESKTOP, 'dark']]
  for (const [n, locale] of ['en-GB', 'de-CH', 'fr-FR', 'es-MX'].entries()) {
    const texts = JSON.parse(readFileSync(new URL(`../../../functions/meta/app/${locale.slice(0, 2)}.json`, import.meta.url), 'utf8'))
    const [device, colorScheme] = devices[n]
    const visit = await Visit.open(scene, views[0], { ...device, locale, colorScheme })
    await sees(visit.page.getByRole('link', { name: texts['nav.people'], exact: true }), `${locale}: the texts are missing`)
    assert.equal(await visit.page.locator('html').getAttribute('lang'), locale.slice(0, 2))
    for (const view of views) {
      await visit.go(view)
      await visit.page.waitForLoadState('networkidle')
      await until(async () => (await visit.page.locator('#main .skeleton:visible').count()) === 0, `${view} keeps loading`)
      const shown = await visit.page.locator('body').innerText()
      const keys = Object.keys(texts).filter((key) => /[.-]/.test(key) && new RegExp(`(^|\\s)${key.replaceAll('.', '\\.')}($|\\s)`).test(shown))
      assert.deepEqual(keys, [], `${locale} ${view}`)
      await visit.look(`${locale}-${view.split('/')[1].split('?')[0]}`)
    }
    await visit.close()
  }
}

/** Opens the page in a language that it doesn't have. */
async function unknownLanguage(scene) {
  const visit = await Visit.open(scene, '#/assets', { locale: 'nl-NL' })
  await sees(visit.page.getByRole('link', { name: 'Inventory', exact: true }), 'a reader of Dutch gets no English')
  await visit.close()
}

export const surroundings = {
  'a key that can only look': looker,
  'a pasted key': pasted,
  'a busy service': busy,
  'every view in every language': languages,
  'a language that the page lacks': unknownLanguage,
}
