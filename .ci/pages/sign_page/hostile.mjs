// Names, labels and values that are markup or scripts: they are shown as they are, and nothing runs.
import assert from 'node:assert/strict'
import { fill, isDone, open, part, ready, submitButton, typeName } from './form.mjs'
import { DESKTOP, PHONE, Visit, sees } from './visit.mjs'

const IMAGE = '<img src=x onerror="window.ran=1">'
const SCRIPT = '"><script>window.ran=1</script>'
const QUOTES = `'"\`\${window.ran=1}{{7*7}}</textarea></select></title></style>`

const STEPS = [
  {
    type: 'checklist',
    key: 'items',
    label: `Items ${IMAGE}`,
    required: true,
    items: [`a ${IMAGE}`, `b ${SCRIPT}`, `c ${QUOTES}`],
  },
  { type: 'select', key: 'options', label: `Options ${SCRIPT}`, required: true, options: [`d ${IMAGE}`, `e ${SCRIPT}`] },
  { type: 'text', key: 'text', label: `Text ${QUOTES}`, required: true },
  { type: 'textarea', key: 'area', label: `Area ${IMAGE}`, required: true },
  { type: 'user_picker', key: 'user', label: `User ${SCRIPT}`, required: true },
  { type: 'confirmation', key: 'yes', label: `Yes ${IMAGE}` },
  { type: 'signature', key: 'signature', label: `Sign ${SCRIPT}`, required: true },
  { type: 'complete', key: 'complete', label: `Complete ${IMAGE}` },
]

/** Counts elements that hostile text would make or change. */
const injected = (page) =>
  page.evaluate(() => ({
    ran: window.ran ?? null,
    elements: document.querySelectorAll('img[src="x"], iframe, object, embed, [onerror]').length,
    scripts: [...document.scripts].filter(({ text }) => text.includes('window.ran')).length,
  }))

async function expectNothing(page, when) {
  assert.deepEqual(await injected(page), { ran: null, elements: 0, scripts: 0 }, `hostile text had an effect ${when}`)
}

async function attack(scene, options) {
  const { api } = scene
  const { name: organization } = await api.get('/settings')
  await api.call('PATCH', '/settings', { name: `Org ${IMAGE}` })
  try {
    const asset = {
      name: `Asset ${SCRIPT}`,
      manufacturer: `Maker ${IMAGE}`,
      model: `Model ${IMAGE}`,
      serial_number: `Serial ${Math.random()} ${SCRIPT}`,
    }
    const email = `hostile-${Math.random()}@example.com`
    const user = await api.post('/users', { email, display_name: `User ${IMAGE}` })
    const handover = await api.handOver({ steps: STEPS, name: `Process ${SCRIPT}`, asset, signer: { name: `Signer ${IMAGE}` } })
    const visit = await Visit.open(scene, handover.url, options)
    const { page } = visit
    await ready(page)
    await expectNothing(page, 'when the page opens')
    for (const text of [
      `Org ${IMAGE}`,
      `Process ${SCRIPT}`,
      asset.name,
      asset.serial_number,
      `Signer ${IMAGE}`,
      STEPS[7].label,
    ]) {
      await sees(page.getByText(text), `${text} is not shown as it is`)
    }
    await fill(page, STEPS[0])
    await fill(page, STEPS[1], `e ${SCRIPT}`)
    await fill(page, STEPS[2], `Text ${SCRIPT}`)
    await fill(page, STEPS[3], `Area </textarea>${IMAGE}`)
    await fill(page, STEPS[4], user.email)
    await fill(page, STEPS[5])
    await typeName(page, STEPS[6], IMAGE)
    await expectNothing(page, 'when the form is filled in')
    await visit.look(`${options.hasTouch ? 'phone' : 'desktop'}-hostile`)
    await page.reload()
    await ready(page)
    await expectNothing(page, 'when the draft is read')
    await submitButton(page).click()
    await isDone(page)
    await expectNothing(page, 'when it is done')
    await visit.look(`${options.hasTouch ? 'phone' : 'desktop'}-hostile-done`)
    await api.expectDoneOnce(handover)
    await visit.close()
  } finally {
    await api.call('PATCH', '/settings', { name: organization })
  }
}

/** Shows what a service, or whoever is between, says in an error as text. */
async function hostileErrors(scene) {
  const { handover, visit, page } = await open(scene, { steps: [STEPS[2]] })
  visit.expectFailures('status of')
  for (const status of [422, 409, 500]) {
    const problem = {
      title: IMAGE,
      status,
      detail: IMAGE,
      code: SCRIPT,
      errors: [
        { pointer: '/step_data/text', detail: IMAGE },
        { pointer: `/step_data/${SCRIPT}`, detail: IMAGE },
      ],
    }
    await page.route(
      '**/v1/sign/advance',
      (route) => route.fulfill({ status, contentType: 'application/problem+json', body: JSON.stringify(problem) }),
      { times: 1 },
    )
    await part(page, STEPS[2]).getByRole('textbox').fill(`sent ${status}`)
    const responded = page.waitForResponse('**/v1/sign/advance')
    await submitButton(page).click()
    await responded
    await page.waitForTimeout(300)
    await expectNothing(page, `of a ${status}`)
  }
  await scene.api.expectUntouched(handover)
  await visit.close()
}

/** A secret that is markup. */
async function hostileSecret(scene) {
  const visit = await Visit.open(scene, `${scene.api.base}/sign#${IMAGE}${SCRIPT}`, DESKTOP, ['status of 401'])
  await sees(visit.page.getByRole('heading', { level: 1, name: 'This link is not valid' }), 'a hostile secret is not refused')
  await expectNothing(visit.page, 'of a secret')
  await visit.close()
}

export const hostile = {
  'hostile names on a phone': (scene) => attack(scene, PHONE),
  'hostile names on a desktop': (scene) => attack(scene, DESKTOP),
  'hostile errors': hostileErrors,
  'a hostile secret': hostileSecret,
}
