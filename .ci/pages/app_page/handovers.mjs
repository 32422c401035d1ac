// Handing over and taking back, signed in another browser.
import assert from 'node:assert/strict'
import { DESKTOP, Visit, sees, sign, until } from './visit.mjs'

async function newUser(api) {
  const name = `Ada ${Math.random().toString(36).slice(2, 8)}`
  return api.post('/users', { display_name: name, email: `${name.replace(' ', '.')}@example.com` })
}

const linkOf = (page) => page.getByRole('link', { name: 'Open the link here' }).getAttribute('href')

async function expectReceipt(page) {
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save the receipt' }).click()
  assert.match((await download).suggestedFilename(), /^receipt-.+\.html$/)
}

async function handOver(scene) {
  const { api } = scene
  const user = await newUser(api)
  const made = []
  for (const n of [1, 2]) made.push(await api.post('/assets', { name: `Laptop ${n} of ${user.display_name}` }))
  const visit = await Visit.open(scene, `#/assets?q=${encodeURIComponent(user.display_name)}`, { ...DESKTOP, acceptDownloads: true, failures: ['status of 409'] })
  const { page } = visit
  for (const { asset_tag: tag } of made) await page.getByRole('checkbox', { name: new RegExp(tag) }).check()
  await visit.look('chosen')
  await page.getByRole('region', { name: 'Chosen' }).getByRole('link', { name: 'Hand over' }).click()
  await page.getByLabel('Who gets the asset?').fill(user.display_name)
  await sees(page.locator('.suggestions [role=option]'), 'nobody is suggested')
  await page.keyboard.press('Enter')
  await page.getByLabel('Power supply').check()
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await sees(page.getByText(/The status is .In stock., but must be .Preparing./).first(), 'nobody learns why it can’t start')
  await page.getByRole('button', { name: /^First/ }).click()
  await sees(page.getByRole('heading', { name: 'This would happen' }), 'there is no plan')
  await visit.look('plan')
  assert.equal((await api.get(`/assets/${made[0].id}`)).status, 'preparing')
  await page.getByRole('button', { name: 'Do it' }).click()
  await sees(page.getByRole('img', { name: /QR code/ }), 'there is no code')
  await visit.look('code')
  await sign(scene, await linkOf(page))
  // By itself.
  await sees(page.getByText(/Signed by .* at /).first(), 'the page does not see the signature')
  await visit.look('signed')
  await expectReceipt(page)
  for (const { id } of made) {
    const { status, assigned_to: holder } = await api.get(`/assets/${id}`)
    assert.deepEqual([status, holder], ['in_use', user.id], 'the asset is not handed over')
  }
  await visit.close()
}

async function takeBack(scene) {
  const { api } = scene
  const user = await newUser(api)
  const asset = await api.post('/assets', { name: `Phone of ${user.display_name}`, status: 'in_use', assigned_to: user.id })
  const visit = await Visit.open(scene, `#/person/${user.id}`, { acceptDownloads: true, failures: ['status of 422'] })
  const { page } = visit
  await sees(page.getByRole('link', { name: new RegExp(asset.asset_tag) }), 'the person has nothing')
  await visit.look('person')
  await page.getByRole('link', { name: 'Take back' }).last().click()
  await page.getByLabel('Condition and damage').fill('A scratch')
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await page.getByRole('button', { name: 'Do it' }).click()
  await sign(scene, await linkOf(page))
  await sees(page.getByText(/Signed by .* at /).first(), 'the page does not see the signature')
  await sees(page.getByRole('heading', { name: 'Left to do' }), 'nobody of IT can confirm')
  await visit.look('left-to-do')
  await page.getByRole('button', { name: 'Complete the return' }).click()
  await sees(page.locator('.wrong'), 'the confirmation is not asked for at its field')
  await page.getByLabel('Received by IT').check()
  await page.getByRole('button', { name: 'Complete the return' }).click()
  await expectReceipt(page)
  const { status, assigned_to: holder } = await api.get(`/assets/${asset.id}`)
  assert.deepEqual([status, holder], ['returned', null], 'the asset is not taken back')
  await visit.close()
}

async function cancelled(scene) {
  const { api } = scene
  const asset = await api.post('/assets', { name: 'Tablet', status: 'in_use' })
  const visit = await Visit.open(scene, `#/start?process=repair&assets=${asset.id}`)
  const { page } = visit
  await page.getByLabel('What is broken?').fill('The screen')
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await sees(page.getByText('No signature is needed.'), 'the plan says nothing of the signature')
  await page.getByRole('button', { name: 'Do it' }).click()
  await sees(page.getByText('Completed').first(), 'a process without a signature does not end')
  assert.equal((await api.get(`/assets/${asset.id}`)).status, 'in_service')
  const other = await api.post('/assets', { name: 'Tablet', status: 'in_use' })
  await visit.go(`#/take-back?assets=${other.id}`)
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await page.getByRole('button', { name: 'Do it' }).click()
  await sees(page.getByText('A signature is needed'), 'a process without a holder has a link')
  await page.getByText('Cancel the process').first().click()
  await page.getByLabel('Reason').fill('A mistake')
  await page.getByRole('button', { name: 'Cancel the process' }).click()
  await until(async () => (await api.get(`/processes/instances?asset_id=${other.id}&status=cancelled`)).length === 1, 'the process goes on')
  await visit.close()
}

export const handovers = { 'a handover of 2 assets': handOver, 'a take-back from a person': takeBack, 'a repair, and a cancelled process': cancelled }
