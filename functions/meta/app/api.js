// Sends requests to the API, like any other client.
import { query, say } from './page.js'
import { pause, request, retryAfter, uuid, whileBusy } from './requests.js'
import { has, t } from './texts.js'
import { date } from './values.js'

const MAX_ATTEMPTS = 6
const KEY = 'key'
const kept = new Map()
/** URL of the API, relative to the page. */
const BASE = new URL('../../', import.meta.url).href.replace(/\/$/, '')

/** `offset`: the server's time minus the local time, in milliseconds. @type {{ key: string | null, me: any, offset: number }} */
export const session = { key: sessionStorage.getItem(KEY), me: null, offset: 0 }

export function setKey(key) {
  session.key = key
  kept.clear()
  if (key) sessionStorage.setItem(KEY, key)
  else sessionStorage.removeItem(KEY)
}

export const may = (scope) => Boolean(session.me?.key.scopes.includes(scope))

/** The server's time, because phones' clocks are often wrong. */
export const now = () => new Date(Date.now() + session.offset)

/** Returns the date and the time of day of a time in the tenant's time zone: `2026-11-28 09:30:00`. @param {Date} time */
function zoned(time) {
  const { time_zone: timeZone } = session.me.tenant
  try {
    return time.toLocaleString('sv', { timeZone })
  } catch {
    // The browser doesn't know the zone.
    return time.toLocaleString('sv')
  }
}

/** Returns the date and the time of day in the tenant's time zone, as if they were in UTC. @param {Date} time */
const asUtc = (time) => `${zoned(time).replace(' ', 'T')}Z`

/** Formats a time in the tenant's time zone. @param {string} time */
export const zonedMoment = (time) => date(asUtc(new Date(time)), { dateStyle: 'medium', timeStyle: 'short' })

/** Returns the day of a time in the tenant's time zone. @param {Date} time */
export const dayOf = (time) => zoned(time).slice(0, 10)

export const today = () => dayOf(now())

const DAY_MS = 86_400_000
/** Returns the day that is some days later. @param {string} day */
export const daysAfter = (day, days) => new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)

/** Returns the start of a day in the tenant's time zone. @param {string} day */
export function startOf(day) {
  const midnight = Date.parse(day)
  const ahead = (time) => Date.parse(asUtc(new Date(time))) - time
  // The difference to UTC at midnight UTC can differ from the one at the start of the day.
  return new Date(midnight - ahead(midnight - ahead(midnight)))
}

/** Returns the end of a day in the tenant's time zone, or now if that is earlier. @param {string} [day] */
export const endOf = (day) => day && new Date(Math.min(+startOf(daysAfter(day, 1)) - 1, +now() - 1000)).toISOString()

/**
 * Whether a process can't go on because a picked user is inactive. Otherwise, only a refusal to erase a link's signer has these
 * members, and the page never asks for that.
 */
export const isAboutInactiveUser = ({ code, user_id: user }) => code === 'CONFLICT' && Boolean(user)

/** A problem document, or a lost connection. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.code ?? 'OFFLINE')
    this.status = status
    this.code = body.code ?? (status ? 'INTERNAL_ERROR' : 'OFFLINE')
    this.body = body
    /** @type {{ pointer?: string, parameter?: string, code?: string, limit?: number, detail: string }[]} */
    this.errors = body.errors ?? []
  }

  /** Returns the error in the reader's language, by its code. */
  get text() {
    const { code, body } = this
    if (code === 'FORBIDDEN' && body.scope) return t('scope-missing', { scope: body.scope })
    if (body.retry_at) return t('only-later', { time: zonedMoment(body.retry_at) })
    if (isAboutInactiveUser(body)) return t('error.INACTIVE_USER')
    return t(has(`error.${code}`) ? `error.${code}` : 'error.INTERNAL_ERROR', { id: body.request_id ?? '–' })
  }
}

/**
 * Returns a function that posts an action, which must take effect once. A retried request has the same idempotency key; different
 * requests have different keys. `round` distinguishes equal requests.
 */
