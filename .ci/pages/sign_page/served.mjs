// The page as it is served: its headers, its size, caching, and that no other page can frame it.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { STEPS } from './api.mjs'

/** With the texts of four languages. */
const MAX_BYTES = 85_000

/** Returns the directives of a policy by name. */
const directives = (policy) =>
  Object.fromEntries(
    policy.split(';').map((directive) =>
      directive
        .trim()
        .split(/\s+(.*)/s)
        .slice(0, 2),
    ),
  )

/** Returns the sources that allow the inline elements of a page, as a policy names them. */
const hashes = (html, tag) =>
  [...html.matchAll(new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`, 'g'))]
    .map(([, text]) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)
    .sort()
    .join(' ')

async function headers({ api }) {
  const response = await fetch(`${api.base}/sign`)
  assert.equal(response.status, 200, 'the page needs no credential')
  const html = await response.text()
  assert.match(response.headers.get('content-type'), /^text\/html; ?charset=utf-8$/i)
  const bytes = Buffer.byteLength(html)
  assert.ok(bytes <= MAX_BYTES, `the page has ${bytes} bytes of ${MAX_BYTES}`)
  console.log(`sign-page: the page has ${bytes} bytes`)

  const policy = directives(response.headers.get('content-security-policy'))
  const sorted = (sources) => sources.split(/\s+/).sort().join(' ')
  assert.deepEqual(
    { ...policy, 'script-src': sorted(policy['script-src']), 'style-src': sorted(policy['style-src']) },
    {
      'default-src': "'none'",
      'script-src': hashes(html, 'script'),
      'style-src': hashes(html, 'style'),
      'img-src': 'data: blob:',
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    },
    'the policy is another',
  )
  const has = (name) => response.headers.get(name)
  assert.deepEqual(
    [has('referrer-policy'), has('x-content-type-options'), has('cache-control'), has('set-cookie')],
    ['no-referrer', 'nosniff', 'public, max-age=300', null],
  )
  assert.match(has('x-request-id') ?? '', /^[0-9a-f-]{36}$/, 'there is no X-Request-Id')
  assert.doesNotMatch(html, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/, 'the page names another host')
  assert.match(html, /<html[^>]* lang="en"/, 'the page has no language')

  const cached = await fetch(`${api.base}/sign`, { headers: { 'if-none-match': has('etag') } })
  assert.deepEqual([cached.status, await cached.text()], [304, ''], 'a cached page is sent again')
  assert.equal((await fetch(`${api.base}/sign`, { headers: { 'if-none-match': '"another"' } })).status, 200)
  const head = await fetch(`${api.base}/sign`, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('etag')], [200, has('etag')], 'HEAD differs from GET')
}

/** The page's data must not be cached, and neither credential is good for the other's endpoints. */
async function credentials({ api }) {
  const { secret } = await api.handOver({ steps: [STEPS.text] })
  const as = (credential, path) => api.send('GET', path, undefined, { authorization: `Bearer ${credential}` })
  const session = await as(secret, '/sign/session')
  assert.deepEqual([session.status, session.headers.get('cache-control')], [200, 'no-store'], 'the session may be cached')
  const statuses = [as(secret, '/assets'), as(secret, '/me'), as(api.key, '/sign/session'), as(api.key, '/sign/receipt')]
  assert.deepEqual(
    (await Promise.all(statuses)).map(({ status }) => status),
    [401, 401, 401, 401],
    'a credential opens what it must not',
  )
}

/** Another page, on another port, frames the signing page: nothing of it is shown. */
async function framed({ api, browser, folder }) {
  const { url } = await api.handOver({ steps: [STEPS.text] })
  const thief = createServer((_, response) =>
    response
      .setHeader('content-type', 'text/html')
      .end(`<h1>Prizes</h1><iframe src="${url}" width="600" height="600"></iframe>`),
  )
  await new Promise((resolve) => thief.listen(0, '127.0.0.1', resolve))
  const page = await browser.newPage()
  try {
    const refused = page.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()))
    await page.goto(`http://127.0.0.1:${thief.address().port}/`)
    await refused
    await page.screenshot({ path: `${folder}/framed.png` })
    const frame = page.frames().find((frame) => frame !== page.mainFrame())
    assert.equal(frame.url(), 'chrome-error://chromewebdata/', 'the page is shown in a frame')
    assert.equal(await frame.locator('form, fieldset, #status').count(), 0, 'the page is shown in a frame')
  } finally {
    await page.close()
    thief.close()
  }
}

/** Without scripts, the page says that it needs them. */
async function withoutScripts({ api, browser, folder }) {
  const page = await browser.newPage({ javaScriptEnabled: false })
  await page.goto(`${api.base}/sign`)
  assert.match(await page.locator('body').innerText(), /JavaScript/, 'without scripts, the page does not say what it needs')
  await page.screenshot({ path: `${folder}/without-scripts.png` })
  await page.close()
}

export const served = {
  'headers and size': headers,
  'two kinds of credentials': credentials,
  'framed by another page': framed,
  'without scripts': withoutScripts,
}
