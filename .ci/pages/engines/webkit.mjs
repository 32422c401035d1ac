// WebKit by the WebDriver protocol: Debian's MiniBrowser on a virtual screen.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { until } from '../visit.mjs'
import { PACE_MS } from './page.mjs'

const MINI_BROWSER = process.env.MINI_BROWSER ?? '/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser'
/** What MiniBrowser's own bar takes of a window, in pixels. */
const BAR = 38
/** The protocol's name for an element's reference. */
const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
/** The protocol's code of the key. */
const ENTER = '\uE007'

/** Starts a program. Returns it and the first line that it writes to an output, if `output` is the output's number. */
async function start(name, args, env, output) {
  const program = spawn(name, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  process.on('exit', () => program.kill())
  const ended = new Promise((_, fail) => {
    program.on('error', (error) => fail(new Error(`${name} can’t be started: ${error.message}`)))
    program.on('exit', (code) => fail(new Error(`${name} has ended with ${code}`)))
  })
  ended.catch(() => {})
  const line = output && new Promise((resolve) => createInterface({ input: program.stdio[output] }).once('line', resolve))
  return { program, ended, line: line && (await Promise.race([line, ended])) }
}

function freePort() {
  const server = createServer()
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    server.close(() => resolve(port))
  }))
}

/** A tab of the browser. */
class Tab {
  constructor(send, handle) {
    Object.assign(this, { handle, all: send })
  }

  /** Sends a command to this tab. */
  async send(...command) {
    await this.all('POST', '/window', { handle: this.handle })
    return this.all(...command)
  }

  open = (url) => this.send('POST', '/url', { url })
  reload = () => this.send('POST', '/refresh', {})
  evaluate = (run, ...args) => this.send('POST', '/execute/sync', { script: `return (${run})(...arguments)`, args })

  /** Moves the mouse along points, in CSS pixels of the window. One point is a click. WebKitGTK’s driver knows no touch. */
  stroke(points) {
    const moves = points.map(({ x, y }, n) => ({ type: 'pointerMove', duration: n && PACE_MS, x: Math.round(x), y: Math.round(y) }))
    const actions = [moves[0], { type: 'pointerDown', button: 0 }, ...moves.slice(1), { type: 'pointerUp', button: 0 }]
    return this.send('POST', '/actions', { actions: [{ type: 'pointer', id: 'pointer', parameters: { pointerType: 'mouse' }, actions }] })
  }

  /** Types a text. A line feed presses Enter. */
  type(text) {
    const actions = [...text].flatMap((key) => ['keyDown', 'keyUp'].map((type) => ({ type, value: key === '\n' ? ENTER : key })))
    return this.send('POST', '/actions', { actions: [{ type: 'key', id: 'keyboard', actions }] })
  }

  async upload(selector, file) {
    const { [ELEMENT]: id } = await this.send('POST', '/element', { using: 'css selector', value: selector })
    await this.send('POST', `/element/${id}/value`, { text: file })
  }

  screenshot = async ({ path }) => writeFileSync(path, await this.send('GET', '/screenshot'), 'base64')
  close = () => this.send('DELETE', '/window')
}

export async function launch() {
  const { program: screen, line: display } = await start('Xvfb', ['-displayfd', '3', '-screen', '0', '1440x1000x24', '-nolisten', 'tcp'], {}, 3)
  const port = await freePort()
  const desk = { DISPLAY: `:${display}`, LC_ALL: 'C.UTF-8', LANGUAGE: 'en_US', NO_AT_BRIDGE: '1', GSETTINGS_BACKEND: 'memory' }
  const { program: driver, ended } = await start('WebKitWebDriver', [`--port=${port}`], desk)
  const call = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(60_000) })
    const { value } = await response.json()
    if (!response.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`)
    return value
  }
  const isReady = () => call('GET', '/status').then(({ ready }) => ready, () => false)
  await Promise.race([ended, until(isReady, 'WebKitWebDriver does not answer', 30_000)])
  const browser = { binary: MINI_BROWSER, args: ['--automation'] }
  const { sessionId: id } = await call('POST', '/session', { capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': browser } } })
  const send = (method, path, body) => call(method, `/session/${id}${path}`, body)
  const first = await send('GET', '/window')
  return {
    /** A window isn't narrower than 447 pixels. */
    async newTab({ width, height }) {
      await send('POST', '/window', { handle: first })
      // A tab in an existing window gets no presses.
      const tab = new Tab(send, (await send('POST', '/window/new', { type: 'window' })).handle)
      await tab.send('POST', '/window/rect', { x: 0, y: 0, width, height: height + BAR })
      return tab
    },
    async close() {
      await call('DELETE', `/session/${id}`)
      driver.kill()
      screen.kill()
    },
  }
}
