// Browser part of .ci/pages/sign; play.mjs describes the arguments.
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
  // Another host name for this computer: unlike its IP address, browsers don't consider it a secure context.
  flags: ['--host-resolver-rules=MAP laptop.example 127.0.0.1'],
})
