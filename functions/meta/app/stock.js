// Stock-taking: each scan is announced at once, stored in the tab, and sent exactly once when there is a connection.
import { Problem, dayOf, get, literal, may, now, post, session } from './api.js'
import { STATUSES, assetLink, assetList } from './asset.js'
import { button, h, hint, own, show } from './elements.js'
import { choice, debounced, input } from './fields.js'
import { attempt, fault, faultText, field, form, locationField, problemBox, showProblems, submit } from './form.js'
import { card, heading, status } from './page.js'
import { latest, uuid } from './requests.js'
import { endsScan, takeScans } from './suggest.js'
import { t } from './texts.js'
import { date } from './values.js'

const BATCH = 100
const RETRY_MS = 3000
const LOOK_MS = 200
/** A code that stays in front of the camera is ignored for this long, so that it counts once. */
const AGAIN_MS = 3000
const OUTCOMES = ['seen', 'moved', 'elsewhere', 'unknown', 'ambiguous', 'waiting', 'refused']

/** A scrapped asset isn't expected anywhere. */
const EXPECTED = STATUSES.filter((name) => name !== 'scrapped').join()
const MOST_PAGES = 10
const isWaiting = ({ outcome }) => outcome === 'waiting'
const isFound = ({ outcome }) => outcome === 'seen' || outcome === 'moved'
const isScrapped = ({ asset }) => asset?.status === 'scrapped'
const isGood = (one) => isFound(one) && !isScrapped(one)

/** Plays a tone: high if the asset belongs here, otherwise low. */
function tone(isHigh) {
  try {
    const audio = new AudioContext()
    const wave = audio.createOscillator()
    wave.frequency.value = isHigh ? 880 : 220
    wave.connect(audio.destination)
    wave.start()
    wave.stop(audio.currentTime + (isHigh ? 0.08 : 0.35))
    wave.onended = () => audio.close()
  } catch {
    // Without sound, the colour shows the result.
  }
  navigator.vibrate?.(isHigh ? 40 : [120, 60, 120])
}

