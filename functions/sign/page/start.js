// Loads the session of the link.
import { showOver } from './done.js'
import { part } from './elements.js'
import { offerRetry, online, showSession } from './outcome.js'
import { refusal, secret, send } from './service.js'
import { learn, readersLanguage, speak, t } from './texts.js'
import { say } from './view.js'

/**
 * @param {string} [notice] what happened to the form that was shown
 * @returns {Promise<boolean>} whether there is a session
 */
export async function load(notice = '') {
  if (!secret()) {
    showOver()
    return false
  }
  say(t('loading'))
  const reply = await send('session')
  say('')
  if (reply.status === 200) {
    /** @type {SigningSession} */
    const next = reply.body.data
    if (!readersLanguage()) speak(next.locale)
    showSession(next, notice && next.status === 'used' ? t('done-elsewhere') : notice)
    return true
  }
  if (reply.status === 401) showOver(reply.body.link_status)
  else offerRetry(refusal(reply), () => void load(notice))
  return false
}

// Opening a different link in the same tab only changes the fragment.
window.addEventListener('hashchange', () => location.reload())
window.addEventListener('online', online)
part('form').addEventListener('submit', (/** @type {Event} */ event) => event.preventDefault())
learn(TEXTS)
speak(readersLanguage() ?? 'en')
part('title').textContent = document.title = t('sign')
void load()
