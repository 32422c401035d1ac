// The form for a type's own fields: what each is called, what it holds, and in which order they come.
import { every, h, hint, newId, own, show } from './elements.js'
import { choice, input, select } from './fields.js'
import { fault, field } from './form.js'
import { KINDS, droppedOf, fieldsOf, keptOf, kindOf, schemaOf } from './schema.js'
import { t } from './texts.js'

const MOST_FIELDS = 100

/** Creates the editor of a schema. @param {any} schema */
export function fieldsEditor(schema) {
  const list = h('ol.rules')
  const none = h('p.hint', t('no-fields'))
  const rows = fieldsOf(schema).map(row)
  const add = h('button', { type: 'button', click: () => {
    rows.push(row())
    changed()
    rows.at(-1)?.name.focus()
  } }, t('field-add'))

  /** Creates the controls of a field. @param {any} [old] */
  function row(old = { was: null, name: '', kind: 'text', isRequired: false, choices: [], rule: null }) {
    const id = newId()
    const name = input('text', old.name, { maxLength: 255, input: () => describe() })
    // A kind that the form doesn't know stays as it is.
    const kinds = old.kind === 'other' ? ['other', ...KINDS] : KINDS
    const kind = select(kinds.map((one) => [one, t(`kind.${one}`)]), old.kind, { change: () => describe() })
    const isRequired = choice(t('field-required'), old.isRequired)
    const choices = h('textarea', { rows: 3, value: old.choices.join('\n') })
    const choicesField = field(t('choices'), choices, `${id}/enum`)
    const about = h('div')
    const move = (sign, label, by) => h('button.plain', { type: 'button', click: ({ currentTarget }) => moveBy(made, by, currentTarget) }, h('span', { ariaHidden: 'true' }, sign), h('span.unseen', label))
    const buttons = h('div.actions', move('↑', t('move-up'), -1), move('↓', t('move-down'), 1),
      h('button.plain', { type: 'button', click: () => remove(made) }, t('field-remove')))
    const legend = h('legend')
    const element = h('li', h('fieldset.field.rule', legend, field(t('field.name'), name, `${id}/name`), field(t('kind'), kind, `${id}/type`), choicesField, about, isRequired.element, buttons))
    const lines = () => [...new Set(choices.value.split('\n').map((line) => line.trim()).filter(Boolean))]
    const read = () => ({ was: old.was, name: name.value.trim().replace(/\s+/g, ' '), kind: kind.value, isRequired: isRequired.box.checked, choices: lines(), rule: old.rule })
    function describe() {
      const { name, kind } = read()
      choicesField.hidden = kind !== 'choice'
      const kept = old.rule && kindOf(old.rule) === kind ? keptOf(old.rule) : []
      show(about, kept.length > 0 && hint(t('rules-kept'), ' ', kept.map((one, n) => [n > 0 && ', ', h('code', one)])),
        old.rule && kindOf(old.rule) !== kind && droppedOf(old.rule).length > 0 && hint(t('rules-dropped')),
        old.was && name && name !== old.was && hint(t('field-renamed', { name: old.was })))
    }
    const made = { id, element, name, legend, choices, read }
    describe()
    return made
  }

  function moveBy(row, by, pressed) {
    const from = rows.indexOf(row)
    if (!rows[from + by]) return
    rows.splice(from, 1)
    rows.splice(from + by, 0, row)
    changed()
    if (pressed.disabled) row.name.focus()
    else pressed.focus()
  }
  function remove(row) {
    const at = rows.indexOf(row)
    rows.splice(at, 1)
    changed()
    const next = rows[at] ?? rows[at - 1]
    if (next) next.name.focus()
    else add.focus()
  }
  function draw() {
    show(list, rows.map(({ element }) => element))
    for (const [n, { legend }] of rows.entries()) show(legend, t('field-of', { n: n + 1, of: rows.length }))
    none.hidden = rows.length > 0
    list.hidden = rows.length === 0
    add.hidden = rows.length >= MOST_FIELDS
    for (const [sign, at] of [[0, 0], [1, rows.length - 1]]) for (const [n, { element }] of rows.entries()) every(element, '.rule > .actions button')[sign].disabled = n === at
  }
  function changed() {
    draw()
    list.dispatchEvent(new Event('input', { bubbles: true }))
  }
  draw()

  /** Returns the pointer of the control that a refusal of the schema belongs to. @param {string} pointer */
  function located(pointer) {
    const [, encoded, member] = /^\/custom_fields_schema\/properties\/([^/]*)\/?([^/]*)/.exec(pointer) ?? []
    const name = encoded?.replaceAll('~1', '/').replaceAll('~0', '~')
    const row = rows.find((one) => one.read().name === name)
    return row ? `${row.id}/${['enum', 'type'].includes(member) ? member : 'name'}` : pointer
  }
  /** Refuses fields without a name, with the name of another, and choices without any. */
  function check() {
    const wrong = (code, found, part) => {
      if (found.length) throw fault(code, ...found.map(({ id }) => `${id}/${part}`))
    }
    wrong('required', rows.filter((one) => !one.read().name), 'name')
    wrong('repeated_item', rows.filter((one, n) => rows.findIndex((other) => other.read().name === one.read().name) < n), 'name')
    wrong('required', rows.filter((one) => one.read().kind === 'choice' && !one.read().choices.length), 'enum')
  }
  const element = h('fieldset.field.rules-of', h('legend', t('type-fields')), hint(t('type-fields-hint')), none, list, add)
  return { element, value: () => schemaOf(rows.map(({ read }) => read()), schema), located, check, told: (schema) => fieldsOf(schema).map(({ name }) => own(name).textContent).join(', ') || '–' }
}
