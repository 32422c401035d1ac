// The inventory: search, filters, the list, actions on selected assets, and charts.
import { cached, fresh, get, may, send } from './api.js'
import { codeOpens } from './asset.js'
import { MOST_CHOSEN, basket, choose, chosen } from './basket.js'
import { button, every, h, own, saveFile, show } from './elements.js'
import { chips, controlled, filterControls, filters } from './filters.js'
import { attempt, empty, findPlaces, pager, searchField } from './form.js'
import { closed, current, go, link, query, skeleton } from './page.js'
import { pictures } from './pictures.js'
import { latest } from './requests.js'
import { rowBoxes, tableOf } from './rows.js'
import { endsScan, takeScans } from './suggest.js'
import { number, t } from './texts.js'

const LIMIT = 50
/** Maximum number of assets in a page of the list. */
const MOST_LISTED = 100
const MOST_OTHERS = 3

const listPath = (params, expand) =>
  `/assets${query({ ...filters(params), sort: params.sort, page: Number(params.page) || 1, limit: LIMIT, expand })}`

/** Requests the first page before the key's scopes are known, as if the key could read users: most keys can. */
export const readAhead = (params) => cached(listPath(params, 'assigned_to')).catch(() => {})

export function inventory(main, first, signal) {
  let params = first
  // A pause in typing can end after the page has gone on to an asset.
  const set = (changes) => current().path[0] === 'assets' && go('assets', { ...params, page: '', ...changes }, true)
  const body = h('div.list', { ariaBusy: 'true' }, skeleton(10))
  const totals = h('p', { role: 'status' })
  const view = { signal, set, body, params: () => params, total: () => totals.textContent, isListing: () => body.ariaBusy === 'true',
    changed: () => selection.changed() }
  const search = searching(view)
  const clear = h('div.chips')
  const others = h('p.others', { ariaLabel: t('also-found'), role: 'group', hidden: true })
  const pages = h('div')
  const charts = pictures(view)
  const controls = filterControls(view)
  let found = 0
  const selection = basket({ cleared: () => choose(rowBoxes(body), false), moved: showAll, gone: showList, found: () => found, chooseAll })
  const table = tableOf(view)
  show(main,
    h('h1.unseen', { tabIndex: -1 }, t('nav.assets')),
    h('div.inventory', h('div.with-action', search, link(t('new-asset'), 'new', {}, 'button primary')), h('details', { open: innerWidth >= 800 }, h('summary', t('filters')), controls.box), charts.panel,
      h('div', others, h('div.totals', totals, clear, h('span.more', !closed.has('import') && link(t('bring-list'), 'import'), button(t('export'), exportAll, 'plain'), may('events:read') && link(t('changes'), 'changes'))), body, pages)),
    selection.place)

  const unfilter = (look) => button(t('clear-filters'), () => {
    search.value = ''
    go('assets', { sort: params.sort }, true)
  }, look)
  /** Shows the active filters. The focus stays among them, or goes to the heading. */
  async function showChips(isClearable) {
    const all = await chips(params, set)
    if (signal.aborted) return
    const hadFocus = clear.contains(document.activeElement)
    show(clear, all, isClearable && unfilter('plain'))
    if (hadFocus) (clear.querySelector('button') ?? main.querySelector('h1')).focus()
  }
  const newList = latest(signal)
  async function showList() {
    const listed = newList()
    body.ariaBusy = 'true'
    showOthers(params, listed).catch(() => {})
    await attempt(body, async () => {
      const { data, meta } = await fresh(listPath(params, may('users:read') ? 'assigned_to' : ''), listed)
      listed.throwIfAborted()
      if (!data.length && meta.total) return set({})
      const isFiltered = Object.values(filters(params)).some(Boolean)
      const hadFocus = body.contains(document.activeElement)
      show(body, data.length ? table(data) : isFiltered ? empty(t('nothing-found'), '', unfilter()) : empty(t('no-assets'), t('begin-with'), h('div.actions',
        link(t('new-asset'), 'new', {}, 'button primary'), link(t('bring-list'), 'import', {}, 'button'), link(t('key-for-colleague'), 'organisation/keys', {}, 'button'))))
      if (hadFocus) rows(body)[0]?.focus()
      found = meta.total
      selection.listed()
      show(totals, t('assets', { count: found }))
      await showChips(data.length > 0 && isFiltered)
      listed.throwIfAborted()
      show(pages, pager(meta, (page, text) => link(text, 'assets', { ...params, page }, 'button')))
    }, showList)
    if (listed.aborted) return
    if (body.querySelector('.problem')) {
      show(totals)
      show(pages)
      await showChips(true)
    }
    body.ariaBusy = 'false'
    charts.drawSoon()
  }
  /** Shows the people and places that a search finds, too. */
  async function showOthers({ q = '' }, listed) {
    const people = q && may('users:read') ? (await get('/users', listed, { q, limit: MOST_OTHERS })).data : []
    const places = q ? (await findPlaces(q)).slice(0, MOST_OTHERS) : []
    if (listed.aborted) return
    others.hidden = people.length + places.length === 0
    show(others, people.map((one) => link(own(one.display_name), `person/${one.id}`, {}, 'chip button')),
      places.map(([location, count]) => link([own(location), ' ', h('span.hint', number(count))], 'assets', { location }, 'chip button')))
  }
  /** Selects all that the filters find. */
  async function chooseAll() {
    for (let page = 1, of = 1; page <= of; page++) {
      const { data, meta } = await get(`/assets${query({ ...filters(params), page, limit: MOST_LISTED })}`, signal)
      of = meta.total_pages
      for (const { id } of data) if (chosen.size < MOST_CHOSEN) chosen.add(id)
    }
    for (const box of rowBoxes(body)) box.checked = chosen.has(box.value)
  }
  /** Saves what the filters find as CSV. Each part has its own columns. */
  async function exportAll() {
    /** @type {string | null} */
    let path = `/assets/export${query({ ...filters(params), format: 'csv', bom: true })}`
    for (let n = 1; path; n++) {
      const { body: text, next } = await send('GET', path, { signal, as: 'text' })
      saveFile(`assets-${n}.csv`, text, 'text/csv')
      path = next
    }
  }
  function showAll() {
    charts.forget()
    selection.draw()
    return Promise.all([controls.draw(), showList()])
  }
  return {
    title: t('nav.assets'),
    ready: showAll(),
    update(next) {
      const isSame = JSON.stringify(controlled(params)) === JSON.stringify(controlled(next))
      const isTurned = next.page !== params.page
      params = next
      if (document.activeElement !== search) search.value = params.q ?? ''
      if (!isSame) controls.draw()
      showList()
      if (isTurned && pages.contains(document.activeElement)) main.querySelector('h1').focus()
    },
  }
}

const rows = (body) => every(body, 'a.row')

/** Creates the search field, from which arrow keys lead to the rows, and takes scanned codes. */
function searching({ signal, set, body, params }) {
  const search = searchField(params().q, t('search-placeholder'), (q) => set({ q }), signal)
  search.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') rows(body)[0]?.focus()
    else if (!endsScan(event) || event.key === 'Tab') return
    else if (search.value.trim()) open(search.value.trim())
    event.preventDefault()
  })
  body.addEventListener('keydown', (event) => {
    const at = rows(body).indexOf(document.activeElement)
    if (event.key === 'ArrowDown') rows(body)[at + 1]?.focus()
    else if (event.key === 'ArrowUp') (at > 0 ? rows(body)[at - 1] : search).focus()
    else if (event.key === 'Escape') search.focus()
    else return
    event.preventDefault()
  })
  /** Opens the asset with a code. The next scan replaces the text. */
  async function open(code) {
    search.value = code
    search.select()
    set({ q: code })
    const path = await codeOpens(code, signal)
    if (path && search.value.trim() === code && !signal.aborted) go(path)
  }
  takeScans(open, signal, search)
  return search
}
