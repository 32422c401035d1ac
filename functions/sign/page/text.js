// Texts in the reader's language, and formatted values and times.

/** A language tag, such as `de-CH`. */
let locale = 'en'

/** The first of the reader's languages that the page supports. */
const readersLanguage = () => navigator.languages.find((tag) => Object.hasOwn(TEXTS, languageOf(tag)))

/** @param {string} tag */
const languageOf = (tag) => tag.split('-', 1)[0]?.toLowerCase() ?? ''

/** Sets the language, or English if it is unsupported. @param {string} tag */
function speak(tag) {
  locale = Object.hasOwn(TEXTS, languageOf(tag)) ? tag : 'en'
  document.documentElement.lang = languageOf(locale)
}

/** @param {string} key */
const has = (key) => Object.hasOwn(TEXTS['en'] ?? {}, key)

/** @param {string} key @param {unknown} count chooses the plural */
function template(key, count) {
  const text = TEXTS[languageOf(locale)]?.[key]
  if (typeof text !== 'object') return text ?? key
  return text[new Intl.PluralRules(locale).select(Number(count))] ?? text['other'] ?? key
}

/** @param {number} value */
const shownNumber = (value) => new Intl.NumberFormat(locale).format(value)

/**
 * Returns a text with its `{name}` placeholders replaced by isolated values. `count` selects the plural form.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
const t = (key, values = {}) =>
  template(key, values['count']).replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name] ?? ''
    return typeof value === 'number' ? shownNumber(value) : `\u2068${value}\u2069`
  })

/**
 * Returns a text with elements as values.
 * @param {string} key
 * @param {Record<string, Node>} values
 * @returns {(Node | string)[]}
 */
const pieces = (key, values) =>
  template(key, null).split(/(\{\w+\})/).map((piece) => values[piece.slice(1, -1)] ?? piece)

// Shows the time zone, because the reader can be elsewhere. `timeZoneName` can't be combined with `dateStyle` and `timeStyle`.
/** @type {Intl.DateTimeFormatOptions} */
const TIME = { year: 'numeric', month: 'long', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short' }

/** @param {string} time */
function shownTime(time) {
  const date = new Date(time)
  const text = isNaN(+date) ? time : new Intl.DateTimeFormat(locale, TIME).format(date)
  return create('time', { dateTime: time }, text)
}

/** @param {string} day a date, YYYY-MM-DD */
function shownDate(day) {
  const date = new Date(`${day}T00:00:00Z`)
  return isNaN(+date) ? day : new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(date)
}

/**
 * @param {string[]} items
 * @param {Json[]} checked
 */
function shownChecklist(items, checked) {
  const line = (/** @type {string} */ item) => {
    const isChecked = checked.includes(item)
    const mark = create('span', { className: 'mark', 'aria-hidden': 'true' }, isChecked ? '✓' : '–')
    const state = create('span', { className: isChecked ? 'unseen' : 'hint' }, isChecked ? `, ${t('checked')}` : `, ${t('not-checked')}`)
    return create('li', {}, mark, create('span', {}, isolated(item), state))
  }
  return create('ul', { className: 'checklist' }, ...items.map(line))
}

/**
 * @param {Step} step
 * @param {Json} value
 * @param {string | null} userName
 * @returns {Node}
 */
function shownValue(step, value, userName) {
  if (step.items) return shownChecklist(step.items, Array.isArray(value) ? value : [])
  if (value === true) return create('p', {}, step.type === 'complete' ? t('step-done') : t('yes'))
  if (typeof value === 'string' && value.trim()) {
    const text = step.type === 'date' ? shownDate(value) : step.type === 'user_picker' ? (userName ?? t('deleted-user')) : value
    return create('p', { className: 'value', dir: 'auto' }, text)
  }
  return create('p', { className: 'hint' }, step.type === 'complete' ? t('step-done') : t('nothing-entered'))
}

const typedHint = () => create('p', { className: 'hint' }, t('typed'))

/** @param {SessionStep} entry @returns {Node} */
function shownSubmission({ step, value, user_name, is_stored, is_typed, signed_by, signed_at }) {
  if (step.type !== 'signature') return shownValue(step, value, user_name)
  if (!is_stored) return create('p', { className: 'hint' }, t('not-signed'))
  // `signed_by` and `signed_at` are null only if there is no signature.
  const isKnown = signed_by && signed_at
  const signed = isKnown ? pieces('signed-by', { name: isolated(signed_by), time: shownTime(signed_at) }) : [t('signed')]
  const statement = create('p', { className: 'value', dir: 'auto' }, step.statement ?? '')
  return create('div', {}, statement, create('p', {}, ...signed), is_typed ? typedHint() : null)
}

/** @param {SigningSession} session @returns {Node | string} */
function shownSubmitted({ submitted }) {
  if (submitted.length === 0) return ''
  const title = create('h2', { id: newId() }, t('submitted-so-far'))
  const rows = submitted.map((entry) =>
    create('div', {}, create('dt', {}, isolated(entry.step.label)), create('dd', {}, shownSubmission(entry))),
  )
  return create('section', { className: 'submitted', 'aria-labelledby': title.id }, title, create('dl', {}, ...rows))
}
