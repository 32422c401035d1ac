// Requests to the service, which send no cookies and no address of the page, and are repeated while the service is busy.

/** @param {number} seconds */
export const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

/** Returns a random UUID. `crypto.randomUUID` would need HTTPS. */
export function uuid() {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** @param {string} url @param {RequestInit} init */
export const request = (url, init) => fetch(url, { ...init, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' })

const MAX_WAIT_SECONDS = 60

/**
 * Sends a request up to `most` times, as long as the service is busy, and returns the last reply. `wait` is told how long to wait, and
 * the status.
 * @template {{ status: number, code?: string, retryAfter: number }} T
 * @param {() => Promise<T>} send
 * @param {{ most: number, usual: (attempt: number) => number, wait: (seconds: number, status: number) => Promise<any> }} options
 *   `usual`: seconds to wait if the service names none
 */
export async function whileBusy(send, { most, usual, wait }) {
  for (let attempt = 1; ; attempt++) {
    const reply = await send()
    const isBusy = [429, 502, 503, 504].includes(reply.status) || reply.code === 'REQUEST_IN_PROGRESS'
    if (!isBusy || attempt === most) return reply
    await wait(Math.min(reply.retryAfter || usual(attempt), MAX_WAIT_SECONDS), reply.status)
  }
}

/** Returns the seconds to wait that a response names, or 0. @param {Response} response */
export const retryAfter = (response) => Number(response.headers.get('retry-after')) || 0

/** Returns a function that returns a new signal and aborts the previous one. @param {AbortSignal} [signal] */
export function latest(signal = new AbortController().signal) {
  let last = new AbortController()
  return () => {
    last.abort()
    last = new AbortController()
    return AbortSignal.any([last.signal, signal])
  }
}
