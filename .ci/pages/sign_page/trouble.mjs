// Lost connections, a busy service, repeated actions, and ended links: nothing is lost or done twice.
import assert from 'node:assert/strict'
import { newUser } from '../api.mjs'
import { DESKTOP, PHONE, Visit, refuse, sees, until } from '../visit.mjs'
import { again, doneHeading, fill, isDone, open, openLink, part, ready, says, submissions, submit } from './form.mjs'
import { submitButton, textbox, title } from './form.mjs'
import { Handover, STEPS } from './handover.mjs'
import { draw, inked } from './strokes.mjs'

const { checklist, text, signature } = STEPS
const ALL = [checklist, text, signature]
const ADVANCE = '**/v1/sign/advance'
const SESSION = '**/v1/sign/session'
const OFFLINE = 'You are offline. What you entered is kept.'

async function fillIn(page, hand) {
  await fill(page, checklist)
  await fill(page, text, '2.14')
  await draw(page, { hand })
}

async function filledIn(scene, options = PHONE, failures = []) {
  const opened = await open(scene, { steps: ALL }, { ...options, failures })
  await fillIn(opened.page, options.hasTouch ? 'touch' : 'mouse')
  return opened
}

async function end(handover, page) {
  await isDone(page)
  await handover.expectDoneOnce()
}

/** Submits the form once the connection is back. */
async function offline(scene) {
  const { handover, visit, page } = await filledIn(scene, PHONE, ['ERR_INTERNET_DISCONNECTED'])
  const before = await inked(page)
  await visit.context.setOffline(true)
  await submitButton(page).click()
  await says(page, OFFLINE)
  await sees(again(page), 'there is no button to try again')
  assert.deepEqual([await textbox(page, text).inputValue(), await inked(page)], ['2.14', before], 'the entries are lost')
  await visit.look('phone-offline')
  await handover.expectUntouched()
  await visit.context.setOffline(false)
  await end(handover, page)
}

/** Values edited while offline are not submitted automatically. */
async function editedOffline(scene) {
  const { handover, visit, page } = await filledIn(scene, PHONE, ['ERR_INTERNET_DISCONNECTED'])
  await visit.context.setOffline(true)
  await submitButton(page).click()
  await says(page, OFFLINE)
  await fill(page, text, '2.15')
  await visit.context.setOffline(false)
  await says(page, 'You are online again. Press the button to submit.')
  assert.equal(await again(page).count(), 0, 'the page still says that it is offline')
  await handover.expectUntouched()
  await submitButton(page).click()
  await end(handover, page)
}

async function openedOffline(scene) {
  const { visit, page } = await open(scene, { steps: [text] }, { ...PHONE, failures: ['ERR_FAILED'] })
  await page.route(SESSION, (route) => route.abort(), { times: 1 })
  await page.reload()
  await sees(again(page), 'without a connection, there is no button to try again')
  await visit.look('phone-opened-offline')
  await again(page).click()
  await ready(page)
}

/** The submission takes effect, but its response is lost. Then the form is sent again, or the page is reloaded. */
async function lostResponse(scene, press) {
  const { handover, visit, page } = await filledIn(scene, PHONE, ['ERR_'])
  const lose = async (route) => {
    await route.fetch()
    await route.abort('connectionreset')
  }
  await page.route(ADVANCE, lose, { times: 1 })
  await submitButton(page).click()
  await sees(again(page), 'after a lost response, there is no button to try again')
  await handover.expectDoneOnce()
  await press(page)
  await end(handover, page)
  const keys = new Set(submissions(visit).map(({ request }) => request.headers()['idempotency-key']))
  assert.equal(keys.size, 1, `the requests have other Idempotency-Keys: ${[...keys]}`)
}

/** The service is busy once, with `Retry-After`. The page retries automatically. */
async function busy(scene, status, code, words) {
  const { handover, visit, page } = await filledIn(scene, PHONE, [`status of ${status}`])
  await refuse(page, ADVANCE, { status, code }, { headers: { 'retry-after': '2' }, times: 1 })
  await submitButton(page).click()
  await says(page, `${words} Trying again in`)
  await end(handover, page)
  const [first, second, ...more] = submissions(visit).map(({ at }) => at)
  assert.ok(second - first >= 1900 && !more.length, `the form was sent again after ${second - first} ms, and then ${more}`)
}

