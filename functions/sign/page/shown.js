// Submitted values, as the page shows them.
import { h, hint, newId, own } from './elements.js'
import { sentence, t } from './texts.js'
import { date, zonedTime } from './values.js'

/**
 * @param {string[]} items
 * @param {Json[]} checked
 */
function shownChecklist(items, checked) {
  const line = (/** @type {string} */ item) => {
    const isChecked = checked.includes(item)
    const mark = h('span.mark', { 'aria-hidden': 'true' }, isChecked ? '✓' : '–')
    const state = h('span', { className: isChecked ? 'unseen' : 'hint' }, isChecked ? `, ${t('checked')}` : `, ${t('not-checked')}`)
    return h('li', mark, h('span', own(item), state))
  }
  return h('ul.checklist', ...items.map(line))
}

/**
 * @param {Step} step
 * @param {Json} value
 * @param {string | null} userName
 * @returns {Node}
 */
export function shownValue(step, value, userName) {
  if (step.items) return shownChecklist(step.items, Array.isArray(value) ? value : [])
  if (value === true) return h('p', step.type === 'complete' ? t('step-done') : t('yes'))
  if (typeof value === 'string' && value.trim()) {
    const text = step.type === 'date' ? date(value, { dateStyle: 'long' }) : step.type === 'user_picker' ? (userName ?? t('deleted-user')) : value
    return h('p.value', { dir: 'auto' }, text)
  }
  return hint(step.type === 'complete' ? t('step-done') : t('nothing-entered'))
}

export const typedHint = () => hint(t('typed'))

/** @param {SessionStep} entry @returns {Node} */
function shownSubmission({ step, value, user_name, is_stored, is_typed, signed_by, signed_at }) {
  if (step.type !== 'signature') return shownValue(step, value, user_name)
  if (!is_stored) return hint(t('not-signed'))
  // `signed_by` and `signed_at` are null only if there is no signature.
  const isKnown = signed_by && signed_at
  const signed = isKnown ? sentence('signed-by', { name: own(signed_by), time: zonedTime(signed_at) }) : [t('signed')]
  const statement = h('p.value', { dir: 'auto' }, step.statement ?? '')
  return h('div', statement, h('p', ...signed), is_typed ? typedHint() : null)
}

/** @param {SigningSession} session @returns {Node | string} */
export function shownSubmitted({ submitted }) {
  if (submitted.length === 0) return ''
  const title = h('h2', { id: newId() }, t('submitted-so-far'))
  const rows = submitted.map((entry) =>
    h('div', h('dt', own(entry.step.label)), h('dd', shownSubmission(entry))),
  )
  return h('section.submitted', { 'aria-labelledby': title.id }, title, h('dl', ...rows))
}
