// The inventory: search, filters, the list, what to do with chosen assets, and pictures.
import { Intent, assetTypes, get, known, latest, literal, may, now } from './api.js'
import { button, card, every, go, h, hint, link, own, part, say, show, skeleton } from './dom.js'
import { attempt, debounced, empty, field, input, locationField, pager, personField, searchField, select } from './form.js'
import { ago, amount, date, number, status, t } from './text.js'
import { MOST, STATUSES, fieldName, pill } from './words.js'

const LIMIT = 50
const MOST_CHOSEN = 100
const COLUMNS = ['asset_tag', 'name', 'status', 'asset_type_id', 'location', 'assigned_to', 'warranty_until', 'updated_at']
const SORTABLE = COLUMNS.filter((name) => !/type|assigned/.test(name))

/** IDs of assets that are chosen to be handed over, taken back or moved. @type {Set<string>} */
export const chosen = new Set()

/** The filters of a fragment as those of the API. */
function filters({ q, status, type, location, person, cf, cv, from, before }) {
  return {
    q, status, asset_type_id: type, assigned_to: person, warranty_from: from, warranty_before: before,
    location: location && (location === 'none' ? location : literal(location)),
    ...(cf && cv ? { [`custom_fields.${cf}`]: literal(cv) } : {}),
  }
}

