// Links that are over, and what never was a link: the heading says so.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { ready, submitButton } from './form.mjs'
import { PHONE, Visit, sees } from './visit.mjs'

const steps = [STEPS.text, STEPS.signature]

/** Opens a URL, and fails unless the heading is this one and nothing can be submitted. */
async function expectHeading(scene, url, heading, name, options = PHONE) {
  const visit = await Visit.open(scene, url, options, ['status of 401'])
  const { page } = visit
  await sees(page.getByRole('heading', { level: 1, name: heading, exact: true }), `the heading is not "${heading}"`)
  assert.equal(await submitButton(page).count(), 0, 'there is a button to submit nothing')
  if (name) await visit.look(name)
  await visit.close()
}

async function revoked(scene) {
  const handover = await scene.api.handOver({ steps })
  await scene.api.call('DELETE', `${handover.path}/links/${handover.linkId}`)
  const zoomed = { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 }
  for (const [name, options] of Object.entries({ phone: PHONE, 'phone-dark': { ...PHONE, colorScheme: 'dark' }, zoomed })) {
    await expectHeading(scene, handover.url, 'This link was revoked', `${name}-revoked`, options)
  }
}

async function ended(scene) {
  const handover = await scene.api.handOver({ steps })
  await scene.api.post(`${handover.path}/cancel`, { reason: 'Ordered the wrong model' })
  await expectHeading(scene, handover.url, 'This process has ended', 'phone-dark-ended', { ...PHONE, colorScheme: 'dark' })
}

/** Revoked while the form is open: the page says so when it is submitted. */
async function revokedMeanwhile(scene) {
  const handover = await scene.api.handOver({ steps: [{ ...STEPS.text, required: false }] })
  const visit = await Visit.open(scene, handover.url, PHONE)
  visit.expectFailures('status of 401')
  await sees(submitButton(visit.page), 'the form does not appear')
  await scene.api.call('DELETE', `${handover.path}/links/${handover.linkId}`)
  await submitButton(visit.page).click()
  await sees(
    visit.page.getByRole('heading', { level: 1, name: 'This link was revoked' }),
    'the page does not say that the link was revoked',
  )
  await visit.close()
}

/** Only a day after the last step, a link is over as used. */
async function used(scene) {
  const handover = await scene.api.handOver({ steps })
  const visit = await Visit.open(scene, handover.url, PHONE)
  visit.expectFailures('status of 401')
  const { page } = visit
  await page.route('**/v1/sign/session', (route) => {
    const problem = {
      type: 'urn:problem:unauthorized',
      title: 'Unauthorized',
      status: 401,
      detail: 'The link has been used.',
      code: 'UNAUTHORIZED',
      link_status: 'used',
    }
    return route.fulfill({ status: 401, contentType: 'application/problem+json', body: JSON.stringify(problem) })
  })
  await page.reload()
  await sees(page.getByRole('heading', { level: 1, name: 'This link has been used' }), 'a used link does not say so')
  await visit.look('phone-used')
  await visit.close()
}

/** Changes the last character of a secret. */
const mistyped = (url) => url.slice(0, -1) + (url.endsWith('a') ? 'b' : 'a')

async function invalid(scene) {
  const { url } = await scene.api.handOver({ steps })
  const page = url.split('#')[0]
  const urls = [mistyped(url), url.slice(0, -20), `${page}#sgn_%ff%00<b>`, page, `${page}#${scene.api.key}`]
  for (const [n, wrong] of urls.entries())
    await expectHeading(scene, wrong, 'This link is not valid', n ? null : 'phone-not-valid')
}

/** Programs for mail and chat append to links. */
async function tails(scene) {
  const { url } = await scene.api.handOver({ steps })
  for (const tail of ['.', ')', '%0A', '&x=1', '?fbclid=1']) {
    const visit = await Visit.open(scene, url + tail)
    await ready(visit.page)
    await visit.close()
  }
}

/** Waits for the end of a link that was made for a minute. */
async function expired(scene) {
  const { url, ends } = await scene.short
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, ends - Date.now())))
  await expectHeading(scene, url, 'This link has expired', 'phone-expired')
}

/** Makes the link that expires while the other scenarios run. */
export async function makeShort({ api }) {
  const handover = await api.handOver({ steps, link: { expires_in: 60 } })
  return { url: handover.url, ends: Date.now() + 61_000 }
}

export const over = {
  'a revoked link': revoked,
  'an ended process': ended,
  'a link that is revoked meanwhile': revokedMeanwhile,
  'a used link': used,
  'no link at all': invalid,
  'links with a tail': tails,
  'an expired link': expired,
}
