// Strokes: how the movement of a finger, a pen or a mouse becomes ink.

const THINNEST = 1
const THICKEST = 3.6
const DOT_RADIUS = 2.2
/** At this speed in pixels per millisecond, a stroke is thinnest. */
const FASTEST = 2.4
/** A stroke changes its width over about this many pixels. */
const INERTIA = 14
/** Points that are closer than this add nothing but noise. */
const MIN_DISTANCE = 1.2
/** So many circles are filled at once. */
const MAX_CIRCLES = 64

/** @param {number} number */
const rounded = (number) => Math.round(number * 100) / 100

/** Draws one stroke. */
class Pen {
  /** @param {boolean} hasPressure */
  constructor(hasPressure) {
    this.hasPressure = hasPressure
    /** @type {Stroke} */
    this.stroke = []
    this.width = (THINNEST + THICKEST) / 2
    this.time = 0
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} time
   * @param {number} pressure
   */
  add(x, y, time, pressure) {
    const [lastX, lastY] = this.stroke.slice(-3)
    const distance = lastX === undefined || lastY === undefined ? 0 : Math.hypot(x - lastX, y - lastY)
    if (this.stroke.length && distance < MIN_DISTANCE) return
    const speed = distance / Math.max(1, time - this.time)
    const share = this.hasPressure ? Math.sqrt(pressure) : 1 - Math.min(1, speed / FASTEST)
    const target = THINNEST + (THICKEST - THINNEST) * share
    const isFirst = this.stroke.length === 0
    this.width += (target - this.width) * (isFirst ? Number(this.hasPressure) : Math.min(1, distance / INERTIA))
    this.time = time
    this.stroke.push(rounded(x), rounded(y), rounded(this.width))
  }

  /** Ends the stroke: unless the device says how the pen is lifted, the ink runs out. */
  end() {
    const count = this.stroke.length / 3
    if (this.hasPressure || count < 6) return
    for (const [back, share] of [[1, 0.5], [2, 0.7], [3, 0.85]]) {
      const index = (count - Number(back)) * 3 + 2
      this.stroke[index] = rounded((this.stroke[index] ?? THINNEST) * Number(share))
    }
  }
}

/**
 * Calls `visit` along a stroke, at distances that can't be seen. Its curves go from the middle of two points to the next
 * middle, drawn towards the point between them.
 * @param {Stroke} stroke
 * @param {(x: number, y: number, radius: number) => void} visit
 */
function follow(stroke, visit) {
  /** @param {number} index */
  const point = (index) => stroke.slice(index * 3, index * 3 + 3).map((part, at) => (at === 2 ? part / 2 : part))
  const count = Math.floor(stroke.length / 3)
  if (count === 0) return
  let [x = 0, y = 0, radius = 0] = point(0)
  visit(x, y, count === 1 ? DOT_RADIUS : radius)
  for (let index = 1; index < count; index++) {
    const [throughX = 0, throughY = 0, throughRadius = 0] = point(index)
    const [nextX = throughX, nextY = throughY, nextRadius = throughRadius] = point(index + 1)
    const isLast = index === count - 1
    const end = isLast
      ? [throughX, throughY, throughRadius]
      : [(throughX + nextX) / 2, (throughY + nextY) / 2, (throughRadius + nextRadius) / 2]
    const [endX = 0, endY = 0, endRadius = 0] = end
    const length = Math.hypot(throughX - x, throughY - y) + Math.hypot(endX - throughX, endY - throughY)
    const pieces = Math.min(40, Math.max(1, Math.ceil(length / 1.5)))
    for (let piece = 1; piece <= pieces; piece++) {
      const t = piece / pieces
      const [a, b, c] = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t]
      visit(a * x + b * throughX + c * endX, a * y + b * throughY + c * endY, a * radius + b * throughRadius + c * endRadius)
    }
    ;[x, y, radius] = [endX, endY, endRadius]
  }
}

/**
 * Fills a stroke: circles joined by bands, many in one path so that its edges are smoothed once. Browsers take far too long
 * for a path that has them all.
 * @param {CanvasRenderingContext2D} context
 * @param {Stroke} stroke
 */
function fillStroke(context, stroke) {
  let [lastX, lastY, lastRadius] = [NaN, NaN, NaN]
  let count = 0
  /** @param {number} x @param {number} y @param {number} radius */
  const addCircle = (x, y, radius) => {
    context.moveTo(x + radius, y)
    context.arc(x, y, radius, 0, 2 * Math.PI)
  }
  context.beginPath()
  follow(stroke, (x, y, radius) => {
    const length = Math.hypot(x - lastX, y - lastY)
    if (length > 0) {
      const [acrossX, acrossY] = [(lastY - y) / length, (x - lastX) / length]
      context.moveTo(lastX - acrossX * lastRadius, lastY - acrossY * lastRadius)
      context.lineTo(x - acrossX * radius, y - acrossY * radius)
      context.lineTo(x + acrossX * radius, y + acrossY * radius)
      context.lineTo(lastX + acrossX * lastRadius, lastY + acrossY * lastRadius)
      context.closePath()
    }
    addCircle(x, y, radius)
    if (++count % MAX_CIRCLES === 0) {
      context.fill()
      context.beginPath()
      addCircle(x, y, radius)
    }
    ;[lastX, lastY, lastRadius] = [x, y, radius]
  })
  context.fill()
}

/**
 * Returns the box that encloses strokes, or null if there is no ink.
 * @param {Stroke[]} strokes
 * @returns {Box | null}
 */
function boxOf(strokes) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity }
  for (const stroke of strokes) {
    follow(stroke, (x, y, radius) => {
      box.left = Math.min(box.left, x - radius)
      box.top = Math.min(box.top, y - radius)
      box.right = Math.max(box.right, x + radius)
      box.bottom = Math.max(box.bottom, y + radius)
    })
  }
  return box.left < box.right ? box : null
}
