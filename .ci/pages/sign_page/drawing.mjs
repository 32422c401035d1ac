// The signature pad: undo, clear, pressure, several pads, a typed name instead of a drawing, and layout changes.
import assert from 'node:assert/strict'
import { PHONE, sees, until } from '../visit.mjs'
import { errorOf, fill, onBoth, open, openLink, part, submit, submitButton, typeName } from './form.mjs'
import { Handover, STEPS } from './handover.mjs'
import { LEFT, RIGHT, WAVE, decode, draw, edges, expectL, expectTwoStrokes, ink, inked, pad, visible } from './strokes.mjs'

const step = STEPS.signature
const ONE = { steps: [step] }
const SIDEWAYS = { width: 844, height: 390 }

/** Resizes the window, and waits until the page is redrawn. */
async function turn(page, size) {
  await page.setViewportSize(size)
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
}

/** Undo removes one stroke, and clear removes all strokes. Without a stroke, nothing is sent. A tap isn't a stroke. */
async function takeBack(scene) {
  const { handover, page } = await open(scene, ONE)
  const press = (name) => part(page, step).getByRole('button', { name }).click()
  await draw(page)
  const one = await inked(page)
  await draw(page, { corners: WAVE })
  const two = await inked(page)
  assert.ok(one > 0 && two > one * 1.2, `a stroke shows no ink: ${one}, then ${two}`)
  await press('Undo')
  assert.ok(Math.abs((await inked(page)) - one) < one * 0.02, 'Undo removes something other than the last stroke')
  await press('Clear')
  assert.equal(await inked(page), 0, 'Clear leaves ink')
  await submitButton(page).click()
  await sees(errorOf(page, step), 'a missing signature has no error beside it')
  await pad(page).click()
  await submitButton(page).click()
  await sees(errorOf(page, step).filter({ hasText: 'A tap is too short' }), 'a tap has no error beside it')
  await handover.expectUntouched()
  await draw(page)
  await submit(page)
  await handover.expectDoneOnce()
}

/** More pen pressure makes wider strokes. */
async function pressure(scene) {
  const { page } = await open(scene, ONE)
  const sizes = []
  for (const force of [0.15, 0.95]) {
    await draw(page, { hand: 'pen', force })
    sizes.push(await inked(page))
    await part(page, step).getByRole('button', { name: 'Clear' }).click()
  }
  assert.ok(sizes[1] > sizes[0] * 1.25, `a pen's pressure makes no difference: ${sizes}`)
}

/** Two people sign, each on a separate pad. */
async function twoPeople(scene) {
  const recipient = { ...step, key: 'recipient', label: 'Signature of the recipient' }
  const desk = { ...step, key: 'desk', label: 'Signature of the service desk' }
  const { handover, visit, page } = await open(scene, { steps: [recipient, desk] }, PHONE)
  await fill(page, recipient, { hand: 'touch', corners: LEFT })
  await fill(page, desk, { hand: 'touch', corners: LEFT })
  await fill(page, desk, { hand: 'touch', corners: RIGHT })
  await visit.look('phone-two-people')
  await submit(page)
  const { width, height } = decode(await handover.signature(recipient))
  assert.ok(width < height, 'the image of one stroke is wide')
  expectTwoStrokes(await handover.signature(desk))
}

/** Types the name instead of drawing a signature, which the receipt mentions. */
async function typed(scene, name, options) {
  const { handover, visit, page } = await open(scene, ONE, options)
  await typeName(page, step, 'Zoë Ångström-O’Neill')
  await visit.look(`${name}-typed`)
  await submit(page)
  await visit.look(`${name}-typed-done`)
  await handover.expectDoneOnce()
  assert.equal((await handover.receiptStep()).value.typed, true, 'the receipt does not say that the name was typed')
  assert.ok(ink(decode(await handover.signature())) > 0.01, 'the image of the typed name has no ink')
}

/** A drawing replaces a typed name. */
async function drawAfterAll(scene) {
  const { handover, page } = await open(scene, ONE)
  await typeName(page, step, 'Ada')
  await part(page, step).getByRole('button', { name: 'Draw instead' }).click()
  await fill(page, step)
  await submit(page)
  assert.ok(!(await handover.receiptStep()).value.typed, 'the receipt says that a drawn signature was typed')
}

