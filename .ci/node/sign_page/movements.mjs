// Links of movements: several assets, also more steps than one transaction can hold.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { fill, isDone, ready, submitButton } from './form.mjs'
import { PHONE, Visit, sees } from './visit.mjs'

async function move(scene, assets, steps, values, expect) {
  const { api } = scene
  const handover = await api.handOver({ steps, assets, name: 'New hires' })
  const visit = await Visit.open(scene, handover.url, PHONE)
  visit.expectFailures('status of 422')
  const { page } = visit
  await ready(page)
  await sees(page.getByRole('heading', { name: 'Assets' }).or(page.getByRole('region', { name: 'Assets' })), 'there is no list of assets')
  for (const { asset_tag: tag } of handover.assets) await sees(page.getByText(tag), `${tag} is not on the page`)
  await visit.look(`phone-movement-${assets}`)
  for (const step of steps) await fill(page, step, values[step.key])
  await submitButton(page).click()
  await isDone(page)
  await visit.look(`phone-movement-${assets}-done`)
  await api.expectDoneOnce(handover)
  for (const { step_data: stored } of await api.instances(handover)) {
    for (const [key, value] of Object.entries(values)) assert.equal(stored[key], value, `an instance of the movement lacks ${key}`)
  }
  const { link, key } = await api.receipts(handover)
  assert.deepEqual(link, key, 'the link has another receipt than the API')
  expect(visit.submissions.length)
  await visit.close()
}

const three = (scene) =>
  move(scene, 3, [STEPS.checklist, STEPS.text, STEPS.signature], { room: '2.14' }, (count) => assert.equal(count, 1, 'three assets took several requests'))

/** 20 assets and 6 steps are more than the 100 items of a transaction. */
const twenty = (scene) => {
  const texts = ['room', 'floor', 'desk', 'team'].map((key) => ({ type: 'text', key, label: `The ${key} of all`, required: true }))
  const values = Object.fromEntries(texts.map(({ key }) => [key, `some ${key}`]))
  return move(scene, 20, [...texts, STEPS.checklist, STEPS.signature], values, (count) => assert.ok(count > 1, 'all went into one transaction: this tests nothing'))
}

export const movements = { 'a movement of 3 assets': three, 'a movement of 20 assets, in several requests': twenty }
