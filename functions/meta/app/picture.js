// Pictures of numbers. Each is also a table, for readers who can't see it.
import { h, svg } from './dom.js'
import { month, number, t } from './text.js'

const table = (title, head, rows, className) =>
  h(
    'table',
    { className },
    h('caption.unseen', title),
    h('thead.unseen', h('tr', head.map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', rows),
  )

/**
 * Bars, one for each row.
 * @param {string} title @param {{ name: any, count: number }[]} items
 */
export function bars(title, items) {
  const most = Math.max(1, ...items.map(({ count }) => count))
  const row = ({ name, count }) => {
    const bar = svg('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true', class: 'bar' })
    bar.append(svg('rect', { width: 100, height: 8, class: 'rest' }), svg('rect', { width: (100 * count) / most, height: 8 }))
    return h('tr', h('th', { scope: 'row' }, name, bar), h('td', number(count)))
  }
  return table(title, [title, t('count')], items.map(row), 'bars')
}

/**
 * A ring of shares, with its legend.
 * @param {string} title @param {{ name: any, count: number, look: string }[]} items
 */
export function ring(title, items) {
  const total = items.reduce((sum, { count }) => sum + count, 0)
  const around = 2 * Math.PI * 40
  let before = 0
  const arcs = items.filter(({ count }) => count > 0).map(({ count, look }) => {
    const length = (around * count) / total
    // A gap, unless it would leave nothing.
    const shown = count === total ? around : Math.max(length - 1.5, 1)
    const arc = svg('circle', { cx: 50, cy: 50, r: 40, class: look, 'stroke-dasharray': `${shown} ${around}`, 'stroke-dashoffset': -before })
    before += length
    return arc
  })
  const picture = svg('svg', { viewBox: '0 0 100 100', 'aria-hidden': 'true', class: 'ring' })
  picture.append(
    svg('circle', { cx: 50, cy: 50, r: 40, class: 'rest' }),
    svg('g', { transform: 'rotate(-90 50 50)' }, arcs),
    svg('text', { x: 50, y: 57, 'text-anchor': 'middle' }, number(total)),
  )
  const rows = items.map(({ name, count, look }) =>
    h('tr', h('th', { scope: 'row' }, h('i', { className: `dot ${look}`, 'aria-hidden': 'true' }), name), h('td', number(count))),
  )
  return h('div.with-ring', picture, table(title, [title, t('count')], rows, 'legend'))
}

/**
 * Columns, one for each month.
 * @param {string} title @param {{ from: Date, count: number, link: string }[]} months
 */
export function strip(title, months) {
  const most = Math.max(1, ...months.map(({ count }) => count))
  const column = ({ from, count, link }) => {
    const height = (36 * count) / most
    const picture = svg('svg', { viewBox: '0 0 20 48', 'aria-hidden': 'true' })
    picture.append(
      svg('rect', { x: 3, y: 47, width: 14, height: 1, class: 'rest' }),
      svg('rect', { x: 3, y: 47 - height, width: 14, height }),
      svg('text', { x: 10, y: 44 - height, 'text-anchor': 'middle' }, count ? number(count) : ''),
    )
    const name = month(from, 'long')
    return h(
      'td',
      h('a', { href: link, title: `${name}: ${number(count)}` }, picture, h('span', { 'aria-hidden': 'true' }, month(from, 'narrow')), h('span.unseen', `${name}: ${number(count)}`)),
    )
  }
  return h('table.strip', h('caption.unseen', title), h('tbody', h('tr', months.map(column))))
}
