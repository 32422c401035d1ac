// Controls of forms.
import { h } from './elements.js'

/** @param {string} type @param {string | null} [value] @param {Record<string, any>} [more] */
export const input = (type, value = '', more = {}) => h('input', { type, value: value ?? '', autocomplete: 'off', ...more })

/** @param {string[][]} options value and text @param {string | null} [value] @param {Record<string, any>} [more] */
export const select = (options, value = '', more = {}) =>
  h('select', more, options.map(([name, text]) => h('option', { value: name, selected: name === (value ?? '') }, text)))

/** Creates a checkbox or, with `more`, a radio button. @param {any} label @param {boolean} [isChecked] @param {Record<string, any>} [more] */
export const choice = (label, isChecked = false, more = {}) => {
  const box = h('input', { type: 'checkbox', checked: isChecked, ...more })
  return { box, element: h('label.choice', box, h('span', label)) }
}

/** Calls a function after a pause in typing. @param {(...values: any[]) => any} act */
export function debounced(act, milliseconds = 200) {
  let timer = 0
  return (/** @type {any[]} */ ...values) => {
    clearTimeout(timer)
    timer = setTimeout(() => act(...values), milliseconds)
  }
}
