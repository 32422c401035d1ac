// Webhooks: where events go, whether they arrive, a pause, and a new one, whose secret is shown once.
import { get, intent, may, post, send } from './api.js'
import { button, h, hint, own, show } from './elements.js'
import { choice } from './fields.js'
import { attempt, fault } from './form.js'
import { colon, heading, say } from './page.js'
import { copying, deleting, focusFirst, listCard, once, recordForm, showLines, textPart } from './record.js'
import { uuid } from './requests.js'
import { named, t } from './texts.js'
import { ago } from './values.js'

const AT = 'organisation/webhooks'
/** What a webhook can tell: a name in the texts, and its events. @type {[string, string[]][]} */
const TOPICS = [
  ['everything', ['*']], ['assets', ['asset.*']], ['people', ['user.*']], ['processes', ['instance.*', 'movement.*']], ['links', ['link.*']],
  ['catalog', ['asset_type.*', 'manufacturer.*', 'model.*']], ['keys', ['key.*']], ['settings', ['tenant.*', 'process.*', 'webhook.*', 'receipt_keys.*']],
]
/** How many deliveries to look at for the last failure. */
const NEWEST = 20

const hasArrived = ({ status }) => status >= 200 && status < 300

/** Returns the newest attempt that failed, if any. */
async function lastFailure(id, signal) {
  const { data } = await get(`/webhooks/${id}/deliveries`, signal, { limit: NEWEST })
  const attempts = data.flatMap(({ attempts }) => attempts).filter((attempt) => !hasArrived(attempt))
  return attempts.sort((one, other) => (one.at < other.at ? 1 : -1))[0]
}

export function webhooks(main, params, signal) {
  const list = h('div')
  const place = h('div')
  const mayChange = may('webhooks:write')
  const newOne = mayChange && button(t('webhook-new'), () => {
    const form = webhookForm(signal, (made) => {
      show(place, made)
      made.focus()
      showList()
    }, () => show(place))
    show(place, form)
    focusFirst(form)
  }, 'primary')

  async function line(webhook) {
    const { id, url, description, events, is_active: isActive, disabled_reason: why } = webhook
    const path = `/webhooks/${id}`
    const failure = await lastFailure(id, signal)
    const test = intent()
    let tests = 0
    const about = h('div')
    const turn = () => attempt(about, async () => {
      const { etag } = await send('GET', path, { signal })
      await send('PATCH', path, { body: { is_active: !isActive }, headers: { 'if-match': etag } })
      say(t('saved'))
      await showList()
    })
    const state = isActive ? t('active') : why ? named(`webhook.${why}`, why) : t('paused')
    return h('div.line',
      h('div', h('b', own(url)), description && h('p', own(description)), h('p.hint', state, ' · ', events.map((name, n) => [n > 0 && ', ', h('code', name)])),
        failure && h('p.wrong', t('last-failure'), colon(), ago(failure.at), ' · ', h('code', failure.status ?? failure.error)), about),
      mayChange && h('div.actions', button(t(isActive ? 'pause' : 'resume'), turn, 'plain'),
        button(t('send-test'), () => attempt(about, async () => {
          await test(`${path}/test`, undefined, ++tests)
          say(t('test-sent'))
        }), 'plain'), deleting(path, url, showList)))
  }
  const showList = () => may('webhooks:read') ? showLines(list, { path: '/webhooks', at: AT, params, signal, line, none: t('no-webhooks') })
    : show(list, hint(t('scope-missing', { scope: 'webhooks:read' })))
  show(main, h('div.title', heading(t('organisation.webhooks')), newOne), place, listCard(t('organisation.webhooks'), hint(t('webhooks-hint')), list))
  return { title: t('organisation.webhooks'), ready: showList(), update: (next) => ((params = next), showList()) }
}

function webhookForm(signal, made, cancelled) {
  const boxes = TOPICS.map(([name, events], n) => ({ events, ...choice(t(`topic.${name}`), n === 0) }))
  const [all, ...others] = boxes
  // Everything includes the others.
  const draw = () => {
    for (const { box } of others) box.disabled = all.box.checked
  }
  all.box.addEventListener('change', draw)
  draw()
  const group = h('fieldset.field', { 'data-pointer': '/events' }, h('legend', t('topics')), boxes.map(({ element }) => element))
  const chosen = () => (all.box.checked ? all.events : others.filter(({ box }) => box.checked).flatMap(({ events }) => events))
  return recordForm({
    title: t('webhook-new'), path: '/webhooks', signal, cancelled,
    parts: [textPart('url', t('webhook-url'), '', { required: true, inputMode: 'url', spellcheck: false }), textPart('description', t('purpose'), ''),
      { name: 'events', label: t('topics'), element: group, value: chosen }],
    check() {
      if (!chosen().length) throw fault('required', '/events')
    },
    located: (pointer) => pointer.replace(/^\/events\/.*/, '/events'),
    // Always a new idempotency key, because a replayed response would lack the secret.
    post: (path, body) => post(path, body, uuid()),
    saved: ({ url, secret }) => made(once(t('webhook-made', { url }), secret, h('p', t('webhook-once')), h('p', h('code.secret', secret)), h('div.actions', copying(t('copy-secret'), secret ?? '', 'primary')))),
  })
}
