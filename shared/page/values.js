// Amounts, dates and times, as the reader's language writes them.
import { h } from './elements.js'
import { writer } from './texts.js'

/** Formats an amount: `12.5` becomes `12.50`. @param {string | number} value */
export const amount = (value) => writer('NumberFormat', { minimumFractionDigits: 2, maximumFractionDigits: 4 }).format(value)

/** Formats a number for a field: with 2 decimals or more, `1249.5` becomes `1249,50` in German. @param {number | null} value */
export const editable = (value, decimals = 2) =>
  value === null ? '' : writer('NumberFormat', { useGrouping: false, minimumFractionDigits: decimals, maximumFractionDigits: 20 }).format(value)

/**
 * Reads an amount as written in the reader's language: `1.249,50` becomes `1249.50` in German. Otherwise, takes a single comma or
 * point for the decimal one. Keeps other texts.
 * @param {string} text
 */
export function typedAmount(text) {
  const parts = writer('NumberFormat', {}).formatToParts(12345.6)
  const [group, decimal] = ['group', 'decimal'].map((type) => parts.find((/** @type {any} */ part) => part.type === type).value)
  const [whole = '', ...fraction] = text.replace(/[\s'’]/g, '').split(decimal)
  const groups = whole.split(group.trim() || ' ')
  const isGrouped = groups.every((/** @type {string} */ digits, /** @type {number} */ n) => (n ? /^\d{3}$/ : /^\d{1,3}$/).test(digits))
  return isGrouped || /^\d+$/.test(whole) ? [groups.join(''), ...fraction].join('.') : text.replace(/^(\d*),(\d+)$/, '$1.$2')
}

/** Writes a time. French writes the first day of a month as `1er`. @param {object} look @param {Date} time @returns {string} */
function written(look, time) {
  const format = writer('DateTimeFormat', look)
  if (document.documentElement.lang !== 'fr') return format.format(time)
  const parts = /** @type {Intl.DateTimeFormatPart[]} */ (format.formatToParts(time))
  return parts.map(({ type, value }) => (type === 'day' && value === '1' ? '1er' : value)).join('')
}

/** @param {string} day YYYY-MM-DD @param {Intl.DateTimeFormatOptions} [look] */
export function date(day, look = { dateStyle: 'medium' }) {
  const time = new Date(day)
  return isNaN(+time) ? day : written({ ...look, timeZone: 'UTC' }, time)
}

/** @param {string} time */
export const moment = (time) => written({ dateStyle: 'medium', timeStyle: 'short' }, new Date(time))

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [['year', 31_557_600], ['month', 2_629_800], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60]]

/** Shows a relative time, with the exact time as its title. @param {string | null} time */
export function ago(time) {
  if (!time) return '–'
  const seconds = (Date.parse(time) - Date.now()) / 1000
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', Infinity]
  return h('time', { dateTime: time, title: moment(time) }, writer('RelativeTimeFormat', { numeric: 'auto' }).format(Math.trunc(seconds / size), unit))
}

// `timeZoneName` can't be combined with `dateStyle` and `timeStyle`.
const WITH_ZONE = { year: 'numeric', month: 'long', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short' }

/** Shows a time with its time zone, for readers who can be elsewhere. @param {string} time */
export const zonedTime = (time) => h('time', { dateTime: time }, isNaN(Date.parse(time)) ? time : written(WITH_ZONE, new Date(time)))
