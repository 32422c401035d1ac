// A step that picks a person: the signer, the person picked before, or someone else, by e-mail address.

/** @param {SessionStep} open @param {FieldDraft | undefined} kept @param {SigningSession['signer']} signer @returns {Field} */
function personField(open, kept, signer) {
  const group = newId()
  const stored = typeof open.value === 'string' && open.value !== signer.user_id ? open.value : null
  const preset = open.value === null ? '' : stored ? 'stored' : 'me'
  const draft = { choice: preset, email: '', ...Object(kept) }
  const values = [
    { name: 'me', isShown: signer.user_id !== null, text: pieces('me', { name: isolated(signer.name) }) },
    { name: 'stored', isShown: stored !== null, text: [isolated(open.user_name ?? stored ?? '')] },
    { name: 'other', isShown: true, text: [t('another-person')] },
    { name: 'none', isShown: !open.step.required, text: [t('nobody')] },
  ].filter(({ isShown }) => isShown)
  if (values.length === 1) draft.choice = 'other'
  const choices = values.map(({ name, text }) => ({ name, ...choice('radio', group, draft.choice === name, ...text) }))
  const chosen = () => choices.find(({ input }) => input.checked)?.name ?? ''

  const email = create('input', { id: newId(), type: 'text', inputMode: 'email', autocapitalize: 'none', spellcheck: false, value: draft.email })
  const other = create('div', { className: 'indented' }, create('label', { htmlFor: email.id }, t('email')), email)
  const field = frame(open, { control: email }, ...choices.flatMap(({ name, line }) => (name === 'other' ? [line, other] : [line])))
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
      field.control = chosen() === 'other' ? email : (choices[0]?.input ?? email)
      if (!chosen()) return open.step.required ? t('missing.user_picker') : null
      if (chosen() !== 'other') return null
      return /^\S+@\S+$/.test(email.value.trim()) ? null : t('whole-email')
    },
    save: () => ({ choice: chosen(), email: email.value }),
    summary: () => ({ me: signer.name, stored: open.user_name ?? '', other: email.value.trim() })[chosen()] ?? '',
  })
}
