// Names, labels and values that contain markup or scripts are shown as text, and no script runs. Also checks the page's
// Content-Security-Policy.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { PHONE, Visit, refuse, sees } from '../visit.mjs'
import { fill, isDone, open, ready, submitButton, textbox, title, typeName } from './form.mjs'
import { Handover, STEPS as BY_TYPE } from './handover.mjs'

export const IMAGE = '<img src=x onerror="window.ran=1">'
export const SCRIPT = '"><script>window.ran=1</script>'
const QUOTES = `'"\`\${window.ran=1}{{7*7}}</textarea></select></title></style>`

/** Steps, and the value entered for each step. */
const STEPS = [
  [{ type: 'checklist', key: 'items', label: `Items ${IMAGE}`, items: [`a ${IMAGE}`, `b ${SCRIPT}`, `c ${QUOTES}`] }],
  [{ type: 'select', key: 'options', label: `Options ${SCRIPT}`, options: [`d ${IMAGE}`, `e ${SCRIPT}`] }, `e ${SCRIPT}`],
  [{ type: 'text', key: 'text', label: `Text ${QUOTES}`, required: true }, `Text ${SCRIPT}`],
  [{ type: 'textarea', key: 'area', label: `Area ${IMAGE}`, required: true }, `Area </textarea>${IMAGE}`],
  [{ type: 'user_picker', key: 'user', label: `User ${SCRIPT}`, required: true }],
  [{ type: 'confirmation', key: 'yes', label: `Yes ${IMAGE}` }],
  [{ type: 'signature', key: 'signature', label: `Sign ${SCRIPT}`, required: true }],
  [{ type: 'complete', key: 'complete', label: `Complete ${IMAGE}` }],
]

/** Fails if hostile text has created or changed an element. */
export async function expectNothing(page, when) {
  const found = await page.evaluate(() => [
    window.ran ?? null,
    document.querySelectorAll('img[src="x"], iframe, object, embed, [onerror]').length,
    [...document.scripts].filter(({ text }) => text.includes('window.ran')).length,
    document.title.length > 0,
  ])
  assert.deepEqual(found, [null, 0, 0, true], `hostile text had an effect ${when}`)
}

const names = (scene) =>
  scene.api.withSettings({ name: `Org ${IMAGE}` }, async () => {
    const asset = { name: `Asset ${SCRIPT}`, manufacturer: `Maker ${IMAGE}`, model: `Model ${IMAGE}` }
    asset.serial_number = `Serial ${Math.random()} ${SCRIPT}`
    const user = await scene.api.post('/users', { email: `hostile-${Math.random()}@example.com`, display_name: `User ${IMAGE}` })
    const steps = STEPS.map(([step]) => step)
    const what = { steps, name: `Process ${SCRIPT}`, asset, signer: { name: `Signer ${IMAGE}` } }
    const { handover, visit, page } = await open(scene, what, PHONE)
    await expectNothing(page, 'when the page opens')
    for (const text of [`Org ${IMAGE}`, what.name, asset.name, asset.serial_number, what.signer.name, steps.at(-1).label])
      await sees(page.getByText(text), `${text} is not shown as it is`)
    for (const [step, value] of STEPS) {
      if (step.type === 'signature') await typeName(page, step, IMAGE)
      else await fill(page, step, step.type === 'user_picker' ? user.email : value)
    }
    await expectNothing(page, 'when the form is filled in')
    await visit.look('phone-hostile')
    await page.reload()
    await ready(page)
    await expectNothing(page, 'when the draft is read')
    await submitButton(page).click()
    await isDone(page)
    await expectNothing(page, 'when it is done')
    await visit.look('phone-hostile-done')
    await handover.expectDoneOnce()
    await visit.close()
  })