export function intent() {
  const keys = new Map()
  return (path, body, round = 0) => {
    const request = JSON.stringify([path, body, round])
    if (!keys.has(request)) keys.set(request, uuid())
    return post(path, body, keys.get(request))
  }
}

/**
 * Sends a request, and waits while the service is busy.
 * @param {string} method
 * @param {string} path
 * @param {{ body?: any, headers?: Record<string, string>, signal?: AbortSignal, as?: 'json' | 'blob' | 'text' }} [options]
 * @returns {Promise<{ body: any, etag: string | null, next: string | null }>} `next`: the path of the next part
 */
export async function send(method, path, { body, headers = {}, signal, as = 'json' } = {}) {
  const all = { authorization: `Bearer ${session.key}`, ...headers }
  if (body !== undefined) all['content-type'] = 'application/json'
  const init = { method, headers: all, body: JSON.stringify(body), signal }
  const sendOnce = async () => {
    const reply = await request(BASE + path, init)
    if (!reply.ok) {
      const problem = new Problem(reply.status, await reply.json().catch(() => ({})))
      signal?.throwIfAborted()
      return { status: reply.status, code: problem.code, retryAfter: retryAfter(reply), problem }
    }
    const sent = Date.parse(reply.headers.get('date') ?? '')
    if (sent) session.offset = sent - Date.now()
    const [, next] = /<\/v1([^>]+)>; rel="next"/.exec(reply.headers.get('link') ?? '') ?? []
    return { status: reply.status, retryAfter: 0, body: await reply[as](), etag: reply.headers.get('etag'), next }
  }
  const wait = async (seconds) => {
    say(t('waiting', { count: seconds }))
    await pause(seconds)
    say('')
  }
  const { problem, body: answer, etag, next } = await whileBusy(sendOnce, { most: MAX_ATTEMPTS, usual: (attempt) => attempt, wait }).catch((error) => {
    if (signal?.aborted) throw error
    throw new Problem(0, {})
  })
  if (problem) throw problem
  return { body: answer, etag: etag ?? null, next: next ?? null }
}

/** @param {string} path @param {AbortSignal} [signal] @param {Record<string, any>} [parameters] */
export const get = async (path, signal, parameters) => (await send('GET', path + query(parameters), { signal })).body

/** @param {string} [key] the idempotency key @param {AbortSignal} [signal] */
export const post = async (path, body, key, signal) =>
  (await send('POST', path, { body, signal, headers: key ? { 'idempotency-key': key } : {} })).body

/** @param {AbortSignal} [signal] */
export const plan = async (path, body, signal) => (await send('POST', `${path}?dry_run=true`, { body, signal })).body

/** Escapes commas, and the word `none`, in a value of a list. */
export const literal = (value) => (value === 'none' ? '\\none' : value.replaceAll(',', '\\,'))

/** Requests a path once, and caches the response. */
export function cached(path) {
  if (!kept.has(path)) kept.set(path, get(path).catch((error) => (kept.delete(path), Promise.reject(error))))
  return kept.get(path)
}

/** Forgets the cached responses of paths that begin so, since they have changed. @param {string} start */
export function outdate(start) {
  for (const path of kept.keys()) if (path.startsWith(start)) kept.delete(path)
}

/** Takes the cached response, or requests a new one. @param {string} path @param {AbortSignal} signal */
export async function fresh(path, signal) {
  const reply = kept.get(path) ?? get(path, signal)
  kept.delete(path)
  return reply
}

/** Does the same as `cached`, but returns null if the key lacks the scope. */
export const known = async (scope, path) => (may(scope) ? cached(path).then(({ data }) => data, () => null) : null)

export const assetTypes = async () => (await known('catalog:read', '/catalog/asset-types?limit=100')) ?? []
export const userName = async (id) => (await known('users:read', `/users/${id}`))?.display_name
export const instanceName = async (id) => (await known('processes:read', `/processes/instances/${id}?omit=signatures`))?.process_name
