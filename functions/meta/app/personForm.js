// A person's name, address and role as a form.
import { intent, send } from './api.js'
import { button, h, show } from './elements.js'
import { input, select } from './fields.js'
import { check, clearProblems, field, form, showProblems, submit } from './form.js'
import { go, heading, say, sayNext } from './page.js'
import { t } from './texts.js'

const ROLES = ['viewer', 'helpdesk', 'technician', 'admin']

/**
 * Creates the form. `save` sends the edited values, and goes on.
 * @param {any} user the values at first
 * @param {(edited: any) => Promise<any>} save
 * @param {() => void} [cancelled]
 */
export function personForm(title, user, save, cancelled) {
  const all = [
    { name: 'display_name', label: t('field.name'), control: input('text', user.display_name) },
    { name: 'email', label: t('email'), control: input('email', user.email) },
    { name: 'role', label: t('role'), control: select(ROLES.map((role) => [role, t(`role.${role}`)]), user.role) },
  ]
  const place = h('div')
  let isSaving = false
  const element = form(async () => {
    if (isSaving) return
    isSaving = true
    try {
      await check(element, place)
      const edited = all.map(({ name, control }) => [name, control.value.trim()]).filter(([name = '', value]) => value !== (user[name] ?? ''))
      delete element.dataset.edited
      await save(Object.fromEntries(edited))
    } catch (error) {
      element.dataset.edited = ''
      showProblems(element, place, error)
    } finally {
      isSaving = false
    }
  }, title, h('div.grid', all.map(({ name, label, control }) => field(label, control, `/${name}`))), place,
  h('div.actions', submit(t('save')), cancelled && button(t('cancel'), cancelled, 'plain')))
  element.addEventListener('input', () => {
    element.dataset.edited = ''
    clearProblems(element, place)
  })
  return { element, focus: all[0]?.control }
}

/** Shows the form for a new person. */
export function newPerson(main) {
  const once = intent()
  const { element, focus } = personForm('', { role: 'viewer' }, async (edited) => {
    const { data } = await once('/users', edited)
    sayNext(t('saved'))
    go(`person/${data.id}`)
  })
  element.ariaLabel = t('new-person')
  show(main, heading(t('new-person')), element)
  focus?.focus()
  return { title: t('new-person') }
}

/** Creates the form that changes a person. `saved` takes the person. */
export async function changePerson(id, saved, cancelled) {
  const { body: { data: user }, etag } = await send('GET', `/users/${id}`)
  return personForm(h('h2', t('change')), user, async (edited) => {
    const { body: { data } } = await send('PATCH', `/users/${id}`, { body: edited, headers: { 'if-match': etag } })
    say(t('saved'))
    saved(data)
  }, cancelled)
}
