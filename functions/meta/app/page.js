// Parts that all views of the page share: notices, cards, and URLs of the views.
import { h, own, part, show } from './elements.js'
import { named, t } from './texts.js'

export const heading = (...children) => h('h1', { tabIndex: -1 }, ...children)

let said = 0
/** Shows a message for a while, and announces it to screen readers. */
export function say(text) {
  clearTimeout(said)
  part('notice').textContent = text
  said = setTimeout(() => show(part('notice')), 6000)
}

let later = ''
/** Leaves a message for the view that is opened next. */
export const sayNext = (text) => (later = text)
/** Replaces the message by the one that was left for this view. */
export function sayLeft() {
  say(later)
  later = ''
}

/** Does what can lead to another view, and says a text where it has led. @param {() => any} act */
export async function sayAfter(act, text) {
  const { hash } = location
  await act()
  const tell = location.hash === hash ? say : sayNext
  tell(text)
}

/** Placeholder bars of about the same height as the content being loaded. */
export const skeleton = (lines) => h('div.skeleton', { ariaHidden: 'true' }, Array.from({ length: lines }, () => h('i')))

export const card = (title, ...children) => h('section.card', { ariaLabel: title }, h('h2', title), ...children)

/** Creates rows of names and values. @param {[any, any][]} rows */
export const facts = (rows) => h('dl.facts', rows.map(([name, value]) => h('div', h('dt', name), h('dd', value ?? '–'))))

/** Returns the view and the parameters in the fragment, such as `#/assets?q=dell&status=in_use`. @returns {{ path: string[], params: Record<string, string> }} */
export function current() {
  const hash = location.hash.slice(1)
  // Mail programs encode all of a link.
  const [path = '', parameters = ''] = (/^%2f/i.test(hash) ? decoded(hash) : hash).split('?')
  const parts = path.split('/').filter(Boolean).map(decoded)
  const params = Object.fromEntries(new URLSearchParams(parameters))
  for (const name of ['day', 'from', 'until', 'before']) if (!isDay(params[name])) delete params[name]
  return { path: parts.length ? parts : ['assets'], params }
}

/** Returns whether a text is a date that exists: `2026-02-31` isn't. */
function isDay(text = '') {
  const time = new Date(text)
  return !isNaN(+time) && time.toISOString().split('T')[0] === text
}

/** Decodes a part of a URL, even if its encoding is invalid. */
export function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Builds a query, without parameters that have no value. */
export function query(parameters = {}) {
  const kept = Object.entries(parameters).filter(([, value]) => (value ?? '') !== '').map(([name, value]) => [name, String(value)])
  return kept.length ? `?${new URLSearchParams(kept)}` : ''
}

/** @param {string} path @param {Record<string, any>} [params] */
export const href = (path, params) => `#/${path}${query(params)}`

/** Navigates; with `replace`, replaces the current history entry. */
export function go(path, params = {}, replace = false) {
  const target = href(path, params)
  if (target === location.hash) return
  if (replace) {
    history.replaceState(history.state, '', target)
    dispatchEvent(new Event('hashchange'))
  } else location.hash = target
}

const edited = () => document.querySelector('[data-edited]')
/** Returns whether edits, if there are any, may be discarded. */
export const mayLeave = () => !edited() || confirm(t('discard'))
addEventListener('beforeunload', (event) => edited() && event.preventDefault())

/** The first parts of the paths of views that the key may not open. @type {Set<string>} */
export const closed = new Set()

/** Creates a link. For a view that the key may not open, returns the text, or nothing in place of a button. @returns {any} */
export const link = (text, path, params = {}, className = '') =>
  !closed.has(path.split('/')[0]) ? h('a', { href: href(path, params), className }, text)
    : !className.includes('button') && h('span', { className }, text)

export const status = (name) => named(`status.${name}`, name)

/** A colon between a name and its value: French has a space before it. */
export const colon = () => `${t('colon')} `

/** Returns the path of a process in progress: of its movement, if it has one. */
export const runPath = ({ movement_id: movement, id }) => (movement ? `run/movements/${movement}` : `run/instances/${id}`)

/** Tells the current step of a process. */
export const stepOf = ({ current_step: step, steps }) => [t('step-of', { step: step + 1, of: steps.length }), colon(), own(builtIn(steps[step]?.label))]

/** Returns the name of a process that the service brings along, or a label of its steps, in the reader's language. Others stay. */
export const builtIn = (text = '') => named(`built-in.${text}`, text)
