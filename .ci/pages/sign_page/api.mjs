// Handovers and their signing links, made and read through the API with a key.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The server of a ready file. */
export class Api {
  constructor(readyFile) {
    const { base_url: base, api_key: key, table, dynamodb_endpoint: database } = JSON.parse(readFileSync(readyFile, 'utf8'))
    Object.assign(this, { base, key, table, database, origin: new URL(base).origin, secrets: [] })
  }

  /** Sends a request, and returns the response whatever its status is. */
  send(method, path, body, headers = {}) {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const all = { authorization: `Bearer ${this.key}`, ...type, ...headers }
    return fetch(this.base + path, { method, headers: all, body: body === undefined ? undefined : JSON.stringify(body) })
  }

  /** Sends a request that must succeed, and returns what is in `data`. */
  async call(method, path, body, headers) {
    const response = await this.send(method, path, body, headers)
    const text = await response.text()
    assert.ok(response.ok, `${method} ${path} responds with ${response.status}: ${text}`)
    return JSON.parse(text).data
  }

  get = (path) => this.call('GET', path)
  post = (path, body) => this.call('POST', path, body)

  /** Returns the user with an e-mail address. */
  user = async (email) => (await this.get(`/users?email=${encodeURIComponent(email)}`))[0]

  /** Creates assets and a process definition, starts it on them, and creates a link. */
  async handOver({ steps, name = 'Hand over', assets = 1, asset = {}, signer = { name: 'Ada Lovelace' }, link = {} }) {
    const made = []
    for (let n = 1; n <= assets; n++) {
      const serial_number = `SN-${randomUUID().slice(0, 8)}`
      made.push(
        await this.post('/assets', {
          name: `Laptop ${n}`,
          manufacturer: 'Dell',
          model: 'Latitude 7450',
          serial_number,
          ...asset,
        }),
      )
    }
    const ends = { trigger_status: 'in_stock', target_status: 'in_use' }
    const { id } = await this.post('/processes', { name, ...ends, steps })
    const ids = made.map((asset) => asset.id)
    const started = await this.post(`/processes/${id}/start`, assets === 1 ? { asset_id: ids[0] } : { asset_ids: ids })
    const path = assets === 1 ? `/processes/instances/${started.id}` : `/movements/${started.id}`
    const instances = (started.instances ?? [started]).map((instance) => instance.id)
    const handover = { path, id: started.id, steps, name, assets: made, signer, instances }
    return { ...handover, ...(await this.link(handover, link)) }
  }

  /** Creates one more link of a handover. A second request with the same Idempotency-Key must not have its secret. */
  async link(handover, options = {}) {
    const until = handover.steps.at(-1).key
    const body = { signer: handover.signer, until, ...options }
    const create = [`${handover.path}/links`, body, { 'idempotency-key': randomUUID() }]
    const { id: linkId, url, signer } = await this.call('POST', ...create)
    const secret = new URL(url).hash.slice(1)
    assert.match(secret, /^sgn_[0-9A-Za-z]{94}$/, 'the secret of a link has another form')
    assert.equal((await this.call('POST', ...create)).url, undefined, 'a replay has the secret of a link')
    this.secrets.push(secret)
    return { linkId, url, secret, signerName: signer.name }
  }

  /** Returns what the instances of a handover are now. */
  instances = ({ instances }) => Promise.all(instances.map((id) => this.get(`/processes/instances/${id}`)))

  /** Fails unless each instance is completed, and its history has each step once. */
  async expectDoneOnce(handover) {
    for (const { id, status } of await this.instances(handover)) {
      assert.equal(status, 'completed', `the instance is ${status} although the page says that it is done`)
      const entries = await this.get(`/processes/instances/${id}/history?limit=100`)
      const changes = entries.filter(({ type }) => type !== 'instance.created')
      assert.equal(changes.length, handover.steps.length, `${handover.steps.length} steps wrote ${changes.length} entries`)
      for (const { actor } of changes) {
        assert.deepEqual(
          [actor.link_id, actor.user_name],
          [handover.linkId, handover.signerName],
          'an entry does not name the link and its signer',
        )
      }
    }
  }

  /** Fails if anything of a handover was submitted. */
  async expectUntouched(handover) {
    for (const { status, current_step: step } of await this.instances(handover)) {
      assert.deepEqual([status, step], ['in_progress', 0], 'something was submitted')
    }
  }

  /** Returns the signed JSON receipt of a handover, as its link and as an API key gets it. */
  async receipts({ path, secret }) {
    const [link, key] = await Promise.all([
      this.send('GET', '/sign/receipt?format=json', undefined, { authorization: `Bearer ${secret}` }),
      this.send('GET', `${path}/receipt`),
    ])
    assert.deepEqual([link.status, key.status], [200, 200], 'there is no receipt, for the link or for the key')
    return { link: await link.json(), key: await key.json() }
  }

  /** Returns the PNG of a signature step. */
  async signature({ instances: [id] }, key) {
    const response = await this.send('GET', `/processes/instances/${id}/signatures/${key}`)
    assert.equal(response.status, 200, `the image of the signature is a ${response.status}`)
    return Buffer.from(await response.arrayBuffer())
  }
}

/** Steps by type, with labels as people would write them. */
export const STEPS = {
  checklist: {
    type: 'checklist',
    key: 'handover',
    label: 'Handed over',
    required: true,
    items: ['Device', 'Power supply', 'Bag'],
  },
  signature: { type: 'signature', key: 'signature', label: 'Signature of the recipient', required: true },
  text: { type: 'text', key: 'room', label: 'Room', required: true },
}
