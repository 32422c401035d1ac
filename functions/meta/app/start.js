// The beginning: key, language, and which view the address asks for.
import { BASE, Problem, get, may, session, setKey } from './api.js'
import { asset, byTag } from './asset.js'
import { button, card, facts, h, own, part, say, show } from './dom.js'
import { empty, field, input, problemBox } from './form.js'
import { inventory } from './inventory.js'
import { people, person } from './people.js'
import { begin, run } from './process.js'
import { current, href } from './route.js'
import { stock } from './stock.js'
import { readersLanguage, speak, t } from './text.js'

const main = part('main')
/** Views by the first part of the fragment, with the scopes that they need. @type {Record<string, [string[], (path: string[], params: any, signal: AbortSignal) => any]>} */
const VIEWS = {
  assets: [['assets:read'], (_, params, signal) => inventory(main, params, signal)],
  asset: [['assets:read'], ([id], params, signal) => asset(main, id, params, signal)],
  tag: [['assets:read'], ([tag], _, signal) => byTag(main, tag, signal)],
  people: [['users:read'], (_, params, signal) => people(main, params, signal)],
  person: [['users:read'], ([id], params, signal) => person(main, id, params, signal)],
  'hand-over': [['processes:read', 'processes:write', 'assets:read'], (_, params, signal) => begin(main, 'hand-over', params, signal)],
  'take-back': [['processes:read', 'processes:write', 'assets:read'], (_, params, signal) => begin(main, 'take-back', params, signal)],
  start: [['processes:read', 'processes:write', 'assets:read'], (_, params, signal) => begin(main, 'start', params, signal)],
  run: [['processes:read'], (path, _, signal) => run(main, path, signal)],
  stock: [['assets:write'], (_, params, signal) => stock(main, params, signal)],
  key: [[], () => account()],
}
const TABS = ['assets', 'people', 'hand-over', 'take-back', 'stock']
const TAB_OF = { asset: 'assets', tag: 'assets', person: 'people', start: 'hand-over', run: 'hand-over' }

/** Takes the key out of the address, before anything else can read it there. */
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
      session.me = (await get('/me')).data
      if (!readersLanguage()) await speak(session.me.tenant.locale)
      return showFrame()
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      problem = error
      if (error.status === 401) setKey(null)
    }
  }
  const control = input('password', '', { autocomplete: 'off', spellcheck: false, required: true })
  const form = h('form.card.form.narrow', { noValidate: true }, h('h1', { tabIndex: -1 }, t('key-title')), h('p', t('key-hint')),
    field(t('key'), control), problem && problemBox(problem, session.key ? signIn : undefined), h('div.actions', h('button', { type: 'submit', className: 'primary' }, t('go-in'))),
    h('p.hint', t('key-stays'), ' ', h('a', { href: `${BASE}/docs` }, t('documentation'))))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const key = control.value.trim()
    if (!key) return control.focus()
    setKey(key)
    signIn()
  })
  document.title = t('key-title')
  show(main, form)
  control.focus()
}

function showFrame() {
  show(part('organization'), session.me.tenant.name)
  show(part('nav'), TABS.map((name) => h('a', { href: href([name]), 'data-tab': name }, t(`nav.${name}`))))
  part('nav').setAttribute('aria-label', t('views'))
  const whose = session.me.user?.display_name ?? session.me.key.name
  part('account').hidden = part('home').hidden = false
  show(part('account'), own(whose))
  part('account').title = t('this-key')
  showView()
}

/** @type {{ name: string, view: any } | null} */
let shown = null
let leave = new AbortController()
let moves = 0

async function showView() {
  const { path: [name, ...rest], params } = current()
  const at = [name, ...rest].join('/')
  if (shown?.name === at && shown.view?.update) return shown.view.update(params)
  const isFirst = shown === null
  moves += 1
  leave.abort()
  leave = new AbortController()
  const { signal } = leave
  shown = { name: at, view: null }
  for (const tab of part('nav').children) {
    if (tab.dataset.tab === (TAB_OF[name] ?? name)) tab.setAttribute('aria-current', 'page')
    else tab.removeAttribute('aria-current')
  }
  main.classList.remove('wide')
  say('')
  const [scopes, view] = Object.hasOwn(VIEWS, name) ? VIEWS[name] : [[], null]
  const lacking = scopes.filter((scope) => !may(scope))
  try {
    if (!view) show(main, empty(t('no-view'), '', h('a.button', { href: '#/assets' }, t('nav.assets'))))
    else if (lacking.length) show(main, empty(t('scope-missing', { scope: lacking.join(', ') }), t('scope-hint'), h('a.button', { href: '#/key' }, t('this-key'))))
    else {
      const made = await view(rest, params, signal)
      if (signal.aborted) return
      shown.view = made
      document.title = `${made?.title ?? t('nav.assets')} – ${session.me.tenant.name}`
    }
  } catch (error) {
    if (signal.aborted) return
    if (error instanceof Problem && error.status === 401) return (setKey(null), (session.me = null), (shown = null), signIn())
    show(main, problemBox(error, () => ((shown = null), showView())))
  }
  // A screen reader starts there.
  if (!isFirst) (main.querySelector('h1') ?? main).focus({ preventScroll: true })
  if (!isFirst) scrollTo(0, 0)
}

function account() {
  const { key, tenant, user } = session.me
  const all = ['assets', 'processes', 'users', 'catalog', 'settings'].flatMap((family) => [`${family}:read`, `${family}:write`])
  const line = (scope) => h('li', h('span.mark', { 'aria-hidden': 'true' }, may(scope) ? '✓' : '–'), h('code', scope), !may(scope) && h('span.hint', ` ${t('not-granted')}`))
  show(main, h('h1', { tabIndex: -1 }, t('this-key')), card(t('key'), facts([[t('organization'), own(tenant.name)], [t('field.name'), own(key.name)], [t('person'), user && own(user.display_name)]]),
    h('ul.steps', all.map(line)), h('div.actions', button(t('forget-key'), () => {
      sessionStorage.clear()
      location.hash = ''
      location.reload()
    }))))
  return { title: t('this-key') }
}

addEventListener('hashchange', () => {
  if (takeKey()) {
    shown = null
    signIn()
  } else if (session.me) showView()
})
addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
    const search = part('search')
    if (!search) location.hash = '#/assets'
    else search.focus()
    event.preventDefault()
  } else if (event.key === 'Escape' && !isTyping && !event.defaultPrevented && ['asset', 'person', 'run'].includes(current().path[0])) {
    // Not to where this page was opened from.
    if (moves > 1) history.back()
    else location.hash = '#/assets'
  }
})
part('account').addEventListener('click', () => (location.hash = '#/key'))

takeKey()
await speak(readersLanguage() ?? 'en')
await signIn()
