// The organization: types, manufacturers, keys, settings and webhooks, as far as the key may see them.
import { Problem, may } from './api.js'
import { h, show } from './elements.js'
import { empty } from './form.js'
import { keys } from './keys.js'
import { manufacturers } from './manufacturers.js'
import { go, link } from './page.js'
import { settings } from './settings.js'
import { t } from './texts.js'
import { types } from './types.js'
import { webhooks } from './webhooks.js'

/** Sections by name: the view, and the scopes of which one is needed. @type {Record<string, any[]>} */
const SECTIONS = {
  types: [types, 'catalog:read'],
  manufacturers: [manufacturers, 'catalog:read'],
  keys: [keys, 'keys:read', 'keys:write'],
  settings: [settings, 'settings:read'],
  webhooks: [webhooks, 'webhooks:read', 'webhooks:write'],
}

/** Shows a section, below links to all. */
export async function organisation(main, params, signal, [, name, ...rest]) {
  const mine = Object.keys(SECTIONS).filter((name) => SECTIONS[name].slice(1).some(may))
  if (!name) return go(`organisation/${mine[0]}`, {}, true)
  const [view, ...scopes] = Object.hasOwn(SECTIONS, name) ? SECTIONS[name] : []
  if (!view) throw new Problem(404, { code: 'NOT_FOUND' })
  const place = h('div')
  const sections = mine.map((one) => {
    const to = link(t(`organisation.${one}`), `organisation/${one}`)
    to.ariaCurrent = one === name ? 'page' : null
    return to
  })
  show(main, h('nav.sections', { ariaLabel: t('nav.organisation') }, sections), place)
  if (mine.includes(name)) return view(place, params, signal, rest)
  show(place, empty(t('scope-missing', { scope: scopes.join(', ') })))
  return { title: t(`organisation.${name}`) }
}
