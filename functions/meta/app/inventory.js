// The inventory: search, filters, the list, and pictures of it.
import { Problem, cached, get, literal, may, query } from './api.js'
import { button, card, h, own, part, say, show, skeleton } from './dom.js'
import { debounced, empty, field, input, personField, problemBox, select, suggesting } from './form.js'
import { bars, ring, strip } from './picture.js'
import { go, href } from './route.js'
import { ago, amount, date, status, t } from './text.js'
import { pill } from './words.js'

export const STATUSES = ['in_stock', 'preparing', 'in_use', 'in_service', 'returned', 'scrapped']
const LIMIT = 50
const MOST_CHOSEN = 20
const COLUMNS = [
  ['asset_tag', 'field.asset_tag'], ['name', 'field.name'], ['status', 'field.status'], ['', 'field.asset_type_id'],
  ['location', 'field.location'], ['', 'field.assigned_to'], ['warranty_until', 'field.warranty_until'], ['updated_at', 'field.updated_at'],
]

/** Assets that are chosen to be handed over or taken back, by id. @type {Map<string, any>} */
const chosen = new Map()

/** The filters of a fragment as those of the API. */
function filters({ q, status: one, type, location, person, cf, cv, from, before, kind }) {
  return {
    q, status: one, asset_type_id: type, kind, assigned_to: person, warranty_from: from, warranty_before: before,
    location: location && (location === 'none' ? location : literal(location)),
    ...(cf && cv ? { [`custom_fields.${cf}`]: literal(cv) } : {}),
  }
}

/** Suggests places that are in use. */
export const locationField = (value, taken) =>
  suggesting({
    value,
    placeholder: t('location-placeholder'),
    chosen: (item) => item && taken(item.text),
    find: async (text) => {
      const depth = Math.min(8, text.split('/').length)
      const { data } = await cached(`/stats${query({ group_by: 'location', depth })}`)
      const places = data.groups.filter(({ value }) => value?.toLowerCase().includes(text.toLowerCase()))
      return places.slice(0, 8).map(({ value, count }) => ({ text: value, detail: t('assets', { count }) }))
    },
  })

