// Stock-taking: what is scanned is told at once, kept in the tab, and sent when there is a connection, each scan once.
import { Problem, get, literal, may, now, post, query, session, uuid } from './api.js'
import { button, card, h, own, say, show } from './dom.js'
import { checkbox, field, input, problemBox } from './form.js'
import { locationField } from './inventory.js'
import { scanner } from './scan.js'
import { sentence, t } from './text.js'
import { assetLink } from './words.js'

const BATCH = 100
const RETRY_MS = 3000
/** Scans that wait longer than this say when they were made. */
const LATE_MS = 5000
const OUTCOMES = ['seen', 'moved', 'elsewhere', 'unknown', 'ambiguous', 'waiting', 'refused']

/** The tag, id or serial number of what a scanner read: labels may have an address. */
function codeOf(text) {
  const address = /^https?:\/\/[^/]+\/(.+)$/.exec(text.trim())
  if (!address) return text.trim()
  const last = address[1].replace(/[#?]$/, '').split(/[/=]/).filter(Boolean).pop() ?? ''
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}
const isId = (code) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(code)

const isTag = (code) => /^[!-~]{1,64}$/.test(code)

/** A tone, so that nobody has to look: high for here, low for anything else. */
function tone(isGood) {
  try {
    const audio = new AudioContext()
    const wave = audio.createOscillator()
    wave.frequency.value = isGood ? 880 : 220
    wave.connect(audio.destination)
    wave.start()
    wave.stop(audio.currentTime + (isGood ? 0.08 : 0.35))
    wave.onended = () => audio.close()
  } catch {
    // Without sound, the colour tells.
  }
  navigator.vibrate?.(isGood ? 40 : [120, 60, 120])
}

export function stock(main, params, signal) {
  const kept = `stock-${session.me.tenant.id}`
  /** @type {{ place: string, move: boolean, since: string, scans: any[], batch: any } | null} */
  let state = JSON.parse(sessionStorage.getItem(kept) ?? 'null')
  const keep = () => (state ? sessionStorage.setItem(kept, JSON.stringify(state)) : sessionStorage.removeItem(kept))

  function begin() {
    const place = locationField(params.location ?? '', () => {})
    const move = checkbox(t('move'))
    const form = h('form.card.form.narrow', { noValidate: true },
      h('p', t('stock-hint')), field(t('field.location'), place), move.element,
      h('div.actions', h('button', { type: 'submit', className: 'primary' }, t('begin'))))
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      if (!place.value.trim()) return place.focus()
      state = { place: place.value.trim(), move: move.box.checked, since: now().toISOString(), scans: [], batch: null }
      keep()
      count()
    })
    show(main, h('h1', { tabIndex: -1 }, t('nav.stock')), form)
  }

  const totals = h('p.tallies', { role: 'status' })
  const scans = h('ol.scans')
  const problem = h('div')
  const missing = h('div')

  function count() {
    const code = input('text', '', { className: 'search', id: 'search', enterKeyHint: 'enter', autocapitalize: 'off', spellcheck: false })
    const form = h('form', { noValidate: true }, field(t('scan-or-type'), code), h('button', { type: 'submit' }, t('add')))
    form.className = 'scan-form'
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      add(code.value)
      code.value = ''
      code.focus()
    })
    const finish = button(t('finish'), () => {
      if (state?.scans.some(({ outcome }) => outcome === 'waiting')) return say(t('still-waiting'))
      state = null
      keep()
      begin()
    })
    show(main, h('div.title', h('h1', { tabIndex: -1 }, own(state?.place)), h('p.hint', t(state?.move ? 'moves' : 'moves-not'))),
      form, scanner(add, signal), problem, totals, h('div.actions', button(t('show-missing'), showMissing), finish), missing, scans)
    draw()
    code.focus()
    send()
  }

  function add(text) {
    const code = codeOf(text)
    if (!code || !state) return
    const known = state.scans.find((one) => one.code.toLowerCase() === code.toLowerCase())
    if (known && known.outcome !== 'refused') {
      state.scans.splice(state.scans.indexOf(known), 1)
      state.scans.push(known)
      if (known.outcome !== 'waiting') tone(known.outcome === 'seen' || known.outcome === 'moved')
    } else {
      if (known) state.scans.splice(state.scans.indexOf(known), 1)
      state.scans.push({ id: uuid(), code, by: isId(code) ? 'id' : isTag(code) ? 'tag' : 'serial', at: now().toISOString(), outcome: 'waiting' })
    }
    keep()
    draw()
    send()
  }

  function draw() {
    if (!state) return
    const { scans: all, place } = state
    const tally = (name) => [name, all.filter(({ outcome }) => outcome === name).length]
    show(totals, OUTCOMES.map(tally).filter(([name, n]) => n || name === 'seen').map(([name, n]) => h('span', { className: `tally o-${name}` }, h('b', n), ' ', t(`outcome.${name}`))))
    const line = (one) => h('li', { className: `o-${one.outcome}` }, h('b', t(`outcome.${one.outcome}`)), ' ',
      one.asset ? assetLink(one.asset) : own(one.code),
      one.outcome === 'elsewhere' && h('p', one.asset.location ? sentence('is-at', { place: own(one.asset.location) }) : t('no-location')),
      one.outcome === 'moved' && h('p.hint', t('is-now-at', { place })),
      one.outcome === 'refused' && h('p', { lang: 'en' }, one.why))
    show(scans, all.length ? [...all].reverse().slice(0, 200).map(line) : h('li.hint', t('nothing-scanned')))
  }

  let isSending = false
  async function send() {
    if (isSending) return
    isSending = true
    try {
      while (state && !signal.aborted) {
        const waiting = state.scans.filter(({ outcome }) => outcome === 'waiting').slice(0, BATCH)
        if (waiting.length === 0) break
        // A batch that may have arrived is sent again as it was: the service answers it once.
        if (!state.batch) {
          const [first] = waiting
          const isLate = +now() - Date.parse(first.at) > LATE_MS
          const items = waiting.map(({ by, code }) => ({ [by === 'serial' ? 'serial_number' : by]: code }))
          state.batch = { key: uuid(), ids: waiting.map(({ id }) => id), body: { location: state.place, move: state.move, items, ...(isLate ? { at: first.at } : {}) } }
          keep()
        }
        try {
          const { data } = await post('/assets/seen', state.batch.body, state.batch.key)
          show(problem)
          settle(data)
        } catch (error) {
          if (!(error instanceof Problem)) throw error
          if (error.status === 0 || error.status >= 500 || error.status === 429) {
            show(problem, h('p.offline', { role: 'status' }, t('offline-kept')))
            await new Promise((resolve) => {
              setTimeout(resolve, RETRY_MS)
              addEventListener('online', resolve, { once: true })
            })
            continue
          }
          show(problem, problemBox(error))
          if (error.status === 401 || error.status === 403) break
          refuse(error)
        }
      }
    } finally {
      isSending = false
    }
  }

  function settle(results) {
    // A later look at this view sends the batch again, and gets the same results.
    if (!state || signal.aborted) return
    const sent = state.batch.ids
    for (const result of results) {
      const one = state.scans.find(({ id }) => id === sent[result.index])
      if (!one) continue
      // What is no tag may be a serial number.
      if (result.outcome === 'unknown' && one.by === 'tag') one.by = 'serial'
      else {
        one.outcome = result.outcome
        one.asset = result.id ? { id: result.id, asset_tag: result.asset_tag, name: result.name, location: result.location } : null
        tone(one.outcome === 'seen' || one.outcome === 'moved')
      }
    }
    state.batch = null
    keep()
    draw()
  }

  function refuse(error) {
    if (!state || signal.aborted) return
    for (const [n, id] of state.batch.ids.entries()) {
      const one = state.scans.find((scan) => scan.id === id)
      const faults = error.errors.filter(({ pointer }) => pointer?.startsWith(`/items/${n}/`) || !pointer?.startsWith('/items/'))
      if (one && (faults.length || !error.errors.length)) Object.assign(one, { outcome: 'refused', why: faults.map(({ detail }) => detail).join('; ') || error.text })
    }
    state.batch = null
    keep()
    draw()
  }

  async function showMissing() {
    if (!state) return
    try {
      const asked = query({ location: literal(state.place), kind: 'physical', last_seen_before: state.since, limit: 100, expand: may('users:read') ? 'assigned_to' : '' })
      const { data, meta } = await get(`/assets${asked}`, signal)
      show(missing, card(t('missing', { count: meta.total }), meta.total === 0 ? h('p', t('all-found'))
        : h('ul.plain-list.assets', data.map((asset) => h('li', assetLink(asset), asset.assigned_user && own(asset.assigned_user.display_name, 'hint'))))))
    } catch (error) {
      if (!signal.aborted) show(missing, problemBox(error, showMissing))
    }
  }

  if (state) count()
  else begin()
  return { title: t('nav.stock') }
}
