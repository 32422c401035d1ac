// Lost connections, lost responses, and a service that is busy: nothing is lost, and nothing is done twice.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { again, doneHeading, fill, isDone, open, part, ready, says, submitButton } from './form.mjs'
import { draw, inked } from './strokes.mjs'
import { PHONE, Visit, sees } from './visit.mjs'

const ADVANCE = '**/v1/sign/advance'

async function filledIn(scene) {
  const { handover, visit, page } = await open(scene, { steps: [STEPS.text, STEPS.signature] }, PHONE)
  await fill(page, STEPS.text, '2.14')
  await draw(page, { hand: 'touch' })
  return { handover, visit, page }
}

async function end(scene, visit, handover) {
  await isDone(visit.page)
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

/** Sends what is there once the connection is back. */
async function offline(scene) {
  const { handover, visit, page } = await filledIn(scene)
  visit.expectFailures('ERR_INTERNET_DISCONNECTED')
  const before = await inked(page)
  await visit.context.setOffline(true)
  await submitButton(page).click()
  await says(page, 'You are offline. What you entered is kept.', 'offline')
  await sees(again(page), 'there is no button to try again')
  assert.equal(await part(page, STEPS.text).getByRole('textbox').inputValue(), '2.14', 'the text is lost')
  assert.equal(await inked(page), before, 'the strokes are lost')
  await visit.look('phone-offline')
  await scene.api.expectUntouched(handover)
  await visit.context.setOffline(false)
  await end(scene, visit, handover)
}

/** What is edited while offline is not sent by itself. */
async function editedOffline(scene) {
  const { handover, visit, page } = await filledIn(scene)
  visit.expectFailures('ERR_INTERNET_DISCONNECTED')
  await visit.context.setOffline(true)
  await submitButton(page).click()
  await says(page, 'You are offline. What you entered is kept.', 'offline')
  await fill(page, STEPS.text, '2.15')
  await visit.context.setOffline(false)
  await says(page, 'You are online again. Press the button to submit.', 'online again, after an edit')
  assert.equal(await again(page).count(), 0, 'the page still says that it is offline')
  await scene.api.expectUntouched(handover)
  await submitButton(page).click()
  await end(scene, visit, handover)
}

/** Opens a link while offline. */
async function openedOffline(scene) {
  const { visit, page } = await open(scene, { steps: [STEPS.text] }, PHONE)
  visit.expectFailures('ERR_FAILED', 'ERR_INTERNET_DISCONNECTED')
  await page.route('**/v1/sign/session', (route) => route.abort())
  await page.reload()
  await sees(again(page), 'without a connection, there is no button to try again')
  await visit.look('phone-opened-offline')
  await page.unroute('**/v1/sign/session')
  await again(page).click()
  await ready(page)
  await visit.close()
}

/** The service does it, but the response is lost. Then the form is sent again, or the page is reloaded. */
async function lostResponse(scene, press) {
  const { handover, visit, page } = await filledIn(scene)
  visit.expectFailures('ERR_')
  await page.route(
    ADVANCE,
    async (route) => {
      await route.fetch()
      await route.abort('connectionreset')
    },
    { times: 1 },
  )
  await submitButton(page).click()
  await sees(again(page), 'after a lost response, there is no button to try again')
  const [{ status }] = await scene.api.instances(handover)
  assert.equal(status, 'completed', 'the request did not get through: this tests nothing')
  await press(page)
  await isDone(page)
  const keys = new Set(visit.submissions.map((request) => request.headers()['idempotency-key']))
  assert.ok(keys.size === 1 && !keys.has(undefined), `the requests have other Idempotency-Keys: ${[...keys]}`)
  await end(scene, visit, handover)
}

/** The service is busy once, and says how long to wait. */
async function busy(scene, status, code, words) {
  const { handover, visit, page } = await filledIn(scene)
  visit.expectFailures(`status of ${status}`)
  const times = []
  await page.route(ADVANCE, (route) => {
    times.push(Date.now())
    if (times.length > 1) return route.continue()
    const problem = { type: `urn:problem:${code.toLowerCase()}`, title: 'Busy', status, detail: 'Try again in a moment.', code }
    return route.fulfill({
      status,
      headers: { 'retry-after': '2' },
      contentType: 'application/problem+json',
      body: JSON.stringify(problem),
    })
  })
  await submitButton(page).click()
  await says(page, words, `a ${status}`)
  await visit.look(`phone-${status}`)
  // Either the page waits and goes on by itself, or people press the button.
  await Promise.race([doneHeading(page).waitFor(), page.waitForTimeout(4000)])
  if (times.length === 1) await again(page).click()
  await isDone(page)
  assert.equal(times.length, 2, `the form was sent ${times.length} times`)
  assert.ok(times[1] - times[0] >= 1900, 'the form was sent again before the time that Retry-After says')
  await end(scene, visit, handover)
}

/** The service's own limit, which nobody reaches by hand. */
async function limit(scene) {
  const { api } = scene
  const { url, secret } = await api.handOver({ steps: [STEPS.text] })
  const ask = () => api.send('GET', '/sign/session', undefined, { authorization: `Bearer ${secret}` })
  // The limit is one of a clock minute, and what follows takes a part of one.
  const left = 60 - (Math.floor(Date.now() / 1000) % 60)
  if (left < 30) await new Promise((resolve) => setTimeout(resolve, left * 1000))
  let [last, asked] = [await ask(), 1]
  for (; last.status === 200 && asked < 130; asked++) last = await ask()
  assert.equal(last.status, 429, `${asked} requests in a row are not limited`)
  assert.ok(asked > 60 && Number(last.headers.get('retry-after')) > 0, `${asked} requests are limited, without a Retry-After`)
  const visit = await Visit.open(scene, url, PHONE, ['status of 429'])
  await says(visit.page, /^Too many attempts with this link\. Trying again in \d+ seconds?\.$/, 'the limit of requests')
  await visit.shot('phone-limit')
  await visit.close()
}

export const network = {
  "the service's limit": limit,
  'offline in the middle': offline,
  'edited while offline': editedOffline,
  'opened without a connection': openedOffline,
  'a lost response, sent again': (scene) => lostResponse(scene, (page) => again(page).click()),
  'a lost response, then a reload': (scene) => lostResponse(scene, (page) => page.reload()),
  'a 503': (scene) => busy(scene, 503, 'UNAVAILABLE', 'The service is busy. Trying again in'),
  'a 429': (scene) => busy(scene, 429, 'RATE_LIMITED', 'Too many attempts with this link. Trying again in'),
}