/** An error from the service, or from a proxy, is shown as text. */
async function errors(scene) {
  const [step] = STEPS[2]
  const { handover, page } = await open(scene, { steps: [step] }, { failures: ['status of'] })
  for (const status of [422, 409, 500]) {
    const pointers = ['/step_data/text', `/step_data/${SCRIPT}`].map((pointer) => ({ pointer, detail: IMAGE }))
    const problem = { title: IMAGE, status, detail: IMAGE, code: SCRIPT, request_id: IMAGE, errors: pointers }
    await refuse(page, '**/v1/sign/advance', problem, { times: 1 })
    await textbox(page, step).fill(`sent ${status}`)
    const responded = page.waitForResponse('**/v1/sign/advance')
    await submitButton(page).click()
    await responded
    await page.waitForTimeout(300)
    await expectNothing(page, `of a ${status}`)
  }
  await handover.expectUntouched()
}

/** A secret that contains markup. */
async function secret(scene) {
  const { page } = await Visit.open(scene, `${scene.api.base}/sign#${IMAGE}${SCRIPT}`, { failures: ['status of 401'] })
  await sees(title(page, 'This link is not valid'), 'a hostile secret is not refused')
  await expectNothing(page, 'of a secret')
}

const MAX_BYTES = 85_000
const POLICY =
  "default-src 'none'; script-src SCRIPTS; style-src STYLES; img-src data: blob:; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'"

/** Returns the policy's sources for a page's inline elements. */
const hashes = (html, tag) =>
  [...html.matchAll(new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`, 'g'))]
    .map(([, text]) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)
    .join(' ')

/** The page refers to no other host, runs only its own script, and can't be framed. */
async function headers({ api }) {
  const response = await fetch(`${api.base}/sign`)
  const html = await response.text()
  const has = (name) => response.headers.get(name)
  const expected = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': POLICY.replace('SCRIPTS', hashes(html, 'script')).replace('STYLES', hashes(html, 'style')),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cache-control': 'public, max-age=300',
    'set-cookie': null,
  }
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, has(name)])), expected)
  assert.ok(Buffer.byteLength(html) <= MAX_BYTES, `the page has ${Buffer.byteLength(html)} bytes of ${MAX_BYTES}`)
  assert.doesNotMatch(html, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/, 'the page refers to a different host')
  const cached = await fetch(`${api.base}/sign`, { headers: { 'if-none-match': has('etag') } })
  assert.deepEqual([cached.status, await cached.text()], [304, ''], 'a cached page is transferred again')
}

/** Nobody signs for a name with a character that they can't see. Mail programs encode the # of links. */
async function unseen(scene) {
  const { url } = await Handover.make(scene.api, { steps: [BY_TYPE.signature] })
  const visit = await Visit.open(scene, url.replace('#', '%23'))
  const { page } = visit
  await ready(page)
  assert.equal(page.url(), url, 'an encoded address leads elsewhere')
  await page.route('**/v1/sign/session', async (route) => {
    const response = await route.fetch()
    const { data } = await response.json()
    const assets = data.assets.map((asset) => ({ ...asset, name: 'Lap\u200btop', serial_number: '12\u202e34' }))
    return route.fulfill({ response, json: { data: { ...data, assets, process_name: 'Hand\u2066over' } } })
  })
  await page.reload()
  for (const text of ['LapU+200Btop', /^Serial number 12U\+202E34$/, /HandU\+2066over/]) await sees(page.getByText(text), `the page lacks ${text}`)
  await visit.look('unseen')
}

async function withoutScripts(scene) {
  const visit = await Visit.open(scene, `${scene.api.base}/sign`, { javaScriptEnabled: false })
  await sees(visit.page.getByText(/JavaScript/), 'without scripts, the page does not say that it needs JavaScript')
  await visit.page.screenshot({ path: `${scene.folder}/without-scripts.png` })
}

export const hostileNames = { 'hostile names': names }
export const hostile = {
  'hostile errors': errors,
  'a hostile secret': secret,
  'characters that nobody sees, and an encoded #': unseen,
  'headers and size': headers,
  'without scripts': withoutScripts,
}