/** The image of very many strokes is within the size limits. */
async function scribble(scene) {
  const { handover, page } = await open(scene, ONE)
  for (let n = 0; n < 6; n++) {
    const spread = (k, step, shift) => 0.03 + 0.94 * ((k * step + n * shift) % 1)
    const corners = Array.from({ length: 12 }, (_, k) => [spread(k, 0.37, 0.13), spread(k, 0.61, 0.29)])
    await draw(page, { corners, pieces: 3 })
  }
  await submit(page)
  await handover.expectDoneOnce()
  const { length } = await handover.signature()
  assert.ok(length <= 131_072, `the image has ${length} bytes`)
}

/** Rotates the phone between two strokes, and back. */
async function rotate(scene) {
  const { handover, visit, page } = await open(scene, ONE, PHONE)
  await draw(page, { hand: 'touch', corners: LEFT })
  await turn(page, SIDEWAYS)
  await until(async () => (await inked(page)) > 0, 'the stroke is lost when the phone is turned')
  await draw(page, { hand: 'touch', corners: RIGHT })
  await visit.look('phone-rotated')
  await turn(page, PHONE.viewport)
  await submit(page)
  expectTwoStrokes(await handover.signature())
}

/** Strokes along the edges on an upright phone are inside the pad after a rotation. */
async function turnEdges(scene) {
  const { page } = await open(scene, ONE, PHONE)
  await draw(page, { hand: 'touch', corners: [[0.01, 0.01], [0.99, 0.01], [0.99, 0.99], [0.01, 0.99]] })
  await turn(page, SIDEWAYS)
  assert.deepEqual(await edges(page), [false, false], 'the edge of the pad cuts off the drawing')
}

/** A rotation during a stroke keeps the stroke so far. */
async function turnDuringStroke(scene) {
  const { page } = await open(scene, ONE)
  await draw(page)
  const before = await inked(page)
  await page.mouse.down()
  await page.mouse.move(600, 500)
  await turn(page, { width: 900, height: 1440 })
  await page.mouse.up()
  await until(async () => (await inked(page)) > before * 0.3, 'strokes are lost when the window is resized during a stroke')
}

/** After a change to the theme, the ink is still visible, and dark in the image. */
async function theme(scene) {
  const { handover, page } = await open(scene, ONE, PHONE)
  const size = await draw(page, { hand: 'touch' })
  const before = await visible(page)
  assert.ok(before > 0, 'the ink can not be seen')
  await page.emulateMedia({ colorScheme: 'dark' })
  await until(async () => (await visible(page)) > before / 2, 'the ink can not be seen when the theme changes')
  await submit(page)
  expectL(await handover.signature(), size)
}

/** With the system's high contrast mode, which replaces the page's colors. */
async function contrast(scene) {
  const { visit, page } = await open(scene, ONE, { forcedColors: 'active', colorScheme: 'dark' })
  await draw(page)
  await until(async () => (await visible(page)) > 0, 'the ink has the color of the paper')
  await visit.shot('desktop-contrast')
  await submit(page)
  await visit.shot('desktop-contrast-done')
}

/** The dev server on another computer, where browsers offer fewer functions because the connection is not encrypted. */
async function plain(scene) {
  const handover = await Handover.make(scene.api, { steps: [STEPS.text, step] })
  const { page } = await openLink(scene, { url: handover.url.replace('127.0.0.1', 'laptop.example') }, PHONE)
  assert.equal(await page.evaluate(() => isSecureContext), false, 'the connection is trusted: this tests nothing')
  await fill(page, STEPS.text, '2.14')
  await draw(page, { hand: 'touch' })
  await submit(page)
  await handover.expectDoneOnce()
}

export const drawing = {
  'a scribble': scribble,
  'undo and clear': takeBack,
  "a pen's pressure": pressure,
  'two people': twoPeople,
  ...onBoth('a typed name', typed),
  'typed, then drawn': drawAfterAll,
  'the phone is turned': rotate,
  'strokes along the edges, turned': turnEdges,
  'the window changes during a stroke': turnDuringStroke,
  'the theme changes': theme,
  'high contrast': contrast,
  'without encryption': plain,
}
