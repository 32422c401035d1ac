// Strokes: turns the movement of a finger, a pen or a mouse into ink.

const THINNEST = 1
const THICKEST = 3.6
const DOT_RADIUS = 2.2
/** Speed from which a stroke is thinnest, in pixels per millisecond. */
const FASTEST = 2.4
/** Distance over which a stroke changes its width, in pixels. */
const INERTIA = 22
/** Minimum distance between points, in pixels. Closer points only add noise. */
const MIN_DISTANCE = 1.2
/** Maximum number of points per edge in one fill. Longer strokes are filled in parts. */
const MAX_EDGES = 48
/** Above this angle in radians, the edges alone would leave a gap. */
const MAX_BEND = 0.3

/** Maximum length of a tap, in pixels. */
const SHORTEST_SIGNATURE = 10

/** @param {number} number */
const rounded = (number) => Math.round(number * 100) / 100

export class Pen {
  /** @param {boolean} hasPressure */
  constructor(hasPressure) {
    this.hasPressure = hasPressure
    /** @type {Stroke} */
    this.stroke = []
    this.width = (THINNEST + THICKEST) / 2
    this.time = 0
  }

  /** @param {number} x @param {number} y @param {number} time @param {number} pressure */
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

  /** Ends the stroke: without pressure data, its end gets thinner. */
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
 * Calls `visit` along a stroke, in invisibly small steps. The stroke consists of quadratic curves from midpoint to midpoint,
 * with the points as control points.
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
 * Fills a stroke: a band between its two edges, with circles at its ends and bends. Long strokes are filled in parts,
 * because browsers are very slow with a single long path.
 * @param {CanvasRenderingContext2D} context
 * @param {Stroke} stroke
 */
export function fillStroke(context, stroke) {
  let [lastX, lastY, lastRadius, lastAngle] = [NaN, NaN, 0, NaN]
  /** @type {[number, number][]} */
  let left = []
  /** @type {[number, number][]} */
  let right = []
  /** @param {number} x @param {number} y @param {number} radius */
  const addCircle = (x, y, radius) => {
    context.moveTo(x + radius, y)
    context.arc(x, y, radius, 0, 2 * Math.PI)
  }
  /** @param {number} x @param {number} y @param {number} radius @param {number} angle */
  const addEdges = (x, y, radius, angle) => {
    const [acrossX, acrossY] = [-Math.sin(angle) * radius, Math.cos(angle) * radius]
    left.push([x - acrossX, y - acrossY])
    right.unshift([x + acrossX, y + acrossY])
  }
  const fillBand = () => {
    left.concat(right).forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)))
    context.closePath()
    context.fill()
    context.beginPath()
    ;[left, right] = [[], []]
  }
  context.beginPath()
  follow(stroke, (x, y, radius) => {
    const angle = Math.atan2(y - lastY, x - lastX)
    if (Number.isNaN(angle)) addCircle(x, y, radius)
    else if (x !== lastX || y !== lastY) {
      const bend = Math.abs(Math.atan2(Math.sin(angle - lastAngle), Math.cos(angle - lastAngle)))
      if (bend > MAX_BEND || left.length > MAX_EDGES) {
        fillBand()
        // The circle also covers the seam.
        addCircle(lastX, lastY, lastRadius)
      }
      if (left.length === 0) addEdges(lastX, lastY, lastRadius, angle)
      addEdges(x, y, radius, angle)
      lastAngle = angle
    }
    ;[lastX, lastY, lastRadius] = [x, y, radius]
  })
  addCircle(lastX, lastY, lastRadius)
  fillBand()
}

/**
 * Returns whether there is a stroke that isn't just a tap.
 * @param {Stroke[]} strokes
 */
export function isDrawn(strokes) {
  let length = 0
  for (const stroke of strokes) {
    for (let index = 3; index + 1 < stroke.length; index += 3) {
      length += Math.hypot((stroke[index] ?? 0) - (stroke[index - 3] ?? 0), (stroke[index + 1] ?? 0) - (stroke[index - 2] ?? 0))
    }
  }
  return length >= SHORTEST_SIGNATURE
}

/**
 * Returns the bounding box of strokes, or null without ink.
 * @param {Stroke[]} strokes
 * @returns {Box | null}
 */
export function boxOf(strokes) {
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
