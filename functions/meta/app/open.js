// What is open: processes that wait for a signature, and those that wait for IT.
import { get, may, userName } from './api.js'
import { assetLink } from './asset.js'
import { h, own, show } from './elements.js'
import { attempt, empty, pager } from './form.js'
import { builtIn, card, heading, link, runPath, skeleton, stepOf } from './page.js'
import { t } from './texts.js'
import { ago, moment } from './values.js'

const LIMIT = 100
/** Pages of instances to look at, from the oldest. */
const MOST_PAGES = 10
/** Lines on a page. Each asks for its person and its links. */
const LINES = 25
const MOST_SHOWN = 3

/** Returns the instances in progress, oldest first, and how many newer ones there are. */
async function running(signal) {
  const page = (page) => get('/processes/instances', signal, { status: 'in_progress', omit: 'signatures', limit: LIMIT, page })
  const first = await page(1)
  const last = first.meta.total_pages
  const numbers = Array.from({ length: Math.min(last, MOST_PAGES) }, (_, n) => last - n)
  const all = await Promise.all(numbers.map(async (n) => (n === 1 ? first : await page(n)).data))
  const found = all.flatMap((data) => data.toReversed())
  return { found, newer: Math.max(0, first.meta.total - found.length) }
}

/** Groups the instances of a movement, which advance together. */
function grouped(instances) {
  const groups = new Map()
  for (const one of instances) {
    const path = runPath(one)
    groups.set(path, [...(groups.get(path) ?? []), one])
  }
  return [...groups].map(([path, all]) => ({ path, all, step: all[0].steps[all[0].current_step] }))
}

/** Returns the person that the process is about: the one who was chosen, else the one who has the asset. */
async function personOf({ steps, step_data: data, asset_id: asset }, signal) {
  const picked = steps.filter(({ type }) => type === 'user_picker').map(({ key }) => data[key]).findLast(Boolean)
  const id = picked ?? (may('assets:read') ? (await get(`/assets/${asset}`, signal)).data.assigned_to : null)
  const name = id && (await userName(id))
  return name && link(own(name), `person/${id}`)
}

/** Tells who can sign with a link, or returns null if none is valid any more. */
async function linkOf(path, signal) {
  const { data } = await get(`/${path.replace('run/', '').replace('instances', 'processes/instances')}/links`, signal, { limit: 10 })
  const live = data.find(({ status }) => status === 'open')
  return live ? t('live-link', { name: live.signer.name, time: moment(live.expires_at) }) : null
}

/** Creates a line. The person and the link are added as soon as they are known. */
function line({ path, all, step }, signal) {
  const [first] = all
  const who = h('span')
  const signs = first.steps.slice(first.current_step).some(({ type }) => type === 'signature')
  const linked = h('p.hint')
  if (signs) linkOf(path, signal).then((text) => show(linked, text ?? (step?.type === 'signature' && t('no-live-link'))), () => {})
  personOf(first, signal).then((person) => person && show(who, ' · ', person), () => {})
  return h('li', h('div', link(own(builtIn(first.process_name)), path), who, ' · ', ago(first.started_at)),
    h('p.hint', stepOf(first)), signs && linked,
    h('p', all.slice(0, MOST_SHOWN).map((one, n) => [n > 0 && ', ', assetLink(one)]), all.length > MOST_SHOWN && ` ${t('elsewhere-count', { count: all.length - MOST_SHOWN })}`))
}

export function open(main, params, signal) {
  const place = h('div', skeleton(6))
  show(main, heading(t('nav.open')), place)
  const showAll = () => attempt(place, async () => {
    const { found, newer } = await running(signal)
    const all = grouped(found)
    if (!all.length) return show(place, empty(t('open-none'), t('open-none-hint')))
    const of = { signature: all.filter(({ step }) => step?.type === 'signature'), it: all.filter(({ step }) => step?.type !== 'signature') }
    const lines = [...of.signature, ...of.it]
    const pages = Math.ceil(lines.length / LINES)
    const page = Math.min(Math.max(1, Number(params.page) || 1), pages)
    const shown = new Set(lines.slice((page - 1) * LINES, page * LINES))
    const group = (name, some) => some.some((one) => shown.has(one)) && card(`${t(`open.${name}`)} (${some.length})`, h('ul.plain-list.runs', some.filter((one) => shown.has(one)).map((one) => line(one, signal))))
    show(place, group('signature', of.signature), group('it', of.it), newer > 0 && h('p.hint', t('elsewhere-count', { count: newer })),
      pager({ page, total_pages: pages }, (page, text) => link(text, 'open', { page }, 'button')))
  }, showAll)
  return { title: t('nav.open'), ready: showAll(), update: (next) => ((params = next), showAll()) }
}
