// Links of movements: several assets, also more steps than one transaction can hold.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { again, fill, isDone, open, says, submitButton } from './form.mjs'
import { PHONE, sees } from './visit.mjs'

async function move(scene, { assets, steps, values, expect, interrupt = () => {} }) {
  const { api } = scene
  const { handover, visit, page } = await open(scene, { steps, assets, name: 'New hires' }, PHONE)
  visit.expectFailures('status of 422')
  await sees(
    page.getByRole('heading', { level: 1, name: `You receive ${assets} devices`, exact: true }),
    'the heading does not say how many devices are signed for',
  )
  const devices = page.getByRole('region', { name: 'Devices' })
  for (const { asset_tag: tag } of handover.assets) await sees(devices.getByText(tag), `${tag} is not on the page`)
  await visit.look(`phone-movement-${assets}`)
  for (const step of steps) await fill(page, step, values[step.key])
  await interrupt(visit)
  await submitButton(page).click()
  await isDone(page)
  await visit.look(`phone-movement-${assets}-done`)
  await api.expectDoneOnce(handover)
  for (const { step_data: stored } of await api.instances(handover)) {
    for (const [key, value] of Object.entries(values))
      assert.equal(stored[key], value, `an instance of the movement lacks ${key}`)
  }
  const { link, key } = await api.receipts(handover)
  assert.deepEqual(link, key, 'the link has another receipt than the API')
  expect(visit.submissions.length)
  await visit.close()
}

/** The connection is lost between two requests of one form. */
async function interrupt(visit) {
  const { page } = visit
  let successes = 0
  visit.expectFailures('ERR_')
  await page.route('**/v1/sign/advance', async (route) => {
    if (successes === 1) {
      successes++
      return route.abort('connectionreset')
    }
    const response = await route.fetch()
    if (response.ok()) successes++
    return route.fulfill({ response })
  })
  await submitButton(page).click()
  await sees(again(page), 'after a lost connection, there is no button to try again')
  await says(page, /reached|offline|connection/i, 'a lost connection between two requests')
}

const three = {
  assets: 3,
  steps: [STEPS.checklist, STEPS.text, STEPS.signature],
  values: { room: '2.14' },
  expect: (count) => assert.equal(count, 1, 'three assets took several requests'),
}

const TEXTS = ['room', 'floor', 'desk', 'team'].map((key) => ({
  type: 'text',
  key,
  label: `The ${key} of all`,
  required: true,
}))

/** 20 assets and 6 steps are more than the 100 items of a transaction. The connection is lost between two of the requests. */
const twenty = {
  interrupt,
  assets: 20,
  steps: [...TEXTS, STEPS.checklist, STEPS.signature],
  values: Object.fromEntries(TEXTS.map(({ key }) => [key, `some ${key}`])),
  expect: (count) => assert.ok(count > 1, 'all went into one transaction: this tests nothing'),
}

export const movements = {
  'a movement of 3 assets': (scene) => move(scene, three),
  'a movement of 20 assets, in several requests': (scene) => move(scene, twenty),
}
