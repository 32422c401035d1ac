// Elements of the page. All text goes into text nodes, so it can't be interpreted as markup.

/**
 * Creates an element. Members that are properties of the element are set, and other members become attributes.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [members]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
function create(tag, members = {}, ...children) {
  const element = document.createElement(tag)
  for (const [member, value] of Object.entries(members)) {
    if (member in element) Reflect.set(element, member, value)
    else element.setAttribute(member, value)
  }
  element.append(...children.filter((child) => child !== null))
  return element
}

/**
 * Returns a static element of the document.
 * @param {string} id
 */
function part(id) {
  const element = document.getElementById(id)
  if (!element) throw new Error(`no ${id}`)
  return element
}

/**
 * Characters that no one can see, which older names can contain. Joiners, tags of flags and variation selectors are not among them:
 * scripts and emoji need these.
 */
const HIDDEN = /([\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb])/

/** @param {string} character */
const shownHidden = (character) => create('code', { className: 'hidden' }, `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`)

/**
 * Isolates text, which can have either text direction, and shows the code of each hidden character, such as `U+200B`.
 * @param {string} text
 */
const isolated = (text) => create('bdi', {}, ...text.split(HIDDEN).map((piece, n) => (n % 2 ? shownHidden(piece) : piece)))

/**
 * @param {string} text
 * @param {() => void} act
 * @param {string} [look]
 */
function button(text, act, look = '') {
  const element = create('button', { type: 'button', className: look }, text)
  element.addEventListener('click', () => element.getAttribute('aria-disabled') !== 'true' && act())
  return element
}

let lastId = 0
const newId = () => `e${++lastId}`

/**
 * Shows a message that isn't urgent.
 * @param {string} text
 */
function say(text) {
  part('status').textContent = text
}

/**
 * Shows an error. Without content, removes the shown error.
 * @param {...(Node | string)} content
 */
function showProblem(...content) {
  part('form').style.minHeight = ''
  part('problem').removeAttribute('aria-live')
  part('problem').replaceChildren(...content)
}

/** Focuses the heading, so that screen readers start there. */
function focusTitle() {
  part('title').focus({ preventScroll: true })
  window.scrollTo(0, 0)
}

/**
 * Replaces the view: the text above the heading, the heading and the content.
 * @param {SigningSession | null} session
 * @param {string} title
 * @param {(Node | string)[]} content
 * @param {(Node | string)[]} [actions]
 */
function showView(session, title, content, actions = []) {
  const organization = session?.organization ?? ''
  const process = session && session.process_name !== title ? [' · ', isolated(session.process_name)] : []
  part('organization').replaceChildren(isolated(organization), ...process)
  part('title').replaceChildren(isolated(title))
  document.title = organization ? `\u2068${title}\u2069 – \u2068${organization}\u2069` : title
  part('content').replaceChildren(...content)
  part('actions').replaceChildren(...actions)
  showProblem()
  say('')
}