/** The link's rate limit is exceeded when the page is opened. */
async function limit(scene) {
  const { visit, page } = await open(scene, { steps: [text] }, { ...PHONE, failures: ['status of 429'] })
  await refuse(page, SESSION, { status: 429, code: 'RATE_LIMITED' }, { headers: { 'retry-after': '30' }, times: 1 })
  await page.reload()
  await says(page, /^Too many attempts with this link\. Trying again in \d+ seconds?\.$/)
  await visit.look('phone-limit')
}

/** Typed, ticked and drawn values survive a reload, and are deleted after the submission. */
async function reload(scene) {
  const { handover, page } = await open(scene, { steps: ALL }, PHONE)
  await fill(page, checklist, ['Device', 'Bag'])
  await fill(page, text, 'Room 2.14')
  await draw(page, { hand: 'touch' })
  const before = await inked(page)
  await page.reload()
  await ready(page)
  const ticks = await part(page, checklist).getByRole('checkbox').evaluateAll((boxes) => boxes.map((box) => box.checked))
  assert.deepEqual([ticks, await textbox(page, text).inputValue()], [[true, false, true], 'Room 2.14'], 'a reload loses something')
  await until(async () => Math.abs((await inked(page)) - before) < before * 0.1, 'a reload loses the strokes')
  await fill(page, checklist)
  await submit(page)
  await handover.expectDoneOnce()
  assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'the draft remains after the submission')
}

/** The same link in two tabs. */
async function secondTab(scene) {
  const { handover, visit, page } = await filledIn(scene, DESKTOP, ['status of 409', 'status of 401'])
  const other = await visit.tab()
  await ready(other)
  await fillIn(other)
  // Browsers don't render a tab in the background.
  await page.bringToFront()
  await submit(page)
  await other.bringToFront()
  if (await submitButton(other).isVisible()) await submitButton(other).click()
  await sees(other.getByText(/already/i), 'the second tab does not say that the form was already submitted')
  await visit.look('desktop-second-tab', other)
  await handover.expectDoneOnce()
}

/** Somebody else submits the first step while the form is open. The remaining steps can still be submitted. */
async function overtaken(scene) {
  const { handover, visit, page } = await filledIn(scene, DESKTOP, ['status of 409'])
  await handover.advance({ handover: checklist.items })
  await submitButton(page).click()
  await says(page, /already|meanwhile|meantime|changed|submitted/i)
  await visit.look('desktop-overtaken')
  if (!(await doneHeading(page).isVisible())) await submitButton(page).click()
  await end(handover, page)
  assert.equal((await handover.stored()).room, '2.14', 'the remaining values are not stored')
}

async function twice(scene, options, press) {
  const { handover, visit, page } = await filledIn(scene, options)
  await press(page)
  await end(handover, page)
  assert.equal(submissions(visit).length, 1, 'pressing twice sends more than one request')
}

async function tapTwice(page) {
  await submitButton(page).scrollIntoViewIfNeeded()
  const { x, y, width, height } = await submitButton(page).boundingBox()
  const tap = () => page.touchscreen.tap(x + width / 2, y + height / 2)
  await Promise.all([tap(), tap()])
}

/** Opening another link in the same tab changes only the fragment. */
async function anotherLink(scene) {
  const { visit, page } = await open(scene, { steps: [text] })
  await fill(page, text, 'of the first')
  const other = await Handover.make(scene.api, { steps: [text], name: 'The other one' })
  await page.goto(other.url)
  await sees(page.getByText(other.name, { exact: true }), 'another link in the same tab is not opened')
  await ready(page)
  assert.equal(await textbox(page, text).inputValue(), '', 'the form has values entered for a different link')
  await fill(page, text, 'of the other')
  await submit(page)
  await other.expectDoneOnce()
  await page.goto(visit.url)
  await ready(page)
  assert.equal(await textbox(page, text).inputValue(), 'of the first', 'the draft of the first link is lost')
}

/** Going back after the submission shows the end, not the form. */
async function goBack(scene) {
  const { handover, page } = await filledIn(scene, DESKTOP)
  await submit(page)
  await page.goto('about:blank')
  await page.goBack()
  await end(handover, page)
  assert.equal(await submitButton(page).count(), 0, 'the form is back')
}

