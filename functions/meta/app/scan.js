// The camera as a scanner, where the browser has BarcodeDetector: Chrome on Android and macOS has.
import { button, h, show } from './dom.js'
import { t } from './text.js'

const LOOK_MS = 200
/** The same code held before the camera counts once. */
const AGAIN_MS = 3000

/** @param {(code: string) => void} found @param {AbortSignal} signal */
export function scanner(found, signal) {
  const Detector = /** @type {any} */ (globalThis).BarcodeDetector
  const place = h('div.camera')
  if (!Detector || !navigator.mediaDevices) return place
  /** @type {MediaStream | null} */
  let stream = null
  const stop = () => {
    for (const track of stream?.getTracks() ?? []) track.stop()
    stream = null
    show(place, start)
  }
  signal.addEventListener('abort', stop)
  const start = button(t('camera'), async () => {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } })
    } catch {
      return show(place, start, h('p.hint', { role: 'alert' }, t('no-camera')))
    }
    const video = h('video', { srcObject: stream, muted: true, playsInline: true, autoplay: true, 'aria-label': t('camera') })
    show(place, video, button(t('camera-off'), stop))
    look(new Detector(), video)
  })
  async function look(detector, video) {
    let last = '', lastAt = 0
    while (stream && !signal.aborted) {
      const codes = video.readyState < 2 ? [] : await detector.detect(video).catch(() => [])
      for (const { rawValue } of codes) {
        if (rawValue === last && Date.now() - lastAt < AGAIN_MS) continue
        last = rawValue
        lastAt = Date.now()
        found(rawValue)
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
  show(place, start)
  return place
}
