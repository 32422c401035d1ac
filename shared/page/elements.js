// Elements of a page. All text goes into text nodes, so it can't be interpreted as markup.

/** @template {string} T @typedef {T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement} ElementOf */

/**
 * Creates an element: `h('p.hint', { title }, children)`. Functions become event listeners, the element's properties are set, and
 * other members become attributes. Nothing happens for null and undefined, and for false except to properties that are yes or no.
 * @template {string} N
 * @param {N} name
 * @param {...any} rest members, if the first is a plain object, and children
 * @returns {N extends `${infer Tag}.${string}` ? ElementOf<Tag> : ElementOf<N>}
 */
export function h(name, ...rest) {
  const [tag = '', ...classes] = name.split('.')
  const element = document.createElement(tag)
  element.classList.add(...classes)
  return fill(element, rest)
}

/** Does the same as `h`, for SVG and without classes. @param {string} tag @param {...any} rest @returns {any} */
export const svg = (tag, ...rest) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), rest)

/** @param {any} element @param {any[]} rest */
function fill(element, rest) {
  const members = Object.getPrototypeOf(rest[0] ?? '') === Object.prototype ? rest.shift() : {}
  for (const [name, value] of Object.entries(members)) {
    const isProperty = name in element && !(element instanceof SVGElement)
    if (isNothing(value) && !(value === false && isProperty && element[name] === true)) continue
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (isProperty) element[name] = value
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...shown(rest))
  return element
}

/** @param {any} value */
const isNothing = (value) => (value ?? false) === false
/** @param {any[]} children */
const shown = (children) => children.flat(3).filter((child) => !isNothing(child))

/** Replaces the children of an element. @param {Element} element @param {...any} children */
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

/**
 * Isolates user text, which can have either text direction, and shows the code of each hidden character, such as `U+200B`.
 * @param {any} text
 */
export const own = (text, className = '') => h('bdi', { className }, typeof text === 'string' && HIDDEN.test(text)
  ? text.split(HIDDEN).map((/** @type {string} */ piece, /** @type {number} */ n) => (n % 2 ? h('code.hidden', `U+${piece.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`) : piece))
  : text)

/** @param {...any} children */
export const hint = (...children) => h('p.hint', ...children)

let last = 0
export const newId = () => `e${++last}`

/**
 * Creates a button. Ignores clicks while its action runs, and while it is disabled for screen readers.
 * @param {string} text @param {() => any} act @param {string} [look]
 */
export const button = (text, act, look = '') =>
  h('button', { type: 'button', className: look, click: async (/** @type {any} */ { currentTarget: element }) => {
    if (element.ariaBusy === 'true' || element.ariaDisabled === 'true') return
    element.ariaBusy = 'true'
    try {
      await act()
    } finally {
      element.ariaBusy = null
    }
  } }, text)

/** Saves a file on the reader's device. @param {string} name @param {string} text @param {string} type */
export function saveFile(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  h('a', { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Returns the name of a receipt's file. @param {string} subject the number of the movement, or a tag */
export const receiptFile = (subject) => `receipt-${subject}`.replace(/[^0-9A-Za-z]+/g, '-').replace(/-$/, '') + '.html'
