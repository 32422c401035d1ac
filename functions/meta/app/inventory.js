// The inventory: search, filters, the list, actions on selected assets, and charts.
import { Problem, assetTypes, cached, fresh, get, intent, known, literal, may, plan, today } from './api.js'
import { MOST, STATUSES, assetLink, codeOpens, fieldName, pill, typedNumber } from './asset.js'
import { button, every, h, hint, own, show, svg } from './elements.js'
import { debounced, input, select } from './fields.js'
import { attempt, clearProblems, empty, fault, field, locationField, mark, pager, personField, planBox, problemBox, searchField } from './form.js'
import { card, closed, current, go, link, query, say, skeleton, status } from './page.js'
import { latest } from './requests.js'
import { endsScan, takeScans } from './suggest.js'
import { number, t } from './texts.js'
import { ago, amount, date } from './values.js'

const LIMIT = 50
const MOST_CHOSEN = 100
const COLUMNS = ['asset_tag', 'name', 'status', 'asset_type_id', 'location', 'assigned_to', 'warranty_until', 'updated_at']
const SORTABLE = COLUMNS.filter((name) => !/type|assigned/.test(name))

/** IDs of assets selected to be handed over, taken back or moved. @type {Set<string>} */
export const chosen = new Set()

/**
 * Returns the values that a typed value of a custom field can mean: the text and, for a text such as `2,5`, the number that the form
 * of an asset reads. Digits alone, such as `0815`, find numbers as text.
 */
const meanings = (text) => [...new Set([text, /^\d+$/.test(text) ? text : String(typedNumber(text))])].map(literal).join()

/** Converts a fragment's filters to the API's. */
function filters({ q, status, type, location, person, cf, cv, from, before, unlisted }) {
  return {
    q, status, asset_type_id: type, unlisted_field: unlisted, assigned_to: person, warranty_from: from, warranty_before: before,
    location: location && (location === 'none' ? location : literal(location)),
    ...(cf && cv ? { [`custom_fields.${cf}`]: meanings(cv) } : {}),
  }
}

const listPath = (params, expand) =>
  `/assets${query({ ...filters(params), sort: params.sort, page: Number(params.page) || 1, limit: LIMIT, expand })}`

/** Requests the first page before the key's scopes are known, as if the key could read users: most keys can. */
export const readAhead = (params) => cached(listPath(params, 'assigned_to')).catch(() => {})

