// Values and times as people read them.

// With the zone: whoever reads it may be elsewhere. A style of dates and times would not take it.
/** @type {Intl.DateTimeFormatOptions} */
const TIME = { year: 'numeric', month: 'long', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short' }

/** @param {string} time */
function shownTime(time) {
  const date = new Date(time)
  const text = isNaN(+date) ? time : new Intl.DateTimeFormat(undefined, TIME).format(date)
  return create('time', { dateTime: time }, text)
}

/** @param {string} day a date, YYYY-MM-DD */
function shownDate(day) {
  const date = new Date(`${day}T00:00:00Z`)
  return isNaN(+date) ? day : new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeZone: 'UTC' }).format(date)
}

/**
 * Returns all lines of a checklist.
 * @param {string[]} items
 * @param {Json[]} checked
 */
function shownChecklist(items, checked) {
  const line = (/** @type {string} */ item) => {
    const isChecked = checked.includes(item)
    const mark = create('span', { className: 'mark', 'aria-hidden': 'true' }, isChecked ? '✓' : '–')
    const state = create('span', { className: isChecked ? 'unseen' : 'hint' }, isChecked ? ', checked' : ', not checked')
    return create('li', {}, mark, create('span', {}, isolated(item), state))
  }
  return create('ul', { className: 'checklist' }, ...items.map(line))
}

/**
 * Returns the value of a step as people read it.
 * @param {Step} step
 * @param {Json} value
 * @param {string | null} userName
 * @returns {Node}
 */
function shownValue(step, value, userName) {
  if (step.items) return shownChecklist(step.items, Array.isArray(value) ? value : [])
  if (value === true) return create('p', {}, step.type === 'complete' ? 'Done' : 'Yes')
  if (typeof value === 'string' && value.trim()) {
    const text = step.type === 'date' ? shownDate(value) : step.type === 'user_picker' ? (userName ?? 'A deleted user') : value
    return create('p', { className: 'value', dir: 'auto' }, text)
  }
  return create('p', { className: 'hint' }, step.type === 'complete' ? 'Done' : 'Nothing entered')
}

/** Says that a signature's image shows a typed name. */
const typedHint = () => create('p', { className: 'hint' }, 'Typed, not drawn')

/** @param {SessionStep} entry @returns {Node} */
function shownSubmission({ step, value, user_name, is_stored, is_typed, signed_by, signed_at }) {
  if (step.type !== 'signature') return shownValue(step, value, user_name)
  if (!is_stored) return create('p', { className: 'hint' }, 'Not signed')
  // Null only without a signature.
  const signer = signed_by && signed_at ? [' by ', isolated(signed_by), ', ', shownTime(signed_at)] : []
  const signed = create('p', {}, 'Signed', ...signer)
  const statement = create('p', { className: 'value', dir: 'auto' }, step.statement ?? '')
  return create('div', {}, statement, signed, is_typed ? typedHint() : null)
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

/**
 * Makes a sentence of what the service says of a value, as in "must not be empty".
 * @param {string} detail
 */
function sentence(detail) {
  const text = /^(must|is|has|can|cannot|may|does|contains|needs|exceeds)\b/.test(detail) ? `This ${detail}` : detail
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** @param {number} count @param {string} one @param {string} many */
const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`
