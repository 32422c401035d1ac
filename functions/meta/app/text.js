// Texts in the reader's language, and numbers and times as that language writes them.
import { h } from './dom.js'

const LANGUAGES = ['en', 'de', 'fr', 'es']
/** @type {Record<string, string>} */
let texts = {}
let locale = 'en'

/** The first of the reader's languages that the page has. */
export const readersLanguage = () =>
  navigator.languages.find((name) => LANGUAGES.includes(name.slice(0, 2).toLowerCase()))

/**
 * Takes the texts of a language such as `de-CH`; of English, if the page doesn't have it. A line of the file is a name, and the text
 * in each language; between the singular and the plural is a tilde.
 * @param {string} name
 */
export async function speak(name) {
  const language = LANGUAGES.find((known) => name.toLowerCase().startsWith(known)) ?? 'en'
  const reply = await fetch(new URL('texts.txt', import.meta.url))
  const rows = (await reply.text()).split('\n').map((line) => line.split('|'))
  texts = Object.fromEntries(rows.map((row) => [row[0], row[1 + LANGUAGES.indexOf(language)]]))
  locale = name.startsWith(language) ? name : language
  document.documentElement.lang = language
}

/** Whether there is such a text. */
export const has = (key) => Object.hasOwn(texts, key)

function template(key, count) {
  const [one, other = one] = (texts[key] ?? key).split('~')
  return new Intl.PluralRules(locale).select(count ?? 0) === 'one' ? one : other
}

/** Returns a text; `{name}` stands for a value, isolated from what is around it. `count` chooses the plural. */
export const t = (key, values = {}) =>
  template(key, values.count).replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name]
    return typeof value === 'number' ? number(value) : `\u2068${value}\u2069`
  })

/** As `t`, for values that are elements. @returns {any[]} */
export const sentence = (key, values) =>
  template(key).split(/\{(\w+)\}/).map((piece, n) => (n % 2 ? h('bdi', values[piece]) : piece))

export const number = (value) => new Intl.NumberFormat(locale).format(value)

/** An amount: `12.5` as `12.50`. @param {string | number} value */
export const amount = (value) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 4 }).format(/** @type {any} */ (value))

const written = (time, options) => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', ...options }).format(time)

/** @param {string} day YYYY-MM-DD */
export function date(day) {
  const time = new Date(`${day}T00:00:00Z`)
  return isNaN(+time) ? day : written(time, { timeZone: 'UTC' })
}

export const moment = (time) => written(new Date(time), { timeStyle: 'short' })

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [['year', 31_557_600], ['month', 2_629_800], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60]]

/** A time as its distance from now; the exact one is its title. @param {string | null} time */
export function ago(time) {
  if (!time) return '–'
  const seconds = (Date.parse(time) - Date.now()) / 1000
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['minute', 60]
  const text = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(Math.trunc(seconds / size) + 0, unit)
  return h('time', { dateTime: time, title: moment(time) }, Math.abs(seconds) < 60 ? t('just-now') : text)
}

/** A text, or another if there is no such text. */
export const named = (key, other) => (has(key) ? t(key) : other)

export const status = (name) => named(`status.${name}`, name)
