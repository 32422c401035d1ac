// Fills in the form by visible labels and accessible names.
import assert from 'node:assert/strict'
import { DESKTOP, PHONE, Visit, sees } from '../visit.mjs'
import { Handover } from './handover.mjs'
import { draw } from './strokes.mjs'

/** Makes a scenario for a phone and a scenario for a desktop. `run` also gets the device's name. */
export const onBoth = (name, run) => ({
  [`${name}, on a phone`]: (scene) => run(scene, 'phone', PHONE),
  [`${name}, on a desktop`]: (scene) => run(scene, 'desktop', DESKTOP),
})

/** Returns the page's section for a step. */
export const part = (page, { label }) =>
  page.getByRole('group', { name: label }).or(page.getByRole('region', { name: label })).first()
export const textbox = (page, step) => part(page, step).getByRole('textbox')
export const errorOf = (page, step) => part(page, step).locator('[data-error]:visible, [role="alert"]:visible').first()
export const submitButton = (page) => page.getByRole('button', { name: /^(Sign and submit|Submit)$/ })
export const doneHeading = (page) => page.getByRole('heading', { level: 2, name: /Done|Thank you/ })
export const again = (page) => page.getByRole('button', { name: 'Try again' })
export const title = (page, name) => page.getByRole('heading', { level: 1, name, exact: true })
/** Returns the requests that submit the form, with their times. */
export const submissions = ({ requests }) => requests.filter(({ request }) => request.url().endsWith('/sign/advance'))

const FILL = {
  async user_picker(page, step, value) {
    const whole = part(page, step)
    if (value === 'me') return whole.getByRole('radio', { name: /^Me \(/ }).check()
    const other = whole.getByRole('radio', { name: 'Another person' })
    if (await other.count()) await other.check()
    await whole.getByRole('textbox', { name: 'E-mail address' }).fill(value)
  },
  async checklist(page, step, values = step.items) {
    for (const item of values) await part(page, step).getByRole('checkbox', { name: item, exact: true }).check()
  },
  text: (page, step, value) => textbox(page, step).fill(value),
  textarea: (page, step, value) => textbox(page, step).fill(value),
  select: (page, step, value) => part(page, step).getByRole('combobox').selectOption({ label: value }),
  date: (page, step, value) => part(page, step).locator('input[type="date"]').fill(value),
  confirmation: (page, { label }) => page.getByRole('checkbox', { name: label }).check(),
  complete: async () => {},
  signature: (page, step, options) => draw(page, { ...options, scope: part(page, step) }),
}

/** Fills in one step. For a signature, returns the size of the drawing. */
export async function fill(page, step, value) {
  await sees(part(page, step).or(page.getByText(step.label)), `the step "${step.label}" is not on the page`)
  return FILL[step.type](page, step, value)
}

export async function typeName(page, step, name) {
  await part(page, step).getByRole('button', { name: 'Type instead' }).click()
  await part(page, step).getByRole('textbox', { name: 'Your name' }).fill(name)
}

export const ready = (page) => sees(submitButton(page), 'the form does not appear')

/** Opens a link, and waits for the form. */
export async function openLink(scene, { url }, options) {
  const visit = await Visit.open(scene, url, options)
  await ready(visit.page)
  return { visit, page: visit.page }
}

/** Creates a handover, and opens its link. */
export async function open(scene, what, options) {
  const handover = await Handover.make(scene.api, what)
  return { handover, ...(await openLink(scene, handover, options)) }
}

/** Submits the form, and waits until the page says that it is done. */
export async function submit(page) {
  await submitButton(page).click()
  await isDone(page)
}

/** Waits until the page says that it is done, and shows the receipt. */
export async function isDone(page) {
  await sees(doneHeading(page), 'the page does not say that it is done', 30_000)
  await sees(page.getByRole('heading', { name: 'Receipt' }), 'the page does not show the receipt')
  await page.waitForFunction(() => performance.getEntriesByType('resource').some(({ name }) => name.includes('/sign/receipt')))
}

/** Fails unless the page has a message with these words. */
export const says = (page, words) =>
  sees(page.locator('#problem, #status, [role="alert"], [role="status"]').filter({ hasText: words }), `no message says ${words}`)

/** Fails unless a control's description has these words. */
export async function describedBy(control, words) {
  const text = await control.evaluate((element) => {
    const ids = element.closest('[aria-describedby]')?.getAttribute('aria-describedby') ?? ''
    return ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent).join(' ')
  })
  assert.match(text, words, 'something else describes the control')
}

/** Presses a button that saves the receipt. */
export async function saveReceipt(page, name = 'Save receipt') {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()])
  assert.match(download.suggestedFilename(), /\.(html|json)$/, 'the receipt is saved neither as HTML nor as JSON')
  return download.path()
}
