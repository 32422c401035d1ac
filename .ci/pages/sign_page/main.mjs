// The browser's part of .ci/pages/sign:
//   node main.mjs <the dev server's ready file> <its log> <folder for screenshots> [names of scenarios, or main]
import { play } from '../play.mjs'
import { Api } from './api.mjs'
import { accessibility } from './accessibility.mjs'
import { devices } from './devices.mjs'
import { drawing } from './drawing.mjs'
import { fields } from './fields.mjs'
import { hostile } from './hostile.mjs'
import { languages } from './languages.mjs'
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
MAIN.push('a double tap', 'offline in the middle', 'a keyboard alone', 'hostile names on a phone', 'a used link', 'headers', 'secrets', 'in German')
const signing = [devices, drawing, submitted, surroundings, fields, movements]
const all = [served, ...signing, languages, repeats, network, accessibility, hostile, over, secrets]

await play('sign-page', {
  scenarios: all.flatMap(Object.entries),
  asked: asked.join() === 'main' ? MAIN : asked,
  folder,
  // Another name of this computer, which browsers don't trust as they trust its address.
  flags: ['--host-resolver-rules=MAP laptop.example 127.0.0.1'],
  makeScene(browser) {
    const scene = { browser, api: new Api(readyFile), log, folder }
    // It expires while the others run.
    scene.short = makeShort(scene)
    scene.short.catch(() => {})
    return scene
  },
  // They change the organization's settings.
  isAlone: (name) => [hostile, languages].some((scenarios) => Object.hasOwn(scenarios, name)),
})
