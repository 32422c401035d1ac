// What people do twice: reload, open the link again, and press the button again.
import assert from 'node:assert/strict'
import { STEPS } from './api.mjs'
import { doneHeading, fill, isDone, open, part, ready, says, submit, submitButton } from './form.mjs'
import { draw, inked } from './strokes.mjs'
import { DESKTOP, PHONE, sees, until } from './visit.mjs'

const { checklist, signature, text } = STEPS

const ALL = { steps: [checklist, text, signature] }

async function fillIn(page, hand) {
  await fill(page, checklist)
  await fill(page, text, '2.14')
  await draw(page, { hand })
}

/** What was typed, ticked and drawn outlives a reload, and nothing of it what was submitted. */
async function reload(scene) {
  const { handover, visit, page } = await open(scene, ALL, PHONE)
  await fill(page, checklist, ['Device', 'Bag'])
  await fill(page, text, 'Room 2.14')
  await draw(page, { hand: 'touch' })
  await visit.shot('phone-before-reload')
  const before = await inked(page)
  await page.reload()
  await ready(page)
  const ticks = await part(page, checklist)
    .getByRole('checkbox')
    .evaluateAll((boxes) => boxes.map((box) => box.checked))
  assert.deepEqual(ticks, [true, false, true], 'the ticks are lost by a reload')
  assert.equal(await part(page, text).getByRole('textbox').inputValue(), 'Room 2.14', 'the text is lost by a reload')
  await until(async () => Math.abs((await inked(page)) - before) < before * 0.1, 'the strokes are lost by a reload')
  await fill(page, checklist)
  await submit(page)
  await scene.api.expectDoneOnce(handover)
  const stored = await page.evaluate(() => Object.keys(sessionStorage))
  assert.deepEqual(stored, [], 'the draft stays after it was submitted')
  await visit.close()
}

/** The same link in two tabs. */
async function secondTab(scene) {
  const { handover, visit, page } = await open(scene, ALL, DESKTOP)
  visit.expectFailures('status of 409', 'status of 401')
  const other = await visit.tab()
  await ready(other)
  await fillIn(other)
  // A tab that is behind another one is not drawn.
  await page.bringToFront()
  await fillIn(page)
  await submit(page)
  await other.bringToFront()
  if (await submitButton(other).isVisible()) await submitButton(other).click()
  await sees(other.getByText(/already/i), 'the second tab does not say that it is done already')
  await visit.look('desktop-second-tab', other)
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

/** Somebody else submits the first step while the form is open. */
async function overtaken(scene) {
  const { handover, visit, page } = await open(scene, ALL, DESKTOP)
  visit.expectFailures('status of 409')
  await fillIn(page)
  await scene.api.post(`${handover.path}/advance`, { step_data: { handover: checklist.items } })
  await submitButton(page).click()
  await says(page, /already|meanwhile|meantime|changed|submitted/i, 'a step was submitted by others')
  await visit.look('desktop-overtaken')
  // What is left can still be submitted.
  if (!(await doneHeading(page).isVisible())) {
    await submitButton(page).click()
    await isDone(page)
  }
  const [{ status, step_data: stored }] = await scene.api.instances(handover)
  assert.deepEqual([status, stored.room], ['completed', '2.14'], 'what was left is not stored')
  await visit.close()
}

async function twice(scene, options, press) {
  const { handover, visit, page } = await open(scene, ALL, options)
  await fillIn(page, options.hasTouch ? 'touch' : 'mouse')
  await press(page)
  await isDone(page)
  assert.equal(visit.submissions.length, 1, `pressing twice sends ${visit.submissions.length} requests`)
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

const doubleClick = (scene) => twice(scene, DESKTOP, (page) => submitButton(page).dblclick())

const doubleTap = (scene) =>
  twice(scene, PHONE, async (page) => {
    await submitButton(page).scrollIntoViewIfNeeded()
    const { x, y, width, height } = await submitButton(page).boundingBox()
    const tap = () => page.touchscreen.tap(x + width / 2, y + height / 2)
    await Promise.all([tap(), tap()])
  })

/** Opening another link in the same tab changes no more than the fragment. */
async function anotherLink(scene) {
  const { visit, page } = await open(scene, { steps: [text] }, DESKTOP)
  await fill(page, text, 'of the first')
  const other = await scene.api.handOver({ steps: [text], name: 'The other one' })
  await page.goto(other.url)
  await sees(page.getByRole('heading', { level: 1, name: other.name }), 'another link in the same tab is not opened')
  assert.equal(await part(page, text).getByRole('textbox').inputValue(), '', 'the form has what was entered for another link')
  await fill(page, text, 'of the other')
  await submit(page)
  await scene.api.expectDoneOnce(other)
  await page.goto(visit.url)
  await ready(page)
  assert.equal(await part(page, text).getByRole('textbox').inputValue(), 'of the first', 'the draft of the first link is lost')
  await visit.close()
}

/** Going back after the end shows the end, not the form. */
async function goBack(scene) {
  const { handover, visit, page } = await open(scene, ALL, DESKTOP)
  await fillIn(page)
  await submit(page)
  await page.goto('about:blank')
  await page.goBack()
  await isDone(page)
  assert.equal(await submitButton(page).count(), 0, 'the form is back')
  await scene.api.expectDoneOnce(handover)
  await visit.close()
}

export const repeats = {
  'another link in the same tab': anotherLink,
  'back, after the end': goBack,
  'a reload in the middle': reload,
  'a second tab': secondTab,
  'a step that others submit meanwhile': overtaken,
  'a double click': doubleClick,
  'a double tap': doubleTap,
}
