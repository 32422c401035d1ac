// Loads what the link opens.

/** @param {string} [notice] what happened to the form that was shown */
async function load(notice = '') {
  if (!secret()) return showOver()
  say('Loading…')
  const reply = await send('session')
  say('')
  if (reply.status === 200) {
    /** @type {SigningSession} */
    const next = reply.body.data
    return showSession(next, notice && next.status === 'used' ? DONE_ELSEWHERE : notice)
  }
  if (reply.status === 401) return showOver(reply.body.link_status)
  const text = refusal(reply)
  offerRetry(session ? text : text.replace(' What you entered is kept.', ''), () => void load(notice))
}

// Another link in the same tab changes the fragment only.
window.addEventListener('hashchange', () => location.reload())
window.addEventListener('online', () => retry?.())
part('form').addEventListener('submit', (event) => event.preventDefault())
void load()
