// Draws on a signature pad as a finger, a pen or a mouse does, and reads the images.
import assert from 'node:assert/strict'
import { PNG } from 'pngjs'
import { swipe } from '../hands.mjs'

/** An L and a wave, and two strokes that don't touch, in fractions of the pad's width and height. */
export const L = [[0.2, 0.2], [0.2, 0.8], [0.7, 0.8]]
export const WAVE = [[0.1, 0.5], [0.3, 0.2], [0.5, 0.7], [0.7, 0.3], [0.9, 0.6]]
export const LEFT = [[0.3, 0.2], [0.25, 0.8]]
export const RIGHT = [[0.8, 0.2], [0.85, 0.8]]

export const pad = (scope) => scope.getByRole('img', { name: /^(Signature pad|Unterschriftsfeld)/ })

/** Returns the width and height of a drawing in CSS pixels. */
export const sizeOf = (corners, { width, height }) => {
  const side = (axis) => Math.max(...corners.map((at) => at[axis])) - Math.min(...corners.map((at) => at[axis]))
  return { width: side(0) * width, height: side(1) * height }
}

/** Returns points along a polyline, spaced as with a fast hand. */
export function along(corners, { x, y, width, height }, pieces) {
  return corners.slice(1).flatMap(([toX, toY], n) => {
    const [fromX, fromY] = corners[n]
    return Array.from({ length: pieces + 1 }, (_, part) => ({
      x: x + (fromX + ((toX - fromX) * part) / pieces) * width,
      y: y + (fromY + ((toY - fromY) * part) / pieces) * height,
    }))
  })
}

const HANDS = {
  async mouse(page, points) {
    await page.mouse.move(points[0].x, points[0].y)
    await page.mouse.down()
    for (const { x, y } of points) await page.mouse.move(x, y)
    await page.mouse.up()
  },
  touch: swipe,
  async pen(page, points, force = 0.5) {
    const session = await page.context().newCDPSession(page)
    const pen = { pointerType: 'pen', button: 'left', clickCount: 1 }
    const send = (type, buttons, point) =>
      session.send('Input.dispatchMouseEvent', { ...pen, ...point, type, buttons, force: buttons * force })
    await send('mousePressed', 1, points[0])
    for (const point of points) await send('mouseMoved', 1, point)
    await send('mouseReleased', 0, points.at(-1))
  },
}

/** Draws a stroke, and returns its width and height in CSS pixels. */
export async function draw(page, { hand = 'mouse', corners = L, pieces = 12, scope = page, force } = {}) {
  const canvas = pad(scope)
  await canvas.scrollIntoViewIfNeeded()
  const box = await canvas.boundingBox()
  await HANDS[hand](page, along(corners, box, pieces), force)
  const { x, y } = await canvas.boundingBox()
  assert.deepEqual([x, y], [box.x, box.y], 'the page moves while someone draws')
  return sizeOf(corners, box)
}

/** Returns the size of a PNG, and how dark each pixel is on white, from 0 to 255. */
export function decode(file) {
  const { width, height, data } = PNG.sync.read(file)
  const dark = Uint8Array.from({ length: width * height }, (_, n) => {
    const [red, green, blue, alpha] = data.subarray(n * 4)
    return ((255 - (red + green + blue) / 3) * alpha) / 255
  })
  return { width, height, dark }
}

/** Returns the share of ink in a region, from 0 to 1. The region's edges are fractions of the image's size. */
export function ink({ width, height, dark }, [left, top, right, bottom] = [0, 0, 1, 1]) {
  let [inked, all] = [0, 0]
  for (let y = Math.floor(top * height); y < Math.ceil(bottom * height); y++) {
    for (let x = Math.floor(left * width); x < Math.ceil(right * width); x++, all++) inked += dark[y * width + x] > 110
  }
  return inked / all
}

/** Returns the pad's image. Pixels that aren't transparent are ink. */
async function onPad(scope) {
  const url = await pad(scope).evaluate((canvas) => canvas.toDataURL())
  const { width, data } = PNG.sync.read(Buffer.from(url.split(',')[1], 'base64'))
  return { width, alpha: data.filter((_, at) => at % 4 === 3) }
}

/** Returns the share of ink in the pad's pixels, from 0 to 1. */
export async function inked(scope) {
  const { alpha } = await onPad(scope)
  return alpha.filter((value) => value > 127).length / alpha.length
}

/** Returns whether the first and the last row of the pad have ink. */
export async function edges(scope) {
  const { width, alpha } = await onPad(scope)
  return [alpha.subarray(0, width), alpha.subarray(-width)].map((row) => row.some(Boolean))
}

/** Returns the share of the pad whose brightness differs from its background on the screen, from 0 to 1. */
export async function visible(scope) {
  const { dark } = decode(await pad(scope).screenshot({ scale: 'css' }))
  const paper = dark[dark.length >> 1]
  return dark.filter((shade) => Math.abs(shade - paper) > 160).length / dark.length
}

/** Fails unless a PNG shows an L that was drawn with these lengths in CSS pixels, trimmed and at twice the density. */
export function expectL(file, { width, height }) {
  const picture = decode(file)
  for (const [drawn, has] of [[width, picture.width], [height, picture.height]])
    assert.ok(has >= 2 * drawn && has <= 2 * drawn + 100, `${drawn} CSS pixels are ${has} pixels`)
  const [side, foot] = [60 / picture.width, 1 - 60 / picture.height]
  for (let at = 0.15; at < 0.85; at += 0.07) {
    assert.ok(ink(picture, [0, at, side, at + 0.07]) > 0.02, `the upright of the L has no ink at ${at}`)
    assert.ok(ink(picture, [at, foot, at + 0.07, 1]) > 0.02, `the foot of the L has no ink at ${at}`)
  }
  assert.equal(ink(picture, [0.4, 0, 1, 0.55]), 0, 'there is ink outside the drawing')
}

/** Fails unless a PNG shows two strokes that don't touch each other. */
export function expectTwoStrokes(file) {
  const picture = decode(file)
  const [left, between, right] = [[0, 0, 0.3, 1], [0.3, 0, 0.7, 1], [0.7, 0, 1, 1]].map((region) => ink(picture, region))
  assert.ok(left > 0 && between === 0 && right > 0, `two strokes were drawn, and the image has ${[left, between, right]}`)
}