export function stock(main, params, signal) {
  const kept = `stock-${session.me.tenant.id}`
  /**
   * `isChecked`: whether the place is known to be right.
   * @type {{ place: string, isChecked: boolean, move: boolean, since: string, scans: any[], batch: any } | null}
   */
  let state = JSON.parse(sessionStorage.getItem(kept) ?? 'null')
  const keep = () => (state ? sessionStorage.setItem(kept, JSON.stringify(state)) : sessionStorage.removeItem(kept))

  const waits = () => state !== null && state.scans.some(isWaiting)
  /** @param {Problem} [refusal] why the place was refused */
  function begin(refusal) {
    const place = locationField(state?.place ?? params.location)
    const move = choice(t('move'), state?.move)
    const wrong = h('div')
    const element = form(() => {
      const name = place.value.trim()
      if (!name) return showProblems(element, wrong, fault('required', '/location'))
      const scans = state?.scans ?? []
      // Scans that wait count from their own time.
      const [since] = [now().toISOString(), ...scans.map(({ at }) => at)].sort()
      state = { place: name, isChecked: false, move: move.box.checked, since, scans, batch: null }
      keep()
      count()
    }, h('p', t('stock-hint')), waits() && h('p.offline', { role: 'status' }, t('still-waiting')), field(t('field.location'), place, '/location'), move.element, wrong, h('div.actions', submit(t('begin'))))
    element.classList.add('narrow')
    show(main, heading(t('nav.stock')), element)
    if (refusal) showProblems(element, wrong, refusal)
  }

  /** Returns what to say if no asset is recorded at a place. */
  async function emptiness(name) {
    if (!may('assets:read')) return null
    const { meta } = await get('/assets', signal, { ...expected(name), limit: 1 })
    return meta.total === 0 && [h('p', t('place-empty', { place: name })), meta.hint && hint({ lang: 'en' }, meta.hint)]
  }
  /** Says before the first scan counts that nothing is recorded at the place. */
  async function checkPlace() {
    const at = state
    const goOn = () => {
      at.isChecked = true
      keep()
      show(problem)
      send()
    }
    let empty = null
    try {
      empty = await emptiness(at.place)
    } catch (error) {
      if (!(error instanceof Problem)) return
      if (state === at && !signal.aborted && error.status === 422) return refusePlace(error)
      // Scans are possible without a connection.
    }
    if (state !== at || signal.aborted) return
    if (!empty) return goOn()
    const again = button(t('other-place'), () => begin(), 'primary')
    show(problem, h('div.plan', { role: 'alert' }, empty, h('div.actions', again, button(t('count-anyway'), goOn))))
  }
  /** Asks for another place. The scans wait for it. */
  function refusePlace(error) {
    state = { .../** @type {any} */ (state), isChecked: false, batch: null }
    keep()
    for (const fault of error.errors) if (fault.parameter === 'location') fault.pointer = '/location'
    begin(error)
  }
  const expected = (name) => ({ location: literal(name), kind: 'physical', status: EXPECTED })

  const totals = h('p.tallies', { role: 'status' })
  const scans = h('ol.scans')
  const problem = h('div')
  const unsent = h('div', { role: 'status' })
  const missing = h('div')
  /** What the server has listed as missing at this place. @type {{ lost: any, held: any[], count: number, empty: any, places: Map<string, any> } | null} */
  let listed = null
  const newListing = latest(signal)

  function count() {
    newListing()
    listed = null
    show(missing)
    show(unsent)
    // The question of an earlier place would still be there.
    show(problem)
    const code = input('text', '', { className: 'search', id: 'search', enterKeyHint: 'enter', autocapitalize: 'off', spellcheck: false })
    const take = () => {
      add(code.value)
      code.value = ''
      code.focus()
    }
    code.addEventListener('keydown', (event) => {
      if (!endsScan(event) || (event.key === 'Tab' && !code.value.trim())) return
      event.preventDefault()
      take()
    })
    const element = form(take, field(t('scan-or-type'), code), h('button', { type: 'submit' }, t('add')))
    element.className = 'scan-form'
    const finish = button(t('finish'), () => {
      if (waits()) return show(unsent, h('p.offline', t('still-waiting')))
      state = null
      keep()
      begin()
    })
    show(main, h('div.title', heading(own(state?.place)), state?.move && hint(t('move'))),
      element, scanner(add, signal), problem, totals, h('div.actions', may('assets:read') ? button(t('show-missing'), showMissing) : hint(t('scope-missing', { scope: 'assets:read' })), finish), unsent, missing, scans)
    draw()
    code.focus()
    takeScans(add, signal, code)
    if (state.isChecked) send()
    else checkPlace()
  }

  function add(text) {
    const code = text.trim()
    if (!code || !state) return
    const { scans, since } = state
    const index = scans.findIndex((one) => one.code.toLowerCase() === code.toLowerCase())
    const [before] = index < 0 ? [] : scans.splice(index, 1)
    // The server's time is known to the second. No scan is earlier than the start.
    const time = now().toISOString()
    const at = time > since ? time : since
    // The asset of any other code can have been created or corrected meanwhile.
    const isSettled = before && (isWaiting(before) || isFound(before))
    scans.push(isSettled ? before : { id: uuid(), code, at, outcome: 'waiting' })
    if (isSettled && !isWaiting(before)) tone(isGood(before))
    changed()
    send()
  }

  function changed() {
    keep()
    draw()
  }

  function draw() {
    if (!state) return
    const { scans: all } = state
    if (!waits()) show(unsent)
    drawMissing()
    show(totals, OUTCOMES.map((name) => {
      const n = all.filter(({ outcome }) => outcome === name).length
      return (n > 0 || name === 'seen') && h('span.tally', h('b', n), ' ', t(`outcome.${name}`))
    }))
    const line = (one) => h('li', { className: `o-${isScrapped(one) ? 'elsewhere' : one.outcome}` }, h('b', t(`outcome.${one.outcome}`)), ' ',
      one.asset ? assetLink(one.asset) : own(one.code),
      isScrapped(one) && h('p', status('scrapped')),
      one.outcome === 'elsewhere' && h('p', t('field.location'), ': ', own(one.asset.location ?? '–')),
      one.outcome === 'refused' && h('p', one.why[0] ? one.why.flatMap((fault) => [faultText(fault), ' ']) : one.text))
    show(scans, all.slice(-200).reverse().map(line))
  }

  let isSending = false
  async function send() {
    if (isSending || !state?.isChecked) return
    isSending = true
    try {
      while (state && !signal.aborted) {
        const waiting = state.scans.filter(isWaiting).slice(0, BATCH)
        if (waiting.length === 0) break
        // A batch that may have arrived is sent again unchanged, because its idempotency key permits no other body.
        if (!state.batch) {
          const items = waiting.map(({ code, at }) => ({ code, at }))
          state.batch = { key: uuid(), ids: waiting.map(({ id }) => id), body: { location: state.place, move: state.move, items } }
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
          if (signal.aborted) break
          if (error.errors.some(({ pointer }) => pointer === '/location')) return refusePlace(error)
          show(problem, problemBox(error))
          if (error.status === 401 || error.status === 403) break
          refuse(error)
        }
      }
    } finally {
      isSending = false
    }
  }

  /** Calls `act` for each scan of the batch. When the view is opened again, the batch is resent and gets the same results. */
  function end(act) {
    if (!state || signal.aborted) return
    for (const [n, id] of state.batch.ids.entries()) {
      const one = state.scans.find((scan) => scan.id === id)
      if (one) act(one, n)
    }
    state.batch = null
    changed()
  }

  const settle = (results) => {
    end((one, n) => settleOne(one, results.find(({ index }) => index === n) ?? one))
    // A scanned asset can be one of those that the list is too long to show.
    if (listed && (listed.lost.meta.total > listed.lost.data.length || listed.count > listed.held.length)) showMissingSoon()
  }
  function settleOne(one, { outcome, ...asset }) {
    one.outcome = outcome
    one.asset = asset.asset_tag ? asset : null
    // The tag and the serial number of an asset count once.
    if (state && one.asset) state.scans = state.scans.filter((other) => other === one || other.asset?.id !== asset.id)
    if (!isWaiting(one)) tone(isGood(one))
  }

  const refuse = (error) => end((one, n) => {
    const faults = error.errors.filter(({ pointer }) => pointer?.startsWith(`/items/${n}/`) || !pointer?.startsWith('/items/'))
    if (faults.length || !error.errors.length) Object.assign(one, { outcome: 'refused', why: faults, text: error.text })
  })

  const showMissingSoon = debounced(() => signal.aborted || (listed && showMissing()), 500)
  async function showMissing() {
    const reading = newListing()
    await attempt(missing, async () => {
      const { place, since } = /** @type {any} */ (state)
      const unseen = (more) => get('/assets', reading, { ...expected(place), last_seen_before: since, limit: 100, ...more })
      const [lost, all] = await Promise.all([unseen({ assigned_to: 'none' }), unseen({ expand: may('users:read') ? 'assigned_to' : '' })])
      // Lists can't be filtered by whether anyone has an asset.
      const count = all.meta.total - lost.meta.total
      const isHeld = ({ assigned_to: holder }) => holder
      const held = all.data.filter(isHeld)
      for (let page = 2; held.length < count && page <= Math.min(all.meta.total_pages, MOST_PAGES); page++)
        held.push(...(await unseen({ expand: may('users:read') ? 'assigned_to' : '', page })).data.filter(isHeld))
      const empty = lost.meta.total + count === 0 && (await emptiness(place))
      reading.throwIfAborted()
      listed = { lost, held, count, empty, places: new Map(held.map((asset) => [asset.id, holderOf(asset)])) }
      drawMissing()
    }, showMissing)
    if (missing.querySelector('.problem')) listed = null
  }

  /** Shows what is missing without what has been scanned since it was listed. */
  function drawMissing() {
    if (!listed || !state) return
    const { lost, held, count, empty, places } = listed
    const found = new Set(state.scans.filter(isFound).map(({ asset }) => asset?.id))
    const left = (assets, total) => {
      const shown = assets.filter(({ id }) => !found.has(id))
      return { shown, total: total - (assets.length - shown.length) }
    }
    const rest = ({ total, shown }) => total > shown.length && hint(t('elsewhere-count', { count: total - shown.length }))
    const [gone, lent] = [left(lost.data, lost.meta.total), left(held, count)]
    show(missing,
      card(t('missing', { count: gone.total }), empty || (gone.total === 0 ? h('p', t('all-found')) : assetList(gone.shown, () => null)), rest(gone)),
      lent.total > 0 && card(t('with-people', { count: lent.total }), assetList(lent.shown, ({ id }) => places.get(id)), rest(lent)))
  }

  /** Says who has an asset, and since when. */
  function holderOf({ id, assigned_user: user, assigned_since: claimed }) {
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

  if (state) count()
  else begin()
  return { title: t('nav.stock') }
}

/**
 * Uses the camera as a scanner if the browser has BarcodeDetector, like Chrome on Android and macOS.
 * @param {(code: string) => void} found @param {AbortSignal} signal
 */
function scanner(found, signal) {
  const Detector = globalThis['BarcodeDetector']
  const place = h('div.camera')
  if (!Detector || !navigator.mediaDevices) return place
  /** @type {MediaStream | null} */
  let stream = null
  const release = () => {
    for (const track of stream?.getTracks() ?? []) track.stop()
    stream = null
  }
  const stop = () => {
    release()
    isWanted = false
    show(place, start)
  }
  /** Whether the camera is in use, even while the page is hidden: the lock screen takes the camera away. */
  let isWanted = false
  signal.addEventListener('abort', stop)
  document.addEventListener('visibilitychange', () => {
    if (!isWanted) return
    if (document.hidden) release()
    else if (!stream) watch()
  }, { signal })
  const start = button(t('camera'), () => watch())
  async function watch() {
    isWanted = true
    /** @type {MediaStream} */
    let opened
    try {
      opened = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } })
    } catch {
      isWanted = false
      return show(place, start, hint({ role: 'alert' }, t('no-camera')))
    }
    if (stream || !isWanted || signal.aborted || document.hidden) return opened.getTracks().forEach((track) => track.stop())
    stream = opened
    // The system can end it without hiding the page.
    for (const track of opened.getTracks()) track.onended = () => stream === opened && !document.hidden && (release(), watch())
    const video = h('video', { srcObject: opened, muted: true, playsInline: true, autoplay: true, ariaLabel: t('camera') })
    show(place, video, button(t('camera-off'), stop))
    look(new Detector(), video, opened)
  }
  async function look(detector, video, opened) {
    const seen = new Map()
    while (stream === opened && !signal.aborted) {
      const codes = video.readyState < 2 ? [] : await detector.detect(video).catch(() => [])
      for (const { rawValue } of codes) {
        const isNew = Date.now() - (seen.get(rawValue) ?? 0) >= AGAIN_MS
        seen.set(rawValue, Date.now())
        if (isNew) found(rawValue)
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
  show(place, start)
  return place
}
