// Draws on a signature pad as a finger, a pen or a mouse does.

import assert from 'node:assert/strict'
import { decode } from './png.mjs'

/** An L, as parts of the pad's width and height. */
export const L = [
  [0.2, 0.2],
  [0.2, 0.8],
  [0.7, 0.8],
]

/** A wave, which is something else than an L. */
export const WAVE = [
  [0.1, 0.5],
  [0.3, 0.2],
  [0.5, 0.7],
  [0.7, 0.3],
  [0.9, 0.6],
]

/** Two strokes that don't touch each other. */
export const LEFT = [
  [0.3, 0.2],
  [0.25, 0.8],
]
export const RIGHT = [
  [0.8, 0.2],
  [0.85, 0.8],
]

/** Returns the pad of a page, or of a part of it. */
export const pad = (scope) => scope.getByRole('img', { name: /^(Signature pad|Unterschriftsfeld)/ })

/** Returns points along a line through others, about as far apart as a quick hand's. */
function along(corners, { x, y, width, height }, pieces) {
  const points = []
  corners.slice(1).forEach(([toX, toY], n) => {
    const [fromX, fromY] = corners[n]
    for (let part = n ? 1 : 0; part <= pieces; part++) {
      const at = (from, to) => from + ((to - from) * part) / pieces
      points.push({ x: x + at(fromX, toX) * width, y: y + at(fromY, toY) * height })
    }
  })
  return points
}

const HANDS = {
  async mouse(page, points) {
    await page.mouse.move(points[0].x, points[0].y)
    await page.mouse.down()
    for (const { x, y } of points) await page.mouse.move(x, y)
    await page.mouse.up()
  },
  async touch(page, points) {
    const session = await page.context().newCDPSession(page)
    const send = (type, touchPoints) => session.send('Input.dispatchTouchEvent', { type, touchPoints })
    await send('touchStart', [points[0]])
    for (const point of points) await send('touchMove', [point])
    await send('touchEnd', [])
    await session.detach()
  },
  async pen(page, points, force = 0.5) {
    const session = await page.context().newCDPSession(page)
    const pen = { pointerType: 'pen', button: 'left', clickCount: 1 }
    const send = (type, buttons, point) =>
      session.send('Input.dispatchMouseEvent', { ...pen, ...point, type, buttons, force: buttons * force })
    await send('mousePressed', 1, points[0])
    for (const point of points) await send('mouseMoved', 1, point)
    await send('mouseReleased', 0, points.at(-1))
    await session.detach()
  },
}

/** Draws a stroke, and returns its width and height in CSS pixels. */
export async function draw(page, { hand = 'mouse', corners = L, pieces = 12, scope = page, force } = {}) {
  const canvas = pad(scope)
  await canvas.scrollIntoViewIfNeeded()
  const box = await canvas.boundingBox()
  await HANDS[hand](page, along(corners, box, pieces), force)
  const { x, y } = await canvas.boundingBox()
  assert.deepEqual([x, y], [box.x, box.y], 'the page moves under the hand')
  const side = (axis, length) =>
    (Math.max(...corners.map((at) => at[axis])) - Math.min(...corners.map((at) => at[axis]))) * length
  return { width: side(0, box.width), height: side(1, box.height) }
}

/** Returns which part of the pad's pixels differ from the pixel in its corner, from 0 to 1. */
export const inked = (scope) =>
  pad(scope).evaluate((canvas) => {
    const copy = document.createElement('canvas')
    Object.assign(copy, { width: canvas.width, height: canvas.height })
    const context = copy.getContext('2d', { willReadFrequently: true })
    context.drawImage(canvas, 0, 0)
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height)
    let count = 0
    for (let at = 0; at < data.length; at += 4) {
      const distance = [0, 1, 2, 3].reduce((sum, channel) => sum + Math.abs(data[at + channel] - data[channel]), 0)
      if (distance > 200) count++
    }
    return (count * 4) / data.length
  })

/** Returns which part of the pad has another brightness than its paper on the screen, from 0 to 1. */
export async function visible(scope) {
  const { dark } = decode(await pad(scope).screenshot({ scale: 'css' }))
  const paper = dark[dark.length >> 1]
  return dark.filter((shade) => Math.abs(shade - paper) > 160).length / dark.length
}
