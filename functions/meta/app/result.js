// The result of a stock-taking, on the page and as a file.
import { button, h, hint, own, saveFile } from './elements.js'
import { holderOf, isFound, missingCards } from './missing.js'
import { card, heading } from './page.js'
import { t } from './texts.js'
import { ago } from './values.js'

/** Returns the lines of the file: outcome, tag or code, name, location, person, time of the scan. */
function lines({ place, scans, ended: { lost, held } }) {
  const found = new Set(scans.filter(isFound).map(({ asset }) => asset?.id))
  const missing = (assets, text) => assets.filter(({ id }) => !found.has(id)).map((one) =>
    [text, one.asset_tag, one.name, one.location ?? place, one.assigned_user?.display_name ?? '', ''])
  const head = ['field.status', 'field.asset_tag', 'field.name', 'field.location', 'field.assigned_to', 'field.last_seen_at'].map((name) => t(name))
  return [head, ...scans.map(({ outcome, code, asset, at }) =>
    [t(`outcome.${outcome}`), asset?.asset_tag ?? code, asset?.name ?? '', asset?.location ?? (isFound({ outcome }) ? place : ''), '', at]),
  ...missing(lost, t('not-found')), ...missing(held, t('held'))]
}

/** Builds a CSV file (RFC 4180) that spreadsheets open as UTF-8 and in which they calculate nothing. */
const csv = (rows) => `\ufeff${rows.map((row) => row.map((cell) => `"${(/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`).join(',')).join('\r\n')}\r\n`

/** Creates the view of a stock-taking that has ended. */
export function result(state, actions, tallies, scanLine, signal) {
  const { place, scans, ended } = state
  const file = `stock-${place}-${ended.at.slice(0, 10)}`.replace(/[^\p{L}\p{N}]+/gu, '-')
  const save = button(t('save-file'), () => saveFile(`${file}.csv`, csv(lines(state)), 'text/csv'), 'primary')
  const unclear = scans.filter((one) => !isFound(one))
  return [h('div.title', heading(own(place)), hint(t('finished'), ' ', ago(ended.at))),
    h('p.tallies', tallies), h('div.actions', save, actions),
    missingCards(ended, scans, null, (asset) => holderOf(asset, signal)),
    unclear.length > 0 && card(t('unclear', { count: unclear.length }), h('ol.scans', unclear.map(scanLine)))]
}
