// A client of the API with a key.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

/** The server described by a ready file. */
export class Api {
  constructor(readyFile) {
    const { base_url: base, api_key: key } = JSON.parse(readFileSync(readyFile, 'utf8'))
    Object.assign(this, { base, key, origin: new URL(base).origin })
  }

  /** Sends a request that must succeed. */
  async send(method, path, body, key = this.key) {
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(this.base + path, { method, headers, body: body && JSON.stringify(body) })
    if (!response.ok) assert.fail(`${method} ${path} responds with ${response.status}: ${await response.text()}`)
    return response
  }

  /** Returns the response's `data`. */
  call = async (...request) => (await (await this.send(...request)).json()).data
  get = (path) => this.call('GET', path)
  post = (path, body) => this.call('POST', path, body)
  patch = (path, body) => this.call('PATCH', path, body)

  /** Returns the user with an e-mail address. */
  user = async (email) => (await this.get(`/users?email=${encodeURIComponent(email)}`))[0]

  /** Runs a function with temporarily changed settings. */
  async withSettings(changes, act) {
    const before = await this.get('/settings')
    await this.patch('/settings', changes)
    await act().finally(() => this.patch('/settings', Object.fromEntries(Object.keys(changes).map((name) => [name, before[name]]))))
  }
}

export const unique = (name) => `${name} ${Math.random().toString(36).slice(2, 8)}`

export async function newUser(api, name = unique('Ada')) {
  return api.post('/users', { display_name: name, email: `${name.replaceAll(' ', '.')}@example.com` })
}
