// People, their offboarding, and hostile names of everything.
import assert from 'node:assert/strict'
import { DESKTOP, Visit, sees, until } from './visit.mjs'

async function offboarding(scene) {
  const { api } = scene
  const name = `Bob ${Math.random().toString(36).slice(2, 8)}`
  const user = await api.post('/users', { display_name: name, email: `${name.replace(' ', '.')}@example.com` })
  for (const status of ['in_use', 'in_use', 'in_service']) await api.post('/assets', { name: 'Thing', status, assigned_to: user.id })
  const visit = await Visit.open(scene, '#/people')
  const { page } = visit
  await page.getByRole('searchbox').fill(name)
  await until(async () => (await page.locator('a.row').count()) === 1, 'typing finds not only the person')
  await visit.look('people')
  await page.locator('a.row').click()
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await sees(page.getByText(/Device Return.* starts on 2 assets/), 'the plan lacks the start')
  await sees(page.getByText(/It can’t start on/), 'the plan lacks what can’t start')
  await visit.look('offboarding')
  assert.equal((await api.get(`/users/${user.id}`)).is_active, true, 'the plan changes something')
  await page.getByRole('button', { name: /^Offboard/ }).click()
  await sees(page.getByRole('heading', { name: 'Done' }), 'nothing is done')
  assert.equal((await api.get(`/users/${user.id}`)).is_active, false)
  await visit.close()
}

const IMAGE = '<img src=x onerror="window.ran=1">'
const SCRIPT = '"><script>window.ran=1</script>'

async function hostile(scene) {
  const { api } = scene
  const { name: organization } = await api.get('/settings')
  await api.call('PATCH', '/settings', { name: `Org ${IMAGE}` })
  try {
    const user = await api.post('/users', { display_name: `User ${IMAGE}`, email: `h${Math.random()}@example.com` })
    const fields = { manufacturer: IMAGE, model: SCRIPT, notes: SCRIPT, location: `Place ${IMAGE.replaceAll('/', '')}`, custom_fields: { [IMAGE]: SCRIPT } }
    const asset = await api.post('/assets', { name: `Asset ${SCRIPT}`, status: 'in_use', assigned_to: user.id, ...fields })
    const steps = [{ type: 'text', key: 'text', label: `Label ${IMAGE}` }, { type: 'complete', key: 'complete', label: SCRIPT }]
    await api.post('/processes', { name: `Process ${IMAGE}`, trigger_status: 'in_use', target_status: 'in_stock', steps })
    const visit = await Visit.open(scene, `#/asset/${asset.id}`, DESKTOP)
    const { page } = visit
    const expectNothing = async (where) => {
      const found = await page.evaluate(() => [window.ran ?? null, document.querySelectorAll('img[src="x"], [onerror]').length, document.title.length > 0])
      assert.deepEqual(found, [null, 0, true], `hostile text had an effect ${where}`)
    }
    for (const [fragment, text] of [
      [`#/asset/${asset.id}`, asset.name], [`#/assets?q=Asset`, asset.name], [`#/assets?q=${encodeURIComponent(SCRIPT)}`, asset.name],
      ['#/people?q=User', user.display_name], [`#/person/${user.id}`, user.display_name], [`#/take-back?assets=${asset.id}`, asset.name],
      [`#/${encodeURIComponent(IMAGE)}`, 'There is nothing here.'], ['#/key', `Org ${IMAGE}`],
    ]) {
      await visit.go(fragment)
      await sees(page.getByText(text).first(), `${fragment} lacks ${text}`)
      await page.waitForLoadState('networkidle')
      await expectNothing(`at ${fragment}`)
    }
    await visit.close()
  } finally {
    await api.call('PATCH', '/settings', { name: organization })
  }
}

export const people = { 'an offboarding': offboarding, 'hostile names': hostile }