/** Fails unless a page says that its link has ended, and has nothing to submit. */
async function expectOver({ page }, heading) {
  await sees(title(page, heading), `the heading is not "${heading}"`)
  assert.equal(await submitButton(page).count(), 0, 'there is a button although there is nothing to submit')
}

async function opensAsOver(scene, url, heading, name, options = PHONE) {
  const visit = await Visit.open(scene, url, { ...options, failures: ['status of 401'] })
  await expectOver(visit, heading)
  if (name) await visit.look(name)
}

async function revoked(scene) {
  const handover = await Handover.make(scene.api, { steps: ALL })
  await handover.revoke()
  const zoomed = { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 }
  for (const [name, options] of Object.entries({ phone: PHONE, zoomed }))
    await opensAsOver(scene, handover.url, 'This link was revoked', `${name}-revoked`, options)
}

async function ended(scene) {
  const handover = await Handover.make(scene.api, { steps: ALL })
  await scene.api.post(`${handover.path}/cancel`, { reason: 'Ordered the wrong model' })
  await opensAsOver(scene, handover.url, 'This process has ended', 'phone-ended')
}

/** Nobody signs for a user who became inactive. */
async function inactive(scene) {
  const { api } = scene
  const user = await newUser(api)
  const handover = await Handover.make(api, { steps: [STEPS.user_picker, signature] })
  await handover.advance({ [STEPS.user_picker.key]: user.id })
  await api.patch(`/users/${user.id}`, { is_active: false })
  const { page } = await Visit.open(scene, handover.url, { ...PHONE, failures: ['status of 409'] })
  await says(page, /no longer belongs to the organization/)
}

async function revokedMeanwhile(scene) {
  const { handover, visit, page } = await filledIn(scene, PHONE, ['status of 401'])
  await handover.revoke()
  await submitButton(page).click()
  await expectOver(visit, 'This link was revoked')
}

/** Shows a link with a status that it would get only after a minute or a day. */
async function later(scene, status, heading) {
  const { visit, page } = await open(scene, { steps: ALL }, { ...PHONE, failures: ['status of 401'] })
  await refuse(page, SESSION, { status: 401, code: 'UNAUTHORIZED', link_status: status })
  await page.reload()
  await expectOver(visit, heading)
  await visit.look(`phone-${status}`)
}

async function invalid(scene) {
  const { url } = await Handover.make(scene.api, { steps: ALL })
  const page = url.split('#')[0]
  const mistyped = url.slice(0, -1) + (url.endsWith('a') ? 'b' : 'a')
  for (const [n, wrong] of [mistyped, url.slice(0, -20), `${page}#sgn_%ff%00<b>`, page, `${page}#${scene.api.key}`].entries())
    await opensAsOver(scene, wrong, 'This link is not valid', n ? null : 'phone-not-valid')
}

/** Mail and chat programs append text to links. */
async function tails(scene) {
  const { url } = await Handover.make(scene.api, { steps: ALL })
  for (const tail of ['.', ')', '%0A', '&x=1', '?fbclid=1']) await openLink(scene, { url: url + tail })
}

export const trouble = {
  'offline in the middle': offline,
  'edited while offline': editedOffline,
  'opened without a connection': openedOffline,
  'a lost response, sent again': (scene) => lostResponse(scene, (page) => again(page).click()),
  'a lost response, then a reload': (scene) => lostResponse(scene, (page) => page.reload()),
  'a 503': (scene) => busy(scene, 503, 'UNAVAILABLE', 'The service is busy.'),
  'a 429': (scene) => busy(scene, 429, 'RATE_LIMITED', 'Too many attempts with this link.'),
  'a 429 at once': limit,
  'a reload in the middle': reload,
  'a second tab': secondTab,
  'a step that others submit in the meantime': overtaken,
  'a double click': (scene) => twice(scene, DESKTOP, (page) => submitButton(page).dblclick()),
  'a double tap': (scene) => twice(scene, PHONE, tapTwice),
  'another link in the same tab': anotherLink,
  'back, after the end': goBack,
  'a revoked link': revoked,
  'a link that is revoked while the page is open': revokedMeanwhile,
  'a user who became inactive': inactive,
  'an ended process': ended,
  'a used link': (scene) => later(scene, 'used', 'This link has been used'),
  'an expired link': (scene) => later(scene, 'expired', 'This link has expired'),
  'no link at all': invalid,
  'links with a tail': tails,
}
