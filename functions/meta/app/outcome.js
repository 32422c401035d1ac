// What an import would do, and what it has done.
import { STATUSES, plain } from './asset.js'
import { button, h, hint, own, saveFile } from './elements.js'
import { select } from './fields.js'
import { field } from './form.js'
import { status } from './page.js'
import { choices, columnName, meaning } from './proposal.js'
import { t } from './texts.js'

const MOST_CHANGES = 50
const MOST_REASONS = 40
const MOST_ROWS = 8
const MOST_LOST = 200
const OUTCOMES = ['created', 'updated', 'unchanged', 'refused']

/**
 * Shows the outcome of each row: of a check with `begin`, or of an import with the counts and the file.
 * @param {any[]} results
 * @param {any} more
 */
export async function told(results, { kind, counts = countsOf(results), lost = /** @type {any[]} */ ([]), cellOf = () => '', decide, skip, begin, file }) {
  const reasons = reasonsOf(results)
  const written = counts.created + counts.updated
  const tallies = h('p.tallies', { role: 'status' }, OUTCOMES.filter((name) => counts[name] || name === 'created').map((name) =>
    h('span', h('b', String(counts[name])), ' ', t(`row.${name}`))))
  const isOfCells = results.some(({ outcome, errors }) => outcome === 'refused' && errors.every(({ column, code }) => column && code !== 'DUPLICATE'))
  return h('section.card.form', { ariaLabel: t(begin ? 'would-happen' : 'done') }, h('h2', t(begin ? 'would-happen' : 'done')), tallies,
    lost.length > 0 && h('details', h('summary', t('cells-left-out', { count: lost.length })), h('ul', lost.slice(0, MOST_LOST).map(({ row, heading, text }) =>
      h('li', t('in-rows', { count: 1, rows: String(row + 1) }), ': ', h('b', own(heading)), ' ', own(text)))),
    lost.length > MOST_LOST && hint(t('elsewhere-count', { count: lost.length - MOST_LOST }))),
    changesOf(results),
    reasons.length > 0 && h('div', h('h3', t('refused-rows')), h('ul.plain-list.refused', await Promise.all(reasons.slice(0, MOST_REASONS).map((one) => reasonLine(one, cellOf, decide)))),
      reasons.length > MOST_REASONS && hint(t('elsewhere-count', { count: reasons.length - MOST_REASONS }))),
    h('div.actions',
      begin && (written > 0 ? button(t('import-rows', { count: written }), begin, 'primary') : hint(t('nothing-to-import'))),
      begin && skip && isOfCells && button(t('leave-cells-out'), skip),
      file && results.length > 0 && button(t('save-refused'), () => saveRefused(results, file))),
    !begin && kind === 'assets' && written > 0 && hint(t('imported-hint')))
}

const countsOf = (results) => Object.fromEntries(OUTCOMES.map((name) => [name, results.filter(({ outcome }) => outcome === name).length]))

/** Returns the refusals, each with its rows: most rows first. */
function reasonsOf(results) {
  /** @type {Map<string, any>} */
  const found = new Map()
  for (const { outcome, index, errors } of results) {
    if (outcome !== 'refused') continue
    for (const error of errors) {
      const key = `${error.column ?? ''}\n${error.detail}`
      if (!found.has(key)) found.set(key, { ...error, rows: [] })
      found.get(key).rows.push(index)
    }
  }
  return [...found.values()].sort((a, b) => b.rows.length - a.rows.length)
}

/** Shows a refusal. If its field has choices, the refused text can mean one of them. */
async function reasonLine({ column, heading, detail, rows }, cellOf, decide) {
  const numbers = rows.slice(0, MOST_ROWS).map((row) => row + 1).join(', ')
  const text = column ? cellOf(rows[0], column) : ''
  const all = decide && text && (await choices(column))
  const chooser = all && field([own(text), ' ', t('means')], select([['', '–'], ...all], '', { change: ({ target }) => target.value && decide(meaning(column, text, target.value)) }))
  return h('li', h('div', column && [h('b', own(heading ?? columnName(column))), ' '], h('span', { lang: 'en' }, own(detail)), ' ',
    h('span.hint', t('in-rows', { count: rows.length, rows: numbers + (rows.length > MOST_ROWS ? ' …' : '') }))), chooser)
}

/** Shows what changes from what to what: by field with an example, and the first rows. */
function changesOf(results) {
  const changed = results.filter(({ outcome }) => outcome === 'updated')
  /** @type {Map<string, any>} */
  const fields = new Map()
  for (const { changes = [] } of changed) for (const change of changes) {
    if (!fields.has(change.field)) fields.set(change.field, { ...change, count: 0 })
    fields.get(change.field).count += 1
  }
  const shown = (value) => ((value ?? '') === '' ? '–' : STATUSES.includes(value) ? status(value) : own(plain(value)))
  const fromTo = ({ old, new: now }) => [h('del', shown(old)), ' → ', h('ins', shown(now))]
  if (!fields.size) return null
  return h('div', h('h3', t('row.updated')), h('ul', [...fields].map(([name, one]) => h('li', h('b', columnName(name)), ' ', h('span.hint', t('rows', { count: one.count })), ' ', fromTo(one)))),
    h('details', h('summary', t('row-by-row')), h('ol', changed.slice(0, MOST_CHANGES).map(({ index, changes = [] }) =>
      h('li', { value: index + 1 }, changes.map((one) => h('div', h('b', columnName(one.field)), ' ', fromTo(one))))))))
}

/** Saves the refused rows as they were: in CSV, with the reasons in a last column. */
function saveRefused(results, { name, head, rows, delimiter }) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`
  const why = new Map(results.map(({ index, errors }) => [index, errors.map(({ heading, detail }) => (heading ? `${heading}: ${detail}` : detail)).join('; ')]))
  const withMore = (text, more) => (delimiter ? text + delimiter + quoted(more) : text)
  const lines = [...why].sort(([a], [b]) => a - b).map(([index, reasons]) => withMore(rows[index], reasons))
  const header = head && `${withMore(head.trimEnd(), t('why-refused'))}\n`
  saveFile(`refused-${name}`, header + lines.map((line) => `${line}\n`).join(''), 'text/plain')
}
