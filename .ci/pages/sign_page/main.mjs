// The browser's part of .ci/pages/sign; play.mjs has the arguments.
import { play } from '../play.mjs'
import { accessibility } from './accessibility.mjs'
import { drawing } from './drawing.mjs'
import { hostile, hostileNames } from './hostile.mjs'
import { organizations, signing } from './signing.mjs'
import { trouble } from './trouble.mjs'

await play('sign-page', {
  alone: { ...hostileNames, ...organizations },
  scenarios: { ...trouble, ...signing, ...drawing, ...accessibility, ...hostile },
  main: [
    ...['by finger', 'by pen', 'every type of step, on a phone', 'of 3 assets', 'in German', 'a keyboard alone'],
    ...['a double tap', 'offline in the middle', 'a used link', 'hostile names', 'headers'],
  ],
  // Another name of this computer, which browsers don't trust as they trust its address.
  flags: ['--host-resolver-rules=MAP laptop.example 127.0.0.1'],
})
