// Charts of the assets that the filters find: by status, by location, and by the month in which their warranties end.
import { get, today } from './api.js'
import { STATUSES } from './asset.js'
import { h, hint, own, show, svg } from './elements.js'
import { debounced } from './fields.js'
import { filters } from './filters.js'
import { attempt } from './form.js'
import { card, colon, link, skeleton, status } from './page.js'
import { latest } from './requests.js'
import { number, t } from './texts.js'
import { amount, date } from './values.js'

/**
 * Creates the panel of the charts. `drawSoon` draws them if the assets have changed, once the list is shown; `forget` makes it draw
 * them in any case.
 * @param {any} view
 */
export function pictures({ signal, params: read, isListing, total }) {
  const place = h('aside.pictures', { ariaLabel: t('pictures') }, skeleton(8))
  const panel = h('details.picture-panel', { open: innerWidth >= 1360, toggle: () => drawSoon() }, h('summary', t('pictures')), place)
  let pictured = ''
  const newPictures = latest(signal)
  async function draw() {
    const params = read()
    const asked = filters(params)
    const shown = JSON.stringify([asked, total()])
    if (pictured === shown) return
    pictured = shown
    const drawn = newPictures()
    const depth = Math.min(8, params.location && params.location !== 'none' ? params.location.split('/').length + 1 : 1)
    const filtered = (text, changes) => link(text, 'assets', { ...read(), page: '', ...changes })
    await attempt(place, async () => {
      const [{ data: { assets } }, { data: places }] = await Promise.all([
        get('/stats', drawn, asked), get('/stats', drawn, { ...asked, group_by: 'location', depth })])
      // Charts of nothing say nothing.
      if (!assets.total) return show(place)
      const months = card(t('warranties'), h('div.months', skeleton(3)))
      show(place, byStatus(assets, filtered), byPlace(places, depth, filtered), months)
      const strip = await byMonth(assets.warranty.ended, asked, drawn, params, filtered)
      if (strip) show(/** @type {Element} */ (months.lastElementChild), strip)
      else months.remove()
    }, () => {
      pictured = ''
      draw()
    })
  }
  const drawSoon = debounced(() => signal.aborted || !panel.open || isListing() || draw(), 500)
  return { panel, drawSoon, forget: () => (pictured = '') }
}

function byStatus({ by_status: counts, value_by_status: values, assigned, total }, filtered) {
  let before = 0
  const circle = (more) => svg('circle', { cx: 50, cy: 50, r: 42, pathLength: 100, ...more })
  const arcs = STATUSES.filter((name) => counts[name]).map((name) => {
    const share = (100 * counts[name]) / total
    const arc = circle({ class: `s-${name}`, 'stroke-dashoffset': -before, 'stroke-dasharray': `${Math.max(share - 1, share / 2)} 100` })
    before += share
    return arc
  })
  const row = (name) => line(counts[name] ?? 0, h('i', { className: `dot s-${name}`, ariaHidden: 'true' }), filtered(status(name), { status: name }))
  const ring = svg('svg', { class: 'ring', viewBox: '0 0 100 100', 'aria-hidden': 'true' }, circle(), arcs,
    svg('text', { x: 50, y: 57, 'text-anchor': 'middle' }, number(total)))
  const sum = Object.values(values).reduce((sum, value) => sum + Number(value), 0)
  return card(t('by-status'), h('div.shares', ring, table(t('by-status'), h('tbody', STATUSES.map(row)))),
    hint(t('value', { sum: amount(sum) }), ' · ', t('assigned', { count: assigned })))
}

function byPlace({ groups, rest }, depth, filtered) {
  if (!groups.some(({ value }) => value !== null)) return null
  const most = groups[0].count
  const row = ({ value, count }) => line(count,
    filtered(value === null ? t('no-location') : own(depth > 1 ? value.split(' / ').pop() : value), { location: value ?? 'none' }), bar((100 * count) / most, 100))
  const hidden = groups.slice(10).reduce((sum, { count }) => sum + count, rest.count)
  return card(t('by-location'), table(t('by-location'), h('tbody', groups.slice(0, 10).map(row))), hidden > 0 && hint(t('elsewhere-count', { count: hidden })))
}

/** Counts warranties in each of 12 months: one request for the first 100 assets, and one for each month after these assets. */
async function countMonths(asked, drawn) {
  const [year, month] = today().split('-')
  const starts = Array.from({ length: 13 }, (_, n) => n ? new Date(Date.UTC(+year, +month - 1 + n)).toISOString().slice(0, 10) : today())
  const read = (from, before, limit) => get('/assets', drawn, { ...asked, warranty_from: from, warranty_before: before, sort: 'warranty_until', limit })
  const { data, meta: { total } } = await read(starts[0], starts[12], 100)
  const months = []
  for (let n = 0; n < 12; n++) {
    const [from, before] = starts.slice(n)
    const isComplete = total === data.length || data.at(-1).warranty_until >= before
    const count = isComplete ? data.filter(({ warranty_until: end }) => end >= from && end < before).length : (await read(from, before, 1)).meta.total
    months.push({ from, before, count })
  }
  return { months, today: starts[0] }
}

async function byMonth(ended, asked, drawn, params, filtered) {
  const { months, today } = await countMonths(asked, drawn)
  const most = Math.max(1, ...months.map(({ count }) => count))
  if (!ended && months.every(({ count }) => !count)) return null
  const head = ({ from, before }, n) => {
    const name = filtered(date(from, { month: 'narrow' }), { from, before, sort: 'warranty_until' })
    name.ariaLabel = name.title = date(from, { month: 'long', year: 'numeric' })
    name.ariaCurrent = params.from === from ? 'true' : null
    const startsYear = n === 0 || from.slice(5, 7) === '01'
    return h('th', { scope: 'col' }, name, startsYear && h('span.year', date(from, { year: 'numeric' })))
  }
  const strip = table(t('warranties'), h('thead', h('tr', months.map(head))),
    h('tbody', h('tr', months.map(({ count }) => h('td', h('span', number(count)), bar(100, (100 * count) / most))))))
  strip.className = most > 999 ? 'strip long' : 'strip'
  return [strip, ended > 0 && hint(filtered(t('warranty-ended'), { from: '', before: today, sort: 'warranty_until' }), colon(), number(ended))]
}

/** Creates the table that contains a chart, so that screen readers can read the values. */
const table = (title, ...rows) => h('table', h('caption.unseen', title), rows)

const line = (count, ...name) => h('tr', h('th', { scope: 'row' }, name), h('td', number(count)))

/** Draws a rectangle in an area of 100 by 100. */
const bar = (width, height) =>
  svg('svg', { class: 'bar', viewBox: '0 0 100 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('rect', { width, height, y: 100 - height }))