export function inventory(main, first, signal) {
  let params = first
  /** @type {any} */
  let personShown = null
  // A pause in typing can end after the page has gone on to an asset.
  const set = (changes) => current().path[0] === 'assets' && go('assets', { ...params, page: '', ...changes }, true)
  const search = searchField(params.q, t('search-placeholder'), (q) => set({ q }), signal)
  search.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') rows()[0]?.focus()
    else if (!endsScan(event) || event.key === 'Tab') return
    else if (search.value.trim()) open(search.value.trim())
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
      clearProblems(holder.closest('.field'))
      // Until the text means another person, the list is still this person's.
      if (!user && holder.value) return
      personShown = user
      set({ person: user?.id ?? '' })
    }, person && personShown, () => {
      if (!params.person) return mark(holder, { code: 'unknown_reference' })
      holder.value = personShown?.display_name ?? ''
      holder.dispatchEvent(new Event('input'))
    })
    const [name, value] = [['cf', 'custom-name'], ['cv', 'custom-value']].map(([key, text]) =>
      input('text', params[key], { placeholder: t(text), ariaLabel: t(text), change: () =>
        set({ cf: name.value.trim(), cv: value.value.trim() }) }))
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

  let chosenAnew = showBasket
  function showBasket() {
    chosenAnew = showBasket
    basket.hidden = chosen.size === 0
    const assets = [...chosen].join()
    const process = (kind, look) => link(t(`nav.${kind}`), kind, { assets }, `button ${look}`)
    show(basket, h('span', t('chosen-count', { count: chosen.size })),
      may('processes:write') && (chosen.size <= MOST ? [process('hand-over', 'primary'), process('take-back', '')]
        : h('span.hint', t('nav.hand-over'), ', ', t('nav.take-back'), ': ', t('fault.too_large', { count: MOST }))),
      may('assets:write') && button(t('move-to'), showMove),
      button(t('choose-none'), () => {
        choose(rowBoxes(), false)
        chosen.clear()
        showBasket()
      }, 'plain'))
  }

  /** Changes only the location, so that others' changes are kept. */
  function showMove() {
    const place = locationField('', () => ask())
    const about = h('div.about')
    const act = h('div')
    /** Sends batches of the selected assets. Unselects assets that no longer exist. */
    const each = async (send, location) => {
      const all = [...chosen], done = []
      for (let n = 0; n < all.length; n += MOST) {
        const part = all.slice(n, n + MOST)
        const operations = part.map((id) => ({ op: 'update', id, body: { location } }))
        try {
          done.push(...(await send('/assets/batch', { operations })).data.map(({ data }) => data))
        } catch (error) {
          if (error.code === 'NOT_FOUND') for (const { pointer } of error.errors) chosen.delete(part[pointer.split('/')[2]])
          throw error
        }
      }
      return done
    }
    const refused = (error) => {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'NOT_FOUND') showList()
      if (!chosen.size) return say(error.text), showBasket()
      ask()
      show(about, problemBox(error))
      place.focus({ preventScroll: true })
    }
    const preview = async () => {
      const asked = [place.value, ...chosen].join()
      const location = place.value.trim()
      if (!location) return refused(fault('required', '/location'))
      const moved = await each(plan, location)
      if ([place.value, ...chosen].join() !== asked) return
      show(about, planBox(t('would-happen'), moved.map((asset) => h('li', assetLink(asset), ' → ', own(asset.location)))))
      show(act, button(t('go-on'), () => move(location).catch(refused), 'primary'))
      act.querySelector('button').focus({ preventScroll: true })
    }
    const move = async (location) => {
      const { length: count } = await each(intent(), location)
      chosen.clear()
      say(t('moved', { count, place: location }))
      showAll()
    }
    const ask = () => {
      show(about)
      show(act, button(t('move-all', { count: chosen.size }), () => preview().catch(refused), 'primary'))
    }
    place.addEventListener('keydown', (event) => event.key === 'Enter' && !event.defaultPrevented && act.querySelector('button').click())
    place.addEventListener('input', ask)
    ask()
    chosenAnew = ask
    show(basket, about, field(t('move-to'), place), act, button(t('cancel'), showBasket, 'plain'))
    place.focus({ preventScroll: true })
  }

  let lastBox
  /** Selects or unselects a row and, with Shift, all rows back to the row clicked before. */
  function chooseRow({ target, shiftKey }) {
    const boxes = rowBoxes()
    const [from, to] = [boxes.indexOf(lastBox), boxes.indexOf(target)].sort((a, b) => a - b)
    lastBox = target
    choose(shiftKey && from >= 0 ? boxes.slice(from, to + 1) : [target], target.checked)
  }

  const rowBoxes = () => every(body, 'td input')
  function choose(boxes, isChosen) {
    for (const box of boxes) {
      if (isChosen && chosen.size >= MOST_CHOSEN && !chosen.has(box.value)) say(t('fault.too_large', { count: MOST_CHOSEN }))
      else chosen[isChosen ? 'add' : 'delete'](box.value)
      box.checked = chosen.has(box.value)
    }
    if (chosen.size) chosenAnew()
    else showBasket()
  }

  const mayChoose = may('assets:write') || !closed.has('take-back')
  const chooser = (members) => h('input', { type: 'checkbox', ...members })
  function row(asset) {
    const box = chooser({ value: asset.id, checked: chosen.has(asset.id), ariaLabel: t('choose', { name: `${asset.asset_tag} ${asset.name}` }), click: chooseRow })
    const make = [asset.manufacturer, asset.model].filter(Boolean).join(' ')
    return h('tr',
      h('td.c-box', mayChoose && h('label', box)),
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
    return h('thead', h('tr', h('th', { scope: 'col' }, mayChoose && h('label', all)), COLUMNS.map(column)))
  }

  const unfilter = (look) => button(t('clear-filters'), () => {
    search.value = ''
    go('assets', { sort: params.sort }, true)
  }, look)

  const newList = latest(signal)
  async function showList() {
    const listed = newList()
    body.ariaBusy = 'true'
    await attempt(body, async () => {
      const { data, meta } = await fresh(listPath(params, may('users:read') ? 'assigned_to' : ''), listed)
      listed.throwIfAborted()
      if (!data.length && meta.total) return set({})
      const isFiltered = Object.values(filters(params)).some(Boolean)
      const hadFocus = body.contains(document.activeElement)
      show(body, data.length ? h('table.devices', h('caption.unseen', t('nav.assets')), head(), h('tbody', data.map(row)))
        : isFiltered ? empty(t('nothing-found'), '', unfilter()) : empty(t('no-assets'), 'assetctl import FILE'))
      if (hadFocus) rows()[0]?.focus()
      show(totals, t('assets', { count: meta.total }))
      show(clear, params.unlisted && hint(t('unlisted', { name: params.unlisted })), data.length > 0 && isFiltered && unfilter('plain'))
      show(pages, pager(meta, (page, text) => link(text, 'assets', { ...params, page }, 'button')))
    }, showList)
    if (listed.aborted) return
    if (body.querySelector('.problem')) {
      show(totals)
      show(pages)
      show(clear, unfilter('plain'))
    }
    body.ariaBusy = 'false'
    picturesSoon()
  }

  let pictured = ''
  const newPictures = latest(signal)
  /** Runs after the list is shown, and only if its assets have changed. */
  async function showPictures() {
    const asked = filters(params)
    const shown = JSON.stringify([asked, totals.textContent])
    if (pictured === shown) return
    pictured = shown
    const drawn = newPictures()
    const depth = Math.min(8, params.location && params.location !== 'none' ? params.location.split('/').length + 1 : 1)
    await attempt(pictures, async () => {
      const [{ data: { assets } }, { data: places }] = await Promise.all([
        get('/stats', drawn, asked), get('/stats', drawn, { ...asked, group_by: 'location', depth })])
      const months = h('div.months', skeleton(3))
      show(pictures, byStatus(assets), byPlace(places, depth), card(t('warranties'), months))
      show(months, await byMonth(assets.warranty.ended, asked, drawn))
    }, () => {
      pictured = ''
      showPictures()
    })
  }

  const filtered = (text, changes) => link(text, 'assets', { ...params, page: '', ...changes })

  function byStatus({ by_status: counts, value_by_status: values, assigned, total }) {
    let before = 0
    const circle = (more) => svg('circle', { cx: 50, cy: 50, r: 42, pathLength: 100, ...more })
    const arcs = STATUSES.filter((name) => counts[name]).map((name) => {
      const share = (100 * counts[name]) / total
      const arc = circle({ class: `s-${name}`, 'stroke-dashoffset': -before, 'stroke-dasharray': `${Math.max(share - 1, share / 2)} 100` })
      before += share
      return arc
    })
    const row = (name) => line(counts[name] ?? 0, h('i', { className: `dot s-${name}`, ariaHidden: 'true' }), filtered(status(name), { status: name }))
    const ring = svg('svg', { class: 'ring', viewBox: '0 0 100 100', 'aria-hidden': 'true' }, circle(), arcs)
    const sum = Object.values(values).reduce((sum, value) => sum + Number(value), 0)
    return card(t('by-status'), h('div.shares', ring, table(t('by-status'), h('tbody', STATUSES.map(row)))),
      hint(t('value', { sum: amount(sum) }), ' · ', t('assigned', { count: assigned })))
  }

  function byPlace({ groups, rest }, depth) {
    if (!groups.some(({ value }) => value !== null)) return null
    const most = groups[0].count
    const row = ({ value, count }) => line(count,
      filtered(value === null ? t('no-location') : own(depth > 1 ? value.split(' / ').pop() : value), { location: value ?? 'none' }), bar((100 * count) / most, 100))
    const hidden = groups.slice(10).reduce((sum, { count }) => sum + count, rest.count)
    return card(t('by-location'), table(t('by-location'), h('tbody', groups.slice(0, 10).map(row))), hidden > 0 && hint(t('elsewhere-count', { count: hidden })))
  }

  /** Counts warranties in each of 12 months: one request for the first 100 assets, and one for each month after these assets. */
  async function byMonth(ended, asked, drawn) {
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
    const most = Math.max(1, ...months.map(({ count }) => count))
    const head = ({ from, before }) => {
      const name = filtered(date(from, { month: 'narrow' }), { from, before, sort: 'warranty_until' })
      name.ariaLabel = name.title = date(from, { month: 'long', year: 'numeric' })
      name.ariaCurrent = params.from === from ? 'true' : null
      return h('th', { scope: 'col' }, name)
    }
    const strip = table(t('warranties'), h('thead', h('tr', months.map(head))),
      h('tbody', h('tr', months.map(({ count }) => h('td', h('span', number(count)), bar(100, (100 * count) / most))))))
    strip.className = most > 999 ? 'strip long' : 'strip'
    return [strip, ended > 0 && hint(filtered(t('warranty-ended'), { from: '', before: starts[0], sort: 'warranty_until' }), ': ', number(ended))]
  }

  const picturesSoon = debounced(() => signal.aborted || !picturePanel.open || body.ariaBusy === 'true' || showPictures(), 500)
  function showAll() {
    pictured = ''
    showBasket()
    return Promise.all([showFilters(), showList()])
  }
  takeScans(open, signal, search)
  return {
    title: t('nav.assets'),
    ready: showAll(),
    update(next) {
      const isSame = JSON.stringify(controlled(params)) === JSON.stringify(controlled(next))
      const isTurned = next.page !== params.page
      params = next
      if (document.activeElement !== search) search.value = params.q ?? ''
      if (!isSame) showFilters()
      showList()
      if (isTurned && pages.contains(document.activeElement)) main.querySelector('h1').focus()
    },
  }
}

/** Returns the parameters that have controls beside the search field. */
const controlled = ({ q: _, page: __, ...others }) => others

/** Creates the table that contains a chart, so that screen readers can read the values. */
const table = (title, ...rows) => h('table', h('caption.unseen', title), rows)

const line = (count, ...name) => h('tr', h('th', { scope: 'row' }, name), h('td', number(count)))

/** Draws a rectangle in an area of 100 by 100. */
const bar = (width, height) =>
  svg('svg', { class: 'bar', viewBox: '0 0 100 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('rect', { width, height, y: 100 - height }))
