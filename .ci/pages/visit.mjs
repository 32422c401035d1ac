// A monitored page: anything that must never happen is recorded, and fails the scenario at the end.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }

export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 3 }
export const DESKTOP = { viewport: { width: 1440, height: 900 } }

/** Waits until an element is visible; otherwise, fails with this sentence. */
export const sees = (locator, sentence, timeout = 20_000) =>
  locator
    .first()
    .waitFor({ timeout })
    .catch(async () => {
      const shown = await locator.page().locator('body').innerText()
      assert.fail(`${sentence}. The page shows: ${shown.replace(/\s+/g, ' ').slice(0, 600)}`)
    })

/** Waits until a condition holds; otherwise, fails with this sentence. */
export async function until(holds, sentence, timeout = 10_000) {
  for (const end = Date.now() + timeout; !(await holds()); await new Promise((resolve) => setTimeout(resolve, 100))) {
    assert.ok(Date.now() < end, sentence)
  }
}

/** Answers requests with a problem document, as the service does. */
export const refuse = (page, url, problem, { headers = {}, times } = {}) =>
  page.route(
    url,
    (route) => {
      const body = JSON.stringify(problem)
      return route.fulfill({ status: problem.status, headers: { 'content-type': 'application/problem+json', ...headers }, body })
    },
    { times },
  )

export class Visit {
  /** Whether the page can store data that isn't secret in localStorage, and whether the page is too long for one screenshot. */
  mayStore = false
  isLong = false
  /** How often the page has asked whether edits may be discarded. */
  questions = 0

  /** `secret` must not appear in a URL. `failures` are allowed from the start. The rest are options of the context. */
  static async open({ browser, api, folder, visits }, url, { secret, failures = [], ...options } = {}) {
    const visit = Object.assign(new this(), { api, folder, url, secret, wrong: [], checks: [], expected: [], requests: [] })
    visit.expectFailures(...failures)
    visit.context = await browser.newContext({ colorScheme: 'light', locale: 'en-US', ...DESKTOP, ...options })
    visits.push(visit)
    await visit.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        console.error(`${violatedDirective} is violated by ${blockedURI}`),
      )
    })
    visit.page = await visit.tab()
    return visit
  }

  /** Opens the URL in another tab. */
  async tab() {
    const page = await this.context.newPage()
    page.setDefaultTimeout(20_000)
    page.on('request', (request) => this.checkRequest(request))
    page.on('console', (message) => {
      const text = message.text()
      if (!this.expected.some((expected) => expected.test(text))) this.wrong.push(`console: ${text} ${message.location().url}`)
    })
    page.on('pageerror', (error) => this.wrong.push(`error: ${error.message}`))
    page.on('popup', (popup) => this.wrong.push(`a window opens: ${popup.url()}`))
    page.on('dialog', (dialog) => {
      // Only the page's own question may open. The question is dismissed, so the browser stays on the page.
      if (dialog.type() === 'beforeunload') return dialog.accept()
      if (dialog.message() === 'Discard your changes?') this.questions += 1
      else this.wrong.push(`a dialog opens: ${dialog.message()}`)
      return dialog.dismiss()
    })
    await page.goto(this.url)
    return page
  }

  checkRequest(request) {
    const has = (text) => this.secret && text.includes(this.secret)
    const { protocol, origin, pathname } = new URL(request.url())
    if (protocol === 'data:' || protocol === 'blob:') return
    this.requests.push({ request, at: Date.now() })
    if (origin !== new URL(this.url).origin) this.wrong.push(`a request goes to ${request.url()}`)
    if (has(request.url())) this.wrong.push(`a request has the secret in its URL: ${request.url()}`)
    const check = request.allHeaders().then(({ authorization, referer, cookie, ...others }) => {
      if (referer ?? cookie) this.wrong.push(`${pathname} has a Referer or a cookie: ${referer ?? cookie}`)
      if (has(JSON.stringify(others))) this.wrong.push(`${pathname} has the secret in another header`)
      if (authorization && /^\/v1\/(app|sign$)/.test(pathname)) this.wrong.push(`${pathname} has a credential`)
      const isCreation = request.method() === 'POST' && !/dry_run|\/suggest$/.test(request.url())
      if (isCreation && !others['idempotency-key']) this.wrong.push(`a POST to ${pathname} has no Idempotency-Key`)
      if (request.method() === 'PATCH' && !others['if-match']) this.wrong.push(`a PATCH of ${pathname} has no If-Match`)
    })
    this.checks.push(check.catch(() => {}))
  }

  /** Allows the browser's own messages about responses with this status, or about a lost connection. */
  expectFailures(...causes) {
    this.expected.push(...causes.map((cause) => new RegExp(`^Failed to load resource: .*${cause}`)))
  }

  /** Takes a screenshot. Fails if the page is wider than its window, or stores forbidden data. */
  async shot(name, page = this.page) {
    await page.screenshot({ path: `${this.folder}/${name}.png`, fullPage: !this.isLong, animations: 'disabled' })
    const [needed, has] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    assert.ok(needed <= has, `${name} needs ${needed} pixels of ${has}`)
    await this.checkStorage(page)
  }

  /** Takes screenshots in light and dark mode. Fails if axe finds an accessibility problem. */
  async look(name, page = this.page, schemes = ['dark', 'light']) {
    for (const colorScheme of schemes) {
      await page.emulateMedia({ colorScheme })
      await this.shot(`${name}-${colorScheme}`, page)
      await page.evaluate(AXE)
      const { violations } = await page.evaluate((runOnly) => axe.run(document, { runOnly }), RULES)
      const told = violations.map(({ id, help, nodes }) => [id, help, ...nodes.map((node) => [node.html, node.failureSummary])])
      assert.deepEqual(told, [], `axe on ${name}-${colorScheme}`)
    }
  }

  /** Fails if storage contains the secret, or if anything is stored beyond the tab. */
  async checkStorage(page) {
    const { local, inTab, ...others } = await page.evaluate(async () => ({
      local: { ...localStorage },
      inTab: [{ ...sessionStorage }, history.state],
      cookies: document.cookie,
      databases: await indexedDB.databases(),
      caches: (await globalThis.caches?.keys()) ?? [],
    }))
    if (!this.mayStore) assert.deepEqual(local, {}, 'data outlives the tab')
    assert.deepEqual(others, { cookies: '', databases: [], caches: [] }, 'data outlives the tab')
    assert.ok(!this.secret || !JSON.stringify([local, inTab]).includes(this.secret), 'the secret is stored')
  }

  /** Closes the pages, and fails if anything went wrong. */
  async close() {
    if (this.isClosed) return
    this.isClosed = true
    for (const page of this.context.pages()) await this.checkStorage(page)
    assert.deepEqual(await this.context.cookies(), [], 'there are cookies')
    await Promise.all(this.checks)
    await this.context.close()
    assert.deepEqual(this.wrong, [], 'the page did something forbidden')
  }
}
