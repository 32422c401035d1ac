// The browser's part of .ci/pages/sign:
//   node main.mjs <the dev server's ready file> <its log> <folder for screenshots> [names of scenarios, or main]
import { chromium } from 'playwright-core'
import { Api } from './api.mjs'
import { accessibility } from './accessibility.mjs'
import { devices } from './devices.mjs'
import { drawing } from './drawing.mjs'
import { fields } from './fields.mjs'
import { hostile } from './hostile.mjs'
import { movements } from './movements.mjs'
import { network } from './network.mjs'
import { makeShort, over } from './over.mjs'
import { repeats } from './repeats.mjs'
import { secrets } from './secrets.mjs'
import { served } from './served.mjs'
import { submitted } from './submitted.mjs'
import { surroundings } from './surroundings.mjs'

const [readyFile, log, folder, ...asked] = process.argv.slice(2)
// The main ways, for the gate.
const MAIN = ['phone, by finger', 'desktop in the dark, by pen', 'every type of step, on a phone', 'a movement of 3 assets']
MAIN.push('a double tap', 'offline in the middle', 'a keyboard alone', 'hostile names on a phone', 'a used link', 'headers', 'secrets')
const names = asked.join() === 'main' ? MAIN : asked
const signing = [devices, drawing, submitted, surroundings, fields, movements]
const all = [served, ...signing, repeats, network, accessibility, hostile, over, secrets]
const scenarios = all.flatMap(Object.entries).filter(([name]) => !names.length || names.some((part) => name.includes(part)))

const quiet = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking']
// Another name of this computer, which browsers don't trust as they trust its address.
quiet.push('--host-resolver-rules=MAP laptop.example 127.0.0.1')
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: quiet })
const scene = { browser, api: new Api(readyFile), log, folder }
// It expires while the others run.
scene.short = makeShort(scene)
scene.short.catch(() => {})
const failed = []
const begin = performance.now()
const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`

async function play([name, run]) {
  const start = performance.now()
  const contexts = []
  try {
    await run({ ...scene, contexts })
    console.log(`sign-page: ${name}: ok (${seconds(start)})`)
  } catch (error) {
    failed.push(name)
    console.error(`sign-page: ${name}: FAILED: ${error.stack}`)
    const pages = contexts.flatMap((context) => context.pages())
    for (const [n, page] of pages.entries())
      await page.screenshot({ path: `${folder}/failed-${failed.length}-${n}.png` }).catch(() => {})
  }
  await Promise.all(contexts.map((context) => context.close()))
}

/** Plays scenarios, so many at a time. */
async function playAll(queue, lanes) {
  const lane = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await play(next)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

try {
  // They rename the organization.
  const isAlone = ([name]) => Object.keys(hostile).includes(name)
  await playAll(scenarios.filter(isAlone), 1)
  await playAll(
    scenarios.filter((scenario) => !isAlone(scenario)),
    2,
  )
} finally {
  await browser.close()
}
if (!scenarios.length) throw new Error(`no scenario has one of these in its name: ${names.join(' ')}`)
if (failed.length) {
  console.error(`sign-page: ${failed.length} of ${scenarios.length} scenarios failed: ${failed.join(', ')}`)
  process.exit(1)
}
console.log(`sign-page: ${scenarios.length} scenarios in ${seconds(begin)}; look at the screenshots in ${folder}`)
