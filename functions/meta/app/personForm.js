// A person's name, address and role as a form.
import { send } from './api.js'
import { show } from './elements.js'
import { select } from './fields.js'
import { go, heading } from './page.js'
import { controlPart, recordForm, textPart } from './record.js'
import { t } from './texts.js'

const ROLES = ['viewer', 'helpdesk', 'technician', 'admin']

const parts = (user) => [
  textPart('display_name', t('field.name'), user.display_name, { required: true }),
  textPart('email', t('email'), user.email, { type: 'email', required: true }),
  controlPart('role', t('role'), select(ROLES.map((role) => [role, t(`role.${role}`)]), user.role)),
]

/** Shows the form for a new person. */
export function newPerson(main, _, signal) {
  const title = t('new-person')
  const element = recordForm({ title, path: '/users', parts: parts({ role: 'viewer' }), signal, isTitled: false, saved: ({ id }) => go(`person/${id}`) })
  show(main, heading(title), element)
  element.querySelector('input')?.focus()
  return { title }
}

/** Creates the form that changes a person. `saved` takes the person. */
export async function changePerson(id, signal, saved, cancelled) {
  const { body, etag } = await send('GET', `/users/${id}`, { signal })
  return recordForm({ title: t('change'), path: `/users/${id}`, parts: parts(body.data), record: { data: body.data, etag }, signal, saved, cancelled })
}
