// The browser's part of .ci/pages/app:
//   node main.mjs <the dev server's ready file> <its log> <folder for screenshots> [names of scenarios, or main]
import { play } from '../play.mjs'
import { Api } from '../sign_page/api.mjs'
import { assets } from './assets.mjs'
import { code } from './code.mjs'
import { handovers } from './handovers.mjs'
import { people } from './people.mjs'
import { stock } from './stock.mjs'
import { surroundings } from './surroundings.mjs'

const [readyFile, log, folder, ...asked] = process.argv.slice(2)
// The main ways, for the gate.
const MAIN = ['from a search', 'a change with a conflict', 'a handover', 'a take-back', 'a lost connection', 'a key that can only look', 'hostile names', 'the code']

await play('app-page', {
  scenarios: [code, assets, handovers, people, stock, surroundings].flatMap(Object.entries),
  asked: asked.join() === 'main' ? MAIN : asked,
  folder,
  makeScene: (browser) => ({ browser, api: new Api(readyFile), log, folder }),
  // It renames the organization.
  isAlone: (name) => name === 'hostile names',
})
