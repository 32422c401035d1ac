// Manufacturers and their models: new, renamed, and deleted if nothing uses them.
import { assetTypes, may, outdate, send } from './api.js'
import { button, h, hint, own, show } from './elements.js'
import { select } from './fields.js'
import { searchField } from './form.js'
import { card, go, heading, link } from './page.js'
import { controlPart, deleting, focusFirst, listCard, recordForm, showLines, textPart } from './record.js'
import { t } from './texts.js'

const PATH = '/catalog/manufacturers'
const MODELS = '/catalog/models'
const AT = 'organisation/manufacturers'

const isMine = () => may('catalog:write')

/** Shows the list or, with an ID, a manufacturer with its models. */
export async function manufacturers(main, params, signal, [id]) {
  if (id) return manufacturer(main, params, signal, id)
  const list = h('div')
  const place = h('div')
  const first = isMine() && button(t('manufacturer-new'), () => {
    const form = recordForm({
      title: t('manufacturer-new'), path: PATH, signal, parts: partsOf(null), cancelled: () => show(place),
      saved: ({ id }) => (outdate('/catalog/'), go(`${AT}/${id}`)),
    })
    show(place, form)
    focusFirst(form)
  }, 'primary')
  const line = ({ id, name, website }) => [link(own(name), `${AT}/${id}`), h('span.hint', own(website ?? ''))]
  show(main, h('div.title', heading(t('organisation.manufacturers')), first), place,
    listCard(t('organisation.manufacturers'), searchField(params.q, t('field.name'), (q) => go(AT, { q }, true), signal), list))
  const showList = () => showLines(list, { path: PATH, at: AT, params, signal, line, none: t('no-manufacturers') })
  return { title: t('organisation.manufacturers'), ready: showList(), update: (next) => ((params = next), showList()) }
}

const partsOf = (data) => [textPart('name', t('field.name'), data?.name, { required: true, maxLength: 255 }),
  textPart('website', t('website'), data?.website, { inputMode: 'url' }), textPart('notes', t('field.notes'), data?.notes, { type: 'textarea' })]

async function manufacturer(main, params, signal, id) {
  const path = `${PATH}/${id}`
  const [{ body: { data }, etag }, types] = await Promise.all([send('GET', path, { signal }), assetTypes()])
  const title = h('div.title')
  const place = h('div')
  const list = h('div')
  const at = `${AT}/${id}`
  const showList = () => showLines(list, { path: MODELS, at, params, signal, line, none: t('no-models'), query: { manufacturer_id: id } })
  /** Renames in place of the line. */
  function line(model) {
    const box = h('div.line')
    const path = `${MODELS}/${model.id}`
    const rest = () => show(box, h('div', own(model.name), ' ', h('span.hint', own(types.find(({ id }) => id === model.asset_type_id)?.name ?? ''))),
      isMine() && h('div.actions', button(t('rename'), rename, 'plain'), deleting(path, model.name, changed)))
    async function rename() {
      const { body, etag } = await send('GET', path, { signal })
      const form = recordForm({ title: t('rename'), path, signal, record: { data: body.data, etag }, cancelled: rest, saved: changed,
        parts: [textPart('name', t('field.name'), body.data.name, { required: true, maxLength: 255 }), textPart('notes', t('field.notes'), body.data.notes, { type: 'textarea' })] })
      show(box, form)
      focusFirst(form)
    }
    rest()
    return box
  }
  const changed = () => {
    outdate('/catalog/')
    show(place)
    return showList()
  }
  function newModel() {
    const type = select([['', '–'], ...types.map(({ id, name }) => [id, name])], '')
    const form = recordForm({ title: t('model-new'), path: MODELS, signal, cancelled: () => show(place), saved: changed,
      parts: [textPart('name', t('field.name'), '', { required: true, maxLength: 255 }), controlPart('asset_type_id', t('field.asset_type_id'), type),
        { name: 'manufacturer_id', label: '', element: h('div', { hidden: true }), value: () => id }] })
    show(place, form)
    focusFirst(form)
  }
  const about = isMine() && recordForm({ title: t('change'), path, signal, record: { data, etag }, parts: partsOf(data),
    saved: (now) => (outdate('/catalog/'), go(AT), now) })
  show(title, heading(own(data.name)), isMine() && types.length > 0 && button(t('model-new'), newModel, 'primary'))
  show(main, title, place, isMine() && !types.length && hint(t('no-types')), card(t('models'), list), about || hint(own(data.website ?? '')),
    isMine() && deleting(path, data.name, () => (outdate('/catalog/'), go(AT))))
  return { title: data.name, ready: showList(), update: (next) => ((params = next), showList()) }
}