export function inventory(main, first, signal) {
  let params = first
  /** @type {any} */
  let personShown = null
  const set = (changes) => go('assets', { ...params, page: '', ...changes }, true)
  const search = searchField(params.q, t('search-placeholder'), (q) => set({ q }), signal)
  search.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown' && event.key !== 'Enter') return
    event.preventDefault()
    rows()[0]?.focus()
  })
  const filterBox = h('div.filters')
  const totals = h('p', { role: 'status' })
  const clear = h('div')
  const body = h('div.list', { ariaBusy: 'true' }, skeleton(10))
  const pages = h('div')
  const pictures = h('aside.pictures', { ariaLabel: t('pictures') }, skeleton(8))
  const picturePanel = h('details.picture-panel', { open: innerWidth >= 1360, toggle: () => picturesSoon() }, h('summary', t('pictures')), pictures)
  const basket = h('div.basket', { role: 'region', ariaLabel: t('chosen'), hidden: true })
  show(main,
    h('h1.unseen', { tabIndex: -1 }, t('nav.assets')),
    h('div.inventory', search, h('details', { open: innerWidth >= 800 }, h('summary', t('filters')), filterBox), picturePanel,
      h('div', h('div.totals', totals, clear, may('events:read') && link(t('changes'), 'changes')), body, pages)),
    basket)

  const rows = () => every(body, 'a.row')
  body.addEventListener('keydown', (event) => {
    const at = rows().indexOf(document.activeElement)
    if (event.key === 'ArrowDown') rows()[at + 1]?.focus()
    else if (event.key === 'ArrowUp') (at > 0 ? rows()[at - 1] : search).focus()
    else if (event.key === 'Escape') search.focus()
    else return
    event.preventDefault()
  })

  async function showFilters() {
    const types = await assetTypes()
    const { person } = params
    if (person && person !== 'none' && personShown?.id !== person) personShown = await known('users:read', `/users/${person}`)
    if (signal.aborted || filterBox.contains(document.activeElement)) return
    const choice = (name, options) =>
      select([['', t('any')], ...options], params[name], { change: ({ target }) => set({ [name]: target.value }) })
    const place = locationField(params.location, (location) => set({ location }))
    place.addEventListener('change', () => set({ location: place.value.trim() }))
    const holder = personField((user) => {
      personShown = user
      if (user || params.person) set({ person: user?.id ?? '' })
    }, person && personShown?.display_name)
    const [name, value] = [['cf', 'custom-name'], ['cv', 'custom-value']].map(([key, text]) =>
      input('text', params[key], { placeholder: t(text), ariaLabel: t(text), change: () =>
        Boolean(name.value) === Boolean(value.value) && set({ cf: name.value.trim(), cv: value.value.trim() }) }))
    const sort = choice('sort', SORTABLE.flatMap((key) => [[key, `${fieldName(key)} ↑`], [`-${key}`, `${fieldName(key)} ↓`]]))
    sort.options[0].text = t('newest')
    const sorting = field(t('sort'), sort)
    sorting.classList.add('sort')
    show(filterBox,
      field(t('field.status'), choice('status', STATUSES.map((name) => [name, status(name)]))),
      types.length > 0 && field(t('field.asset_type_id'), choice('type', types.map(({ id, name }) => [id, name]))),
      field(t('field.location'), place),
      may('users:read') && field(t('field.assigned_to'), holder),
      h('fieldset.field.pair', h('legend', t('custom-field')), h('div', name, value)),
      sorting)
  }

  function showBasket() {
    basket.hidden = chosen.size === 0
    const assets = [...chosen].join()
    const process = (kind, look) => link(t(`nav.${kind}`), kind, { assets }, `button ${look}`)
    show(basket, h('span', t('chosen-count', { count: chosen.size })),
      may('processes:write') && (chosen.size <= MOST ? [process('hand-over', 'primary'), process('take-back', '')]
        : h('span.hint', t('nav.hand-over'), ', ', t('nav.take-back'), ': ', t('error.TOO_MANY', { count: MOST }))),
      may('assets:write') && button(t('move-to'), showMove),
      button(t('choose-none'), () => {
        choose(rowBoxes(), false)
        chosen.clear()
        showBasket()
      }, 'plain'))
  }

  /** Changes nothing but the location, whatever else others change. */
  function showMove() {
    const place = locationField('')
    const problem = h('div')
    const intent = new Intent()
    const move = () => attempt(problem, async () => {
      const location = place.value.trim()
      if (!location) return place.focus()
      const ids = [...chosen]
      for (let n = 0; n < ids.length; n += MOST) {
        const part = ids.slice(n, n + MOST)
        await intent.post('/assets/batch', { operations: part.map((id) => ({ op: 'update', id, body: { location } })) })
        for (const id of part) chosen.delete(id)
      }
      say(t('moved', { count: ids.length, place: location }))
      showAll()
    })
    place.addEventListener('keydown', (event) => event.key === 'Enter' && !event.defaultPrevented && move())
    show(basket, field(t('move-to'), place), button(t('move-all', { count: chosen.size }), move, 'primary'), button(t('cancel'), showBasket, 'plain'), problem)
    place.focus({ preventScroll: true })
  }

  let lastBox
  /** Chooses a row; with the shift key, also those between it and the one before. */
  function chooseRow({ target, shiftKey }) {
    const boxes = rowBoxes()
    const [from, to] = [boxes.indexOf(lastBox), boxes.indexOf(target)].sort((a, b) => a - b)
    lastBox = target
    choose(shiftKey && from >= 0 ? boxes.slice(from, to + 1) : [target], target.checked)
  }

  const rowBoxes = () => every(body, 'td input')
  function choose(boxes, isChosen) {
    for (const box of boxes) {
      if (isChosen && chosen.size >= MOST_CHOSEN && !chosen.has(box.value)) say(t('error.TOO_MANY', { count: MOST_CHOSEN }))
      else chosen[isChosen ? 'add' : 'delete'](box.value)
      box.checked = chosen.has(box.value)
    }
    showBasket()
  }

  const chooser = (members) => h('input', { type: 'checkbox', ...members })
  function row(asset) {
    const box = chooser({ value: asset.id, checked: chosen.has(asset.id), ariaLabel: t('choose', { name: `${asset.asset_tag} ${asset.name}` }), click: chooseRow })
    const make = [asset.manufacturer, asset.model].filter(Boolean).join(' ')
    return h('tr',
      h('td.c-box', h('label', box)),
      h('td.c-tag', asset.asset_tag),
      h('td.c-name', link(own(asset.name), `asset/${asset.id}`, {}, 'row'), make && own(make, 'hint')),
      h('td.c-status', pill(asset.status)),
      h('td.c-type', own(asset.asset_type_name ?? '')),
      h('td.c-place', own(asset.location ?? '')),
      h('td.c-person', asset.assigned_to && own(asset.assigned_user?.display_name ?? t('somebody'))),
      h('td.c-date', asset.warranty_until && date(asset.warranty_until)),
      h('td.c-date', ago(asset.updated_at)))
  }

  function head() {
    const column = (key) => {
      if (!SORTABLE.includes(key)) return h('th', { scope: 'col' }, fieldName(key))
      const direction = params.sort === key ? 'ascending' : params.sort === `-${key}` ? 'descending' : null
      const arrow = h('span', { ariaHidden: 'true' }, direction === 'ascending' ? ' ↑' : direction && ' ↓')
      return h('th', { scope: 'col', ariaSort: direction }, h('button', { type: 'button', click: () => set({ sort: direction === 'ascending' ? `-${key}` : key }) }, fieldName(key), arrow))
    }
    const all = chooser({ ariaLabel: t('choose-page'), change: () => choose(rowBoxes(), all.checked) })
    return h('thead', h('tr', h('th', { scope: 'col' }, h('label', all)), COLUMNS.map(column)))
  }

  function unfilter() {
    search.value = ''
    go('assets', { sort: params.sort }, true)
  }

  const newList = latest(signal)
  async function showList() {
    const listed = newList()
    body.ariaBusy = 'true'
    for (const place of [totals, clear, pages]) if (body.querySelector('.problem')) show(place)
    await attempt(body, async () => {
      const expand = may('users:read') ? 'assigned_to' : ''
      const { data, meta } = await get('/assets', listed, { ...filters(params), sort: params.sort, page: Number(params.page) || 1, limit: LIMIT, expand })
      const isFiltered = Object.values(filters(params)).some(Boolean)
      const unfiltering = (look) => button(t('clear-filters'), unfilter, look)
      show(body, data.length ? h('table.devices', h('caption.unseen', t('nav.assets')), head(), h('tbody', data.map(row)))
        : meta.total ? empty(t('nothing-found'), '', button(t('first-page'), () => set({})))
          : isFiltered ? empty(t('nothing-found'), t('nothing-found-hint'), unfiltering())
            : empty(t('no-assets'), 'assetctl import FILE'))
      show(totals, t('assets', { count: meta.total }))
      show(clear, data.length > 0 && isFiltered && unfiltering('plain'))
      show(pages, pager(meta, (page, text) => link(text, 'assets', { ...params, page }, 'button')))
    }, showList)
    if (!listed.aborted) body.ariaBusy = 'false'
  }

  const newPictures = latest(signal)
  async function showPictures() {
    const drawn = newPictures()
    const depth = Math.min(8, params.location && params.location !== 'none' ? params.location.split('/').length + 1 : 1)
    const asked = filters(params)
    await attempt(pictures, async () => {
      const [{ data: { assets } }, { data: places }] = await Promise.all([
        get('/stats', drawn, asked), get('/stats', drawn, { ...asked, group_by: 'location', depth })])
      show(pictures, byStatus(assets), byPlace(places, depth), byWarranty(assets.warranty))
    }, showPictures)
  }

  const filtered = (text, changes) => link(text, 'assets', { ...params, page: '', ...changes })

  function byStatus(assets) {
    const items = STATUSES.map((name) => ({ name: filtered(status(name), { status: name }), count: assets.by_status[name] ?? 0, look: `s-${name}` }))
    // Whole ten-thousandths: sums of decimals have no rounding errors.
    const value = Object.values(assets.value_by_status).reduce((sum, text) => sum + tenThousandths(text), 0n)
    const sum = `${value / 10_000n}.${String(value % 10_000n).padStart(4, '0')}`
    return bars(t('by-status'), items, hint(t('value', { sum: amount(sum) }), ' · ', t('assigned', { count: assets.assigned })))
  }

  function byPlace({ groups, rest }, depth) {
    if (!groups.some(({ value }) => value !== null)) return null
    const bar = ({ value, count }) => ({ count,
      name: filtered(value === null ? t('no-location') : own(depth > 1 ? value.split(' / ').pop() : value), { location: value ?? 'none' }) })
    const hidden = groups.slice(10).reduce((sum, { count }) => sum + count, rest.count)
    return bars(t('by-location'), groups.slice(0, 10).map(bar), hidden > 0 && hint(t('elsewhere-count', { count: hidden })))
  }

  function byWarranty(warranty) {
    const day = (days) => new Date(+now() + days * 86_400_000).toISOString().slice(0, 10)
    const bar = (name, count, limits) => ({ count, name: filtered(name, { ...limits, sort: 'warranty_until' }) })
    return bars(t('warranties'), [bar(t('warranty-ended'), warranty.ended, { from: '', before: day(0) }),
      ...[30, 60, 90].map((count) => bar(t('warranty-within', { count }), warranty[`within_${count}`], { from: day(0), before: day(count + 1) }))])
  }

  const picturesSoon = debounced(() => signal.aborted || !picturePanel.open || showPictures(), 500)
  function showAll() {
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
      const needsPictures = JSON.stringify(filters(params)) !== JSON.stringify(filters(next))
      params = next
      if (document.activeElement !== search) search.value = params.q ?? ''
      showFilters()
      showList()
      if (needsPictures) picturesSoon()
    },
  }
}

function tenThousandths(text) {
  const [whole, fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(4, '0').slice(0, 4))
}

/** Bars, one for each row; a table for readers who can't see them. @param {string} title @param {{ name: any, count: number, look?: string }[]} items */
function bars(title, items, more = null) {
  const most = Math.max(1, ...items.map(({ count }) => count))
  const row = ({ name, count, look = '' }) => h('tr', h('th', { scope: 'row' }, name,
    h('div.bar', h('i', { className: look, style: `width: ${(100 * count) / most}%` }))), h('td', number(count)))
  return card(title, h('table', h('caption.unseen', title),
    h('tbody', items.map(row))), more)
}
