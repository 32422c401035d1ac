// Browser part of .ci/pages/docs; play.mjs describes the arguments.
import assert from 'node:assert/strict'
import { play } from './play.mjs'
import { Visit } from './visit.mjs'

/** A visit to the viewer, which may store its settings. */
class Viewer extends Visit {
  mayStore = true
  isLong = true
}

/** The operations as suffixes of the viewer's links: `GET/assets/{id}`. */
const operationsOf = ({ paths }) =>
  Object.entries(paths).flatMap(([path, item]) =>
    ['get', 'post', 'put', 'patch', 'delete']
      .filter((method) => item[method])
      .map((method) => ({ ...item[method], link: method.toUpperCase() + path })),
  )

/** Compares the operations in the sidebar with the operations in the document. */
async function checkSidebar({ page }, operations, isPhone) {
  if (isPhone) await page.getByRole('button', { name: 'Open Menu' }).click()
  const sidebar = page.locator('aside:visible').first()
  const closed = sidebar.locator('button[aria-expanded="false"]')
  while (await closed.count()) await closed.first().click()
  const links = await sidebar.locator('a[href*="#"]').evaluateAll((all) => all.map((link) => decodeURIComponent(link.hash)))
  const missing = operations.filter(({ link }) => !links.some((known) => known.endsWith(`/${link}`)))
  assert.deepEqual(missing.map(({ link }) => link), [], 'the sidebar lacks operations')
  if (isPhone) await page.getByRole('button', { name: 'Close Menu' }).click()
}

/** Navigates to an operation with only the keyboard. */
async function find({ page }, operation) {
  await page.keyboard.press('Control+k')
  const search = page.getByRole('dialog')
  await search.getByRole('combobox').waitFor()
  await page.keyboard.type(operation.summary)
  await search.locator(`[role="option"][id$="/${operation.link}"]`).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => decodeURIComponent(url.hash).endsWith(`/${operation.link}`))
  await page.getByRole('heading', { name: operation.summary, exact: true }).first().waitFor()
  // Content above the operation can still be loading and move it.
  await page.waitForTimeout(1000)
}

/** Sends the request of the operation in view, and waits for an asset in its response. */
async function send({ page }, { link }, tag) {
  await page.locator(`[id$="/${link}"]`).first().getByRole('button', { name: /^Test Request/ }).first().click()
  const client = page.getByRole('dialog')
  const button = client.getByRole('button', { name: /^Send/ }).locator('visible=true').first()
  await button.waitFor()
  await page.waitForTimeout(500)
  const response = page.waitForResponse((response) => response.url().includes(link.replace('GET', '')))
  await button.click()
  assert.equal((await response).status(), 200)
  await client.getByText('200 OK').first().waitFor()
  await client.getByText(tag).first().scrollIntoViewIfNeeded()
}

/** Goes from the index to the documentation with the keyboard, and sends a request. */
async function read(scene, name, options) {
  const { api } = scene
  const operations = operationsOf(await (await api.send('GET', '/openapi.json')).json())
  const list = operations.find((operation) => operation.operationId === 'list_assets')
  const [{ asset_tag: tag }] = await api.get('/assets')
  const visit = await Viewer.open(scene, `${api.origin}/`, { secret: api.key, ...options })
  const { page } = visit
  page.setDefaultTimeout(60_000)
  // The viewer logs its name and version.
  visit.expected.push(/^@scalar\/api-reference@/)
  await visit.shot(`index-${name}`)
  const isReached = () => page.evaluate(() => document.activeElement.pathname?.endsWith('/docs'))
  for (let presses = 0; presses < 9 && !(await isReached()); presses++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${api.base}/docs*`)
  const field = page.getByPlaceholder('Token').first()
  await field.waitFor()
  await visit.shot(`docs-${name}-start`)
  await checkSidebar(visit, operations, options.viewport.width < 1000)
  await field.fill(api.key)
  await find(visit, list)
  await visit.shot(`docs-${name}-operation`)
  await send(visit, list, tag)
  await visit.shot(`docs-${name}-response`)
  assert.ok(!page.url().includes(api.key), 'the address has the key')
  await page.reload()
  await field.waitFor()
  assert.equal(await field.inputValue(), '', 'the key outlives a reload')
}

/** Without scripts, the page links to the document. */
async function withoutScripts(scene) {
  // The browser requests an icon for the document.
  const options = { javaScriptEnabled: false, failures: ['status of 404'] }
  const { page } = await Viewer.open(scene, `${scene.api.base}/docs`, options)
  await page.screenshot({ path: `${scene.folder}/docs-without-scripts.png` })
  await page.locator('noscript a').click()
  assert.equal(page.url(), `${scene.api.base}/openapi.json`)
}

const scenarios = { 'without scripts': withoutScripts }
for (const colorScheme of ['light', 'dark']) {
  for (const viewport of [{ width: 390, height: 844 }, { width: 1440, height: 900 }]) {
    const name = `${colorScheme}-${viewport.width}`
    scenarios[name] = (scene) => read(scene, name, { colorScheme, viewport })
  }
}
await play('docs-page', { scenarios })
