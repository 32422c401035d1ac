// Browser part of .ci/pages/app; play.mjs describes the arguments.
import { play } from '../play.mjs'
import { assets, otherDays } from './assets.mjs'
import { handovers } from './handovers.mjs'
import { imports } from './importing.mjs'
import { organisation, ownSettings } from './organisation.mjs'
import { puttingIn } from './putting_in.mjs'
import { scanning } from './scanning.mjs'
import { labelCodes, stock } from './stock.mjs'
import { hostileNames, surroundings } from './surroundings.mjs'

await play('app-page', {
  alone: { ...hostileNames, ...otherDays, ...labelCodes, ...ownSettings },
  scenarios: { ...assets, ...handovers, ...imports, ...organisation, ...puttingIn, ...scanning, ...stock, ...surroundings },
  main: [
    ...['from a search', 'a change with a conflict', 'many assets', 'a handover', 'a take-back', 'a lost connection'],
    ...['a type with', 'a schema that', 'a key for', 'what is open', 'a delivery of', 'a German list', 'interrupted'],
    ...['a key that can only look', 'hostile names', 'the code', 'under a finger', 'a scanner in a handover', 'no focus'],
  ],
})
