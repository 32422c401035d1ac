// Touches a page as a finger does, and types as a keyboard scanner does.

/** The keys that end a scan: carriage return, tab, and the control character for the first, as scanners for terminals send it. */
export const ENDS = ['Enter', 'Tab', 'Control+m']
/** Pauses between a scanner's characters, in milliseconds. */
export const SPEEDS = [0, 10, 40]

/** Presses and lifts a finger in the middle of an element, even if another element covers it. */
export async function tap(locator) {
  const { x, y, width, height } = await locator.boundingBox()
  await locator.page().touchscreen.tap(x + width / 2, y + height / 2)
}

/** Taps twice, 80 ms apart by the times of the touches. */
export async function tapTwice(locator) {
  const { x, y, width, height } = await locator.boundingBox()
  const session = await locator.page().context().newCDPSession(locator.page())
  const now = Date.now() / 1000
  const touch = (type, at, touchPoints = []) => session.send('Input.dispatchTouchEvent', { type, touchPoints, timestamp: now + at })
  const point = { x: x + width / 2, y: y + height / 2 }
  await Promise.all([touch('touchStart', 0, [point]), touch('touchEnd', 0.02), touch('touchStart', 0.08, [point]), touch('touchEnd', 0.1)])
}

/** Moves a finger along points, which are in CSS pixels, and rests it half a second before it is lifted, by the times of the
 * touches: a faster finger would leave the page scrolling. */
export async function swipe(page, points) {
  const session = await page.context().newCDPSession(page)
  const now = Date.now() / 1000
  const send = (type, at, touchPoints) => session.send('Input.dispatchTouchEvent', { type, touchPoints, timestamp: now + at })
  await send('touchStart', 0, [points[0]])
  for (const [n, point] of points.entries()) await send('touchMove', 0.02 * (n + 1), [point])
  const end = 0.02 * points.length + 0.5
  await send('touchMove', end, [points.at(-1)])
  await send('touchEnd', end + 0.02, [])
}

/** Moves a finger up from the middle of an element, which scrolls. */
export async function swipeUp(locator, pixels = 60) {
  const { x, y, width, height } = await locator.boundingBox()
  await swipe(locator.page(), Array.from({ length: 13 }, (_, n) => ({ x: x + width / 2, y: y + height / 2 - (pixels * n) / 12 })))
}

/** The pause between characters that are typed by hand, in milliseconds. */
export const BY_HAND = 120

const CONTROL = 2
/** Keys that type no character, as the browser's protocol describes them. */
const KEYS = {
  Enter: { type: 'keyDown', text: '\r', code: 'Enter', windowsVirtualKeyCode: 13 },
  Tab: { type: 'rawKeyDown', code: 'Tab', windowsVirtualKeyCode: 9 },
}

/** Types a code wherever the focus is, with a pause after each character by the times of the keys. `end` can be empty. */
export async function scan(page, code, { pause = 0, end = 'Enter' } = {}) {
  const session = await page.context().newCDPSession(page)
  const start = Date.now()
  const until = (time) => new Promise((resolve) => setTimeout(resolve, time - Date.now()))
  const keys = [...code, end].filter(Boolean)
  for (const [n, name] of keys.entries()) {
    const at = start + n * pause
    await until(at)
    const [key, modifiers] = name.startsWith('Control+') ? [name.at(-1), CONTROL] : [name, 0]
    const space = key === ' ' ? { code: 'Space', windowsVirtualKeyCode: 32 } : {}
    const down = KEYS[key] ?? { type: 'keyDown', ...(modifiers ? {} : { text: key }), ...space }
    await session.send('Input.dispatchKeyEvent', { key, modifiers, timestamp: at / 1000, ...down })
    await session.send('Input.dispatchKeyEvent', { key, modifiers, timestamp: at / 1000, ...down, type: 'keyUp', text: undefined })
  }
  await until(start + keys.length * pause)
  await session.detach()
}
