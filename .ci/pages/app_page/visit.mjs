// The inventory's page, watched: whatever it must never do is remembered, and fails the scenario at its end.
import assert from 'node:assert/strict'
import { DESKTOP, PHONE, expectAccessible, expectNarrow, sees, until, watch } from '../sign_page/visit.mjs'

export { DESKTOP, PHONE, sees, until }

export class Visit {
  /** Opens the page at a fragment such as `#/assets`, with a key. */
  static async open({ browser, api, folder, contexts }, fragment = '#/assets', { key = api.key, failures = [], ...options } = {}) {
    const visit = new Visit()
    Object.assign(visit, { api, folder, key, wrong: [], checks: [], expected: [] })
    visit.expectFailures(...failures)
    visit.context = await browser.newContext({ colorScheme: 'light', locale: 'en-US', ...DESKTOP, ...options })
    contexts.push(visit.context)
    await visit.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
        console.error(`${violatedDirective} is violated by ${blockedURI}`),
      )
    })
    visit.page = await visit.context.newPage()
    visit.page.setDefaultTimeout(20_000)
    watch(visit, visit.page)
    await visit.page.goto(`${api.base}/app#${key ? `key=${key}&` : ''}${fragment.slice(1)}`)
    return visit
  }

  /** Goes to another fragment. */
  async go(fragment) {
    await this.page.evaluate((hash) => (location.hash = hash), fragment)
  }

  checkRequest(request) {
    const { protocol, origin, pathname } = new URL(request.url())
    if (protocol === 'data:' || protocol === 'blob:') return
    if (origin !== this.api.origin) this.wrong.push(`a request goes to ${request.url()}`)
    if (this.key && request.url().includes(this.key)) this.wrong.push(`a request has the key in its URL: ${request.url()}`)
    const check = request.allHeaders().then(({ authorization, referer, cookie, 'idempotency-key': idempotency, 'if-match': match }) => {
      if (referer ?? cookie) this.wrong.push(`${pathname} has a Referer or a cookie`)
      if (authorization && pathname.startsWith('/v1/app')) this.wrong.push(`${pathname} has the key`)
      const isReal = !request.url().includes('dry_run')
      if (request.method() === 'POST' && isReal && !idempotency) this.wrong.push(`a POST to ${pathname} has no Idempotency-Key`)
      if (request.method() === 'PATCH' && !match) this.wrong.push(`a PATCH of ${pathname} has no If-Match`)
    })
    this.checks.push(check.catch(() => {}))
  }

  /** Allows what the browser itself writes about responses with this status, or about a lost connection. */
  expectFailures(...causes) {
    this.expected.push(...causes.map((cause) => new RegExp(`^Failed to load resource: .*${cause}`)))
  }

  /** Takes a screenshot, and fails if the page is too wide or axe finds anything that people can't use. */
  async look(name) {
    await this.page.screenshot({ path: `${this.folder}/${name}.png`, animations: 'disabled' })
    await expectNarrow(name, this.page)
    await expectAccessible(name, this.page)
  }

  /** Closes the page, and fails if anything went wrong. */
  async close() {
    const { hash, local, cookies } = await this.page.evaluate(() => ({ hash: location.href, local: { ...localStorage }, cookies: document.cookie }))
    assert.ok(!this.key || !hash.includes(this.key), 'the address has the key')
    assert.deepEqual([local, cookies], [{}, ''], 'something outlives the tab')
    await Promise.all(this.checks)
    await this.context.close()
    assert.deepEqual(this.wrong, [], 'the page did what it must not')
  }
}

/** Signs with a mouse what a link asks for, in another browser. */
export async function sign({ browser, contexts }, url) {
  const context = await browser.newContext(PHONE)
  contexts.push(context)
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  await page.goto(url)
  const pad = page.locator('canvas')
  const { x, y } = await pad.boundingBox()
  await page.mouse.move(x + 20, y + 60)
  await page.mouse.down()
  for (const [dx, dy] of [[60, 20], [100, 80], [150, 30], [190, 70]]) await page.mouse.move(x + dx, y + dy, { steps: 4 })
  await page.mouse.up()
  await page.locator('button.primary').click()
  await sees(page.locator('.done'), 'the signer can’t sign')
  await context.close()
}
