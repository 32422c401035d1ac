// Puts new assets in, one after the other.
import { assetTypes, cached, get, intent, may } from './api.js'
import { assetLink, assetList, byCode } from './asset.js'
import { controlsOf, customControls, fieldOf, labelled } from './editor.js'
import { button, h, hint, show } from './elements.js'
import { debounced, input } from './fields.js'
import { check, clearProblems, form, showProblems } from './form.js'
import { card, go, heading, say, sayNext } from './page.js'
import { latest } from './requests.js'
import { suggesting, takeScans } from './suggest.js'
import { t } from './texts.js'

/** What is the same for each asset of a delivery. */
const KEPT = ['name', 'status', 'asset_type_id', 'location', 'manufacturer', 'model', 'purchase_date', 'purchase_price', 'warranty_until']
const MOST_SHOWN = 20

const kept = (values) => Object.fromEntries(KEPT.filter((name) => values[name]).map((name) => [name, values[name]]))

/** Shows the form for a new asset: an empty one, or one that is like another asset. */
export async function create(main, params, signal) {
  const like = params.copy ? (await get(`/assets/${params.copy}`, signal)).data : {}
  const types = await assetTypes()
  const once = intent()
  /** @type {any[]} */
  const made = []
  const newScans = latest(signal)
  const before = h('div')
  /** Whether the next asset follows, which the button decides that was pressed last. */
  let goesOn = false

  function next(values) {
    const { element, focus } = newForm(values)
    const list = made.slice(0, MOST_SHOWN)
    show(before, list.length > 0 && card(t('put-in', { count: made.length }), assetList(list)))
    show(main, heading(t('new-asset')), element, before)
    focus.focus()
  }

  function newForm({ catalog = null, ...values }) {
    const usual = controlsOf({ status: 'in_stock', location: null, ...values }, types)
    /** The model of the catalog that was chosen, which sets the manufacturer and the type. @type {any} */
    let chosen = catalog
    const model = may('catalog:read') && fieldOf('model', modelField(values.model, catalog, (model) => {
      chosen = model
      if (!model) return
      one('manufacturer').value = model.manufacturer
      if (!one('asset_type_id') || !model.asset_type_id) return
      one('asset_type_id').value = model.asset_type_id
      showCustom()
    }))
    const [name, ...others] = usual.map((one) => (one.name === 'model' && model) || one)
    /** @type {any[]} */
    const shown = [name, fieldOf('asset_tag', input('text', '', { placeholder: t('tag-automatic') })), ...others]
    const one = (name) => shown.find((known) => known.name === name)?.control
    const written = () => shown.map(({ name, value }) => [name, value()])
    const serial = one('serial_number')
    one('name').required = true
    const own = h('div.contents')
    const place = h('div')
    const same = h('div', { role: 'status' })
    /** @type {any[]} */
    let custom = []
    function showCustom() {
      const values = Object.fromEntries(custom.map(({ name, value }) => [name, value()]))
      const type = types.find(({ id }) => id === one('asset_type_id')?.value)
      custom = customControls(values, type)
      for (const { name, control } of custom) control.required = Boolean(type?.custom_fields_schema?.required?.includes(name))
      show(own, labelled([], custom, 'custom_fields'))
    }
    showCustom()
    one('asset_type_id')?.addEventListener('change', showCustom)

    const newLook = latest(signal)
    /** Says which assets have the serial number already. */
    const look = debounced(async (text, looking) => {
      const found = text && !looking.aborted ? await byCode(text, looking).catch(() => []) : []
      const others = found.filter(({ asset_tag: tag }) => tag.toLowerCase() !== text.toLowerCase())
      if (!looking.aborted) show(same, others.map((other) => hint(t('same-serial'), ' ', assetLink(other))))
    }, 300)
    serial.addEventListener('input', () => look(serial.value.trim(), newLook()))

    function body() {
      const fields = custom.map(({ name, value }) => [name, value()])
      const isSet = ([, value]) => (value ?? '') !== ''
      const set = Object.fromEntries(written().filter(isSet))
      const isOfCatalog = chosen && set.manufacturer === chosen.manufacturer && [undefined, chosen.asset_type_id ?? undefined].includes(set.asset_type_id)
      if (isOfCatalog) {
        for (const name of ['manufacturer', 'model', 'asset_type_id']) delete set[name]
        set.model_id = chosen.id
      }
      return custom.length ? { ...set, custom_fields: Object.fromEntries(fields.filter(isSet)) } : set
    }
    async function save() {
      await check(element, place)
      const sent = body()
      const { data } = await once('/assets', sent, made.length)
      made.unshift(data)
      delete element.dataset.edited
      const told = t('created', { tag: data.asset_tag })
      if (!goesOn) {
        sayNext(told)
        return go(`asset/${data.id}`)
      }
      say(told)
      next({ ...kept(Object.fromEntries(written())), catalog: chosen })
    }
    const act = (text, isNext, look) => h('button', { type: 'submit', className: look, click: () => (goesOn = isNext) }, text)
    const two = [[t('save'), false], [t('save-next'), true]]
    // Enter, which ends a scan, presses the first button.
    if (goesOn) two.reverse()
    let isSaving = false
    const element = form(async () => {
      if (isSaving) return
      isSaving = true
      try {
        await save()
      } catch (error) {
        showProblems(element, place, error)
      } finally {
        isSaving = false
      }
    }, h('div.grid', labelled(shown, [], ''), own), place, h('div', { className: goesOn ? 'actions swapped' : 'actions' }, two.map(([text, isNext], n) => act(text, isNext, n ? '' : 'primary')), button(t('cancel'), () => history.back(), 'plain')))
    element.ariaLabel = t('new-asset')
    serial.closest('.field').append(same)
    const edit = () => {
      element.dataset.edited = ''
      clearProblems(element, place)
    }
    element.addEventListener('input', edit)
    element.addEventListener('chosen', edit)
    takeScans((code) => {
      serial.value = code
      serial.dispatchEvent(new Event('input', { bubbles: true }))
      serial.focus()
      if (goesOn) element.requestSubmit()
    }, newScans(), serial)
    return { element, focus: goesOn ? serial : one('name') }
  }

  next(kept(like))
  return { title: t('new-asset') }
}

/** Creates the control for a model, which suggests those of the catalog. Others are accepted as text. */
const modelField = (value, catalog, chosen) =>
  suggesting({
    none: t('new-model'),
    // Enter chooses no other model, and saves nothing while there is a list.
    meant: (text, models) => models.find((one) => one.text.toLowerCase() === text.toLowerCase()),
    first: catalog ?? (value ? { text: value } : null),
    chosen,
    find: async (text, signal) => {
      const { data } = await get('/catalog/models', signal, { q: text, limit: 8 })
      return Promise.all(data.map(async ({ id, name, manufacturer_id: by, asset_type_id }) => {
        const { data: maker } = await cached(`/catalog/manufacturers/${by}`)
        return { id, text: name, detail: maker.name, manufacturer: maker.name, asset_type_id }
      }))
    },
  })
