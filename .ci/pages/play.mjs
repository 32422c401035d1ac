// Plays scenarios, which are functions of a scene, in a browser. Arguments: the dev server's ready file, a folder for
// screenshots, and parts of scenario names, or `main`.
import { chromium } from 'playwright-core'
import { Api } from './api.mjs'

function chromiumWith(flags) {
  const quiet = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', ...flags]
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
}

/**
 * Plays scenarios two at a time, after the scenarios `alone`, which change the organization's settings. Fails if any fails.
 * `main` has parts of the names of the scenarios that the gate plays. `launch` starts another browser than Chromium.
 */
export async function play(page, { scenarios, alone = {}, main = [], flags = [], launch = () => chromiumWith(flags) }) {
  const [readyFile, folder, ...parts] = process.argv.slice(2)
  const asked = parts.join() === 'main' ? main : parts
  const isAsked = ([name]) => !asked.length || asked.some((part) => name.includes(part))
  const browser = await launch()
  const scene = { browser, folder, api: new Api(readyFile) }
  const failed = []
  let played = 0

  async function playOne([name, run]) {
    const start = performance.now()
    const visits = []
    try {
      await run({ ...scene, visits })
      for (const visit of visits) await visit.close()
      console.log(`${page}: ${name}: ok (${((performance.now() - start) / 1000).toFixed(1)} s)`)
    } catch (error) {
      failed.push(name)
      console.error(`${page}: ${name}: FAILED: ${error.stack}`)
      for (const [n, shown] of visits.flatMap(({ context }) => context.pages()).entries())
        await shown.screenshot({ path: `${folder}/failed-${failed.length}-${n}.png` }).catch(() => {})
    }
    played++
    await Promise.all(visits.map(({ context }) => context.close()))
  }

  async function playAll(known, lanes) {
    const queue = Object.entries(known).filter(isAsked)
    const lane = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) await playOne(next)
    }
    await Promise.all(Array.from({ length: lanes }, lane))
  }

  await playAll(alone, 1)
  await playAll(scenarios, 2)
  await browser.close()
  if (!played) throw new Error(`no scenario has one of these in its name: ${asked.join(' ')}`)
  console.log(`${page}: ${played} scenarios, ${failed.length} failed: ${failed.join(', ')}; look at the screenshots in ${folder}`)
  process.exit(failed.length ? 1 : 0)
}
