// Brings a list in: a file is looked at, its reading corrected, its effects shown, and then it is imported part by part.
import { Problem, may, plan, post, session } from './api.js'
import { isWorkbook, decoded } from './decoded.js'
import { takeDropped } from './dropped.js'
import { button, h, hint, own, show } from './elements.js'
import { select } from './fields.js'
import { attempt, field, problemBox } from './form.js'
import { forget, keep, kept } from './kept.js'
import { told } from './outcome.js'
import { heading, link, say } from './page.js'
import { mapping, proposal } from './proposal.js'
import { beginning, cell, delimiterOf, divided, isCsv, parts, withoutCells } from './records.js'
import { latest, pause, uuid } from './requests.js'
import { t } from './texts.js'

/** For less than a day, the service remembers which rows of a request it has imported. */
const REMEMBERED_MS = 23 * 3600 * 1000
const RETRY_SECONDS = 5
const SCOPES = { assets: 'assets:write', users: 'users:write' }

/**
 * An import in the browser. `key`: of whom it is. `rows`: the texts of the records, of which those with the indexes `sent` are
 * imported. `asWritten`: with the cells that are left out, which `lost` lists. `place`: the next request.
 * @typedef {{ id: string, key: string, at: number, kind: string, name: string, head: string, rows: string[], asWritten: string[], lost: any[], parameters: any[], sent: number[] }} Job
 * @typedef {{ place: number, counts: Record<string, number>, refused: { row: number, errors: any[] }[] }} Progress
 */

