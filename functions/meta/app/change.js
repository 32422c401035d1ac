// Changes an asset, and deletes it.
import { Problem, assetTypes, known, send, userName } from './api.js'
import { changeLines, differences } from './asset.js'
import { button, h, hint, show } from './elements.js'
import { blocking, check, clearProblems, discardOnEdit, form, planBox, showProblems, submit } from './form.js'
import { controlsOf, customControls, labelled } from './editor.js'
import { go, mayLeave, sayNext } from './page.js'
import { t } from './texts.js'

/** Shows the fields of an asset as a form, with a preview of the changes. */
export async function changeForm(asset, etag, signal, saved, cancelled) {
  const [type, types, holderName = ''] = await Promise.all([
    asset.asset_type_id && known('catalog:read', `/catalog/asset-types/${asset.asset_type_id}`), assetTypes(), asset.assigned_to && userName(asset.assigned_to)])
  const before = asset
  const all = controlsOf(asset, types, holderName ?? '')
  const custom = customControls(asset.custom_fields, type)
  const place = h('div')
  const next = h('div.actions')

  /** Sends only edited fields, so that others' changes are kept. */
  function body() {
    const patch = {}
    for (const { name, value } of all) {
      const now = value() || (name === 'name' ? '' : null)
      if (now !== (before[name] === null ? null : String(before[name]))) patch[name] = now
    }
    const fields = Object.fromEntries(custom.filter(({ changed }) => changed()).map(({ name, value }) => [name, value()]))
    return Object.keys(fields).length ? { ...patch, custom_fields_patch: fields } : patch
  }

  async function preview() {
    await check(element, place)
    const patch = body()
    const planned = newPlan()
    const lines = Object.keys(patch).length ? await changeLines(differences(asset, (await patched(patch, '?dry_run=true', planned)).body.data)) : []
    planned.throwIfAborted()
    if (lines.length === 0) return show(place, hint({ role: 'status' }, t('no-change')))
    show(place, planBox(t('would-happen'), lines))
    show(next, button(t('save'), () => blocking([element], () => save(patch)).catch(refused), 'primary'), button(t('keep-editing'), () => (edit(), next.querySelector('button').focus())), cancel())
    next.querySelector('button').focus()
  }

  /** @param {AbortSignal} [signal] */
  const patched = (body, query = '', signal) => send('PATCH', `/assets/${asset.id}${query}`, { body, signal, headers: { 'if-match': etag } })
  async function save(patch) {
    const { body: { data }, etag: tag } = await patched(patch)
    saved(data, tag)
  }

  async function refused(error) {
    if (error.name === 'AbortError') return
    edit()
    if (!(error instanceof Problem) || error.code !== 'PRECONDITION_FAILED') return showProblems(element, place, error)
    const { body: { data }, etag: tag } = await send('GET', `/assets/${asset.id}`, { signal })
    const lines = await changeLines(differences(asset, data))
    asset = data
    etag = tag
    show(place, h('div.problem', { role: 'alert' }, h('p', error.text), h('ul', lines)))
  }

  const cancel = () => button(t('cancel'), cancelled, 'plain')
  function edit() {
    clearProblems(element, place)
    show(next, submit(t('preview')), cancel(), button(t('delete'), askDelete, 'plain'))
  }
  function askDelete() {
    newPlan()
    show(place, planBox(t('delete-asset', { tag: asset.asset_tag }), [h('li', t('delete-keeps'))]))
    const act = button(t('delete'), () => remove().catch(refused), 'primary')
    show(next, act, button(t('keep-editing'), edit), cancel())
    act.focus()
  }
  async function remove() {
    await send('DELETE', `/assets/${asset.id}`, { headers: { 'if-match': etag } })
    delete element.dataset.edited
    sayNext(t('deleted', { name: asset.asset_tag }))
    go('assets')
  }
  const element = form(() => preview().catch(refused), h('h2', t('change')),
    h('div.grid', labelled(all, custom, 'custom_fields_patch')),
    place, next)
  element.ariaLabel = t('change')
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return
    event.preventDefault()
    if (mayLeave()) cancelled()
  })
  const newPlan = discardOnEdit(element, next, edit)
  edit()
  return { element, focus: all[0].control }
}
