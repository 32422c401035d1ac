// Sends requests to the service. The link's secret is the URL's fragment, and is only sent in the Authorization header.
import { part } from './elements.js'
import { pause, request, retryAfter, whileBusy } from './requests.js'
import { signing } from './state.js'
import { has, t } from './texts.js'
import { say } from './view.js'

const TIME_LIMIT_MS = 20_000
const MAX_ATTEMPTS = 5

/** Returns the link's secret, or null if the URL has none. Ignores text that mail and chat programs append to links. */
export function secret() {
  return /^#(sgn_[0-9A-Za-z]{94})/.exec(location.hash)?.[1] ?? null
}

/**
 * Sends a request once. The body of the reply is text for HTML, or else parsed JSON.
 * @param {string} path
 * @param {string | null} body
 * @param {string} key the Idempotency-Key
 * @returns {Promise<Reply & { code?: string, retryAfter: number }>}
 */
async function sendOnce(path, body, key) {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), TIME_LIMIT_MS)
  /** @type {Record<string, string>} */
  const headers = { authorization: `Bearer ${secret()}` }
  if (body !== null) Object.assign(headers, { 'content-type': 'application/json', 'idempotency-key': key })
  try {
    const response = await request(`sign/${path}`, { method: body === null ? 'GET' : 'POST', headers, body, signal: abort.signal })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type') ?? '')
    const read = isJson ? JSON.parse(text) : text
    return { status: response.status, body: read, code: read?.code, retryAfter: retryAfter(response) }
  } catch {
    return { status: 0, body: {}, retryAfter: 0 }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Waits, and shows the remaining time.
 * @param {string} reason
 * @param {number} seconds
 */
async function countDown(reason, seconds) {
  const end = performance.now() + seconds * 1000
  for (let left = seconds; left > 0; left = (end - performance.now()) / 1000) {
    say(`${reason} ${t('again-in', { count: Math.ceil(left) })}${kept()}`)
    await pause(Math.min(1, left))
    // Announce the countdown to screen readers only once.
    part('status').setAttribute('aria-live', 'off')
  }
  part('status').removeAttribute('aria-live')
}

/**
 * Sends a request, and repeats the request while the service is busy. Returns the reply to the last attempt.
 * @param {string} path
 * @param {string | null} [body]
 * @param {string} [key]
 * @returns {Promise<Reply>}
 */
export const send = (path, body = null, key = '') =>
  whileBusy(() => sendOnce(path, body, key), {
    most: MAX_ATTEMPTS,
    usual: (attempt) => 2 ** attempt,
    async wait(seconds, status) {
      await countDown(status === 429 ? t('too-many') : t('busy'), seconds)
      say(t('trying-again'))
    },
  })

/** Returns the text to append if something was entered. */
const kept = () => (signing.fields.length ? ` ${t('kept')}` : '')

/** Returns the text for a missing response. */
const lostConnection = () => `${navigator.onLine ? t('unreachable') : t('offline')}${kept()}`

/**
 * Returns the text for an error without a field, by its code, because the service's texts are in English.
 * @param {Reply} reply
 */
export function refusal({ status, body }) {
  if (status === 0) return lostConnection()
  const code = status === 429 ? 'RATE_LIMITED' : status > 501 && status < 505 ? 'UNAVAILABLE' : body.code === 'CONFLICT' && body.user_id ? 'INACTIVE_USER' : body.code
  if (code !== 'INTERNAL_ERROR' && has(`error.${code}`)) return `${t(`error.${code}`)}${kept()}`
  const id = body.request_id ? ` ${t('help', { id: body.request_id })}` : ''
  return `${t('error.INTERNAL_ERROR')}${kept()}${id}`
}
