// What changes around the page: the phone is turned, the theme or the contrast changes, and the connection is not encrypted.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { fill, open, ready, submit } from './form.mjs'
import { decode, expectL, strokes } from './png.mjs'
import { LEFT, RIGHT, draw, inked, visible } from './strokes.mjs'
import { DESKTOP, PHONE, Visit, until } from './visit.mjs'

const step = STEPS.signature
const ONE = { steps: [step] }

/** Waits until the page has been drawn in its new size. */
const isLaidOut = (page) =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))

/** Turns the phone between two strokes, and back. */
async function rotate(scene) {
  const { handover, visit, page } = await open(scene, ONE, PHONE)
  await draw(page, { hand: 'touch', corners: LEFT })
  await page.setViewportSize({ width: 844, height: 390 })
  await isLaidOut(page)
  await until(async () => (await inked(page)) > 0, 'the stroke is lost when the phone is turned')
  await draw(page, { hand: 'touch', corners: RIGHT })
  await visit.look('phone-rotated')
  await page.setViewportSize(PHONE.viewport)
  await isLaidOut(page)
  await visit.shot('phone-rotated-back')
  await submit(page)
  const count = strokes(decode(await scene.api.signature(handover, step.key)))
  assert.equal(count, 2, `two strokes were drawn, and the image has ${count}`)
  await visit.close()
}

/** What was drawn along the edges of an upright phone is inside the pad of a turned one. */
async function turnEdges(scene) {
  const { visit, page } = await open(scene, ONE, PHONE)
  const corners = [[0.01, 0.01], [0.99, 0.01], [0.99, 0.99], [0.01, 0.99]]
  await draw(page, { hand: 'touch', corners })
  await page.setViewportSize({ width: 844, height: 390 })
  await isLaidOut(page)
  const rows = await page.locator('canvas').evaluate((canvas) => {
    const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    return [0, height - 1].map((y) => Array.from({ length: width }, (_, x) => data[(y * width + x) * 4 + 3]).some(Boolean))
  })
  assert.deepEqual(rows, [false, false], 'the edge of the pad cuts what was drawn')
  await visit.close()
}

/** A stroke that the browser takes away, and a turn in the middle of one, keep what was drawn until then. */
async function turnDuringStroke(scene) {
  const { visit, page } = await open(scene, ONE, DESKTOP)
  await draw(page)
  const before = await inked(page)
  await page.mouse.down()
  await page.mouse.move(600, 500)
  await page.setViewportSize({ width: 900, height: 1440 })
  await page.mouse.up()
  await isLaidOut(page)
  await until(async () => (await inked(page)) > before * 0.3, 'strokes are lost when the window changes during one')
  await visit.close()
}

/** The theme changes, as it does in the evening: the ink can still be seen, and is dark on the image. */
async function theme(scene) {
  const { handover, visit, page } = await open(scene, ONE, PHONE)
  const size = await draw(page, { hand: 'touch' })
  const before = await visible(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await until(async () => (await visible(page)) > before / 2, 'the ink can not be seen when the theme changes')
  assert.ok(before > 0, 'the ink can not be seen')
  await visit.look('phone-theme-changed')
  await submit(page)
  expectL(await scene.api.signature(handover, step.key), size)
  await visit.close()
}

/** With the system's high contrast, whose colors replace the page's. */
async function contrast(scene) {
  const { visit, page } = await open(scene, ONE, { ...DESKTOP, forcedColors: 'active', colorScheme: 'dark' })
  await draw(page)
  await until(async () => (await visible(page)) > 0, 'the ink has the color of the paper')
  await visit.shot('desktop-contrast')
  await submit(page)
  await visit.shot('desktop-contrast-done')
  await visit.close()
}

/** The dev server on another computer: browsers offer fewer functions there, since the connection is not encrypted. */
async function plain(scene) {
  const handover = await scene.api.handOver({ steps: [STEPS.text, step] })
  const url = handover.url.replace('127.0.0.1', 'laptop.example')
  const visit = await Visit.open(scene, url, PHONE)
  const { page } = visit
  await ready(page)
  assert.equal(await page.evaluate(() => isSecureContext), false, 'the connection is trusted: this tests nothing')
  await fill(page, STEPS.text, '2.14')
  await draw(page, { hand: 'touch' })
  await submit(page)
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

export const surroundings = {
  'the phone is turned': rotate,
  'strokes along the edges, turned': turnEdges,
  'the window changes during a stroke': turnDuringStroke,
  'the theme changes': theme,
  'high contrast': contrast,
  'without encryption': plain,
}
