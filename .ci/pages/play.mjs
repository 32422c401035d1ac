// Plays scenarios in a browser: functions of a scene, by name.
import { chromium } from 'playwright-core'

/**
 * Plays scenarios, two at a time, and ends the process with an error if one fails. Those that are alone, by name, come first.
 * `asked` has parts of names.
 */
export async function play(page, { scenarios: known, asked, folder, flags = [], makeScene, isAlone = () => false }) {
  const scenarios = known.filter(([name]) => !asked.length || asked.some((part) => name.includes(part)))
  const quiet = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', ...flags]
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
  const scene = makeScene(browser)
  const failed = []
  const begin = performance.now()
  const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`

  async function playOne([name, run]) {
    const start = performance.now()
    const contexts = []
    try {
      await run({ ...scene, contexts })
      console.log(`${page}: ${name}: ok (${seconds(start)})`)
    } catch (error) {
      failed.push(name)
      console.error(`${page}: ${name}: FAILED: ${error.stack}`)
      const pages = contexts.flatMap((context) => context.pages())
      for (const [n, page] of pages.entries())
        await page.screenshot({ path: `${folder}/failed-${failed.length}-${n}.png` }).catch(() => {})
    }
    await Promise.all(contexts.map((context) => context.close()))
  }

  /** Plays scenarios, so many at a time. */
  async function playAll(queue, lanes) {
    const lane = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) await playOne(next)
    }
    await Promise.all(Array.from({ length: lanes }, lane))
  }

  try {
    await playAll(scenarios.filter(([name]) => isAlone(name)), 1)
    await playAll(scenarios.filter(([name]) => !isAlone(name)), 2)
  } finally {
    await browser.close()
  }
  if (!scenarios.length) throw new Error(`no scenario has one of these in its name: ${asked.join(' ')}`)
  if (failed.length) {
    console.error(`${page}: ${failed.length} of ${scenarios.length} scenarios failed: ${failed.join(', ')}`)
    process.exit(1)
  }
  console.log(`${page}: ${scenarios.length} scenarios in ${seconds(begin)}; look at the screenshots in ${folder}`)
}
