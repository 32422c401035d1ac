// The organization's settings.
import { may, send, session } from './api.js'
import { h, hint, own, part, show } from './elements.js'
import { input, select } from './fields.js'
import { card, facts, heading } from './page.js'
import { controlPart, goAnew, recordForm, textPart } from './record.js'
import { suggesting } from './suggest.js'
import { number, t } from './texts.js'
import { transitionsEditor } from './transitions.js'

/** Locales to choose from. The current one is added, since the service knows many more. */
const LOCALES = ('bg-BG cs-CZ da-DK de-AT de-CH de-DE el-GR en en-AU en-CA en-GB en-IE en-US es-AR es-ES es-MX et-EE fi-FI fr-BE fr-CA fr-CH fr-FR'
  + ' hr-HR hu-HU it-CH it-IT ja-JP lt-LT lv-LV nb-NO nl-BE nl-NL pl-PL pt-BR pt-PT ro-RO sk-SK sl-SI sv-SE tr-TR uk-UA').split(' ')

const zones = () => ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')]

/** Suggests time zones by parts of their names. */
function zoneField(zone) {
  const plain = (text) => text.toLowerCase().replaceAll('_', ' ')
  return suggesting({
    chosen: () => {},
    first: { text: zone },
    find: async (text) => zones().filter((name) => plain(name).includes(plain(text))).slice(0, 8).map((name) => ({ text: name })),
    meant: (text, [first, ...others]) => (others.length && plain(first.text) !== plain(text) ? null : first),
  })
}

function localeField(locale) {
  const names = new Intl.DisplayNames(document.documentElement.lang, { type: 'language' })
  const named = [...new Set([locale, ...LOCALES])].map((name) => [name, names.of(name) ?? name])
  return select(named.sort(([, one = ''], [, other = '']) => one.localeCompare(other)), locale)
}

export async function settings(main, _, signal) {
  const { body: { data }, etag } = await send('GET', '/settings', { signal })
  const title = t('organisation.settings')
  const rows = data.number_ranges.map(({ pattern, last_number: last, capacity }) => [own(pattern), `${number(last)} / ${number(capacity)}`])
  const ranges = rows.length > 0 && card(t('number-ranges'), facts(rows))
  if (!may('settings:write')) {
    const members = ['name', 'time_zone', 'locale', 'asset_tag_template', 'asset_tag_prefix']
    return show(main, h('div.title', heading(title)), card(title, facts(members.map((name) => [t(`setting.${name}`), own(data[name])])), hint(t('scope-missing', { scope: 'settings:write' }))), ranges), { title }
  }
  const zone = zoneField(data.time_zone)
  const locale = localeField(data.locale)
  const template = input('text', data.asset_tag_template, { spellcheck: false })
  const templatePart = controlPart('asset_tag_template', t('setting.asset_tag_template'), template, () => template.value.trim())
  templatePart.element.append(hint(t('template-hint', { example: '{TYPE_CODE}-{YYYY}-NNNN' })))
  const address = textPart('label_url_template', t('setting.label_url_template'), data.label_url_template, { spellcheck: false, inputMode: 'url' })
  const pages = `${location.origin}${location.pathname.replace(/[^/]*$/, '')}assets/by-tag/{asset_tag}`
  address.element.append(hint(t('label-url-hint', { address: pages })))
  const form = recordForm({
    title, isTitled: false, path: '/settings', signal, record: { data, etag }, saved,
    parts: [
      textPart('name', t('setting.name'), data.name, { required: true, maxLength: 255 }), controlPart('time_zone', t('setting.time_zone'), zone, () => zone.value.trim()),
      controlPart('locale', t('setting.locale'), locale), templatePart, textPart('asset_tag_prefix', t('setting.asset_tag_prefix'), data.asset_tag_prefix, { required: true, maxLength: 16 }), address,
      transitionsEditor(data.status_transitions),
    ],
  })
  function saved({ name, time_zone, locale }) {
    Object.assign(session.me.tenant, { name, time_zone, locale })
    show(part('home'), name)
    goAnew('organisation/settings')
  }
  show(main, h('div.title', heading(title)), form, ranges)
  return { title }
}
