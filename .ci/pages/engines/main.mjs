// The main ways of the pages in the engine that BROWSER names; play.mjs describes the arguments.
import { play } from '../play.mjs'
import { ways } from './ways.mjs'

const engine = process.env.BROWSER
const { launch } = await import(`./${engine}.mjs`)
// One at a time: the engines know one window.
await play(engine, { launch, scenarios: {}, alone: ways })