export function inventory(main, first, signal) {
  let params = first
  /** @type {any} */
  let personShown = null
  const set = (changes, replace = true) => go(['assets'], { ...params, page: '', ...changes }, replace)
  const search = input('search', params.q, { className: 'search', placeholder: t('search-placeholder'), 'aria-label': t('search'), id: 'search', enterKeyHint: 'search' })
  search.addEventListener('input', debounced(() => signal.aborted || set({ q: search.value.trim() })))
  search.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault()
      rows()[0]?.focus()
    }
  })
  const filterBox = h('div.filters')
  const panel = h('details.filter-panel', { open: innerWidth >= 800 }, h('summary', t('filters')), filterBox)
  const totals = h('p', { role: 'status' })
  const clear = h('div')
  const body = h('div.list', { 'aria-busy': 'true' }, skeleton(10))
  const pages = h('nav.pages', { 'aria-label': t('pages') })
  const pictures = h('aside.pictures', { 'aria-label': t('pictures') }, skeleton(8))
  const picturePanel = h('details.picture-panel', { open: innerWidth >= 1360 }, h('summary', t('pictures')), pictures)
  picturePanel.addEventListener('toggle', () => picturePanel.open && picturesSoon())
  const basket = h('div.basket', { role: 'region', 'aria-label': t('chosen'), hidden: true })
  show(
    main,
    h('h1.unseen', { tabIndex: -1 }, t('nav.assets')),
    h('div.inventory', search, panel, picturePanel, h('div', h('div.totals', totals, clear), body, pages)),
    basket,
  )

  const rows = () => /** @type {any[]} */ ([...body.querySelectorAll('a.row')])
  body.addEventListener('keydown', (event) => {
    const at = rows().indexOf(document.activeElement)
    if (event.key === 'ArrowDown') rows()[at + 1]?.focus()
    else if (event.key === 'ArrowUp') (at > 0 ? rows()[at - 1] : search).focus()
    else if (event.key === 'Escape') search.focus()
    else return
    event.preventDefault()
  })

  async function showFilters() {
    const types = may('catalog:read') ? (await cached('/catalog/asset-types?limit=100').catch(() => ({ data: [] }))).data : []
    if (params.person && params.person !== 'none') if (personShown?.id !== params.person) personShown = (await cached(`/users/${params.person}`).catch(() => null))?.data
    if (signal.aborted || filterBox.contains(document.activeElement)) return
    const statuses = select([['', t('any')], ...STATUSES.map((name) => /** @type {[string, string]} */ ([name, status(name)]))], params.status, { change: ({ target }) => set({ status: target.value }) })
    const type = select([['', t('any')], ...types.map(({ id, name }) => [id, name])], params.type, { change: ({ target }) => set({ type: target.value }) })
    const place = locationField(params.location, (location) => set({ location }))
    place.addEventListener('change', () => set({ location: place.value.trim() }))
    const person = personField((user) => {
      personShown = user
      if (user || params.person) set({ person: user?.id ?? '' })
    }, params.person ? personShown?.display_name : '')
    const name = input('text', params.cf, { placeholder: t('custom-name') , 'aria-label': t('custom-name') })
    const value = input('text', params.cv, { placeholder: t('custom-value'), 'aria-label': t('custom-value') })
    const custom = () => (Boolean(name.value) === Boolean(value.value)) && set({ cf: name.value.trim(), cv: value.value.trim() })
    for (const control of [name, value]) control.addEventListener('change', custom)
    const sort = select(
      COLUMNS.filter(([key]) => key).flatMap(([key, label]) => /** @type {[string, string][]} */ ([[key, `${t(label)} ↑`], [`-${key}`, `${t(label)} ↓`]])),
      params.sort ?? '', { change: ({ target }) => set({ sort: target.value }) })
    sort.prepend(h('option', { value: '', selected: !params.sort }, t('newest')))
    show(
      filterBox,
      field(t('field.status'), statuses),
      types.length > 0 && field(t('field.asset_type_id'), type),
      field(t('field.location'), place),
      may('users:read') && field(t('field.assigned_to'), person),
      h('fieldset.field.pair', h('legend', t('custom-field')), h('div', name, value)),
      h('div.field.sort', h('label', { htmlFor: (sort.id = 'sort') }, t('sort')), sort),
    )
  }

  function showBasket() {
    basket.hidden = chosen.size === 0
    const assets = [...chosen.keys()].join()
    show(basket,
      h('span', t('chosen-count', { count: chosen.size, most: MOST_CHOSEN })),
      may('processes:write') && [
        h('a.button.primary', { href: href(['hand-over'], { assets }) }, t('nav.hand-over')),
        h('a.button', { href: href(['take-back'], { assets }) }, t('nav.take-back'))],
      button(t('choose-none'), () => {
        chosen.clear()
        for (const box of body.querySelectorAll('input')) box.checked = false
        showBasket()
      }, 'plain'))
  }

  function row(asset) {
    const box = h('input', { type: 'checkbox', checked: chosen.has(asset.id), 'aria-label': t('choose', { name: `${asset.asset_tag} ${asset.name}` }) })
    box.addEventListener('change', () => {
      if (box.checked && chosen.size >= MOST_CHOSEN) {
        box.checked = false
        return say(t('error.TOO_MANY', { count: MOST_CHOSEN }))
      }
      if (box.checked) chosen.set(asset.id, asset)
      else chosen.delete(asset.id)
      showBasket()
    })
    const person = asset.assigned_user ? own(asset.assigned_user.display_name) : asset.assigned_to ? t('somebody') : ''
    const make = [asset.manufacturer, asset.model].filter(Boolean).join(' ')
    return h('tr', {},
      h('td.c-box', h('label', box)),
      h('td.c-tag', asset.asset_tag),
      h('td.c-name', h('a.row', { href: `#/asset/${asset.id}` }, own(asset.name)), make && own(make, 'hint')),
      h('td.c-status', pill(asset.status)),
      h('td.c-type', own(asset.asset_type_name ?? '')),
      h('td.c-place', own(asset.location ?? '')),
      h('td.c-person', person),
      h('td.c-date', asset.warranty_until ? date(asset.warranty_until) : ''),
      h('td.c-date', ago(asset.updated_at)))
  }

  function head() {
    const sortable = ([key, label]) => {
      if (!key) return h('th', { scope: 'col' }, t(label))
      const direction = params.sort === key ? 'ascending' : params.sort === `-${key}` ? 'descending' : null
      const next = direction === 'ascending' ? `-${key}` : key
      const arrow = h('span', { 'aria-hidden': 'true' }, direction === 'ascending' ? ' ↑' : direction ? ' ↓' : '')
      return h('th', { scope: 'col', 'aria-sort': direction }, h('button', { type: 'button', click: () => set({ sort: next }) }, t(label), arrow))
    }
    return h('thead', h('tr', h('th', { scope: 'col' }, h('span.unseen', t('chosen'))), COLUMNS.map(sortable)))
  }

  function unfilter() {
    search.value = ''
    go(['assets'], { sort: params.sort }, true)
  }

  let running = new AbortController()
  async function showList() {
    running.abort()
    running = new AbortController()
    const own = running.signal
    body.setAttribute('aria-busy', 'true')
    const page = Number(params.page) || 1
    try {
      const path = `/assets${query({ ...filters(params), sort: params.sort, page, limit: LIMIT, expand: may('users:read') ? 'assigned_to' : '' })}`
      const { data, meta } = await get(path, AbortSignal.any([own, signal]))
      if (data.length === 0) {
        const isFiltered = Object.values(filters(params)).some(Boolean)
        show(body, meta.total > 0 ? empty(t('page-past-end'), '', button(t('first-page'), () => set({})))
          : isFiltered ? empty(t('nothing-found'), t('nothing-found-hint'), button(t('clear-filters'), unfilter))
            : empty(t('no-assets'), t('no-assets-hint')))
      } else show(body, h('table', h('caption.unseen', t('nav.assets')), head(), h('tbody', data.map(row))))
      show(totals, t('assets', { count: meta.total }))
      show(clear, data.length > 0 && Object.values(filters(params)).some(Boolean) && button(t('clear-filters'), unfilter, 'plain'))
      const link = (to, text) => h('a.button', { href: href(['assets'], { ...params, page: to }) }, text)
      show(pages, meta.total_pages > 1 && [
        page > 1 && link(page - 1, t('previous')), h('span', t('page-of', { page, of: meta.total_pages })),
        page < meta.total_pages && link(page + 1, t('next'))])
    } catch (error) {
      if (own.aborted || signal.aborted) return
      show(totals)
      show(clear)
      show(pages)
      show(body, problemBox(error, showList))
    }
    body.setAttribute('aria-busy', 'false')
  }

  let drawing = new AbortController()
  async function showPictures() {
    drawing.abort()
    drawing = new AbortController()
    const either = AbortSignal.any([drawing.signal, signal])
    const asked = filters(params)
    const read = (path) => get(path, either).catch((error) => {
      if (either.aborted || !(error instanceof Problem)) throw error
      return null
    })
    try {
      const depth = Math.min(8, params.location && params.location !== 'none' ? params.location.split('/').length + 1 : 1)
      const [stats, places] = await Promise.all([
        read(`/stats${query(asked)}`), read(`/stats${query({ ...asked, group_by: 'location', depth })}`)])
      const months = await warranties(asked, read)
      if (either.aborted) return
      show(pictures, stats && byStatus(stats.data.assets), places && byPlace(places.data, depth), months && card(t('warranties'), strip(t('warranties'), months)))
    } catch (error) {
      if (!either.aborted) throw error
    }
  }

  function byStatus(assets) {
    const items = STATUSES.map((name) => ({
      name: h('a', { href: href(['assets'], { ...params, status: name, page: '' }) }, status(name)), count: assets.by_status[name] ?? 0, look: `s-${name}` }))
    // Whole ten-thousandths: sums of decimals have no rounding errors.
    const value = Object.values(assets.value_by_status).reduce((sum, text) => sum + BigInt(tenThousandths(text)), 0n)
    const sum = `${value / 10_000n}.${String(value % 10_000n).padStart(4, '0')}`
    return card(t('by-status'), ring(t('by-status'), items), h('p.hint', t('value', { sum: amount(sum) }), ' · ', t('assigned', { count: assets.assigned })))
  }

  function byPlace({ groups, rest }, depth) {
    if (!groups.some(({ value }) => value !== null)) return null
    const bar = ({ value, count }) => ({
      name: h('a', { href: href(['assets'], { ...params, location: value ?? 'none', page: '' }) }, value === null ? t('no-location') : own(depth > 1 ? value.split(' / ').slice(-1)[0] : value)), count })
    const most = groups.slice(0, 10)
    const hidden = groups.slice(10).reduce((sum, { count }) => sum + count, rest.count)
    return card(t('by-location'), bars(t('by-location'), most.map(bar)), hidden > 0 && h('p.hint', t('elsewhere-count', { count: hidden })))
  }

  async function warranties(asked, read) {
    const today = new Date()
    const starts = Array.from({ length: 13 }, (_, n) => new Date(Date.UTC(today.getFullYear(), today.getMonth() + n, 1)))
    const day = (time) => time.toISOString().slice(0, 10)
    const months = []
    for (let n = 0; n < 12; n++) {
      const limits = { warranty_from: day(starts[n]), warranty_before: day(starts[n + 1]) }
      const reply = await read(`/assets${query({ ...asked, ...limits, limit: 1 })}`)
      if (!reply) return null
      const link = href(['assets'], { ...params, page: '', from: limits.warranty_from, before: limits.warranty_before, sort: 'warranty_until' })
      // Noon: the same month in all time zones.
      months.push({ from: new Date(+starts[n] + 43_200_000), count: reply.meta.total, link })
    }
    return months.some(({ count }) => count) ? months : null
  }

  const picturesSoon = debounced(() => signal.aborted || !picturePanel.open || showPictures(), 500)
  const showAll = () => {
    showFilters()
    showList()
    picturesSoon()
    showBasket()
  }
  showAll()
  part('main').classList.add('wide')
  return {
    title: t('nav.assets'),
    update(next) {
      const isSame = (name) => (params[name] ?? '') === (next[name] ?? '')
      const needsPictures = Object.keys({ ...params, ...next }).some((name) => name !== 'page' && name !== 'sort' && !isSame(name))
      params = next
      if (document.activeElement !== search) search.value = params.q ?? ''
      showFilters()
      showList()
      if (needsPictures) picturesSoon()
    },
  }
}

const tenThousandths = (text) => {
  const [whole, fraction = ''] = text.split('.')
  return whole + fraction.padEnd(4, '0').slice(0, 4)
}
