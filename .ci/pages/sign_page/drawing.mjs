// The signature pad: undo, clear, pressure, several pads, and a typed name instead.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { errorOf, fill, open, part, submit, submitButton, typeName } from './form.mjs'
import { decode, ink, strokes } from './png.mjs'
import { LEFT, RIGHT, WAVE, draw, inked, pad } from './strokes.mjs'
import { DESKTOP, PHONE, sees } from './visit.mjs'

const step = STEPS.signature
const ONE = { steps: [step] }
const EVERYWHERE = [0, 0, 1, 1]

/** Undo takes one stroke back, clear all of them; without a stroke nothing is sent, and a tap is none. */
async function takeBack(scene) {
  const { handover, visit, page } = await open(scene, ONE, DESKTOP)
  const press = (name) => part(page, step).getByRole('button', { name }).click()
  await draw(page)
  const one = await inked(page)
  await draw(page, { corners: WAVE })
  const two = await inked(page)
  assert.ok(one > 0 && two > one * 1.2, `a stroke shows no ink: ${one}, then ${two}`)
  await press('Undo')
  assert.ok(Math.abs((await inked(page)) - one) < one * 0.02, 'Undo takes back something else than the last stroke')
  await press('Clear')
  assert.equal(await inked(page), 0, 'Clear leaves ink')
  await submitButton(page).click()
  await sees(errorOf(page, step), 'a missing signature has no error beside it')
  await pad(page).click()
  await submitButton(page).click()
  await sees(errorOf(page, step).filter({ hasText: 'A tap is too short' }), 'a tap has no error beside it')
  await scene.api.expectUntouched(handover)
  await draw(page)
  await submit(page)
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

/** A pen that is pressed harder writes broader. */
async function pressure(scene) {
  const sizes = []
  for (const force of [0.15, 0.95]) {
    const { visit, page } = await open(scene, ONE, DESKTOP)
    await draw(page, { hand: 'pen', force })
    sizes.push(await inked(page))
    await visit.close()
  }
  assert.ok(sizes[1] > sizes[0] * 1.25, `a pen's pressure makes no difference: ${sizes}`)
}

/** Two people sign, each on a pad of their own. */
async function twoPeople(scene) {
  const recipient = { ...step, key: 'recipient', label: 'Signature of the recipient' }
  const desk = { ...step, key: 'desk', label: 'Signature of the service desk' }
  const { handover, visit, page } = await open(scene, { steps: [recipient, desk] }, PHONE)
  await fill(page, recipient, { hand: 'touch', corners: LEFT })
  await fill(page, desk, { hand: 'touch', corners: LEFT })
  await fill(page, desk, { hand: 'touch', corners: RIGHT })
  await visit.look('phone-two-people')
  await submit(page)
  const counts = await Promise.all(
    [recipient, desk].map(async ({ key }) => strokes(decode(await scene.api.signature(handover, key)))),
  )
  assert.deepEqual(counts, [1, 2], 'the images have other strokes than the pads')
  await visit.close()
}

/** Types the name instead, which the receipt tells. */
async function typed(scene) {
  for (const [name, options] of [
    ['phone', PHONE],
    ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ]) {
    const { handover, visit, page } = await open(scene, ONE, options)
    await typeName(page, step, 'Zoë Ångström-O’Neill')
    await visit.look(`${name}-typed`)
    await submit(page)
    await visit.shot(`${name}-typed-done`)
    await scene.api.expectDoneOnce(handover)
    const { receipt } = (await scene.api.receipts(handover)).key
    assert.equal(receipt.steps[0].value.typed, true, 'the receipt does not say that the name was typed')
    const image = decode(await scene.api.signature(handover, step.key))
    assert.ok(ink(image, EVERYWHERE) > 0.01, 'the image of the typed name has no ink')
    await visit.close()
  }
}

/** Who changes their mind, and draws after all, has drawn. */
async function drawAfterAll(scene) {
  const { handover, visit, page } = await open(scene, ONE, DESKTOP)
  await typeName(page, step, 'Ada')
  await part(page, step).getByRole('button', { name: 'Draw instead' }).click()
  await fill(page, step)
  await submit(page)
  const { receipt } = (await scene.api.receipts(handover)).key
  assert.ok(!receipt.steps[0].value.typed, 'the receipt says typed of what was drawn')
  await visit.close()
}

/** As many strokes as anyone makes are within the limits of an image. */
async function scribble(scene) {
  const { handover, visit, page } = await open(scene, ONE, DESKTOP)
  for (let n = 0; n < 6; n++) {
    const corners = Array.from({ length: 12 }, (_, k) => [
      0.03 + 0.94 * ((k * 0.37 + n * 0.13) % 1),
      0.03 + 0.94 * ((k * 0.61 + n * 0.29) % 1),
    ])
    await draw(page, { corners, pieces: 3 })
  }
  await visit.shot('desktop-scribble')
  await submit(page)
  await scene.api.expectDoneOnce(handover)
  const { length } = await scene.api.signature(handover, step.key)
  assert.ok(length <= 131_072, `the image has ${length} bytes`)
  await visit.close()
}

export const drawing = {
  'a scribble': scribble,
  'undo and clear': takeBack,
  "a pen's pressure": pressure,
  'two people': twoPeople,
  'a typed name': typed,
  'typed, then drawn': drawAfterAll,
}
