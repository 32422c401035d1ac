// Start of the page: the key, the language, and the view for the URL.
import { Problem, get, may, session, setKey } from './api.js'
import { asset, byTag, changes, codeOpens } from './asset.js'
import { takeFiles } from './dropped.js'
import { every, h, hint, own, part, show } from './elements.js'
import { input } from './fields.js'
import { empty, field, form, problemBox, submit } from './form.js'
import { inventory, readAhead } from './inventory.js'
import { closed, current, go, heading, href, link, mayLeave, sayLeft, skeleton } from './page.js'
import { people, person } from './people.js'
import { begin, run } from './process.js'
import { uuid } from './requests.js'
import { takeScans } from './suggest.js'
import { learn, readersLanguage, speak, t } from './texts.js'

const main = part('main')
/** Loads the texts, and sets the language. */
async function loadTexts() {
  const reply = await fetch(new URL('texts.txt', import.meta.url))
  learn(await reply.text())
  speak(chosenLanguage() ?? 'en')
}
const LANGUAGE = 'language'
/** The language that was chosen on the page, or else in the browser. */
const chosenLanguage = () => sessionStorage.getItem(LANGUAGE) ?? readersLanguage()
const texts = loadTexts()
/**
 * Returns a view from a file that is loaded when the view is first opened. If the service was updated, the file is gone, and the page
 * loads anew.
 * @param {() => Promise<any>} load @param {string} name
 */
const later = (load, name) => async (/** @type {any[]} */ ...given) => {
  const file = await load().catch(async () => {
    const reply = await fetch(import.meta.url, { cache: 'no-store' }).catch(() => null)
    if (reply?.status === 404) location.reload()
    throw new Problem(0, {})
  })
  return file[name](...given)
}
const START = [begin, 'processes:read', 'processes:write', 'assets:read']
/** Views by the first part of the fragment, with the required scopes. @type {Record<string, any[]>} */
const VIEWS = {
  assets: [inventory, 'assets:read'],
  asset: [asset, 'assets:read'],
  new: [later(() => import('./create.js'), 'create'), 'assets:write'],
  import: [later(() => import('./importing.js'), 'importing'), ['assets:write', 'users:write']],
  tag: [byTag, 'assets:read'],
  changes: [changes, 'events:read'],
  people: [people, 'users:read'],
  person: [person, 'users:read'],
  'new-person': [later(() => import('./personForm.js'), 'newPerson'), 'users:write'],
  'hand-over': [...START, 'users:read'],
  'take-back': START,
  start: START,
  run: [run, 'processes:read'],
  stock: [later(() => import('./stock.js'), 'stock'), 'assets:write'],
  verify: [later(() => import('./verify.js'), 'verify')],
  open: [later(() => import('./open.js'), 'open'), 'processes:read'],
  organisation: [later(() => import('./organisation.js'), 'organisation'),
    ['catalog:read', 'keys:read', 'keys:write', 'settings:read', 'webhooks:read', 'webhooks:write']],
  key: [showAccount],
}
const TABS = ['assets', 'people', 'hand-over', 'take-back', 'open', 'stock', 'organisation']
/** Scopes to change something of the organization. Who has none reaches it by the account. */
const ORGANISES = ['catalog:write', 'keys:write', 'settings:write', 'webhooks:write']
const isTab = (name) => !closed.has(name) && (name !== 'organisation' || ORGANISES.some(may))
/** Views that take scans themselves. In the others, a scan opens the asset. */
const TAKES_SCANS = ['assets', 'new', 'hand-over', 'take-back', 'start', 'stock']
/** Returns the scopes that a view needs and the key lacks. A list of scopes stands for any one of them. */
const lacking = (view) => (VIEWS[view] ?? []).slice(1).filter((scopes) => ![scopes].flat().some(may))
const TAB_OF = { asset: 'assets', new: 'assets', import: 'assets', tag: 'assets', changes: 'assets', person: 'people', 'new-person': 'people', start: 'hand-over' }

