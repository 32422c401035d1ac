// Requests to the service. The link's secret is the fragment of the address, and goes nowhere but into their headers.

const TIME_LIMIT_MS = 20_000
const MAX_ATTEMPTS = 5
const MAX_WAIT_SECONDS = 60

/** Returns the link's secret, or null if the address has none. */
function secret() {
  return /^#(sgn_[0-9A-Za-z]{32,})$/.exec(location.hash)?.[1] ?? null
}

/** @param {number} seconds */
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

/**
 * Sends a request once. The body of the reply is text for HTML, and otherwise parsed.
 * @param {string} path
 * @param {string | null} body
 * @param {string} key the Idempotency-Key
 * @returns {Promise<Reply & { retryAfter: number }>}
 */
async function sendOnce(path, body, key) {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), TIME_LIMIT_MS)
  /** @type {Record<string, string>} */
  const headers = { authorization: `Bearer ${secret()}` }
  if (body !== null) Object.assign(headers, { 'content-type': 'application/json', 'idempotency-key': key })
  try {
    const response = await fetch(`sign/${path}`, {
      method: body === null ? 'GET' : 'POST',
      headers,
      body,
      signal: abort.signal,
      cache: 'no-store',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
    })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '')
    const retryAfter = Number(response.headers.get('retry-after')) || 0
    return { status: response.status, body: isJson ? JSON.parse(text) : text, retryAfter }
  } catch {
    return { status: 0, body: {}, retryAfter: 0 }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Sends a request, and repeats it while the service is busy.
 * @param {string} path
 * @param {string | null} [body]
 * @param {string} [key]
 * @returns {Promise<Reply>}
 */
async function send(path, body = null, key = '') {
  for (let attempt = 1; ; attempt++) {
    const reply = await sendOnce(path, body, key)
    const isBusy = [429, 502, 503, 504].includes(reply.status) || reply.body?.code === 'REQUEST_IN_PROGRESS'
    if (!isBusy || attempt === MAX_ATTEMPTS) return reply
    const seconds = Math.min(reply.retryAfter || 2 ** attempt, MAX_WAIT_SECONDS)
    say(`The service is busy. Trying again in ${counted(seconds, 'second', 'seconds')}. What you entered is kept.`)
    await pause(seconds)
    say('Trying again…')
  }
}

/** Returns what to say when no response arrived. */
const lostConnection = () =>
  `${navigator.onLine ? 'The service can’t be reached.' : 'You are offline.'} What you entered is kept.`

/**
 * Returns what to say of a refused request that has no field to stand beside.
 * @param {Reply} reply
 */
function refusal({ status, body }) {
  if (status === 0) return lostConnection()
  const isBusy = status === 429 || (status > 501 && status < 505)
  if (isBusy) return 'The service is still busy. Wait a minute, then try again. What you entered is kept.'
  const id = body.request_id ? ` If you ask for help, give this number: ${body.request_id}` : ''
  if (status >= 500 || !body.detail) return `Something went wrong. What you entered is kept. Try again later.${id}`
  return sentence(body.detail)
}
