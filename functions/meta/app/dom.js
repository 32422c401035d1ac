// Elements of the page, and the addresses of its views. All text goes through text nodes, so that nothing in it can be markup.

/**
 * Creates an element: `h('p.hint', { title }, children)`. Functions listen to events, members that the element has are set, others
 * become attributes.
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

/** The same for SVG, without classes. @param {string} tag @param {...any} rest @returns {any} */
export const svg = (tag, ...rest) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), rest)

function fill(element, rest) {
  const members = Object.getPrototypeOf(rest[0] ?? '') === Object.prototype ? rest.shift() : {}
  for (const [name, value] of Object.entries(members)) {
    if (isNothing(value)) continue
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (name in element && element instanceof HTMLElement) Reflect.set(element, name, value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...shown(rest))
  return element
}

const isNothing = (value) => value === null || value === undefined || value === false
const shown = (children) => children.flat(3).filter((child) => !isNothing(child))

/** Replaces what an element shows. */
export const show = (element, ...children) => element.replaceChildren(...shown(children))

/** Returns an element of the document itself. @param {string} id @returns {any} */
export const part = (id) => document.getElementById(id)

/** Elements within another. @param {Element} within @param {string} selector @returns {any[]} */
export const every = (within, selector) => [...within.querySelectorAll(selector)]

/** Text of people and devices, which may run in either direction. */
export const own = (text, className = '') => h('bdi', { className }, text)

export const hint = (...children) => h('p.hint', ...children)
export const heading = (...children) => h('h1', { tabIndex: -1 }, ...children)

let last = 0
export const newId = () => `e${++last}`

/**
 * Creates a button. While what it starts runs, another click does nothing.
 * @param {string} text @param {() => any} act @param {string} [look]
 */
export function button(text, act, look = '') {
  const element = h('button', { type: 'button', className: look }, text)
  element.addEventListener('click', async () => {
    if (element.ariaBusy === 'true') return
    element.ariaBusy = 'true'
    try {
      await act()
    } finally {
      element.ariaBusy = null
    }
  })
  return element
}

let said = 0
/** Says something for a while, also to screen readers. */
export function say(text) {
  clearTimeout(said)
  part('notice').textContent = text
  said = setTimeout(() => show(part('notice')), 6000)
}

/** Gray bars in place of what is loaded, with about its height. */
export const skeleton = (lines) => h('div.skeleton', { ariaHidden: 'true' }, Array.from({ length: lines }, () => h('i')))

/** A section with a heading. */
export function card(title, ...children) {
  const id = newId()
  return h('section.card', { 'aria-labelledby': id }, h('h2', { id }, title), ...children)
}

/** Rows of names and values. @param {[any, any][]} rows */
export const facts = (rows) => h('dl.facts', rows.map(([name, value]) => h('div', h('dt', name), h('dd', value ?? '–'))))

/** What the fragment asks for, such as `#/assets?q=dell&status=in_use`. @returns {{ path: string[], params: Record<string, string> }} */
export function current() {
  const [path = '', parameters = ''] = location.hash.slice(1).split('?')
  const parts = path.split('/').filter(Boolean).map(decoded)
  return { path: parts.length ? parts : ['assets'], params: Object.fromEntries(new URLSearchParams(parameters)) }
}

/** A part of an address as text, even if its encoding is wrong. */
export function decoded(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Parameters as a query, without those that have no value. */
export function query(parameters = {}) {
  const kept = Object.entries(parameters).filter(([, value]) => (value ?? '') !== '').map(([name, value]) => [name, String(value)])
  return kept.length ? `?${new URLSearchParams(kept)}` : ''
}

/** @param {string} path @param {Record<string, any>} [params] */
export const href = (path, params) => `#/${path}${query(params)}`

/** Goes there; as the same step of the browser's history with `replace`. */
export function go(path, params = {}, replace = false) {
  const target = href(path, params)
  if (target === location.hash) return
  if (replace) {
    history.replaceState(null, '', target)
    dispatchEvent(new HashChangeEvent('hashchange'))
  } else location.hash = target
}

/** A link to a view. */
export const link = (text, path, params = {}, className = '') => h('a', { href: href(path, params), className }, text)
