// The browser's part of .ci/pages/docs: node docs.mjs <the dev server's ready file> <its log> <folder for screenshots>
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

const [readyFile, , folder] = process.argv.slice(2)
const { base_url: base, api_key: key } = JSON.parse(readFileSync(readyFile, 'utf8'))
const { origin } = new URL(base)
const api = await (await fetch(`${base}/openapi.json`)).json()
const first = (await (await fetch(`${base}/assets`, { headers: { authorization: `Bearer ${key}` } })).json()).data[0]
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** The operations as the ends of the viewer's links: `GET/assets/{id}`. */
const operations = Object.entries(api.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], link: method.toUpperCase() + path })),
)
const list = operations.find((operation) => operation.operationId === 'list_assets')

/** Opens a page that remembers whatever is wrong with it. */
async function open(browser, options) {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const wrong = []
  page.on('request', (request) => {
    const { protocol, origin: other } = new URL(request.url())
    if (other !== origin && protocol !== 'data:' && protocol !== 'blob:') wrong.push(`a request to ${request.url()}`)
  })
  page.on('console', (message) => message.type() === 'error' && wrong.push(`console: ${message.text()}`))
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      console.error(`${violatedDirective} is violated by ${blockedURI}`),
    )
  })
  return { context, page, wrong }
}

/** Fails if the page is wider than the window. */
async function checkWidth(page, where) {
  const [needed, has] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth])
  assert.ok(needed <= has, `${where} needs ${needed} pixels of ${has}`)
}

/** Fails if anything that outlives the page contains the key. */
async function checkStorage(page, context) {
  const stored = await page.evaluate(async () => ({
    local: { ...localStorage },
    session: { ...sessionStorage },
    databases: await indexedDB.databases(),
    caches: await caches.keys(),
    address: location.href,
    history: history.state,
  }))
  const all = JSON.stringify([stored, await context.cookies()])
  assert.ok(!all.includes(key), `the key is stored: ${all}`)
  assert.deepEqual([stored.databases, stored.caches], [[], []])
}

/** Lists the operations of the sidebar, and compares them with the document's. */
async function checkSidebar(page, isPhone, shot) {
  if (isPhone) await page.getByRole('button', { name: 'Open Menu' }).click()
  const sidebar = page.locator('aside:visible').first()
  await shot('menu')
  const closed = sidebar.locator('button[aria-expanded="false"]')
  while (await closed.count()) await closed.first().click()
  const links = await sidebar.locator('a[href*="#"]').evaluateAll((all) => all.map((link) => decodeURIComponent(link.hash)))
  const missing = operations.filter(({ link }) => !links.some((known) => known.endsWith(`/${link}`)))
  assert.deepEqual(missing.map(({ link }) => link), [], 'operations that are not listed')
  if (isPhone) await page.getByRole('button', { name: 'Close Menu' }).click()
}

/** Goes to an operation with the keyboard alone. */
async function find(page, operation, shot) {
  await page.keyboard.press('Control+k')
  const search = page.getByRole('dialog')
  await search.getByRole('combobox').waitFor()
  await page.keyboard.type(operation.summary)
  await search.locator(`[role="option"][id$="/${operation.link}"]`).waitFor()
  await shot('search')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => decodeURIComponent(url.hash).endsWith(`/${operation.link}`))
  await page.getByRole('heading', { name: operation.summary, exact: true }).first().waitFor()
  // What is above it may still be growing.
  await page.waitForTimeout(1000)
}

/** Sends the request of the operation in view, and waits for the first asset in its response. */
async function send(page, operation, shot) {
  const section = page.locator(`[id$="/${operation.link}"]`).first()
  await section.getByRole('button', { name: /^Test Request/ }).first().click()
  const client = page.getByRole('dialog')
  const send = client.getByRole('button', { name: /^Send/ }).locator('visible=true').first()
  await send.waitFor()
  await page.waitForTimeout(500)
  await shot('request')
  const response = page.waitForResponse((response) => response.url().startsWith(base + operation.link.replace('GET', '')))
  await send.click()
  assert.equal((await response).status(), 200)
  await client.getByText('200 OK').first().waitFor()
  await client.getByText(first.asset_tag).first().scrollIntoViewIfNeeded()
  await shot('response')
}

async function checkDocs(browser, name, options) {
  const { context, page, wrong } = await open(browser, options)
  const isPhone = options.viewport.width < 1000
  const shot = async (what) => {
    await page.screenshot({ path: `${folder}/docs-${name}-${what}.png` })
    await checkWidth(page, `${name}, ${what}`)
  }
  await page.goto(`${base}/docs`)
  const field = page.getByPlaceholder('Token').first()
  await field.waitFor()
  await shot('start')
  await checkSidebar(page, isPhone, shot)
  await field.fill(key)
  await find(page, list, shot)
  await shot('operation')
  await send(page, list, shot)
  await checkStorage(page, context)
  await page.reload()
  await field.waitFor()
  assert.equal(await field.inputValue(), '', 'the key outlives a reload')
  await checkStorage(page, context)
  assert.deepEqual(wrong, [], name)
  await context.close()
  console.log(`docs-page: ${name}: ${operations.length} operations are listed, and a request of the page is answered`)
}

async function checkIndex(browser, name, options) {
  const { context, page, wrong } = await open(browser, options)
  await page.goto(`${origin}/`)
  await checkWidth(page, `the index, ${name}`)
  await page.screenshot({ path: `${folder}/index-${name}.png` })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${base}/docs*`)
  assert.deepEqual(wrong, [], `the index, ${name}`)
  await context.close()
}

/** Without scripts, the page says where to read the same. */
async function checkWithoutScripts(browser) {
  const { context, page } = await open(browser, { javaScriptEnabled: false, viewport: { width: 390, height: 844 } })
  await page.goto(`${base}/docs`)
  await page.screenshot({ path: `${folder}/docs-without-scripts.png` })
  await page.locator('noscript a').click()
  assert.equal(page.url(), `${base}/openapi.json`)
  await context.close()
}

const quiet = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking']
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
try {
  for (const colorScheme of ['light', 'dark']) {
    for (const viewport of [{ width: 390, height: 844 }, { width: 1440, height: 900 }]) {
      const name = `${colorScheme}-${viewport.width}`
      await checkIndex(browser, name, { colorScheme, viewport })
      await checkDocs(browser, name, { colorScheme, viewport })
    }
  }
  await checkWithoutScripts(browser)
} finally {
  await browser.close()
}
console.log(`docs-page: look at the screenshots in ${folder}`)
