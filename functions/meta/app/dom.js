// Elements of the page. All text goes through text nodes, so that nothing in it can be markup.

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
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (name in element && element instanceof HTMLElement) Reflect.set(element, name, value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...shown(rest))
  return element
}

const shown = (children) => children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)

/** Replaces what an element shows. */
export const show = (element, ...children) => element.replaceChildren(...shown(children))

/** Returns an element of the document itself. @param {string} id @returns {any} */
export const part = (id) => document.getElementById(id)

/** Text of people and devices, which may run in either direction. */
export const own = (text, className = '') => h('bdi', { className }, text)

let last = 0
export const newId = () => `e${++last}`

/**
 * Creates a button. While what it starts runs, another click does nothing.
 * @param {string} text
 * @param {() => any} act
 * @param {string} [look]
 */
export function button(text, act, look = '') {
  const element = h('button', { type: 'button', className: look }, text)
  element.addEventListener('click', async () => {
    if (element.getAttribute('aria-busy') === 'true') return
    element.setAttribute('aria-busy', 'true')
    try {
      await act()
    } finally {
      element.removeAttribute('aria-busy')
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
export const skeleton = (lines) => h('div.skeleton', { 'aria-hidden': 'true' }, Array.from({ length: lines }, () => h('i')))

/** A section with a heading. */
export function card(title, ...children) {
  const heading = h('h2', { id: newId() }, title)
  return h('section.card', { 'aria-labelledby': heading.id }, heading, ...children)
}

/** Rows of names and values. @param {[any, any][]} rows */
export const facts = (rows) => h('dl.facts', rows.map(([name, value]) => h('div', h('dt', name), h('dd', value ?? '–'))))
