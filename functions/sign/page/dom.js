// Elements of the page. All text goes into text nodes, so it can't be interpreted as markup.

/**
 * Creates an element. Members that the element has are set, others become attributes.
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
 * Returns an element of the document itself.
 * @param {string} id
 */
function part(id) {
  const element = document.getElementById(id)
  if (!element) throw new Error(`no ${id}`)
  return element
}

/**
 * Isolates text that may run in either direction from what is around it.
 * @param {string} text
 */
const isolated = (text) => create('bdi', {}, text)

/**
 * Creates a button.
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
 * Says something that is not urgent.
 * @param {string} text
 */
function say(text) {
  part('status').textContent = text
}

/**
 * Says what went wrong, or nothing any more.
 * @param {...(Node | string)} content
 */
function showProblem(...content) {
  part('form').style.minHeight = ''
  part('problem').removeAttribute('aria-live')
  part('problem').replaceChildren(...content)
}

/** Moves the focus to the heading, so that a screen reader starts there. */
function focusTitle() {
  part('title').focus({ preventScroll: true })
  window.scrollTo(0, 0)
}

/**
 * Shows another view: its heading, what is above it, and its content.
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