export async function importing(main, _, signal) {
  const kinds = Object.keys(SCOPES).filter((kind) => may(SCOPES[kind]))
  const place = h('div')
  const input = h('input', { type: 'file', accept: '.csv,.tsv,.txt,.json,.ndjson,text/csv', change: () => input.files?.[0] && open(input.files[0]) })
  const title = () => heading(t('bring-list'))

  /** Asks for a file. `wrong` says what is wrong with the last one. */
  function begin(wrong = '') {
    show(main, title(), h('section.card.form', field(t('file'), input), hint(t('file-hint'))), place)
    show(place, wrong && h('div.problem', { role: 'alert' }, h('p', wrong)))
    input.focus()
  }

  async function open(file) {
    const bytes = new Uint8Array(await file.arrayBuffer())
    if (isWorkbook(bytes)) return begin(t('workbook'))
    const text = decoded(bytes)
    if (text.slice(0, 1000).includes('\0')) return begin(t('not-list'))
    if (!text.trim()) return begin(t('empty-file'))
    await attempt(place, () => look({ name: file.name, text, kind: kinds[0] ?? '' }))
  }

  /** Shows how the file would be read. `given` are the decisions of the reader. */
  async function look({ name, text, kind }, given = /** @type {any[]} */ ([])) {
    const newLook = latest(signal)
    const suggest = async (kind, parameters) => (await post(`/${kind}/import/suggest`, { parameters, text: beginning(text) }, undefined, newLook())).data
    let found = await suggest(kind, given)
    if (!given.length && found.list === 'users' && kind !== 'users' && kinds.includes('users')) {
      kind = 'users'
      found = await suggest(kind, given)
    }
    const outcome = h('div')
    const chooser = kinds.length > 1 && field(t('list-of'), select(kinds.map((name) => [name, t(`list.${name}`)]), kind, {
      change: ({ target }) => attempt(outcome, () => look({ name, text, kind: target.value })) }))
    const box = h('div')
    const newCheck = latest(signal)
    /** The look that is going on. */
    let looking = Promise.resolve()
    const checking = () => attempt(outcome, async () => {
      await looking
      return checked({ name, text, kind, parameters: found.parameters, columns: found.columns, decide: (one) => decide([...given, one], true) }, outcome, newCheck())
    })
    /** Looks again after a decision, and shows what would happen if that was shown before. */
    async function decide(decided, isChecked = false) {
      given = decided
      newCheck()
      show(outcome, isChecked && h('progress', { ariaLabel: t('checking') }))
      looking = attempt(outcome, async () => {
        found = await suggest(kind, given)
        draw()
      })
      await looking
      if (isChecked) await checking()
    }
    const draw = () => show(box, proposal(found, kind, isCsv(text), decide, given))
    draw()
    const check = button(t('look-first'), checking, 'primary')
    show(main, h('div.title', title(), h('span.hint', own(name), ' · ', t('rows', { count: divided(text, found.parameters).rows.length }))),
      chooser, box, h('div.actions', check, button(t('other-file'), () => begin(), 'plain')), outcome)
    main.querySelector('h1').focus()
  }

  /** Shows what the import would do. Nothing is written. */
  async function checked(asked, place, signal, leftOut = new Map()) {
    const { name, text, kind, columns, decide } = asked
    const { head, rows } = divided(text, asked.parameters)
    const ignored = columns.flatMap(({ field, heading }, n) => (field === null ? [{ name: 'map', value: mapping(n, heading, '', isCsv(text)) }] : []))
    const parameters = [...asked.parameters, ...ignored]
    const texts = rows.map((row, n) => (leftOut.has(n) ? withoutCells(row, leftOut.get(n)) : row.text))
    const all = parts(head, texts)
    const bar = h('progress', { max: all.length, value: 0, ariaLabel: t('checking') })
    show(place, bar)
    /** @type {any[]} */
    const results = []
    for (const [n, part] of all.entries()) {
      const { data } = await plan(`/${kind}/import`, { parameters, text: part.text }, signal)
      // If a quote isn't closed, the service can find other rows than this page, and nobody knows whose results these are.
      if (data.length === part.indexes.length) for (const one of data) results.push({ ...one, index: part.indexes[one.row - 1] })
      else for (const index of part.indexes) results.push({ index, outcome: 'refused', errors: [{ detail: t('open-quote') }] })
      bar.value = n + 1
    }
    refuseDoubles(results)
    const lost = [...leftOut].flatMap(([row, cells]) => cells.map((n) => ({ row, heading: columns[n].heading, text: cell(rows[row], n) })))
    const good = results.filter(({ outcome }) => outcome !== 'refused')
    const begin = async () => {
      const sent = good.filter(({ outcome }) => outcome !== 'unchanged').map(({ index }) => index)
      const refused = results.filter(({ outcome }) => outcome === 'refused').map(({ index, errors }) => ({ row: index, errors }))
      const unchanged = good.length - sent.length
      const job = { id: uuid(), key: session.me.key.id, at: Date.now(), kind, name, head, rows: texts, asWritten: rows.map((row) => row.text), lost, parameters, sent }
      await run(job, { place: 0, counts: { created: 0, updated: 0, unchanged, refused: refused.length }, refused })
    }
    const columnsOf = (fieldName) => columns.flatMap((column, n) => (column.field === fieldName ? [n] : []))
    /** Looks again without the refused cells. */
    const skip = isCsv(text) && (() => {
      const bad = new Map(leftOut)
      for (const { index, outcome, errors } of results) {
        const cells = outcome === 'refused' ? errors.flatMap(({ column, code }) => (code === 'DUPLICATE' ? [] : columnsOf(column))) : []
        if (cells.length) bad.set(index, [...(bad.get(index) ?? []), ...cells])
      }
      return attempt(place, () => checked(asked, place, signal, bad))
    })
    const cellOf = (index, fieldName) => {
      const [column] = columnsOf(fieldName)
      return isCsv(text) && column !== undefined && columnsOf(fieldName).length === 1 ? cell(rows[index], column) : ''
    }
    show(place, await told(results, { kind, lost, cellOf, decide, skip, begin: () => attempt(place, begin) }))
    place.querySelector('h2')?.scrollIntoView({ block: 'start' })
  }

  /** Imports the parts, one after the other. Each has its own key, so that a part that was sent already does nothing twice. */
  async function run(/** @type {Job} */ job, /** @type {Progress} */ progress) {
    await Promise.all([keep('file', job), keep('progress', progress)]).catch(() => {})
    const { kind, parameters } = job
    const all = parts(job.head, job.rows, job.sent)
    const bar = h('progress', { max: all.length, value: progress.place, ariaLabel: t('importing') })
    const state = h('div', { role: 'status' })
    show(main, title(), h('section.card.form', h('p', own(job.name)), bar, hint(t('importing-hint'))), state)
    for (let part = all[progress.place]; part; part = all[progress.place]) {
      try {
        const { data, meta } = await post(`/${kind}/import`, { parameters, text: part.text }, `${job.id}-${progress.place}`, signal)
        for (const name of Object.keys(progress.counts)) progress.counts[name] += meta[name]
        for (const { row, outcome, errors } of data) if (outcome === 'refused') progress.refused.push({ row: part.indexes[row - 1] ?? 0, errors })
        show(state)
      } catch (error) {
        if (!(error instanceof Problem) || signal.aborted) throw error
        if (error.status !== 0 && error.status < 500 && error.status !== 429) return show(state, problemBox(error, () => run(job, progress)))
        show(state, h('p.offline', t('import-waits')))
        await Promise.race([pause(RETRY_SECONDS), new Promise((resolve) => addEventListener('online', resolve, { once: true }))])
        if (signal.aborted) return
        continue
      }
      progress.place += 1
      bar.value = progress.place
      await keep('progress', progress).catch(() => {})
    }
    await forget()
    await done(job, progress)
  }

  async function done({ kind, name, asWritten, lost, head, parameters }, { counts, refused }) {
    const results = refused.map(({ row, errors }) => ({ outcome: 'refused', index: row, errors }))
    const delimiter = isCsv(asWritten[0]) ? delimiterOf(head, parameters) : null
    const shown = await told(results, { kind, counts, lost, file: { name, head, rows: asWritten, delimiter } })
    const view = kind === 'users' ? 'people' : 'assets'
    show(main, title(), shown, h('div.actions', link(t(`nav.${view}`), view, {}, 'button'), button(t('other-file'), () => begin())))
    main.querySelector('h1').focus()
  }

  const before = await kept()
  const isOwn = before?.file.key === session.me.key.id && Date.now() - before.file.at < REMEMBERED_MS
  if (before && !isOwn) await forget()
  const file = takeDropped()
  if (before && isOwn) {
    const { progress } = before
    const goOn = button(t('resume'), () => attempt(place, () => run(before.file, progress)), 'primary')
    const stop = button(t('stop-import'), async () => {
      await forget()
      begin()
    })
    show(main, title(), h('section.card.form', h('p', t('import-stopped', { name: before.file.name, done: progress.place, of: parts(before.file.head, before.file.rows, before.file.sent).length })), h('div.actions', goOn, stop)), place)
    if (file) say(t('import-first'))
  } else if (file) {
    show(main, title(), place)
    await open(file)
  } else begin()
  return { title: t('bring-list') }
}

/** Refuses rows of different parts that are for the same record: in one request, the service does. */
function refuseDoubles(results) {
  const first = new Map()
  for (const one of results) {
    const other = one.match_key && first.get(one.match_key)
    if (!other) first.set(one.match_key, one)
    else for (const same of [other, one]) if (same.outcome !== 'refused')
      Object.assign(same, { outcome: 'refused', errors: [{ code: 'DUPLICATE', detail: t('same-row') }] })
  }
}
