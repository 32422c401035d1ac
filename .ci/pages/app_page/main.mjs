// Browser part of .ci/pages/app; play.mjs describes the arguments.
import { play } from '../play.mjs'
import { assets, otherDays } from './assets.mjs'
import { handovers } from './handovers.mjs'
import { organisation, ownSettings } from './organisation.mjs'
import { scanning } from './scanning.mjs'
import { labelCodes, stock } from './stock.mjs'
import { hostileNames, surroundings } from './surroundings.mjs'

await play('app-page', {
  alone: { ...hostileNames, ...otherDays, ...labelCodes, ...ownSettings },
  scenarios: { ...assets, ...handovers, ...scanning, ...stock, ...organisation, ...surroundings },
  main: [
    ...['from a search', 'a change with a conflict', 'many assets', 'a handover', 'a take-back', 'a lost connection'],
    ...['a type with', 'a schema that', 'a key for', 'what is open'],
    ...['a key that can only look', 'hostile names', 'the code', 'under a finger', 'a scanner in a handover', 'no focus'],
  ],
})