/** Removes the key from the URL, before anything else can read it. */
function takeKey() {
  const key = /^#key=(apl_[0-9A-Za-z]+)&?(.*)/.exec(location.hash)
  if (!key) return false
  history.replaceState(null, '', key[2].startsWith('/') ? `#${key[2]}` : '#/assets')
  setKey(key[1])
  return true
}

async function signIn() {
  show(part('nav'))
  part('account').hidden = part('home').hidden = true
  let problem = null
  if (session.key) {
    try {
      // Request the list, which most keys can read, while the texts load.
      const { path: [view], params } = current()
      if (view === 'assets') readAhead(params)
      // Other characters can't be sent in a header.
      if (!/^[!-~]+$/.test(session.key)) throw new Problem(401, { code: 'UNAUTHORIZED' })
      const [{ data }] = await Promise.all([get('/me'), texts])
      session.me = data
      if (!chosenLanguage()) speak(session.me.tenant.locale)
      return showFrame()
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      problem = error
      if (error.status === 401) setKey(null)
    }
  }
  await texts
  const control = input('password', '', { spellcheck: false, required: true })
  const element = form(() => {
    const key = control.value.trim()
    if (!key) return control.focus()
    setKey(key)
    signIn()
  }, heading(t('key-title')), field(t('key'), control), problem && problemBox(problem, session.key ? signIn : undefined),
  h('div.actions', submit(t('go-in'))), hint(t('key-stays')))
  element.classList.add('narrow')
  document.title = t('key-title')
  show(main, element)
  control.focus()
}

function showFrame() {
  show(part('home'), session.me.tenant.name)
  closed.clear()
  for (const name of Object.keys(VIEWS)) if (lacking(name).length) closed.add(name)
  show(part('nav'), TABS.filter(isTab).map((name) => link(t(`nav.${name}`), name)))
  const account = part('account')
  account.hidden = part('home').hidden = false
  show(account, own(session.me.user?.display_name ?? session.me.key.name))
  account.title = t('account')
  showView()
}

/** @type {{ name: string, view: any } | null} */
let shown = null
/** The current entry of the browser's history, and where the page was when it left each entry. */
let entry = ''
/** @type {Map<string, { hash: string, n: number, top: number, y: number }>} */
const left = new Map(JSON.parse(sessionStorage.getItem('left') ?? '[]'))
const MOST_LEFT = 50
history.scrollRestoration = 'manual'
let leave = new AbortController()
let moves = 0
let wantsSearch = false

const topOf = (link) => link.getBoundingClientRect().top
const linksTo = (hash) => every(main, 'a').filter((link) => link.hash === hash)

/** Remembers where the page is: the link that was followed, and its height on the screen. */
function remember(entry) {
  const links = linksTo(location.hash)
  const n = Math.max(0, links.indexOf(document.activeElement))
  left.delete(entry)
  left.set(entry, { hash: location.hash, n, top: links[n] && topOf(links[n]), y: scrollY })
}
addEventListener('pagehide', () => {
  if (!session.key) return
  remember(entry)
  sessionStorage.setItem('left', JSON.stringify([...left].slice(-MOST_LEFT)))
})

const BACK_MS = 5000
/** Returns to where the page was left, as soon as its content is there, until someone does something. */
function goBackTo({ hash, n, top, y }, signal) {
  const done = new AbortController()
  const ends = AbortSignal.any([done.signal, signal, AbortSignal.timeout(BACK_MS)])
  /** @type {any} the link that has got the focus */
  let focused = null
  const place = () => {
    if (ends.aborted) return
    const link = top === undefined ? null : linksTo(hash)[n]
    if (!link) return scrollTo(0, y)
    const active = document.activeElement
    if (!main.contains(active) || active === focused || active.matches('main, h1')) {
      link.focus({ preventScroll: true })
      focused = link
    }
    scrollBy(0, topOf(link) - top)
  }
  const watch = new ResizeObserver(place)
  watch.observe(main)
  ends.addEventListener('abort', () => watch.disconnect())
  for (const type of ['wheel', 'touchstart', 'pointerdown', 'keydown']) addEventListener(type, () => done.abort(), { signal: ends, capture: true, passive: true })
  place()
}

