// The inventory page with many assets: time until the first rows, and longest block while typing. ASSETS is the number of
// assets (default 5,000).
import assert from 'node:assert/strict'
import { play } from '../play.mjs'
import { Visit, sees, until } from './visit.mjs'

const COUNT = Number(process.env.ASSETS ?? 5000)
const ROWS = 200
const COLUMNS = 'name,serial_number,location,purchase_date,purchase_price,custom_fields.cost_center'

function row(n) {
  const day = `${2020 + (n % 6)}-${String((n % 12) + 1).padStart(2, '0')}-15`
  const place = `Site ${n % 7} / Floor ${n % 5} / Room ${n % 211}`
  return [`Laptop ${n}`, `L-${n}`, place, day, `${500 + (n % 1500)}.50`, n % 40].join(',')
}

async function fill(api) {
  let next = 0
  const lane = async () => {
    while (next < COUNT) {
      const first = next
      next += ROWS
      const rows = Array.from({ length: Math.min(ROWS, COUNT - first) }, (_, n) => row(first + n))
      const headers = { authorization: `Bearer ${api.key}`, 'content-type': 'text/csv' }
      const response = await fetch(`${api.base}/assets/import`, { method: 'POST', headers, body: [COLUMNS, ...rows, ''].join('\n') })
      assert.equal(response.status, 200, 'an import fails')
    }
  }
  await Promise.all([lane(), lane()])
}

/** Records when the first row appears, and every task that blocks the page for 50 ms or longer. */
function observe() {
  globalThis.seen = { rows: 0, blocks: [] }
  new MutationObserver(() => {
    if (!seen.rows && document.querySelector('a.row')) seen.rows = performance.now()
  }).observe(document, { childList: true, subtree: true })
  new PerformanceObserver((list) => seen.blocks.push(...list.getEntries().map(({ duration }) => duration))).observe({
    type: 'longtask',
  })
}

async function large(scene) {
  await fill(scene.api)
  // The first list after so many changes may take more than one request.
  const visit = await Visit.open(scene, '#/assets', { failures: ['503'] })
  const { page } = visit
  const rows = page.locator('a.row')
  await sees(rows, 'the list is empty')
  await visit.context.addInitScript(observe)
  await page.reload()
  await sees(rows, 'the list is empty after a reload')
  await page.waitForLoadState('networkidle')
  const first = await page.evaluate(() => seen.rows)
  await page.evaluate(() => (seen.blocks = []))
  await page.keyboard.press('/')
  await page.keyboard.type('laptop 1234', { delay: 60 })
  await until(async () => (await rows.first().innerText()).includes('1234'), 'typing finds nothing')
  await page.waitForLoadState('networkidle')
  const { blocks } = await page.evaluate(() => seen)
  const longest = blocks.length ? `${Math.round(Math.max(...blocks))} ms` : 'less than 50 ms'
  console.log(`app-page: of ${COUNT} assets: the first rows after ${Math.round(first)} ms, the longest block while typing ${longest}`)
}

await play('app-page', { scenarios: { 'a large inventory': large } })
