// Encodes signatures as PNG images, within the service's limits.
import { h } from './elements.js'
import { boxOf, fillStroke, isDrawn } from './ink.js'

const MAX_BYTES = 128 * 1024
const MAX_SIDE = 4096
const MAX_PIXELS = 4_000_000
const DENSITY = 2
const MARGIN = 10
const INK = '#13233f'
const PAPER = '#ffffff'
const PNG = 'data:image/png;base64,'

/** Handwriting fonts of different systems. */
const HANDWRITING =
  '"Snell Roundhand", "Segoe Script", "Bradley Hand", "Apple Chancery", "Dancing Script", "Brush Script MT", cursive, serif'

/** Returns whether the page can read canvas pixels. Some browsers return noise or white, to prevent fingerprinting. */
export function canReadDrawings() {
  const context = h('canvas', { width: 2, height: 1 }).getContext('2d')
  if (!context) return false
  context.fillStyle = PAPER
  context.fillRect(0, 0, 2, 1)
  context.fillStyle = INK
  context.fillRect(1, 0, 1, 1)
  const [paper = 0, , , , ink = 255] = context.getImageData(0, 0, 2, 1).data
  return paper > 200 && ink < 80
}

/**
 * Returns a data URL of the output of `draw`: dark on white, cropped to the box, at twice the density.
 * @param {Box} box
 * @param {(context: CanvasRenderingContext2D) => void} draw
 */
function pictureOf(box, draw) {
  const width = box.right - box.left + 2 * MARGIN
  const height = box.bottom - box.top + 2 * MARGIN
  const canvas = document.createElement('canvas')
  const context = canvas.getContext('2d')
  if (!context) return null
  let density = Math.min(DENSITY, MAX_SIDE / width, MAX_SIDE / height, Math.sqrt(MAX_PIXELS / (width * height)))
  for (;;) {
    canvas.width = Math.max(1, Math.floor(width * density))
    canvas.height = Math.max(1, Math.floor(height * density))
    context.fillStyle = PAPER
    context.fillRect(0, 0, canvas.width, canvas.height)
    context.setTransform(density, 0, 0, density, (MARGIN - box.left) * density, (MARGIN - box.top) * density)
    context.fillStyle = INK
    draw(context)
    const url = canvas.toDataURL('image/png')
    if (!url.startsWith(PNG)) return null
    const excess = ((url.length - PNG.length) * 0.75) / MAX_BYTES
    if (excess <= 1) return url
    density *= 0.9 / Math.sqrt(excess)
  }
}

/**
 * Returns an image of the strokes, or null if nothing was drawn.
 * @param {Stroke[]} strokes
 */
export function pictureOfStrokes(strokes) {
  const box = isDrawn(strokes) ? boxOf(strokes) : null
  return box && pictureOf(box, (context) => strokes.forEach((stroke) => fillStroke(context, stroke)))
}

/**
 * Returns an image of a typed name, or null if it is invisible.
 * @param {string} name
 */
export function pictureOfName(name) {
  const text = name.trim().replace(/\s+/g, ' ')
  const context = document.createElement('canvas').getContext('2d')
  if (!context || !text) return null
  /** @param {CanvasRenderingContext2D} context */
  const prepare = (context, size = 46) => {
    context.font = `italic ${size}px ${HANDWRITING}`
    context.textBaseline = 'alphabetic'
    return context.measureText(text)
  }
  const size = Math.max(20, Math.min(46, (46 * 620) / Math.max(1, prepare(context).width)))
  const { actualBoundingBoxLeft, actualBoundingBoxRight, actualBoundingBoxAscent, actualBoundingBoxDescent } = prepare(context, size)
  const box = {
    left: -actualBoundingBoxLeft,
    right: actualBoundingBoxRight,
    top: -Math.min(200, actualBoundingBoxAscent),
    bottom: Math.min(200, actualBoundingBoxDescent),
  }
  if (box.right - box.left < 1 || box.bottom - box.top < 1) return null
  return pictureOf(box, (context) => {
    prepare(context, size)
    context.fillText(text, 0, 0)
  })
}
