// Creates handovers and their signing links, and reads them, through the API with a key.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

/** Steps by type, with realistic labels. */
export const STEPS = {
  user_picker: { type: 'user_picker', key: 'witness', label: 'Who saw it?', required: true },
  checklist: { type: 'checklist', key: 'handover', label: 'Handed over', required: true, items: ['Device', 'Power supply', 'Bag'] },
  text: { type: 'text', key: 'room', label: 'Room', required: true },
  textarea: { type: 'textarea', key: 'notes', label: 'Scratches and dents' },
  select: { type: 'select', key: 'floor', label: 'Floor', required: true, options: ['Ground', 'First', 'Second'] },
  date: { type: 'date', key: 'back', label: 'Expected back', required: true },
  confirmation: { type: 'confirmation', key: 'policy', label: 'I have read the usage policy' },
  signature: { type: 'signature', key: 'signature', label: 'Signature of the recipient', required: true },
}

export class Handover {
  /** Creates assets and a process definition, starts it on them, and creates a link. */
  static async make(api, { steps, name = 'Hand over', assets = 1, asset = {}, signer = { name: 'Ada Lovelace' }, link = {} }) {
    const made = []
    for (let n = 1; n <= assets; n++) {
      const fields = { name: `Laptop ${n}`, manufacturer: 'Dell', model: 'Latitude 7450' }
      made.push(await api.post('/assets', { ...fields, serial_number: `SN-${randomUUID().slice(0, 8)}`, ...asset }))
    }
    const { id } = await api.post('/processes', { name, trigger_status: 'in_stock', target_status: 'in_use', steps })
    const ids = made.map((asset) => asset.id)
    const started = await api.post(`/processes/${id}/start`, assets === 1 ? { asset_id: ids[0] } : { asset_ids: ids })
    const path = assets === 1 ? `/processes/instances/${started.id}` : `/movements/${started.id}`
    const instances = (started.instances ?? [started]).map((instance) => `/processes/instances/${instance.id}`)
    const handover = Object.assign(new Handover(), { api, path, steps, name, assets: made, signer, paths: instances })
    return Object.assign(handover, await handover.link(link))
  }

  async link(options = {}) {
    const body = { signer: this.signer, until: this.steps.at(-1).key, ...options }
    const { id, url } = await this.api.post(`${this.path}/links`, body)
    return { linkPath: `${this.path}/links/${id}`, url }
  }

  revoke = () => this.api.call('DELETE', this.linkPath)
  /** Submits steps as the office. */
  advance = (step_data, through) => this.api.post(`${this.path}/advance`, { step_data, through })
  instances = () => Promise.all(this.paths.map((path) => this.api.get(path)))

  /** Fails unless each instance is completed, and its history has each step once. */
  async expectDoneOnce() {
    for (const [n, { status }] of (await this.instances()).entries()) {
      assert.equal(status, 'completed', `the instance is ${status} although the page says that it is done`)
      const entries = await this.api.get(`${this.paths[n]}/history?limit=100`)
      assert.equal(entries.length - 1, this.steps.length, 'the history does not have exactly the creation and each step')
    }
  }

  async expectUntouched() {
    for (const { status, current_step: step } of await this.instances())
      assert.deepEqual([status, step], ['in_progress', 0], 'something was submitted')
  }

  /** Returns the step data of the first instance. */
  stored = async () => (await this.api.get(this.paths[0])).step_data
  receiptStep = async () => (await (await this.api.send('GET', `${this.path}/receipt`)).json()).receipt.steps[0]

  /** Returns the PNG of a signature step. */
  async signature({ key } = STEPS.signature) {
    const response = await this.api.send('GET', `${this.paths[0]}/signatures/${key}`)
    return Buffer.from(await response.arrayBuffer())
  }
}
