// A person's name, address and role as a form.
import { get, intent, may, plan, send, session } from './api.js'
import { button, saveFile, show } from './elements.js'
import { select } from './fields.js'
import { roleOptions } from './form.js'
import { go, heading, query } from './page.js'
import { asking, controlPart, recordForm, textPart } from './record.js'
import { t } from './texts.js'

const parts = (user) => [
  textPart('display_name', t('field.name'), user.display_name, { required: true }),
  textPart('email', t('email'), user.email, { type: 'email', required: true }),
  controlPart('role', t('role'), select(roleOptions(), user.role)),
]

/** Shows the form for a new person. */
export function newPerson(main, _, signal) {
  const title = t('new-person')
  const element = recordForm({ title, path: '/users', parts: parts({ role: 'viewer' }), signal, isTitled: false, saved: ({ id }) => go(`person/${id}`), cancelled: () => history.back() })
  show(main, heading(title), element)
  element.querySelector('input')?.focus()
  return { title }
}

/** Creates the form that changes a person. `saved` takes the person. */
export async function changePerson(id, signal, saved, cancelled) {
  const { body, etag } = await send('GET', `/users/${id}`, { signal })
  return recordForm({ title: t('change'), path: `/users/${id}`, parts: parts(body.data), record: { data: body.data, etag }, signal, saved, cancelled })
}

/** A key that isn't bound to a person counts as an admin if it has all scopes; these are only an admin's. */
const isAdmin = () => (session.me.user ? session.me.user.role === 'admin' : ['users:write', 'keys:write', 'settings:write', 'events:read', 'webhooks:write'].every(may))

/**
 * Creates the buttons for what only admins may: a report of what is stored about a person and, once they are inactive, their erasure.
 * @param {any} user @param {(user: any) => any} erased
 */
export function forAdmins(user, erased) {
  if (!isAdmin()) return []
  const path = `/users/${user.id}`
  const report = async () => {
    /** @type {string | null} */
    let from = null
    for (let n = 1; n === 1 || from; n++) {
      const part = `${path}/report${query({ format: 'html', from })}`
      const { body } = await send('GET', part, { as: 'text', headers: { 'accept-language': document.documentElement.lang } })
      saveFile(`report-${n}.html`, body, 'text/html')
      from = (await get(`${path}/report${query({ from })}`)).data.next
    }
  }
  const once = intent()
  const erase = async () => {
    for (let round = 0, isDone = false; !isDone; round++) isDone = (await once(`${path}/erase`, {}, round)).data.done
    erased((await get(path)).data)
  }
  const { is_active: isActive, erased_at: erasedAt, display_name: name } = user
  return [button(t('report'), report), !isActive && !erasedAt && asking(t('erase'), t('erase-ask', { name }), erase, () => plan(`${path}/erase`, {}))]
}
