// Types of assets: a list, and the form of one with its own fields.
import { may, outdate, send } from './api.js'
import { h, hint, own, show } from './elements.js'
import { input, select } from './fields.js'
import { searchField } from './form.js'
import { card, facts, go, heading, link } from './page.js'
import { controlPart, deleting, focusFirst, listCard, recordForm, showLines } from './record.js'
import { fieldsOf } from './schema.js'
import { t } from './texts.js'
import { fieldsEditor } from './type_fields.js'

const PATH = '/catalog/asset-types'
const AT = 'organisation/types'
const KINDS = ['physical', 'logical']

/** Shows the list or, with an ID or `new`, the form. */
export async function types(main, params, signal, [id]) {
  if (id) return typeForm(main, signal, id === 'new' ? null : id)
  const list = h('div')
  const fields = (schema) => {
    const count = Object.keys(schema?.properties ?? {}).length
    return count > 0 && t('fields-count', { count })
  }
  const line = ({ id, name, code, kind, custom_fields_schema: schema }) => [link(own(name), `${AT}/${id}`),
    h('span.hint', [code, t(`kind.${kind}`), fields(schema)].filter(Boolean).join(' · '))]
  show(main, h('div.title', heading(t('organisation.types')), may('catalog:write') && link(t('type-new'), `${AT}/new`, {}, 'button primary')),
    listCard(t('organisation.types'), searchField(params.q, t('field.name'), (q) => go(AT, { q }, true), signal), list))
  const showList = () => showLines(list, { path: PATH, at: AT, params, signal, line, none: t('no-types') })
  return { title: t('organisation.types'), ready: showList(), update: (next) => ((params = next), showList()) }
}

async function typeForm(main, signal, id) {
  const path = id ? `${PATH}/${id}` : PATH
  const { body, etag } = id ? await send('GET', path, { signal }) : { body: { data: null }, etag: null }
  const { data } = body
  const title = data?.name ?? t('type-new')
  const back = () => go(AT)
  if (!may('catalog:write')) return readOnly(main, data)
  const name = input('text', data?.name, { maxLength: 255 })
  const code = input('text', data?.code, { maxLength: 8, autocapitalize: 'characters', spellcheck: false })
  let isOwnCode = Boolean(data)
  code.addEventListener('input', () => (isOwnCode = code.value !== ''))
  name.addEventListener('input', () => {
    if (!isOwnCode) code.value = codeOf(name.value)
  })
  const kind = select(KINDS.map((one) => [one, t(`kind.${one}`)]), data?.kind ?? KINDS[0])
  const editor = fieldsEditor(data?.custom_fields_schema)
  const codePart = controlPart('code', t('type-code'), code, () => code.value.trim().toUpperCase())
  codePart.element.append(hint(t('type-code-hint')))
  const saved = (changed) => {
    outdate('/catalog/')
    go(AT)
    return changed
  }
  const form = recordForm({
    title: data ? t('change') : t('type-new'), isTitled: false, path, signal, saved, cancelled: back, record: data && { data, etag },
    parts: [controlPart('name', t('field.name'), name, () => name.value.trim()), codePart,
      controlPart('kind', t('kind'), kind, () => kind.value, (value) => t(`kind.${value}`)),
      { name: 'custom_fields_schema', label: t('type-fields'), element: editor.element, value: editor.value, told: editor.told }],
    located: editor.located, check: editor.check,
  })
  show(main, h('div.title', heading(data ? own(title) : title)), form, data && deleting(path, data.name, saved))
  if (!data) focusFirst(form)
  return { title }
}

/** Returns a code for a name, such as LAP for a laptop, or nothing if the name has too few letters. */
function codeOf(name) {
  const letters = name.normalize('NFD').replace(/[^A-Za-z0-9]/g, '').slice(0, 3).toUpperCase()
  return letters.length < 2 ? '' : letters
}

/** Shows a type to those who can't change it. */
function readOnly(main, data) {
  if (!data) return show(main, heading(t('type-new')), hint(t('scope-missing', { scope: 'catalog:write' }))), { title: t('type-new') }
  const fields = fieldsOf(data.custom_fields_schema)
  const rows = fields.map(({ name, kind, isRequired }) => [own(name), [t(`kind.${kind}`), isRequired && h('span.hint', ` (${t('required')})`)]])
  show(main, h('div.title', heading(own(data.name))), h('p', data.code, ' · ', t(`kind.${data.kind}`)), card(t('type-fields'), fields.length ? facts(/** @type {any} */ (rows)) : hint(t('no-fields'))),
    hint(t('scope-missing', { scope: 'catalog:write' })))
  return { title: data.name }
}
