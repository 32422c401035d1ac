// Stock-taking: each scan is announced at once, stored in the tab, and sent exactly once when there is a connection.
import { Problem, get, may, now, post, session } from './api.js'
import { assetLink } from './asset.js'
import { scanner } from './camera.js'
import { button, h, hint, own, show } from './elements.js'
import { choice, debounced, input } from './fields.js'
import { attempt, fault, faultText, field, form, locationField, problemBox, showProblems, submit } from './form.js'
import { expected, holderOf, isFound, missingCards, readMissing } from './missing.js'
import { colon, heading, status } from './page.js'
import { latest, uuid } from './requests.js'
import { result } from './result.js'
import { endsScan, takeScans } from './suggest.js'
import { t } from './texts.js'

const BATCH = 100
const RETRY_MS = 3000
const OUTCOMES = ['seen', 'moved', 'elsewhere', 'unknown', 'ambiguous', 'waiting', 'refused']

/** Pages of missing assets in a result. */
const RESULT_PAGES = 10
const isWaiting = ({ outcome }) => outcome === 'waiting'
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

/** Counts the scans by outcome, and what was found of what is expected. */
function tallies(/** @type {any} */ { scans, expected: all }) {
  const seen = scans.filter((one) => one.outcome === 'seen' && !isScrapped(one)).length
  return [all > 0 && h('span.tally', t('found-of', { found: seen, count: all })), OUTCOMES.map((name) => {
    const n = scans.filter(({ outcome }) => outcome === name).length
    return (n > 0 || name === 'seen') && h('span.tally', h('b', n), ' ', t(`outcome.${name}`))
  })]
}

const scanLine = (one) => h('li', { className: `o-${isScrapped(one) ? 'elsewhere' : one.outcome}` }, h('b', t(`outcome.${one.outcome}`)), ' ',
  one.asset ? assetLink(one.asset) : own(one.code),
  isScrapped(one) && h('p', status('scrapped')),
  one.outcome === 'elsewhere' && h('p', t('field.location'), colon(), own(one.asset.location ?? '–')),
  one.outcome === 'refused' && h('p', one.why[0] ? one.why.flatMap((fault) => [faultText(fault), ' ']) : one.text))

export function stock(main, params, signal) {
  const kept = `stock-${session.me.tenant.id}`
  /**
   * `isChecked`: whether the place is known to be right. `expected`: the number of assets recorded there at the start. `ended`: what
   * was missing at the end.
   * @type {{ place: string, isChecked: boolean, move: boolean, since: string, scans: any[], batch: any,
   *   expected?: number, ended?: any } | null}
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
    if (state?.place === name) state.expected ??= meta.total
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
  const totals = h('p.tallies', { role: 'status' })
  const scans = h('ol.scans')
  const problem = h('div')
  const unsent = h('div', { role: 'status' })
  const missing = h('div')
  /** What the server has listed as missing at this place. @type {{ lost: any[], lostCount: number, held: any[], count: number, empty: any, places: Map<string, any> } | null} */
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
    const finish = button(t('finish'), finishing)
    show(main, h('div.title', heading(own(state?.place)), state?.move && hint(t('move'))),
      element, scanner(add, signal), problem, totals, h('div.actions', may('assets:read') ? button(t('show-missing'), showMissing) : hint(t('scope-missing', { scope: 'assets:read' })), finish), unsent, missing, scans)
    draw()
    code.focus()
    takeScans(add, signal, code)
    if (state.isChecked) send()
    else checkPlace()
  }

  /** Reads what is missing, and shows the result, which stays until the next stock-taking. */
  const finishing = () => attempt(unsent, async () => {
    if (waits()) return show(unsent, h('p.offline', t('still-waiting')))
    const at = state
    const read = may('assets:read') ? await readMissing(at, signal, RESULT_PAGES) : { lost: [], lostCount: 0, held: [], count: 0 }
    if (state !== at || waits() || signal.aborted) return
    at.ended = { at: now().toISOString(), ...read }
    keep()
    showResult()
  }, finishing)
  function showResult() {
    const goOn = button(t('count-on'), () => {
      delete state.ended
      keep()
      count()
    })
    const anew = button(t('count-anew'), () => {
      state = null
      keep()
      begin()
    })
    show(main, result(state, [goOn, anew], tallies(state), scanLine, signal))
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
    show(totals, tallies(state))
    show(scans, all.slice(-200).reverse().map(scanLine))
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
    if (listed && (listed.lostCount > listed.lost.length || listed.count > listed.held.length)) showMissingSoon()
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
      const at = /** @type {any} */ (state)
      const read = await readMissing(at, reading)
      const empty = read.lostCount + read.count === 0 && (await emptiness(at.place))
      reading.throwIfAborted()
      listed = { ...read, empty, places: new Map(read.held.map((asset) => [asset.id, holderOf(asset, signal)])) }
      drawMissing()
    }, showMissing)
    if (missing.querySelector('.problem')) listed = null
  }
  function drawMissing() {
    if (listed && state) show(missing, missingCards(listed, state.scans, listed.empty, ({ id }) => listed?.places.get(id)))
  }

  if (state?.ended) showResult()
  else if (state) count()
  else begin()
  return { title: t('nav.stock') }
}

