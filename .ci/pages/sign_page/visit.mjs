// A page that is watched: whatever it must never do is remembered, and fails the scenario at its end.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 3 }
export const DESKTOP = { viewport: { width: 1440, height: 900 } }

/** Waits until something is visible; a sentence says what is wrong if it never is. */
export const sees = (locator, sentence, timeout = 20_000) =>
  locator
    .first()
    .waitFor({ timeout })
    .catch(async () => assert.fail(`${sentence}. The page shows: ${await shown(locator.page())}`))

/** Waits until something holds; a sentence says what is wrong if it never does. */
export async function until(holds, sentence, timeout = 10_000) {
  for (const end = Date.now() + timeout; !(await holds()); await new Promise((resolve) => setTimeout(resolve, 100))) {
    assert.ok(Date.now() < end, sentence)
  }
}

/** Fails if axe finds anything that people can't use. */
export async function expectAccessible(name, page) {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate((values) => axe.run(document, { runOnly: { type: 'tag', values } }), RULES)
  const told = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`,
  )
  assert.deepEqual(told, [], `axe on ${name}`)
}

/** Fails if a page is wider than its window. */
export async function expectNarrow(name, page) {
  const [needed, has] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
  assert.ok(needed <= has, `${name} needs ${needed} pixels of ${has}`)
}

const shown = async (page) => (await page.locator('body').innerText()).replace(/\s+/g, ' ').slice(0, 600)

/** Notes in `visit` what goes wrong on a page, and checks what it requests. */
export function watch(visit, page) {
  const { wrong } = visit
  page.on('request', (request) => visit.checkRequest(request))
  page.on('console', (message) => {
    const text = message.text()
    if (!visit.expected.some((expected) => expected.test(text))) wrong.push(`console: ${text}`)
  })
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    wrong.push(`a dialog opens: ${dialog.message()}`)
    dialog.dismiss()
  })
}

/** A browser context with a page. */
export class Visit {
  /** `failures` are allowed from the first request on: what loads with the page has failed before this returns. */
  static async open({ browser, api, folder, contexts }, url, options = DESKTOP, failures = []) {
    const visit = new Visit()
    Object.assign(visit, {
      api,
      folder,
      url,
      secret: new URL(url).hash.slice(1),
      wrong: [],
      checks: [],
      expected: [],
      submissions: [],
    })
    visit.expectFailures(...failures)
    visit.context = await browser.newContext({ colorScheme: 'light', ...options })
    contexts.push(visit.context)
    await visit.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        console.error(`${violatedDirective} is violated by ${blockedURI}`),
      )
    })
    visit.page = await visit.tab()
    return visit
  }

  /** Opens the link in one more tab. */
  async tab() {
    const page = await this.context.newPage()
    page.setDefaultTimeout(20_000)
    this.watch(page)
    await page.goto(this.url)
    return page
  }

  watch(page) {
    watch(this, page)
    page.on('popup', (popup) => this.wrong.push(`a window opens: ${popup.url()}`))
  }

  checkRequest(request) {
    const isSecret = (text) => this.secret && text.includes(this.secret)
    const { protocol, origin, pathname } = new URL(request.url())
    if (protocol === 'data:' || protocol === 'blob:') return
    if (origin !== new URL(this.url).origin) this.wrong.push(`a request goes to ${request.url()}`)
    if (isSecret(request.url())) this.wrong.push(`a request has the secret in its URL: ${request.url()}`)
    if (pathname.endsWith('/sign/advance')) this.submissions.push(request)
    const check = request.allHeaders().then((headers) => {
      const { authorization, referer, cookie, ...others } = headers
      if (referer ?? cookie) this.wrong.push(`${pathname} has a Referer or a cookie: ${referer ?? cookie}`)
      if (isSecret(JSON.stringify(others))) this.wrong.push(`${pathname} has the secret in another header`)
      if (authorization && !pathname.startsWith('/v1/sign/')) this.wrong.push(`${pathname} has a credential`)
    })
    this.checks.push(check.catch(() => {}))
  }

  /** Allows what the browser itself writes about responses with this status, or about a lost connection. */
  expectFailures(...causes) {
    this.expected.push(...causes.map((cause) => new RegExp(`^Failed to load resource: .*${cause}`)))
  }

  /** Takes a screenshot, and fails if the page is wider than its window or stores what it must not. */
  async shot(name, page = this.page) {
    await page.screenshot({ path: `${this.folder}/${name}.png`, fullPage: true, animations: 'disabled' })
    await expectNarrow(name, page)
    await this.checkStorage(page)
  }

  /** Takes a screenshot, and fails if axe finds anything that people can't use. */
  async look(name, page = this.page) {
    await this.shot(name, page)
    await expectAccessible(name, page)
  }

  /** Fails if anything that outlives the page has the secret, or outlives the tab at all. */
  async checkStorage(page) {
    const { local, all } = await page.evaluate(async () => ({
      local: { ...localStorage },
      all: JSON.stringify([
        { ...sessionStorage },
        document.cookie,
        history.state,
        await indexedDB.databases(),
        await globalThis.caches?.keys(),
      ]),
    }))
    assert.deepEqual(local, {}, 'the page uses localStorage, which the next person at this computer can read')
    assert.ok(!this.secret || !all.includes(this.secret), 'the secret is stored')
  }

  /** Closes the pages, and fails if anything went wrong. */
  async close() {
    for (const page of this.context.pages()) await this.checkStorage(page)
    assert.deepEqual(await this.context.cookies(), [], 'there are cookies')
    await Promise.all(this.checks)
    await this.context.close()
    assert.deepEqual(this.wrong, [], 'the page did what it must not')
  }
}