async function showView() {
  const { path, params } = current()
  const [name] = path
  const before = entry
  if (!history.state) history.replaceState(uuid(), '')
  entry = history.state
  if (shown && before !== entry) remember(before)
  const back = left.get(entry)
  if (shown?.name === path.join('/') && shown.view?.update) {
    shown.view.update(params)
    if (back && before !== entry) goBackTo(back, leave.signal)
    return
  }
  const isFirst = shown === null
  moves += 1
  leave.abort()
  leave = new AbortController()
  const { signal } = leave
  shown = { name: path.join('/'), view: null }
  for (const tab of part('nav').children) tab.ariaCurrent = tab.hash === href(TAB_OF[name] ?? name) ? 'page' : null
  main.classList.toggle('wide', name === 'assets' || name === 'people')
  sayLeft()
  const [view] = Object.hasOwn(VIEWS, name) ? VIEWS[name] : []
  try {
    if (!view) show(main, empty(t('error.NOT_FOUND'), '', link(t('nav.assets'), 'assets', {}, 'button')))
    else if (closed.has(name)) show(main, empty(t('scope-missing', { scope: lacking(name).join(', ') }), '', link(t('this-key'), 'key', {}, 'button')))
    else {
      show(main, skeleton(10))
      const made = await view(main, params, signal, path)
      if (signal.aborted) return
      shown.view = made
      if (!TAKES_SCANS.includes(name) && !closed.has('assets')) takeScans(open, signal)
      if (back) await made?.ready
      document.title = `${made?.title ?? t('nav.assets')} – ${session.me.tenant.name}`
    }
  } catch (error) {
    if (signal.aborted) return
    if (error instanceof Problem && error.status === 401) return (setKey(null), (session.me = null), (shown = null), signIn())
    show(main, problemBox(error, () => ((shown = null), showView())))
  }
  if (wantsSearch) part('search')?.focus()
  wantsSearch = false
  if (signal.aborted || (isFirst && !back)) return
  // Screen readers start at the heading, unless the view has set the focus.
  if (!main.contains(document.activeElement) || document.activeElement === main) (main.querySelector('h1') ?? main).focus({ preventScroll: true })
  if (back) goBackTo(back, signal)
  else scrollTo(0, 0)
}

/** Opens the asset with a scanned code, or searches for the code. */
async function open(code) {
  const path = await codeOpens(code)
  go(path ?? 'assets', path ? {} : { q: code })
}

function showAccount(main, _, signal) {
  const lacks = TABS.filter((name) => closed.has(name)).map((name) => [name, lacking(name).join(', ')])
  return later(() => import('./account.js'), 'account')(main, signal, { closed: lacks, speakIn })
}

/** Shows the page in a language, which the tab keeps. @param {string} language */
function speakIn(language) {
  sessionStorage.setItem(LANGUAGE, language)
  // The reader's own region writes dates, if there is one.
  speak(navigator.languages.find((name) => name.split('-')[0] === language) ?? language)
  shown = { name: '', view: null }
  showFrame()
}

addEventListener('hashchange', ({ oldURL }) => {
  // The page's own events have no URL.
  if (oldURL && !mayLeave()) history.pushState(null, '', oldURL)
  else if (takeKey()) {
    shown = null
    signIn()
  } else if (session.me) showView()
})
addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.matches('input:not([type=checkbox]), textarea, select')
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
    const search = part('search')
    if (search) search.focus()
    else {
      wantsSearch = true
      location.hash = '#/assets'
    }
    event.preventDefault()
  } else if (event.key === 'Escape' && !isTyping && !event.defaultPrevented && ['asset', 'person', 'run', 'changes'].includes(current().path[0])) {
    // Only go back within this page.
    if (moves > 1) history.back()
    else location.hash = '#/assets'
  }
})
takeFiles(() => {
  if (!session.me || closed.has('import')) return
  if (current().path[0] !== 'import') return go('import')
  shown = null
  showView()
})
part('account').addEventListener('click', () => (location.hash = '#/key'))

takeKey()
await signIn()
