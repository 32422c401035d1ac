// Firefox by WebDriver BiDi.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import puppeteer from 'puppeteer-core'
import { PACE_MS } from './page.mjs'

/** A tab of the browser. */
class Tab {
  constructor(page) {
    this.page = page
  }

  open = (url) => this.page.goto(url)
  reload = () => this.page.reload()
  evaluate = (run, ...args) => this.page.evaluate(run, ...args)

  /** Moves the mouse along points, in CSS pixels of the window. One point is a click. */
  async stroke([{ x, y }, ...rest]) {
    const { mouse } = this.page
    await mouse.move(x, y)
    await mouse.down()
    for (const { x, y } of rest) {
      await new Promise((resolve) => setTimeout(resolve, PACE_MS))
      await mouse.move(x, y)
    }
    await mouse.up()
  }

  /** Types a text. A line feed presses Enter. */
  type = (text) => this.page.keyboard.type(text)

  async upload(selector, file) {
    const field = await this.page.$(selector)
    await field.uploadFile(file)
  }

  screenshot = (options) => this.page.screenshot(options)
  close = () => this.page.close()
}

export async function launch() {
  // Firefox writes to its home, too.
  const home = mkdtempSync(join(tmpdir(), 'firefox-'))
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr',
    headless: true,
    extraPrefsFirefox: { 'intl.accept_languages': 'en-US, en' },
    env: { ...process.env, HOME: home },
  })
  return {
    async newTab(viewport) {
      const page = await browser.newPage()
      await page.setViewport(viewport)
      return new Tab(page)
    },
    async close() {
      await browser.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
