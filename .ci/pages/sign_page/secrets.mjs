// What the service keeps: no secret of a link in its log, in the table, in an event, or in what it tells about a link.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { STEPS } from './api.mjs'
import { fill, open, submit } from './form.mjs'
import { DESKTOP } from './visit.mjs'

/** Events appear in the feed ten seconds after their change. */
const FEED_DELAY_MS = 10_500

/** Returns all events of the tenant as text. */
async function events(api) {
  let [text, after, more] = ['', '00000000-0000-7000-8000-000000000000', true]
  while (more) {
    const response = await api.send('GET', `/events?after=${after}&limit=100`)
    const body = await response.text()
    assert.equal(response.status, 200, body)
    text += body
    ;({ after, has_more: more } = JSON.parse(body).meta)
  }
  return text
}

/** Returns all items of the table as text. */
async function items({ database, table }) {
  const headers = {
    'content-type': 'application/x-amz-json-1.0',
    'x-amz-target': 'DynamoDB_20120810.Scan',
    'x-amz-date': '20261122T000000Z',
    authorization: 'AWS4-HMAC-SHA256 Credential=local/20261122/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
  }
  let [text, start] = ['', undefined]
  do {
    const response = await fetch(database, {
      method: 'POST',
      headers,
      body: JSON.stringify({ TableName: table, ExclusiveStartKey: start }),
    })
    const page = await response.text()
    assert.equal(response.status, 200, page)
    text += page
    start = JSON.parse(page).LastEvaluatedKey
  } while (start)
  return text
}

async function nowhere(scene) {
  const { api, log } = scene
  const { handover, visit } = await open(scene, { steps: [STEPS.checklist, STEPS.signature] }, DESKTOP)
  await fill(visit.page, STEPS.checklist)
  await fill(visit.page, STEPS.signature)
  await submit(visit.page)
  await visit.close()
  await new Promise((resolve) => setTimeout(resolve, FEED_DELAY_MS))

  const [lines, feed, stored] = [readFileSync(log, 'utf8'), await events(api), await items(api)]
  assert.ok(lines.includes('/v1/sign/session'), 'the log does not have the requests: this tests nothing')
  assert.ok(feed.includes(handover.id), 'the feed does not have the handover: this tests nothing')
  assert.ok(stored.includes(handover.linkId), 'the table does not have the link: this tests nothing')
  const told = JSON.stringify([
    await api.get(`${handover.path}/links`),
    await api.get(handover.path),
    await api.receipts(handover),
  ])
  for (const secret of api.secrets) {
    // Also without the parts that name the link and the tenant.
    for (const part of [secret, secret.slice(-50)]) {
      assert.ok(!lines.includes(part), 'the secret of a link is in the log')
      assert.ok(!feed.includes(part), 'the secret of a link is in an event')
      assert.ok(!stored.includes(part), 'the secret of a link is in the table')
      assert.ok(!told.includes(part), 'the API tells the secret of a link a second time')
    }
  }
  console.log(`sign-page: none of ${api.secrets.length} secrets is in the log, in the table, in an event or in a response`)
}

export const secrets = { 'secrets are nowhere': nowhere }
