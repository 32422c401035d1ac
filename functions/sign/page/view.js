// The page's view: its heading, content, actions and messages.
import { own, part } from './elements.js'

/**
 * Shows a message that isn't urgent.
 * @param {string} text
 */
export function say(text) {
  part('status').textContent = text
}

/**
 * Shows an error. Without content, removes the shown error.
 * @param {...(Node | string)} content
 */
export function showProblem(...content) {
  part('form').style.minHeight = ''
  part('problem').removeAttribute('aria-live')
  part('problem').replaceChildren(...content)
}

/** Focuses the heading, so that screen readers start there. */
export function focusTitle() {
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
export function showView(session, title, content, actions = []) {
  const organization = session?.organization ?? ''
  const process = session && session.process_name !== title ? [' · ', own(session.process_name)] : []
  part('organization').replaceChildren(own(organization), ...process)
  part('title').replaceChildren(own(title))
  document.title = organization ? `\u2068${title}\u2069 – \u2068${organization}\u2069` : title
  part('content').replaceChildren(...content)
  part('actions').replaceChildren(...actions)
  showProblem()
  say('')
}
