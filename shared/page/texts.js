// Texts in the reader's language. A line of the table is a name, and the text in each language, separated by `|`; a tilde separates
// singular and plural.
import { h } from './elements.js'

const LANGUAGES = ['en', 'de', 'fr', 'es']
/** @type {string[][]} */
let rows = []
/** @type {Record<string, string>} */
let texts = {}
let locale = 'en'
const writers = new Map()

/** @param {string} name such as `de-CH` */
const languageOf = (name) => name.split('-', 1)[0]?.toLowerCase() ?? ''

/** The first of the reader's languages that the page supports. */
export const readersLanguage = () => navigator.languages.find((name) => LANGUAGES.includes(languageOf(name)))

/** Takes the table of texts. @param {string} table */
export const learn = (table) => (rows = table.split('\n').map((line) => line.split('|')))

/** Sets the language, such as `de-CH`, or English if it is unsupported. @param {string} name */
export function speak(name) {
  const isKnown = LANGUAGES.includes(languageOf(name))
  const language = isKnown ? languageOf(name) : 'en'
  texts = Object.fromEntries(rows.map((row) => [row[0], row[1 + LANGUAGES.indexOf(language)]]))
  locale = isKnown ? name : 'en'
  writers.clear()
  document.documentElement.lang = language
}

/**
 * Formats numbers or times. Cached, because creating a formatter takes up to 0.3 ms and a list needs hundreds.
 * @param {'NumberFormat' | 'DateTimeFormat' | 'RelativeTimeFormat' | 'PluralRules'} kind
 * @param {object} [options]
 * @returns {any}
 */
export function writer(kind, options = {}) {
  const key = kind + JSON.stringify(options)
  if (!writers.has(key)) writers.set(key, new /** @type {any} */ (Intl)[kind](locale, options))
  return writers.get(key)
}

/** @param {string} key */
export const has = (key) => Object.hasOwn(texts, key)

/** @param {string} key */
function template(key, count = 0) {
  const [one = '', other] = (texts[key] ?? key).split('~')
  return other && writer('PluralRules').select(count) !== 'one' ? other : one
}

/**
 * Returns a text with its `{name}` placeholders replaced by isolated values. `count` selects the plural form.
 * @param {string} key
 * @param {Record<string, any>} [values]
 */
export const t = (key, values = {}) =>
  template(key, values['count']).replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name]
    return typeof value === 'number' ? number(value) : `\u2068${value}\u2069`
  })

/** Does the same as `t`, for values that are elements. @param {string} key @param {Record<string, any>} values @returns {any[]} */
export const sentence = (key, values) =>
  template(key).split(/\{(\w+)\}/).map((piece, n) => (n % 2 ? h('bdi', values[piece]) : piece))

/** Returns a text, or the fallback if the text doesn't exist. @param {string} key @param {any} other */
export const named = (key, other) => (has(key) ? t(key) : other)

/** @param {number} value */
export const number = (value) => writer('NumberFormat', { maximumFractionDigits: 20 }).format(value)
