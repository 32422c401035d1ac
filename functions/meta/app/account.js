// The account: the key, the language, the version, help, and the way out.
import { get, session } from './api.js'
import { button, h, own, show } from './elements.js'
import { select } from './fields.js'
import { field } from './form.js'
import { forget } from './kept.js'
import { card, colon, facts, heading, link } from './page.js'
import { t } from './texts.js'

/** Languages by their own names. */
const LANGUAGES = [['en', 'English'], ['de', 'Deutsch'], ['fr', 'Français'], ['es', 'Español']]

/** Shows the account. `closed`: the tabs that the key can't open, with the scopes that it lacks. */
export function account(main, signal, { closed, speakIn }) {
  const { key, user, tenant } = session.me
  const version = h('span', '–')
  const language = select(LANGUAGES, document.documentElement.lang, { change: ({ target }) => speakIn(target.value) })
  for (const option of language.options) option.lang = option.value
  const leave = button(t('sign-out'), async () => {
    await forget()
    sessionStorage.clear()
    session.key = null
    // A change of the fragment would show another view first, without a key.
    history.replaceState(null, '', location.pathname)
    location.reload()
  })
  show(main, heading(t('account')),
    h('div.columns',
      h('div',
        card(t('this-key'), facts([[t('field.name'), own(key.name)], [t('field.assigned_to'), user && own(user.display_name)], [t('nav.organisation'), own(tenant.name)]]),
          h('details', h('summary', t('scopes-count', { count: key.scopes.length })), h('ul.plain-list', key.scopes.map((scope) => h('li', h('code', scope)))))),
        closed.length > 0 && card(t('not-here'), h('ul.plain-list', closed.map(([name, scope]) => h('li', t(`nav.${name}`), colon(), t('scope-missing', { scope })))))),
      h('div.side',
        card(t('menu'), h('div.form', field(t('language'), language),
          h('ul.plain-list', [link(t('nav.organisation'), 'organisation'), link(t('verify'), 'verify'), h('a', { href: '/v1/docs' }, t('help'))].map((one) => h('li', one))),
          h('p.hint', t('version'), colon(), version), leave)))))
  get('/health', signal).then((reply) => show(version, reply.version), () => {})
  return { title: t('account') }
}
