// The camera as a scanner.
import { button, h, hint, show } from './elements.js'
import { t } from './texts.js'

const LOOK_MS = 200
/** A code that stays in front of the camera is ignored for this long, so that it counts once. */
const AGAIN_MS = 3000

/**
 * Uses the camera as a scanner if the browser has BarcodeDetector, like Chrome on Android and macOS.
 * @param {(code: string) => void} found @param {AbortSignal} signal
 */
export function scanner(found, signal) {
  const Detector = globalThis['BarcodeDetector']
  const place = h('div.camera')
  if (!Detector || !navigator.mediaDevices) return place
  /** @type {MediaStream | null} */
  let stream = null
  const release = () => {
    for (const track of stream?.getTracks() ?? []) track.stop()
    stream = null
  }
  const stop = () => {
    release()
    isWanted = false
    show(place, start)
  }
  /** Whether the camera is in use, even while the page is hidden: the lock screen takes the camera away. */
  let isWanted = false
  signal.addEventListener('abort', stop)
  document.addEventListener('visibilitychange', () => {
    if (!isWanted) return
    if (document.hidden) release()
    else if (!stream) watch()
  }, { signal })
  const start = button(t('camera'), () => watch())
  async function watch() {
    isWanted = true
    /** @type {MediaStream} */
    let opened
    try {
      opened = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } })
    } catch {
      isWanted = false
      return show(place, start, hint({ role: 'alert' }, t('no-camera')))
    }
    if (stream || !isWanted || signal.aborted || document.hidden) return opened.getTracks().forEach((track) => track.stop())
    stream = opened
    // The system can end it without hiding the page.
    for (const track of opened.getTracks()) track.onended = () => stream === opened && !document.hidden && (release(), watch())
    const video = h('video', { srcObject: opened, muted: true, playsInline: true, autoplay: true, ariaLabel: t('camera') })
    show(place, video, button(t('camera-off'), stop))
    look(new Detector(), video, opened)
  }
  async function look(detector, video, opened) {
    const seen = new Map()
    while (stream === opened && !signal.aborted) {
      const codes = video.readyState < 2 ? [] : await detector.detect(video).catch(() => [])
      for (const { rawValue } of codes) {
        const isNew = Date.now() - (seen.get(rawValue) ?? 0) >= AGAIN_MS
        seen.set(rawValue, Date.now())
        if (isNew) found(rawValue)
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
  show(place, start)
  return place
}
