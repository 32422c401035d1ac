// What was submitted before, to read before signing.

/** @param {SubmittedStep} entry @returns {Node} */
function shownSubmission({ step, value, user_name, is_stored, signed_by, signed_at }) {
  if (step.type !== 'signature') return shownValue(step, value, user_name)
  if (!is_stored) return create('p', { className: 'hint' }, 'Not signed')
  // Of signatures from before it was kept, nobody knows it.
  const by = signed_by === null ? [] : [' by ', isolated(signed_by)]
  const at = signed_at === null ? [] : [', ', shownTime(signed_at)]
  return create('p', {}, 'Signed', ...by, ...at)
}

/** @param {SigningSession} session @returns {Node | string} */
function shownSubmitted({ submitted }) {
  if (submitted.length === 0) return ''
  const title = create('h2', { id: newId() }, 'Submitted so far')
  const rows = submitted.map((entry) =>
    create('div', {}, create('dt', {}, isolated(entry.step.label)), create('dd', {}, shownSubmission(entry))),
  )
  return create('section', { className: 'submitted', 'aria-labelledby': title.id }, title, create('dl', {}, ...rows))
}
