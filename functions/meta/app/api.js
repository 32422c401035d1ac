// Requests to the API, as any client sends them.
import { say } from './dom.js'
import { has, t } from './text.js'

const MAX_ATTEMPTS = 6
const names = new Map()
const KEY = 'key'
/** The address of the API: the page is below it. */
export const BASE = new URL('../../', import.meta.url).href.replace(/\/$/, '')

/** Key, scopes and organization of this tab. @type {{ key: string | null, me: any, offset: number }} */
export const session = { key: sessionStorage.getItem(KEY), me: null, offset: 0 }

export function setKey(key) {
  session.key = key
  names.clear()
  if (key) sessionStorage.setItem(KEY, key)
  else sessionStorage.removeItem(KEY)
}

export const may = (scope) => Boolean(session.me?.key.scopes.includes(scope))

/** The server's time: the clocks of phones are often wrong. */
export const now = () => new Date(Date.now() + session.offset)

/** A problem document, or a lost connection. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.code ?? 'OFFLINE')
    this.status = status
    this.code = body.code ?? (status ? 'INTERNAL_ERROR' : 'OFFLINE')
    this.body = body
    /** @type {{ pointer?: string, parameter?: string, detail: string }[]} */
    this.errors = body.errors ?? []
  }

  /** In the reader's language, by its code. */
  get text() {
    const { code, body } = this
    if (code === 'FORBIDDEN' && body.scope) return t('scope-missing', { scope: body.scope })
    if (has(`error.${code}`)) return t(`error.${code}`, { id: body.request_id ?? '–' })
    return t('error.INTERNAL_ERROR', { id: body.request_id ?? '–' })
  }
}

/** A random UUID; `crypto.randomUUID` needs HTTPS. */
export function uuid() {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Idempotency keys of what somebody means to do once: a request sent again has the same key, and any other request another one. */
export class Intent {
  #keys = new Map()
  /** @param {...any} request */
  key(...request) {
    const text = JSON.stringify(request)
    if (!this.#keys.has(text)) this.#keys.set(text, uuid())
    return this.#keys.get(text)
  }
}

const pause = (seconds, signal) =>
  new Promise((resolve, reject) => {
    setTimeout(resolve, seconds * 1000)
    signal?.addEventListener('abort', () => reject(signal.reason))
  })

/**
 * Sends a request, and waits while the service is busy.
 * @param {string} method
 * @param {string} path
 * @param {{ body?: any, headers?: Record<string, string>, signal?: AbortSignal, as?: 'json' | 'blob' | 'text' }} [options]
 * @returns {Promise<{ body: any, etag: string | null }>}
 */
export async function send(method, path, { body, headers = {}, signal, as = 'json' } = {}) {
  const all = { authorization: `Bearer ${session.key}`, ...headers }
  if (body !== undefined) all['content-type'] = 'application/json'
  for (let attempt = 1; ; attempt++) {
    let reply
    try {
      const init = { method, headers: all, body: body === undefined ? undefined : JSON.stringify(body), signal }
      reply = await fetch(BASE + path, { ...init, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' })
      if (reply.ok) {
        const sent = Date.parse(reply.headers.get('date') ?? '')
        if (sent) session.offset = sent - Date.now()
        return { body: await reply[as](), etag: reply.headers.get('etag') }
      }
    } catch (error) {
      if (signal?.aborted) throw error
      throw new Problem(0, {})
    }
    const problem = new Problem(reply.status, await reply.json().catch(() => ({})))
    const isBusy = [429, 502, 503, 504].includes(reply.status) || problem.code === 'REQUEST_IN_PROGRESS'
    if (!isBusy || attempt === MAX_ATTEMPTS) throw problem
    const seconds = Math.min(Number(reply.headers.get('retry-after')) || attempt, 60)
    say(t('waiting', { count: seconds }))
    await pause(seconds, signal)
    say('')
  }
}

/** @param {string} path @param {AbortSignal} [signal] */
export const get = async (path, signal) => (await send('GET', path, { signal })).body

export const post = async (path, body, key) =>
  (await send('POST', path, { body, headers: key ? { 'idempotency-key': key } : {} })).body

/** What a request would do. */
export const plan = (path, body) => post(`${path}?dry_run=true`, body)

/** Parameters as a query, without those that have no value. */
export function query(parameters) {
  const entries = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '')
  return entries.length ? `?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}` : ''
}

/** A value in a list of values, whose commas are no separators. */
export const literal = (value) => (value === 'none' ? '\\none' : value.replaceAll(',', '\\,'))

/** Reads something once. */
export function cached(path) {
  if (!names.has(path)) names.set(path, get(path).catch((error) => (names.delete(path), Promise.reject(error))))
  return names.get(path)
}

/** The name of a resource, or null if this key can't read it. @returns {Promise<string | null>} */
const nameOf = (scope, path, name) =>
  may(scope) ? cached(path).then((reply) => reply.data[name], () => null) : Promise.resolve(null)

export const userName = (id) => nameOf('users:read', `/users/${id}`, 'display_name')
export const typeName = (id) => nameOf('catalog:read', `/catalog/asset-types/${id}`, 'name')
export const modelName = (id) => nameOf('catalog:read', `/catalog/models/${id}`, 'name')
export const instanceName = (id) => nameOf('processes:read', `/processes/instances/${id}?omit=signatures`, 'process_name')
