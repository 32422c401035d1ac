// With a keyboard alone, at 200 % zoom and on small screens, and without motion.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { doneHeading, fill, isDone, open, ready, submit, submitButton, typeName } from './form.mjs'
import { DESKTOP, Visit, sees } from './visit.mjs'

/** Returns what has the focus, and how one sees that. */
const focused = (page) =>
  page.evaluate(() => {
    const element = document.activeElement
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    const { top, bottom } = element.getBoundingClientRect()
    return {
      tag: element.tagName,
      type: element.type,
      name: (element.labels?.[0] ?? element).innerText.trim() || element.getAttribute('aria-label'),
      isMarked: (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2) || boxShadow !== 'none',
      isInView: bottom > 0 && top < innerHeight,
    }
  })

/** Presses Tab until something with this name has the focus, and fails if the focus can't be seen on the way. */
async function tabTo(page, name) {
  const passed = []
  let before = (await focused(page)).name
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press('Tab')
    const now = await focused(page)
    // Within a date, the browser itself marks the part that has the focus.
    if (now.tag === 'BODY' || (now.type === 'date' && now.name === before)) continue
    before = now.name
    assert.ok(now.isMarked, `the focus on ${now.name} can't be seen`)
    assert.ok(now.isInView, `${now.name} has the focus and is out of view`)
    if (name.test(now.name ?? '')) return
    passed.push(now.name)
  }
  assert.fail(`Tab never comes to ${name}, only to ${passed.join(', ')}`)
}

async function keyboard(scene) {
  const select = { type: 'select', key: 'floor', label: 'Floor', required: true, options: ['Ground', 'First'] }
  const date = { type: 'date', key: 'back', label: 'Expected back', required: true }
  const steps = [STEPS.checklist, STEPS.text, select, date, STEPS.signature]
  const { handover, visit, page } = await open(scene, { steps }, DESKTOP)
  for (const item of STEPS.checklist.items) {
    await tabTo(page, new RegExp(`^${item}`))
    await page.keyboard.press('Space')
  }
  await tabTo(page, /^Room/)
  await page.keyboard.type('2.14')
  await tabTo(page, /^Floor/)
  await page.keyboard.type('First')
  await tabTo(page, /^Expected back/)
  await page.keyboard.type('03312027')
  await tabTo(page, /^Type instead/)
  await visit.shot('desktop-focus')
  await page.keyboard.press('Space')
  if (!/Your name/.test((await focused(page)).name ?? '')) await tabTo(page, /^Your name/)
  await page.keyboard.type('Ada Lovelace')
  await tabTo(page, /^(Sign and submit|Submit)/)
  await page.keyboard.press('Enter')
  await isDone(page)
  const isTold = await page.evaluate(
    () => document.activeElement !== document.body || document.querySelector('[role="status"]')?.textContent.trim(),
  )
  assert.ok(isTold, 'nothing tells a screen reader that it is done')
  await scene.api.expectDoneOnce(handover)
  const [{ step_data: stored }] = await scene.api.instances(handover)
  assert.deepEqual(
    [stored.room, stored.floor, stored.back],
    ['2.14', 'First', '2027-03-31'],
    'the keyboard enters something else',
  )
  await visit.close()
}

/** All views in half the width, as with 200 % zoom, and in 320 pixels, as with 400 % on a small desktop. */
async function zoomed(scene, name, width, colorScheme) {
  const steps = [
    STEPS.checklist,
    { ...STEPS.text, label: `Room ${'or another place '.repeat(4)}` },
    { type: 'user_picker', key: 'user', label: 'Who saw it?', required: true },
    STEPS.signature,
  ]
  const asset = { name: `Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft ${'W'.repeat(100)}` }
  const window = { viewport: { width, height: 450 }, deviceScaleFactor: 2, colorScheme }
  const { visit, page } = await open(scene, { steps, asset, name: 'Rückgabe'.repeat(12) }, window)
  visit.expectFailures('status of 422')
  await visit.look(`${name}-open`)
  await submitButton(page).click()
  await sees(page.locator('[data-error]:visible'), 'there is no error')
  await visit.look(`${name}-errors`)
  const [picker] = steps.slice(2)
  await fill(page, steps[0])
  await fill(page, steps[1], 'x'.repeat(200))
  await fill(page, picker, 'grace.hopper@example.com')
  await fill(page, STEPS.signature)
  await visit.look(`${name}-drawn`)
  await typeName(page, STEPS.signature, 'Wolfeschlegelsteinhausenbergerdorff'.repeat(2))
  await visit.look(`${name}-typed`)
  await submit(page)
  await visit.look(`${name}-done`)
  await visit.close()
}

/** Without motion for those who asked for that. */
async function motion(scene) {
  const handover = await scene.api.handOver({ steps: [STEPS.text] })
  const visit = await Visit.open(scene, handover.url, { ...DESKTOP, reducedMotion: 'reduce' })
  const { page } = visit
  await page.route('**/v1/sign/advance', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 500))
    await route.continue()
  })
  const still = async (when) =>
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0, `something moves ${when}`)
  await ready(page)
  await still('in the form')
  await fill(page, STEPS.text, '2.14')
  await submitButton(page).click()
  await page.waitForTimeout(200)
  await still('while the form is sent')
  await doneHeading(page).waitFor()
  await still('when it is done')
  await visit.close()
}

export const accessibility = {
  'a keyboard alone': keyboard,
  '200 % zoom': (scene) => zoomed(scene, 'zoomed', 720, 'light'),
  '200 % zoom in the dark': (scene) => zoomed(scene, 'zoomed-dark', 720, 'dark'),
  'a narrow screen': (scene) => zoomed(scene, 'narrow', 320, 'light'),
  'reduced motion': motion,
}
