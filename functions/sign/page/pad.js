// The signature pad. Strokes are stored relative to the centre, so they stay in place when the pad is resized, and shrink only
// if they don't fit.
import { h } from './elements.js'
import { Pen, boxOf, fillStroke } from './ink.js'
import { t } from './texts.js'

/** Minimum distance of strokes from the pad's edge when they shrink to fit, in CSS pixels. */
const EDGE = 2

export class Pad {
  /** @param {() => void} changed called whenever the strokes change */
  constructor(changed) {
    this.changed = changed
    this.canvas = h('canvas', { role: 'img', 'aria-label': t('pad') })
    /** The finished strokes as an image. */
    this.finished = document.createElement('canvas')
    /** @type {Stroke[]} */
    this.strokes = []
    /** Strokes removed by clearing, kept until something is drawn. @type {Stroke[]} */
    this.cleared = []
    /** @type {Pen | null} */
    this.pen = null
    this.pointerId = -1
    this.scale = 1
    const listen = this.canvas.addEventListener.bind(this.canvas)
    listen('pointerdown', (event) => this.down(event))
    listen('pointermove', (event) => this.move(event))
    for (const end of /** @type {const} */ (['pointerup', 'pointercancel', 'lostpointercapture'])) {
      listen(end, (event) => this.up(event))
    }
    // Otherwise, iPadOS tries to recognize the strokes as handwriting.
    listen('touchmove', (event) => event.preventDefault(), { passive: false })
    new ResizeObserver(() => this.layOut()).observe(this.canvas)
    // Zooming and moving to another screen change the pixel density without changing the size.
    window.addEventListener('resize', () => this.layOut())
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => this.layOut())
    }
  }

  /** @param {Stroke[]} strokes */
  replace(strokes) {
    this.strokes = strokes
    this.layOut()
    this.changed()
  }

  canUndo() {
    return this.strokes.length + this.cleared.length > 0
  }

  undo() {
    const strokes = this.strokes.length ? this.strokes.slice(0, -1) : this.cleared
    this.cleared = []
    this.replace(strokes)
  }

  clear() {
    this.cleared = this.strokes
    this.replace([])
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (this.pen || event.button !== 0) return
    event.preventDefault()
    this.pointerId = event.pointerId
    this.canvas.setPointerCapture(event.pointerId)
    // A pen without a pressure sensor always reports 0.5.
    this.pen = new Pen(event.pointerType === 'pen' && event.pressure !== 0.5)
    this.add(event)
    this.draw()
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (!this.pen || event.pointerId !== this.pointerId) return
    const events = event.getCoalescedEvents?.() ?? []
    for (const each of events.length ? events : [event]) this.add(each)
    this.draw(event.getPredictedEvents?.() ?? [])
  }

  /** @param {PointerEvent} event */
  up(event) {
    if (!this.pen || event.pointerId !== this.pointerId) return
    this.lift()
    this.pen = null
    this.draw()
    this.changed()
  }

  /** Finishes the current stroke. */
  lift() {
    if (!this.pen?.stroke.length) return
    this.pen.end()
    this.strokes.push(this.pen.stroke)
    this.paint(this.finished, [this.pen.stroke])
    this.pen = new Pen(this.pen.hasPressure)
    this.cleared = []
  }

  /** Continues the stroke. Outside the pad, the stroke is interrupted until the pen comes back. @param {PointerEvent} event */
  add(event) {
    const place = this.placeOf(event)
    if (place) this.pen?.add(...place, event.timeStamp, event.pressure)
    else this.lift()
  }

  /** @param {PointerEvent} event @returns {[number, number] | null} */
  placeOf({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect()
    const [x, y] = [clientX - left - width / 2, clientY - top - height / 2]
    return Math.abs(x) > width / 2 || Math.abs(y) > height / 2 ? null : [x / this.scale, y / this.scale]
  }

  /** Adapts to the pad's size and the screen's pixel density. */
  layOut() {
    const { clientWidth: width, clientHeight: height } = this.canvas
    if (!width || !height) return
    const box = boxOf(this.pen ? [...this.strokes, this.pen.stroke] : this.strokes)
    const [x, y] = box ? [Math.max(-box.left, box.right), Math.max(-box.top, box.bottom)] : [0, 0]
    this.scale = Math.min(1, (width / 2 - EDGE) / Math.max(1, x), (height / 2 - EDGE) / Math.max(1, y))
    for (const canvas of [this.canvas, this.finished]) {
      canvas.width = Math.round(width * devicePixelRatio)
      canvas.height = Math.round(height * devicePixelRatio)
    }
    this.paint(this.finished, this.strokes)
    this.draw()
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Stroke[]} strokes
   */
  paint(canvas, strokes) {
    const context = canvas.getContext('2d')
    if (!context) return
    const scale = (this.scale * canvas.width) / (this.canvas.clientWidth || 1)
    context.setTransform(scale, 0, 0, scale, canvas.width / 2, canvas.height / 2)
    context.fillStyle = getComputedStyle(this.canvas).color
    for (const stroke of strokes) fillStroke(context, stroke)
  }

  /**
   * Draws the finished strokes, the current stroke, and its predicted continuation, which hides the screen's latency.
   * @param {PointerEvent[]} predicted
   */
  draw(predicted = []) {
    const context = this.canvas.getContext('2d')
    if (!context || !this.canvas.width || !this.finished.width) return
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.clearRect(0, 0, this.canvas.width, this.canvas.height)
    context.drawImage(this.finished, 0, 0)
    if (!this.pen) return
    const ahead = Object.assign(new Pen(this.pen.hasPressure), this.pen, { stroke: [...this.pen.stroke] })
    for (const event of predicted) {
      const place = this.placeOf(event)
      if (place) ahead.add(...place, event.timeStamp, event.pressure)
    }
    this.paint(this.canvas, [ahead.stroke])
  }
}
