// Reads the images of signatures.
import assert from 'node:assert/strict'
import { inflateSync } from 'node:zlib'

const CHANNELS = { 0: 1, 2: 3, 4: 2, 6: 4 }

/** Returns what a PNG filter predicts for a byte. */
function predict(filter, left, up, corner) {
  if (filter < 4) return [0, left, up, (left + up) >> 1][filter]
  const [toLeft, toUp, toCorner] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)]
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}

/** Decodes a PNG as browsers write it: its size, and how dark each pixel is on white, from 0 to 255. */
export function decode(file) {
  assert.equal(file.toString('latin1', 1, 4), 'PNG', 'the image is not a PNG')
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)]
  const [depth, type, , , interlaced] = file.subarray(24)
  assert.ok(depth === 8 && CHANNELS[type] && !interlaced, `the PNG has depth ${depth}, type ${type}`)
  const parts = []
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at)) {
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)))
  }
  const [raw, size] = [inflateSync(Buffer.concat(parts)), CHANNELS[type]]
  const row = width * size
  const bytes = new Uint8Array(row * height)
  for (let at = 0; at < bytes.length; at++) {
    const [x, y] = [at % row, Math.floor(at / row)]
    const left = x < size ? 0 : bytes[at - size]
    const up = y ? bytes[at - row] : 0
    const corner = y && x >= size ? bytes[at - row - size] : 0
    bytes[at] = raw[y * (row + 1) + 1 + x] + predict(raw[y * (row + 1)], left, up, corner)
  }
  const dark = new Uint8Array(width * height)
  for (let pixel = 0; pixel < dark.length; pixel++) {
    const channels = bytes.subarray(pixel * size, pixel * size + size)
    const alpha = size % 2 ? 255 : channels[size - 1]
    const colour = size < 3 ? channels[0] : (channels[0] + channels[1] + channels[2]) / 3
    dark[pixel] = ((255 - colour) * alpha) / 255
  }
  return { width, height, dark }
}

/** Returns which part of a region is ink, from 0 to 1. The region's edges are parts of the image's size. */
export function ink({ width, height, dark }, [left, top, right, bottom]) {
  let [inked, all] = [0, 0]
  for (let y = Math.floor(top * height); y < Math.ceil(bottom * height); y++) {
    for (let x = Math.floor(left * width); x < Math.ceil(right * width); x++, all++) inked += dark[y * width + x] > 110
  }
  return inked / all
}

/** Counts the strokes of an image that don't touch each other. */
export function strokes({ width, height, dark }) {
  const seen = dark.map((shade) => (shade > 110 ? 0 : 1))
  let count = 0
  for (let start = 0; start < seen.length; start++) {
    if (seen[start]) continue
    const open = [start]
    seen[start] = 1
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const [x, y] = [at % width, Math.floor(at / width)]
      const near = [x > 0 && at - 1, x < width - 1 && at + 1, y > 0 && at - width, y < height - 1 && at + width]
      for (const next of near) {
        if (next === false || seen[next]) continue
        seen[next] = 1
        open.push(next)
      }
    }
    count++
  }
  return count
}

/** Fails unless a region has ink in each of its tenths, along the longer side. */
function expectLine(picture, [left, top, right, bottom], what) {
  const isTall = (bottom - top) * picture.height > (right - left) * picture.width
  for (let tenth = 0; tenth < 10; tenth++) {
    const at = (from, to, n) => from + ((to - from) * n) / 10
    const part = isTall
      ? [left, at(top, bottom, tenth), right, at(top, bottom, tenth + 1)]
      : [at(left, right, tenth), top, at(left, right, tenth + 1), bottom]
    assert.ok(ink(picture, part) > 0.02, `${what} of the L has no ink at ${tenth * 10} %`)
  }
}

/** Fails unless a PNG shows an L that was drawn with these lengths in CSS pixels, trimmed and at twice the density. */
export function expectL(file, { width, height }) {
  const picture = decode(file)
  for (const [name, drawn, has] of [
    ['wide', width, picture.width],
    ['high', height, picture.height],
  ]) {
    assert.ok(has >= 2 * drawn && has <= 2 * drawn + 100, `${drawn} CSS pixels are ${has} pixels ${name}`)
  }
  const margin = [60 / picture.width, 60 / picture.height]
  expectLine(picture, [0, 0.15, margin[0], 0.85], 'the upright')
  expectLine(picture, [0.15, 1 - margin[1], 0.85, 1], 'the foot')
  assert.equal(ink(picture, [0.4, 0, 1, 0.55]), 0, 'there is ink where nothing was drawn')
  return picture
}
