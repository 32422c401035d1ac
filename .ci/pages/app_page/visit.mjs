// Opens the inventory page and monitors it.
import assert from 'node:assert/strict'
import { openLink, submitButton } from '../sign_page/form.mjs'
import { draw } from '../sign_page/strokes.mjs'
import { PHONE, Visit as Watched, sees } from '../visit.mjs'

export { newUser, unique } from '../api.mjs'
export { DESKTOP, PHONE, refuse, sees, until } from '../visit.mjs'

export class Visit extends Watched {
  /** Opens the page at a fragment such as `#/assets`, with a key. */
  static open(scene, fragment = '#/assets', { key = scene.api.key, ...options } = {}) {
    const url = `${scene.api.base}/app#${key ? `key=${key}&` : ''}${fragment.slice(1)}`
    return super.open(scene, url, { secret: key, ...options })
  }

  go = (fragment) => this.page.evaluate((hash) => (location.hash = hash), fragment)
  button = (name) => this.page.getByRole('button', { name })
  press = (name) => this.button(name).click()
  label = (name) => this.page.getByLabel(name)

  /** Checks that the key is only in the tab's storage, and not in the URL. */
  async checkStorage(page) {
    const [address, ...kept] = await page.evaluate(() => [location.href, { ...localStorage }, document.cookie])
    assert.ok(!this.secret || !address.includes(this.secret), 'the address has the key')
    assert.deepEqual(kept, [{}, ''], 'data outlives the tab')
  }
}

/** Signs with a link in a separate browser. */
export async function sign(scene, url) {
  const { page } = await openLink(scene, { url }, PHONE)
  await draw(page)
  await submitButton(page).click()
  await sees(page.locator('.done'), 'the signer can’t sign')
}

/**
 * Holds the next request to a URL. `asked` waits for the request, and `release` until the page has got the response or given it up.
 * @param {(url: URL) => boolean} isHeld
 */
export async function hold(page, isHeld) {
  let go
  const released = new Promise((resolve) => (go = resolve))
  const asked = page.waitForRequest((request) => isHeld(new URL(request.url())))
  const answer = async (route) => {
    await released
    await route.continue().catch(() => {})
  }
  await page.route(isHeld, answer, { times: 1 })
  const release = async () => {
    go()
    await (await asked).response()
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)))
  }
  return { asked, release }
}

/** Returns whether a URL asks for a plan. */
export const isPlan = ({ search }) => search === '?dry_run=true'
