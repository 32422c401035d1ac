// Keys: a list, one made for a colleague, which is shown once, and revocation.
import { dayOf, daysAfter, may, now, post, send, session, startOf, today, userName } from './api.js'
import { button, h, hint, own, show } from './elements.js'
import { input, select } from './fields.js'
import { field, personField } from './form.js'
import { colon, heading, link, say } from './page.js'
import { asking, controlPart, copying, focusFirst, listCard, once, recordForm, showLines } from './record.js'
import { uuid } from './requests.js'
import { t } from './texts.js'
import { ago, date } from './values.js'

const AT = 'organisation/keys'
const LOOK = ['assets:read', 'processes:read', 'users:read', 'catalog:read', 'settings:read']
const HELP = [...LOOK, 'processes:write']
/** What a colleague may do, each more than the one before. Further scopes are those of this key. */
const PRESETS = { viewer: LOOK, helpdesk: HELP, technician: [...HELP, 'assets:write', 'catalog:write'] }

const isSame = (one, other) => [...one].sort().join() === [...other].sort().join()

/** Returns the presets that this key can grant: name and scopes. @returns {[string, string[]][]} */
function presets() {
  const mine = session.me.key.scopes
  const all = [...Object.entries(PRESETS).map(([name, scopes]) => [name, scopes.filter(may)]), ['all', mine]]
  return /** @type {any} */ (all.filter(([, scopes], n) => scopes.length && !all.slice(0, n).some(([, before]) => isSame(scopes, before))))
}

/** Shows the scopes in words, if they are those of a preset. */
function scopesShown(scopes) {
  const [name] = Object.entries(PRESETS).find(([, some]) => isSame(some, scopes)) ?? []
  return h('details', h('summary', name ? t(`preset.${name}`) : t('scopes-count', { count: scopes.length })), h('p', scopes.map((scope) => [h('code', scope), ' '])))
}

/** Shows the list. */
export function keys(main, params, signal) {
  const list = h('div')
  const place = h('div')
  const newKey = may('keys:write') && button(t('key-new'), () => {
    const form = keyForm(signal, (made, data) => {
      show(place, made)
      made.focus()
      if (data) showList()
    }, () => show(place))
    show(place, form)
    focusFirst(form)
  }, 'primary')

  async function line(key) {
    const { id, name, scopes, user_id: user, last_used_at: used, expires_at: until } = key
    const owner = user && link(own((await userName(user)) ?? t('somebody')), `person/${user}`)
    const isExpired = until && Date.parse(until) <= +now()
    const revoke = async () => {
      await send('DELETE', `/keys/${id}`)
      say(t('key-revoked', { name }))
      await showList()
    }
    return h('div.line',
      h('div', h('b', own(name)), owner && [' · ', owner],
        h('p.hint', t('key-used'), colon(), used ? ago(used) : t('key-unused'), ' · ', until ? [t(isExpired ? 'key-expired' : 'key-until'), colon(), date(dayOf(new Date(until)))] : t('key-forever')),
        scopesShown(scopes)),
      id === session.me.key.id ? h('span.hint', t('this-key')) : may('keys:write') && asking(t('revoke'), t('revoke-ask', { name }), revoke))
  }
  const showList = () => may('keys:read') ? showLines(list, { path: '/keys', at: AT, params, signal, line, none: t('no-keys') })
    : show(list, hint(t('scope-missing', { scope: 'keys:read' })))
  show(main, h('div.title', heading(t('organisation.keys')), newKey), place, listCard(t('organisation.keys'), list))
  return { title: t('organisation.keys'), ready: showList(), update: (next) => ((params = next), showList()) }
}

/** Creates the form for a key. `made` takes what shows the new key. */
function keyForm(signal, made, cancelled) {
  /** @type {any} */
  let person = null
  const offered = presets()
  const name = input('text', '', { maxLength: 255 })
  const role = select(offered.map(([name]) => [name, t(`preset.${name}`)]), offered[0]?.[0])
  const about = h('p.hint')
  const scopes = () => offered.find(([name]) => name === role.value)?.[1] ?? []
  const tell = () => show(about, scopes().map((scope) => [h('code', scope), ' ']))
  role.addEventListener('change', tell)
  const who = personField((user) => {
    if (user && (!name.value.trim() || name.value === person?.display_name)) name.value = user.display_name
    person = user
    // A person's role limits what the key may do.
    if (user && offered.some(([name]) => name === user.role)) role.value = user.role
    tell()
  })
  const { expires_at: ownEnd } = session.me.key
  const until = input('date', '', { min: daysAfter(today(), 1), max: ownEnd ? dayOf(new Date(ownEnd)) : '' })
  const personPart = controlPart('user_id', [t('key-person'), h('span.hint', ` (${t('optional')})`)], who, () => person?.id ?? (who.value.trim() || null))
  personPart.element.append(hint(t('key-person-hint')))
  const rolePart = { name: 'scopes', label: t('key-may'), element: field(t('key-may'), role, '/scopes'), value: scopes }
  rolePart.element.append(about)
  const owner = session.me.user
  const parts = [
    !owner && may('users:read') && personPart, controlPart('name', t('field.name'), name, () => name.value.trim()), rolePart,
    controlPart('expires_at', [t('key-until'), h('span.hint', ` (${t('optional')})`)], until, () => until.value && startOf(daysAfter(until.value, 1)).toISOString() || null),
  ].filter(Boolean)
  tell()
  return recordForm({
    title: t('key-new'), about: owner && hint(t('key-same-person', { name: owner.display_name })), text: t('key-make'), path: '/keys', signal, parts, cancelled,
    // Always a new idempotency key, because a replayed response would lack the key.
    post: (path, body) => post(path, body, uuid()),
    saved: ({ name, api_key: secret }) => {
      const address = `${location.origin}${location.pathname}#key=${secret}`
      made(once(t('key-made', { name }), secret, h('p', t('key-once')), h('p', h('code.secret', address)),
        h('div.actions', copying(t('copy-link'), address, 'primary'), copying(t('copy-key'), secret ?? '')), hint(t('key-what-next'))), true)
    },
  })
}
