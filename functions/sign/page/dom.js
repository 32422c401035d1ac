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
 * Isolates text, which can have either text direction.
 * @param {string} text
 */
const isolated = (text) => create('bdi', {}, text)

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
