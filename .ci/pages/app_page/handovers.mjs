// Hands assets over and takes them back, with signatures in another browser, and offboards a user.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { scan } from '../hands.mjs'
import { openLink, submitButton } from '../sign_page/form.mjs'
import { draw } from '../sign_page/strokes.mjs'
import { PHONE, Visit, hold, isPlan, newUser, sees, sign, unique, until } from './visit.mjs'

const linkOf = (page) => page.getByRole('link', { name: 'Open the link here' }).getAttribute('href')

/** Shows the plan for the filled form, and applies it. */
async function carryOut(visit) {
  await visit.press('Show the plan')
  await visit.press('Do it')
}

/** Saves the receipt, and verifies the file. */
async function expectReceipt(visit) {
  const { page, press } = visit
  const download = page.waitForEvent('download')
  await press('Save the receipt')
  assert.match((await download).suggestedFilename(), /^receipt-.+\.html$/)
  const saved = readFileSync(await (await download).path(), 'utf8')
  await page.getByRole('link', { name: 'Verify a receipt' }).click()
  const choose = (text) => page.getByLabel('Receipt').setInputFiles({ name: 'receipt.html', mimeType: 'text/html', buffer: Buffer.from(text) })
  await choose(saved)
  await sees(page.getByText('The signature is valid.'), 'a saved receipt can’t be verified')
  await visit.look('verified')
  await choose(saved.replace(/"completed_at":"20/, '"completed_at":"21'))
  await sees(page.getByText('The signature is not valid.'), 'a changed receipt is valid')
  await choose('<p>Nothing</p>')
  await sees(page.getByText('contains no signed receipt'), 'the page does not say what is missing')
}

async function handOver(scene) {
  const { api } = scene
  const user = await newUser(api)
  const made = []
  for (const n of [1, 2]) made.push(await api.post('/assets', { name: `Laptop ${n} of ${user.display_name}` }))
  const visit = await Visit.open(scene, `#/assets?q=${encodeURIComponent(user.display_name)}`, { failures: ['status of 409'] })
  const { page } = visit
  for (const { asset_tag: tag } of made) await page.getByRole('checkbox', { name: new RegExp(tag) }).check()
  await visit.look('chosen')
  await page.getByRole('region', { name: 'Selected' }).getByRole('link', { name: 'Hand over' }).click()
  await visit.label('Who gets the asset?').focus()
  await scan(page, user.display_name)
  await until(() => visit.label('Who gets the asset?').evaluate((field) => 'chosen' in field.dataset), 'nobody is chosen')
  await visit.label('Power supply').check()
  await visit.press('Show the plan')
  await sees(page.getByText(/The status is .In stock., but must be .Preparing./), 'the page does not say why the process can’t start')
  await visit.press(/^First/)
  await visit.label('Disk encrypted').check()
  assert.equal((await api.get(`/assets/${made[0].id}`)).status, 'in_stock', 'the preparation starts before its checklist is shown')
  await visit.press('Do it')
  await sees(page.getByRole('heading', { name: 'This would happen' }), 'there is no plan')
  await visit.look('plan')
  assert.equal((await api.get(`/assets/${made[0].id}`)).status, 'preparing')
  await visit.press('Do it')
  await sees(page.getByRole('img', { name: /QR code/ }), 'there is no code')
  await visit.look('code')
  const url = await linkOf(page)
  await page.reload()
  await sees(page.getByRole('img', { name: /QR code/ }), 'a reload loses the link')
  assert.equal(await linkOf(page), url)
  await sign(scene, await linkOf(page))
  // The page detects the signature without a reload.
  await sees(page.getByText(/Signed by .* at /), 'the page does not see the signature')
  await visit.look('signed')
  await expectReceipt(visit)
  for (const { id } of made) {
    const { status, assigned_to: holder } = await api.get(`/assets/${id}`)
    assert.deepEqual([status, holder], ['in_use', user.id], 'the asset is not handed over')
  }
}

async function takeBack(scene) {
  const { api } = scene
  const user = await newUser(api)
  const asset = await api.post('/assets', { name: `Phone of ${user.display_name}`, status: 'in_use', assigned_to: user.id })
  const visit = await Visit.open(scene, `#/person/${user.id}`, { failures: ['status of 422'] })
  const { page } = visit
  await sees(page.getByRole('link', { name: new RegExp(asset.asset_tag) }), 'the person has no assets')
  await visit.look('person')
  await page.getByRole('link', { name: 'Take back' }).last().click()
  await page.getByLabel('Device', { exact: true }).check()
  await visit.label('Condition and damage').fill('A scratch')
  await carryOut(visit)
  await sign(scene, await linkOf(page))
  await sees(page.getByText(/Signed by .* at /), 'the page does not see the signature')
  await sees(page.getByRole('heading', { name: 'Left to do' }), 'nobody from IT can confirm')
  await visit.look('left-to-do')
  await visit.press('Complete the return')
  await sees(page.locator('.wrong'), 'the error is not next to the confirmation')
  await visit.label('Received by IT').check()
  await visit.press('Complete the return')
  await expectReceipt(visit)
  const { status, assigned_to: holder } = await api.get(`/assets/${asset.id}`)
  assert.deepEqual([status, holder], ['returned', null], 'the asset is not taken back')
}

async function cancelled(scene) {
  const { api } = scene
  const tablet = () => api.post('/assets', { name: 'Tablet', status: 'in_use' })
  const [broken, other] = [await tablet(), await tablet()]
  const visit = await Visit.open(scene, `#/start?process=repair&assets=${broken.id}`)
  const { page } = visit
  await visit.label('What is broken?').fill('The screen')
  await visit.press('Show the plan')
  await sees(page.getByText('No signature is needed.'), 'the plan does not mention the signature')
  await visit.press('Do it')
  await sees(page.getByText('Completed'), 'a process without a signature does not end')
  assert.equal((await api.get(`/assets/${broken.id}`)).status, 'in_service')
  await visit.go(`#/take-back?assets=${other.id}`)
  await carryOut(visit)
  await sees(page.getByText('A signature is needed'), 'a process without a holder has a link')
  await page.getByText('Cancel the process').first().click()
  await visit.label('Reason').fill('A mistake')
  await visit.press('Cancel the process')
  const ended = () => api.get(`/processes/instances?asset_id=${other.id}&status=cancelled`)
  await until(async () => (await ended()).length === 1, 'the process goes on')
}

async function offboarding(scene) {
  const { api } = scene
  const { id, display_name: name } = await newUser(api, unique('Bob'))
  for (const status of ['in_use', 'in_use', 'in_service']) await api.post('/assets', { name: 'Thing', status, assigned_to: id })
  const onboarding = (await api.get('/processes')).find(({ slug }) => slug === 'employee-onboarding')
  const { id: waiting } = await api.post('/assets', { name: 'Laptop', status: 'preparing' })
  const [picker] = onboarding.steps
  const pick = (assets) => api.post(`/processes/${onboarding.id}/start`, { ...assets, step_data: { [picker.key]: id }, through: picker.key })
  await pick({ asset_id: waiting })
  const visit = await Visit.open(scene, '#/people')
  const { page } = visit
  await page.getByRole('searchbox').fill(name)
  await until(async () => (await page.locator('a.row').count()) === 1, 'typing finds more than the person')
  await visit.look('people')
  await page.locator('a.row').click()
  const { asked, release } = await hold(page, isPlan)
  await visit.press('Show the plan')
  await asked
  await visit.label('Deactivate the user').uncheck()
  await release()
  const plan = page.getByRole('heading', { name: 'This would happen' })
  assert.equal(await plan.count(), 0, 'the plan differs from the form')
  const stopped = page.getByText(/Employee Onboarding.* can’t go on without this person/)
  await visit.press('Show the plan')
  await sees(plan, 'there is no plan')
  assert.equal(await stopped.count(), 0, 'a process stops though the person stays active')
  await visit.label('Deactivate the user').check()
  await visit.press('Show the plan')
  await sees(stopped.getByRole('link', { name: 'Employee Onboarding' }), 'the plan lacks the process that can’t go on')
  await sees(page.getByText(/Device Return.* starts on .2 assets/), 'the plan lacks the start')
  await sees(page.getByText(/The status is .In service \(at repair\)., but must be/), 'the plan lacks what can’t start')
  await visit.look('offboarding')
  for (let movement = 0; movement < 2; movement++) {
    const assets = []
    for (let n = 0; n < 10; n++) assets.push((await api.post('/assets', { name: 'Laptop', status: 'preparing' })).id)
    await pick({ asset_ids: assets })
  }
  const reads = () => visit.requests.filter(({ request }) => request.url().includes('/processes/instances/')).length
  const before = reads()
  await visit.press('Show the plan')
  await sees(page.getByText('and 1 more', { exact: true }), 'the plan does not say how many processes it leaves out')
  assert.deepEqual([reads() - before, await stopped.count()], [20, 20], 'the plan asks for every process')
  assert.equal((await api.get(`/users/${id}`)).is_active, true, 'the plan changes something')
  await visit.press(/^Offboard/)
  await sees(page.getByRole('heading', { name: 'Done' }), 'nothing is done')
  assert.equal((await api.get(`/users/${id}`)).is_active, false)
  const running = page.getByRole('region', { name: 'In progress' })
  for (const reload of [false, true]) {
    if (reload) await page.reload()
    await sees(running.getByRole('link', { name: 'Device Return' }), 'the person’s view lacks the running return')
    await sees(running.getByText(/Step 1 of 5.*Given back/), 'it does not say what is left to do')
  }
  await visit.look('running')
}

/** What isn't ready is prepared or left out in one step. */
async function mixed(scene) {
  const { api } = scene
  const user = await newUser(api)
  const made = {}
  for (const status of ['in_stock', 'preparing', 'in_service']) made[status] = await api.post('/assets', { name: `Mixed ${status}`, status })
  const ids = Object.values(made).map(({ id }) => id).join()
  const visit = await Visit.open(scene, `#/hand-over?assets=${ids}&person=${user.id}`, { failures: ['status of 409'] })
  const { page } = visit
  await page.getByLabel('Device', { exact: true }).check()
  await visit.press('Show the plan')
  await sees(page.locator('.plan li', { hasText: made.in_service.asset_tag }).getByText('(is left out)'), 'the page does not say what is left out')
  await visit.look('mixed')
  await page.setViewportSize({ width: 390, height: 844 })
  await visit.look('mixed-phone')
  await visit.press(/^First/)
  await visit.press('Do it')
  const plan = page.locator('.plan', { hasText: 'This would happen' })
  await sees(plan, 'there is no plan')
  const tags = await plan.locator('.tag').allTextContents()
  assert.deepEqual(tags.sort(), [made.in_stock.asset_tag, made.preparing.asset_tag].sort())
  // Nothing of it can be prepared: the rest goes on alone.
  const other = await api.post('/assets', { name: 'Ready', status: 'preparing' })
  const second = await Visit.open(scene, `#/hand-over?assets=${made.in_service.id},${other.id}&person=${user.id}`, { failures: ['status of 409'] })
  await second.page.getByLabel('Device', { exact: true }).check()
  await second.press('Show the plan')
  await second.press('Go on without 1')
  const rest = second.page.locator('.plan', { hasText: 'This would happen' })
  await sees(rest, 'there is no plan')
  assert.deepEqual(await rest.locator('.tag').allTextContents(), [other.asset_tag])
}

/** What the organization doesn't tick is left to whoever signs. */
async function leftToSigner(scene) {
  const { api } = scene
  const user = await newUser(api)
  const asset = await api.post('/assets', { name: 'Returned', status: 'in_use', assigned_to: user.id })
  const visit = await Visit.open(scene, `#/take-back?assets=${asset.id}`)
  const { page } = visit
  await visit.label('Condition and damage').fill('A dent')
  await visit.press('Show the plan')
  await sees(page.getByText(/Nothing is ticked, so the signer does it: .Given back/), 'the plan does not say who ticks')
  await visit.look('left-to-signer')
  await visit.press('Do it')
  await sees(page.getByRole('img', { name: /QR code/ }), 'there is no code')
  const [instance] = await api.get(`/processes/instances?asset_id=${asset.id}`)
  assert.deepEqual([instance.current_step, instance.step_data.returned_items ?? null], [0, null], 'nothing ticked is submitted')
  const { page: signer } = await openLink(scene, { url: await linkOf(page) }, PHONE)
  await sees(signer.getByText('Given back'), 'the signer can’t tick')
  assert.equal(await signer.getByLabel('Condition and damage').inputValue(), 'A dent', 'what was entered is lost')
  await signer.getByLabel('Device', { exact: true }).check()
  await draw(signer)
  await submitButton(signer).click()
  await sees(signer.locator('.done'), 'the signer can’t sign')
  const { step_data: data } = await api.get(`/processes/instances/${instance.id}?omit=signatures`)
  assert.deepEqual([data.returned_items, data.condition], [['Device'], 'A dent'])
}

/** What is done is what the form shows. */
async function outdated(scene) {
  const { api } = scene
  const [ada, bob] = [await newUser(api), await newUser(api, unique('Bob'))]
  const laptop = () => api.post('/assets', { name: 'Laptop', status: 'preparing' })
  const [first, second, third] = [await laptop(), await laptop(), await laptop()]
  const visit = await Visit.open(scene, `#/hand-over?assets=${first.id}`)
  const { page } = visit
  const who = visit.label('Who gets the asset?')
  const choose = async ({ display_name: name }) => {
    await who.fill(name)
    await page.keyboard.press('Enter')
    await until(async () => who.evaluate((field) => 'chosen' in field.dataset), `${name} is not chosen`)
  }
  const tags = page.locator('.assets .tag')
  const plan = page.getByRole('heading', { name: 'This would happen' })
  const add = async () => {
    await scan(page, second.asset_tag)
    await until(async () => (await tags.count()) === 2, 'the asset is not added')
  }
  await choose(ada)
  for (const [edit, undo] of [
    [add, () => visit.press(new RegExp(`Remove .*${second.asset_tag}`))],
    [() => visit.label('Power supply').check(), () => visit.label('Power supply').uncheck()],
    [() => choose(bob), () => choose(ada)],
  ]) {
    const { asked, release } = await hold(page, isPlan)
    await visit.press('Show the plan')
    await asked
    await edit()
    await release()
    assert.equal(await plan.count(), 0, 'the form has changed since the plan was asked for')
    await visit.press('Show the plan')
    await sees(plan, 'there is no plan for the changed form')
    await undo()
    await until(async () => (await plan.count()) === 0, 'the form has changed since the plan')
  }
  // A name that is only typed means the person.
  await who.fill(bob.display_name)
  await visit.press('Show the plan')
  await sees(page.getByText(new RegExp(`${bob.display_name}. will have it`)), 'a typed name is refused')
  const { asked, release } = await hold(page, ({ pathname, search }) => pathname.endsWith('/start') && !search)
  await visit.press('Do it')
  await asked
  await scan(page, third.asset_tag)
  const refusal = page.getByText(new RegExp(`Not added, because .*${third.asset_tag}`))
  await sees(refusal, 'a scan vanishes')
  await visit.look('too-late')
  await release()
  await sees(page.getByRole('img', { name: /QR code/ }), 'there is no code')
  assert.equal(await refusal.count(), 1, 'the next view hides that a scan was not added')
  assert.deepEqual(await tags.allTextContents(), [first.asset_tag], 'other assets are handed over')
}

/** A user's full name means the user. */
async function typedSigner(scene) {
  const { api } = scene
  const user = await newUser(api)
  const { id } = await api.post('/assets', { name: 'Tablet', status: 'in_use' })
  const visit = await Visit.open(scene, `#/take-back?assets=${id}`)
  const { page } = visit
  await carryOut(visit)
  await sees(page.getByText('A signature is needed'), 'a process without a holder has a link')
  const [{ id: process }] = await api.get(`/processes/instances?asset_id=${id}`)
  const signers = async () => (await api.get(`/processes/instances/${process}/links`)).map(({ signer }) => signer.user_id ?? signer.name)
  await visit.label('Signer').fill(user.display_name.toLowerCase())
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await sees(page.getByRole('img', { name: /QR code/ }), 'there is no code')
  assert.deepEqual(await signers(), [user.id], 'the link is for a guest')
}

export const handovers = {
  'a handover of 2 assets': handOver,
  'a take-back from a person': takeBack,
  'a plan of a changed form': outdated,
  'a signer who is only typed': typedSigner,
  'a repair, and a cancelled process': cancelled,
  'an offboarding': offboarding,
  'a mixed selection': mixed,
  'a checklist that the signer ticks': leftToSigner,
}
