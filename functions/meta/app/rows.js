// The table of the inventory.
import { fieldName, pill } from './asset.js'
import { choose, chosen, mayChoose } from './basket.js'
import { every, h, own } from './elements.js'
import { SORTABLE } from './filters.js'
import { link } from './page.js'
import { t } from './texts.js'
import { ago, date } from './values.js'

const COLUMNS = ['asset_tag', 'name', 'status', 'asset_type_id', 'location', 'assigned_to', 'warranty_until', 'updated_at']

/** @param {Element} body the table's place */
export const rowBoxes = (body) => every(body, 'td input')

/** Creates functions that create the table's head and rows. @param {any} view */
export function tableOf({ set, params: read, body, changed }) {
  let lastBox
  /** Selects or unselects a row and, with Shift, all rows back to the row clicked before. */
  function chooseRow({ target, shiftKey }) {
    const boxes = rowBoxes(body)
    const [from, to] = [boxes.indexOf(lastBox), boxes.indexOf(target)].sort((a, b) => a - b)
    lastBox = target
    choose(shiftKey && from >= 0 ? boxes.slice(from, to + 1) : [target], target.checked)
    changed()
  }
  const chooser = (members) => h('input', { type: 'checkbox', ...members })
  function row(asset) {
    const box = chooser({ value: asset.id, checked: chosen.has(asset.id), ariaLabel: t('choose', { name: `${asset.asset_tag} ${asset.name}` }), click: chooseRow })
    const make = [asset.manufacturer, asset.model].filter(Boolean).join(' ')
    return h('tr',
      h('td.c-box', mayChoose() && h('label', box)),
      h('td.c-tag', asset.asset_tag),
      h('td.c-name', link(own(asset.name), `asset/${asset.id}`, {}, 'row'), make && own(make, 'hint')),
      h('td.c-status', pill(asset.status)),
      h('td.c-type', own(asset.asset_type_name ?? '')),
      h('td.c-place', asset.location && link(own(asset.location), 'assets', { location: asset.location })),
      h('td.c-person', asset.assigned_to && link(own(asset.assigned_user?.display_name ?? t('somebody')), `person/${asset.assigned_to}`)),
      h('td.c-date', asset.warranty_until && date(asset.warranty_until)),
      h('td.c-date', ago(asset.updated_at)))
  }

  function head() {
    const column = (key) => {
      if (!SORTABLE.includes(key)) return h('th', { scope: 'col' }, fieldName(key))
      const direction = read().sort === key ? 'ascending' : read().sort === `-${key}` ? 'descending' : null
      const arrow = h('span', { ariaHidden: 'true' }, direction === 'ascending' ? ' ↑' : direction && ' ↓')
      return h('th', { scope: 'col', ariaSort: direction }, h('button', { type: 'button', click: () => set({ sort: direction === 'ascending' ? `-${key}` : key }) }, fieldName(key), arrow))
    }
    const all = chooser({ ariaLabel: t('choose-page'), change: () => (choose(rowBoxes(body), all.checked), changed()) })
    return h('thead', h('tr', h('th', { scope: 'col' }, mayChoose() && h('label', all)), COLUMNS.map(column)))
  }
  return (assets) => h('table.devices', h('caption.unseen', t('nav.assets')), head(), h('tbody', assets.map(row)))
}
