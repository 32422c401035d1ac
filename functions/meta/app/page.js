// Elements of the page, URLs of its views, and texts in the reader's language. All text goes into text nodes, so it can't be
// interpreted as markup.

/**
 * Creates an element: `h('p.hint', { title }, children)`. Functions become event listeners, the element's properties are
 * set, and other members become attributes.
 * @param {string} name
 * @param {...any} rest members, if the first is a plain object, and children
 * @returns {any}
 */
export function h(name, ...rest) {
  const [tag, ...classes] = name.split('.')
  const element = document.createElement(tag)
  element.classList.add(...classes)
  return fill(element, rest)
}

/** Does the same as `h`, for SVG and without classes. @param {string} tag @param {...any} rest @returns {any} */
export const svg = (tag, ...rest) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), rest)

function fill(element, rest) {
  const members = Object.getPrototypeOf(rest[0] ?? '') === Object.prototype ? rest.shift() : {}
  for (const [name, value] of Object.entries(members)) {
    if (isNothing(value)) continue
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (name in element && element instanceof HTMLElement) element[name] = value
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...shown(rest))
  return element
}

const isNothing = (value) => (value ?? false) === false
const shown = (children) => children.flat(3).filter((child) => !isNothing(child))

export const show = (element, ...children) => element.replaceChildren(...shown(children))

/** Returns a static element of the document by ID. @param {string} id @returns {any} */
export const part = (id) => document.getElementById(id)

/** @param {Element} within @param {string} selector @returns {any[]} */
export const every = (within, selector) => [...within.querySelectorAll(selector)]

/**
 * Characters that no one can see, which older names can contain. Joiners, tags of flags and variation selectors are not among them:
 * scripts and emoji need these.
 */
const HIDDEN = /([\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb])/

/** Isolates user text, which can have either text direction, and shows the code of each hidden character, such as `U+200B`. */
export const own = (text, className = '') => h('bdi', { className }, typeof text === 'string' && HIDDEN.test(text)
  ? text.split(HIDDEN).map((piece, n) => (n % 2 ? h('code.hidden', `U+${piece.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`) : piece))
  : text)

export const hint = (...children) => h('p.hint', ...children)
export const heading = (...children) => h('h1', { tabIndex: -1 }, ...children)

let last = 0
export const newId = () => `e${++last}`

/**
 * Creates a button. Ignores clicks while its action runs.
 * @param {string} text @param {() => any} act @param {string} [look]
 */
export const button = (text, act, look = '') =>
  h('button', { type: 'button', className: look, click: async ({ currentTarget: element }) => {
    if (element.ariaBusy === 'true') return
    element.ariaBusy = 'true'
    try {
      await act()
    } finally {
      element.ariaBusy = null
    }
  } }, text)

let said = 0
/** Shows a message for a while, and announces it to screen readers. */
export function say(text) {
  clearTimeout(said)
  part('notice').textContent = text
  said = setTimeout(() => show(part('notice')), 6000)
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

const LANGUAGES = ['en', 'de', 'fr', 'es']
/** @type {Record<string, string>} */
let texts = {}
let locale = 'en'
const writers = new Map()

/** The first of the reader's languages that the page supports. */
export const readersLanguage = () =>
  navigator.languages.find((name) => LANGUAGES.includes(name.slice(0, 2).toLowerCase()))

/**
 * Loads the texts for a language such as `de-CH`, or for English if it is unsupported. A line of the file is a name, and the
 * text in each language; a tilde separates singular and plural.
 * @param {string} name
 */
export async function speak(name) {
  const language = LANGUAGES.find((known) => name.toLowerCase().startsWith(known)) ?? 'en'
  const reply = await fetch(new URL('texts.txt', import.meta.url))
  const rows = (await reply.text()).split('\n').map((line) => line.split('|'))
  texts = Object.fromEntries(rows.map((row) => [row[0], row[1 + LANGUAGES.indexOf(language)]]))
  locale = name.startsWith(language) ? name : language
  writers.clear()
  document.documentElement.lang = language
}

/** Formats numbers or times. Cached, because creating a formatter takes up to 0.3 ms and a list needs hundreds. @returns {any} */
function writer(kind, options = {}) {
  const key = kind + JSON.stringify(options)
  if (!writers.has(key)) writers.set(key, new Intl[kind](locale, options))
  return writers.get(key)
}

export const has = (key) => Object.hasOwn(texts, key)

function template(key, count = 0) {
  const [one, other] = (texts[key] ?? key).split('~')
  return other && writer('PluralRules').select(count) !== 'one' ? other : one
}

/** Returns a text with its `{name}` placeholders replaced by isolated values. `count` selects the plural form. */
export const t = (key, values = {}) =>
  template(key, values.count).replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name]
    return typeof value === 'number' ? number(value) : `\u2068${value}\u2069`
  })

/** Does the same as `t`, for values that are elements. @returns {any[]} */
export const sentence = (key, values) =>
  template(key).split(/\{(\w+)\}/).map((piece, n) => (n % 2 ? h('bdi', values[piece]) : piece))

export const number = (value) => writer('NumberFormat', { maximumFractionDigits: 20 }).format(value)

/** Formats an amount: `12.5` becomes `12.50`. @param {string | number} value */
export const amount = (value) => writer('NumberFormat', { minimumFractionDigits: 2, maximumFractionDigits: 4 }).format(value)

/** Formats a number for a field: with 2 decimals or more, `1249.5` becomes `1249,50` in German. @param {number | null} value */
export const editable = (value, decimals = 2) =>
  value === null ? '' : writer('NumberFormat', { useGrouping: false, minimumFractionDigits: decimals, maximumFractionDigits: 20 }).format(value)

/**
 * Reads an amount as written in the reader's language: `1.249,50` becomes `1249.50` in German. Otherwise, takes a single comma or
 * point for the decimal one. Keeps other texts.
 */
export function typedAmount(text) {
  const parts = writer('NumberFormat', {}).formatToParts(12345.6)
  const [group, decimal] = ['group', 'decimal'].map((type) => parts.find((part) => part.type === type).value)
  const [whole, ...fraction] = text.replace(/[\s'’]/g, '').split(decimal)
  const groups = whole.split(group.trim() || ' ')
  const isGrouped = groups.every((digits, n) => (n ? /^\d{3}$/ : /^\d{1,3}$/).test(digits))
  return isGrouped || /^\d+$/.test(whole) ? [groups.join(''), ...fraction].join('.') : text.replace(/^(\d*),(\d+)$/, '$1.$2')
}

/** @param {string} day YYYY-MM-DD @param {Intl.DateTimeFormatOptions} [look] */
export function date(day, look = { dateStyle: 'medium' }) {
  const time = new Date(day)
  return isNaN(+time) ? day : writer('DateTimeFormat', { ...look, timeZone: 'UTC' }).format(time)
}

export const moment = (time) => writer('DateTimeFormat', { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(time))

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [['year', 31_557_600], ['month', 2_629_800], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60]]

/** Shows a relative time, with the exact time as its title. @param {string | null} time */
export function ago(time) {
  if (!time) return '–'
  const seconds = (Date.parse(time) - Date.now()) / 1000
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', Infinity]
  return h('time', { dateTime: time, title: moment(time) }, writer('RelativeTimeFormat', { numeric: 'auto' }).format(Math.trunc(seconds / size), unit))
}

/** Returns a text, or the fallback if the text doesn't exist. */
export const named = (key, other) => (has(key) ? t(key) : other)

export const status = (name) => named(`status.${name}`, name)
