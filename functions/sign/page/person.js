// A step that picks a person: the signer, the person picked before, or someone else, by e-mail address.
import { h, newId, own } from './elements.js'
import { choice } from './fields.js'
import { frame } from './steps.js'
import { sentence, t } from './texts.js'

/** @param {SessionStep} open @param {FieldDraft | undefined} kept @param {SigningSession['signer']} signer @returns {Field} */
export function personField(open, kept, signer) {
  const group = newId()
  const stored = typeof open.value === 'string' && open.value !== signer.user_id ? open.value : null
  const preset = open.value === null ? '' : stored ? 'stored' : 'me'
  const draft = { choice: preset, email: '', ...Object(kept) }
  const values = [
    { name: 'me', isShown: signer.user_id !== null, text: sentence('me', { name: own(signer.name) }) },
    { name: 'stored', isShown: stored !== null, text: [own(open.user_name ?? stored ?? '')] },
    { name: 'other', isShown: true, text: [t('another-person')] },
    { name: 'none', isShown: !open.step.required, text: [t('nobody')] },
  ].filter(({ isShown }) => isShown)
  if (values.length === 1) draft.choice = 'other'
  const choices = values.map(({ name, text }) => ({ name, ...choice(text, draft.choice === name, { type: 'radio', name: group }) }))
  const chosen = () => choices.find(({ box }) => box.checked)?.name ?? ''

  const email = h('input', { id: newId(), type: 'text', inputMode: 'email', autocapitalize: 'none', spellcheck: false, value: draft.email })
  const other = h('div.indented', h('label', { htmlFor: email.id }, t('email')), email)
  const field = frame(open, { control: email }, ...choices.flatMap(({ name, element }) => (name === 'other' ? [element, other] : [element])))
  email.setAttribute('aria-describedby', field.error.id)
  const refresh = () => {
    other.hidden = chosen() !== 'other'
  }
  field.element.addEventListener('change', refresh)
  refresh()

  return Object.assign(field, {
    value() {
      const value = { me: signer.user_id, stored, other: email.value.trim() || null }
      return Reflect.get(value, chosen()) ?? null
    },
    check() {
      field.control = chosen() === 'other' ? email : (choices[0]?.box ?? email)
      if (!chosen()) return open.step.required ? t('missing.user_picker') : null
      if (chosen() !== 'other') return null
      return /^\S+@\S+$/.test(email.value.trim()) ? null : t('whole-email')
    },
    save: () => ({ choice: chosen(), email: email.value }),
    summary: () => ({ me: signer.name, stored: open.user_name ?? '', other: email.value.trim() })[chosen()] ?? '',
  })
}
