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

/** Moves a finger along points, which are in CSS pixels. */
export async function swipe(page, points) {
  const session = await page.context().newCDPSession(page)
  const send = (type, touchPoints) => session.send('Input.dispatchTouchEvent', { type, touchPoints })
  await send('touchStart', [points[0]])
  for (const point of points) await send('touchMove', [point])
  await send('touchEnd', [])
}

/** Moves a finger up from the middle of an element, which scrolls. */
export async function swipeUp(locator, pixels = 60) {
  const { x, y, width, height } = await locator.boundingBox()
  await swipe(locator.page(), Array.from({ length: 13 }, (_, n) => ({ x: x + width / 2, y: y + height / 2 - (pixels * n) / 12 })))
}

/** Types a code wherever the focus is. */
export async function scan(page, code, { pause = 0, end = 'Enter' } = {}) {
  await page.keyboard.type(code, { delay: pause })
  await page.keyboard.press(end)
}
