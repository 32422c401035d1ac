// Uses the signing page with only a keyboard, at 200 % zoom, on small screens, and with reduced motion.
import assert from 'node:assert/strict'
import { sees } from '../visit.mjs'
import { doneHeading, fill, isDone, open, submit, submitButton, typeName } from './form.mjs'
import { STEPS } from './handover.mjs'

const { user_picker: picker, checklist, text, select, date, signature } = STEPS

/** Returns the focused element, and how its focus is visible. */
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

/** Presses Tab until an element with this name has the focus. Fails if the focus is ever invisible. */
async function tabTo(page, name) {
  const passed = []
  let before = (await focused(page)).name
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press('Tab')
    const now = await focused(page)
    // In a date field, Tab moves between the field's parts, whose focus the browser shows itself.
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
  const { handover, visit, page } = await open(scene, { steps: [checklist, text, select, date, signature] })
  for (const item of checklist.items) {
    await tabTo(page, new RegExp(`^${item}`))
    await page.keyboard.press('Space')
  }
  for (const [name, value] of [[/^Room/, '2.14'], [/^Floor/, 'First'], [/^Expected back/, '03312027']]) {
    await tabTo(page, name)
    await page.keyboard.type(value)
  }
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
  assert.ok(isTold, 'screen readers do not announce that the form is done')
  await handover.expectDoneOnce()
  const { room, floor, back } = await handover.stored()
  assert.deepEqual([room, floor, back], ['2.14', 'First', '2027-03-31'], 'the keyboard enters something else')
}

/** Checks all views at half the width, as with 200 % zoom, and at 320 pixels, as with 400 % on a small desktop. */
async function zoomed(scene, name, width) {
  const long = { ...text, label: `Room ${'or another place '.repeat(4)}` }
  const steps = [checklist, long, picker, signature]
  const asset = { name: `Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft ${'W'.repeat(100)}` }
  const window = { viewport: { width, height: 450 }, deviceScaleFactor: 2, failures: ['status of 422'] }
  const { visit, page } = await open(scene, { steps, asset, name: 'Rückgabe'.repeat(12) }, window)
  await visit.look(`${name}-open`)
  await submitButton(page).click()
  await sees(page.locator('[data-error]:visible'), 'there is no error')
  await visit.look(`${name}-errors`)
  await fill(page, checklist)
  await fill(page, long, 'x'.repeat(200))
  await fill(page, picker, 'grace.hopper@example.com')
  await fill(page, signature)
  await visit.look(`${name}-drawn`)
  await typeName(page, signature, 'Wolfeschlegelsteinhausenbergerdorff'.repeat(2))
  await visit.look(`${name}-typed`)
  await submit(page)
  await visit.look(`${name}-done`)
}

/** Checks that nothing is animated with `prefers-reduced-motion`. */
async function motion(scene) {
  const { page } = await open(scene, { steps: [text] }, { reducedMotion: 'reduce' })
  const still = async (when) =>
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0, `something moves ${when}`)
  await still('in the form')
  await fill(page, text, '2.14')
  let send
  await page.route('**/v1/sign/advance', (route) => (send = () => route.continue()))
  await submitButton(page).click()
  await page.waitForTimeout(200)
  await still('while the form is sent')
  await send()
  await doneHeading(page).waitFor()
  await still('when it is done')
}

export const accessibility = {
  'a keyboard alone': keyboard,
  '200 % zoom': (scene) => zoomed(scene, 'zoomed', 720),
  'a narrow screen': (scene) => zoomed(scene, 'narrow', 320),
  'reduced motion': motion,
}
