// A page in any engine: finds what people see by roles, labels and texts, and presses it where it lies.
import assert from 'node:assert/strict'
import { along, sizeOf } from '../sign_page/strokes.mjs'
import { DESKTOP, until } from '../visit.mjs'

/** How long a hand takes from one point of a stroke to the next. The ink of a faster one is thinner than a pixel. */
export const PACE_MS = 20

/**
 * Returns where the first visible element of a kind is whose name or text matches, after scrolling it into view: its box, its value
 * and its text. Runs in the page.
 * @param {string} kind a key of `KINDS`, or a CSS selector
 * @param {{ text: string } | { pattern: string }} name part of the name, or a regular expression
 */
function locate(kind, name) {
  const KINDS = {
    button: 'button, [role=button]', link: 'a[href]', heading: 'h1, h2, h3', option: '[role=option]', pad: 'canvas[role=img]',
    field: 'input, select, textarea', region: 'section, [role=region]', picture: '[role=img]',
  }
  const plain = (text) => (text ?? '').replace(/\s+/g, ' ').replaceAll(/[\u2068\u2069]/g, '').trim()
  const called = (element) => element.ariaLabel ||
    plain(element.getAttribute('aria-labelledby')?.split(' ').map((id) => document.getElementById(id)?.textContent).join(' ') ||
      [...(element.labels ?? [])].map((label) => label.textContent).join(' ') || element.textContent)
  const matches = (text) => ('pattern' in name ? new RegExp(name.pattern).test(text) : text.includes(name.text))
  for (const element of document.querySelectorAll(KINDS[kind] ?? kind)) {
    if (!element.checkVisibility({ visibilityProperty: true }) || !matches(plain(called(element)))) continue
    element.scrollIntoView({ block: 'center', behavior: 'instant' })
    const { x, y, width, height } = element.getBoundingClientRect()
    const at = { x: x + width / 2, y: y + height / 2 }
    const top = document.elementFromPoint(at.x, at.y)
    const isFree = Boolean(top) && (element.contains(top) || top.contains(element) || [...(element.labels ?? [])].some((label) => label.contains(top)))
    const { value = '', checked = false, disabled = false, href = '' } = element
    return { x, y, width, height, at, isFree, value, checked, disabled, href, text: plain(element.textContent), chosen: 'chosen' in element.dataset }
  }
  return null
}

/** Records what must never happen. Runs in the page. */
function watch() {
  if (globalThis.wrong) return
  globalThis.wrong = []
  addEventListener('error', ({ message }) => globalThis.wrong.push(message))
  addEventListener('unhandledrejection', ({ reason }) => globalThis.wrong.push(String(reason)))
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => globalThis.wrong.push(`${violatedDirective}: ${blockedURI}`))
}

/** Gives each event of a key a time that is 10 ms after the one before. Runs in the page. */
function paceKeys() {
  const times = new WeakMap()
  let last = performance.now()
  const get = function () {
    if (!times.has(this)) times.set(this, (last += 10))
    return times.get(this)
  }
  Object.defineProperty(KeyboardEvent.prototype, 'timeStamp', { configurable: true, get })
}

const named = (name) => (name instanceof RegExp ? { pattern: name.source } : { text: name })

export class Page {
  /** Opens a URL in a new tab. */
  static async open({ browser, visits }, url, { viewport } = DESKTOP) {
    const page = new this()
    page.tab = await browser.newTab(viewport)
    // As play.mjs expects a visit.
    page.context = { pages: () => [page.tab], close: () => page.leave() }
    visits.push(page)
    await page.tab.open(url)
    await page.evaluate(watch)
    return page
  }

  async reload() {
    await this.tab.reload()
    await this.evaluate(watch)
  }

  evaluate = (run, ...args) => this.tab.evaluate(run, ...args)
  find = (kind, name = '') => this.evaluate(locate, kind, named(name))

  /** Waits until the page has something; otherwise, fails with this sentence. */
  async sees(kind, name, sentence, timeout = 20_000) {
    let found = null
    await until(async () => (found = await this.find(kind, name)), sentence, timeout).catch(async (error) => {
      const shown = await this.evaluate(() => document.body.innerText)
      throw new Error(`${error.message}. The page shows: ${shown.replace(/\s+/g, ' ').slice(0, 600)}`)
    })
    return found
  }

  /** Waits until an element lies still and free, and returns it. */
  async free(kind, name) {
    let last = null
    const isStill = async () => {
      const before = last
      last = await this.find(kind, name)
      return last?.isFree && !last.disabled && before?.x === last.x && before?.y === last.y
    }
    await until(isStill, `${kind} "${name}" can’t be pressed`, 20_000)
    return last
  }

  async press(kind, name) {
    const { at } = await this.free(kind, name)
    await this.tab.stroke([at])
  }

  /** Types into a labelled field. */
  async fill(label, text) {
    await this.press('field', label)
    await this.tab.type(text)
    await until(async () => (await this.find('field', label))?.value === text, `the field ${label} hasn’t got what was typed`)
  }

  /** Sets a labelled field's value as its picker would: a date is typed differently in each engine, and a menu covers the page. */
  async set(label, value) {
    await this.free('field', label)
    await this.evaluate((label, value) => {
      const isIt = ({ textContent }) => textContent.includes(label)
      const field = [...document.querySelectorAll('input, select')].find(({ labels }) => [...labels].some(isIt))
      field.value = value
      for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true }))
    }, label, value)
    assert.equal((await this.find('field', label)).value, value, `${label} does not take ${value}`)
  }

  /** Ticks a labelled box. */
  async tick(label) {
    await this.press('field', label)
    await until(async () => (await this.find('field', label))?.checked, `${label} is not ticked`)
  }

  /** Types a code as a scanner does, wherever the focus is. A busy computer's pauses between the keys don't count. */
  async scan(code) {
    await this.evaluate(paceKeys)
    await this.tab.type(`${code}\n`)
    await this.evaluate(() => delete KeyboardEvent.prototype.timeStamp)
  }

  /** Draws a line through points, which are fractions of the signature pad. Returns its width and height in CSS pixels. */
  async draw(corners) {
    const box = await this.free('pad')
    await this.tab.stroke(along(corners, box, 12))
    return sizeOf(corners, box)
  }

  /** Fails if anything went wrong, or if the page is wider than its window, and closes the tab. */
  async close() {
    if (this.isLeft) return
    const [wrong, needed, has] = await this.evaluate(() => [globalThis.wrong, document.documentElement.scrollWidth, document.documentElement.clientWidth])
    assert.deepEqual(wrong, [], 'the page did something forbidden')
    assert.ok(needed <= has, `the page needs ${needed} pixels of ${has}`)
    await this.leave()
  }

  async leave() {
    if (!this.isLeft) await this.tab.close()
    this.isLeft = true
  }
}
