// Texts in the reader's language, and numbers and times as that language writes them.
import { h } from './dom.js'

const LANGUAGES = ['en', 'de', 'fr', 'es']
/** @type {Record<string, string | Record<string, string>>} */
let texts = {}
let locale = 'en'

/** The first of the reader's languages that the page has. */
export const readersLanguage = () =>
  navigator.languages.find((name) => LANGUAGES.includes(name.slice(0, 2).toLowerCase()))

/** Loads the texts of a language such as `de-CH`; of English, if the page doesn't have it. @param {string} name */
export async function speak(name) {
  const language = LANGUAGES.find((known) => name.toLowerCase().startsWith(known)) ?? 'en'
  const reply = await fetch(new URL(`${language}.json`, import.meta.url))
  texts = await reply.json()
  locale = name.startsWith(language) ? name : language
  document.documentElement.lang = language
}

/** Whether there is such a text. */
export const has = (key) => Object.hasOwn(texts, key)

function template(key, count) {
  const text = texts[key]
  if (text === undefined) return key
  if (typeof text === 'string') return text
  return text[new Intl.PluralRules(locale).select(count)] ?? text.other
}

/** Returns a text; `{name}` stands for a value, isolated from what is around it. `count` chooses the plural. */
export const t = (key, values = {}) =>
  template(key, values.count).replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name]
    return typeof value === 'number' ? number(value) : `\u2068${value}\u2069`
  })

/** As `t`, for values that are elements. @returns {any[]} */
export const sentence = (key, values) =>
  template(key, values.count).split(/(\{\w+\})/).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1]
    if (!name) return piece
    return typeof values[name] === 'number' ? number(values[name]) : h('bdi', values[name])
  })

export const number = (value) => new Intl.NumberFormat(locale).format(value)

/** An amount: `12.5` as `12.50`. @param {string | number} value */
export const amount = (value) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 4 }).format(/** @type {any} */ (value))

/** @param {string} day YYYY-MM-DD */
export function date(day) {
  const time = new Date(`${day}T00:00:00Z`)
  return isNaN(+time) ? day : new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' }).format(time)
}

export const month = (time, style) => new Intl.DateTimeFormat(locale, { month: style, year: style === 'long' ? 'numeric' : undefined }).format(time)

export const moment = (time) => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(time))

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

export const status = (name) => (has(`status.${name}`) ? t(`status.${name}`) : name)
