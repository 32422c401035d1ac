// What a stock-taking is missing: assets that nobody has scanned, and those that people have.
import { dayOf, get, literal, may } from './api.js'
import { STATUSES, assetList } from './asset.js'
import { h, hint, show } from './elements.js'
import { card } from './page.js'
import { t } from './texts.js'
import { date } from './values.js'

/** A scrapped asset isn't expected anywhere. */
const EXPECTED = STATUSES.filter((name) => name !== 'scrapped').join()
const MOST_PAGES = 10

export const isFound = ({ outcome }) => outcome === 'seen' || outcome === 'moved'

/** The filters of the assets that are expected at a place. */
export const expected = (place) => ({ location: literal(place), kind: 'physical', status: EXPECTED })

/**
 * Reads what is missing at a place: up to `pages` times 100 assets that nobody has, and what people have. `count`: how many these are.
 * @returns {Promise<{ lost: any[], lostCount: number, held: any[], count: number }>}
 */
export async function readMissing({ place, since }, signal, pages = 1) {
  const unseen = async (more) => get('/assets', signal, { ...expected(place), last_seen_before: since, limit: 100, ...more })
  const expand = may('users:read') ? 'assigned_to' : ''
  const [first, all] = await Promise.all([unseen({ assigned_to: 'none' }), unseen({ expand })])
  const lost = [...first.data]
  for (let page = 2; page <= Math.min(first.meta.total_pages, pages); page++) lost.push(...(await unseen({ assigned_to: 'none', page })).data)
  // Lists can't be filtered by whether anyone has an asset.
  const count = all.meta.total - first.meta.total
  const isHeld = ({ assigned_to: holder }) => holder
  const held = all.data.filter(isHeld)
  for (let page = 2; held.length < count && page <= Math.min(all.meta.total_pages, MOST_PAGES); page++)
    held.push(...(await unseen({ expand, page })).data.filter(isHeld))
  return { lost, lostCount: first.meta.total, held, count }
}

/** Creates the lists of what is missing, without what has been scanned since they were read. */
export function missingCards({ lost, lostCount, held, count }, scans, empty, placeOf) {
  const found = new Set(scans.filter(isFound).map(({ asset }) => asset?.id))
  const left = (assets, total) => {
    const shown = assets.filter(({ id }) => !found.has(id))
    return { shown, total: total - (assets.length - shown.length) }
  }
  const rest = ({ total, shown }) => total > shown.length && hint(t('elsewhere-count', { count: total - shown.length }))
  const [gone, lent] = [left(lost, lostCount), left(held, count)]
  return [
    card(t('missing', { count: gone.total }), empty || (gone.total === 0 ? h('p', t('all-found')) : assetList(gone.shown, () => null)), rest(gone)),
    lent.total > 0 && card(t('with-people', { count: lent.total }), assetList(lent.shown, placeOf), rest(lent))]
}

/** Says who has an asset, and since when. */
export function holderOf({ id, assigned_user: user, assigned_since: claimed }, signal) {
  const name = user?.display_name ?? t('somebody')
  const place = h('span.hint', t('with', { name }))
  const shown = (day) => show(place, t('with-since', { name, day: date(day) }))
  if (claimed) shown(claimed)
  else {
    // Without the time, the list still says who has the asset.
    get(`/assets/${id}/history`, signal, { limit: 20 }).then(({ data }) => {
      const given = data.find(({ changes }) => changes?.assigned_to)
      if (given) shown(dayOf(new Date(given.at)))
    }, () => {})
  }
  return place
}
