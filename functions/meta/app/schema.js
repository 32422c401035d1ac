// The schema of a type's own fields, as a form shows it. What the form can't show stays as it is.

/**
 * A field of the form: the name it had, the name it has, and the schema of the property, if there is one.
 * @typedef {{ was: string | null, name: string, kind: string, isRequired: boolean, choices: string[], rule: any }} Field
 */

/** What a field of the form can hold. A field of another kind is shown, but not changed. */
export const KINDS = ['text', 'number', 'integer', 'date', 'choice', 'boolean']
/** The type and format of a new property, by kind. */
const RULES = {
  text: { type: 'string' }, number: { type: 'number' }, integer: { type: 'integer' },
  date: { type: 'string', format: 'date' }, choice: { type: 'string' }, boolean: { type: 'boolean' },
}
/** Members that mean the same for each kind. */
const COMMON = ['title', 'description']

const typeOf = ({ type }) => [type ?? []].flat().find((one) => one !== 'null')

/** Returns the choices as lines of text. A missing value is no choice. */
const choicesOf = (rule) => (Array.isArray(rule.enum) ? rule.enum.filter((value) => value !== null).map(String) : [])

/** Returns whether each choice is a line of its own. */
function areLines(values) {
  const isLine = (value) => typeof value === 'number' || (typeof value === 'string' && value !== '' && value === value.trim() && !/[\r\n]/.test(value))
  const given = values.filter((value) => value !== null)
  return given.every(isLine) && new Set(given.map(String)).size === given.length
}

/** Returns the kind of a property. */
export function kindOf(rule) {
  const type = typeOf(rule)
  if ('const' in rule) return 'other'
  if (rule.enum) return areLines(rule.enum) && type !== 'boolean' && type !== 'array' ? 'choice' : 'other'
  if (type === 'string') return rule.format === 'date' ? 'date' : 'text'
  return KINDS.includes(type) ? type : 'other'
}

/** Returns the members of a property that a change of its kind drops. */
export const droppedOf = (rule) => keptOf(rule).filter((name) => !COMMON.includes(name))

/** Returns the members of a property that the form keeps without showing them. */
export const keptOf = (rule) => Object.keys(rule ?? {}).filter((name) => !['type', 'enum'].includes(name) && rule[name] !== 'date')

/** @returns {Field[]} */
export const fieldsOf = (schema) =>
  Object.entries(schema?.properties ?? {}).map(([name, rule]) =>
    ({ was: name, name, kind: kindOf(rule), isRequired: (schema.required ?? []).includes(name), choices: choicesOf(rule), rule }))

/** Returns the permitted values. A choice that was a number stays one, and so does a new one among numbers. */
function valuesOf(choices, rule) {
  const known = (rule.enum ?? []).filter((value) => value !== null)
  const areNumbers = known.length > 0 && known.every((value) => typeof value === 'number')
  const value = (text) => known.find((one) => String(one) === text) ?? (areNumbers && text !== '' && isFinite(text) ? Number(text) : text)
  return [...choices.map(value), ...((rule.enum ?? []).includes(null) ? [null] : [])]
}

/** Returns the schema of a property. @param {Field} field */
function ruleOf({ kind, choices, rule }) {
  const isSame = rule && kind === kindOf(rule)
  if (isSame && (kind !== 'choice' || choices.join('\n') === choicesOf(rule).join('\n'))) return rule
  if (isSame) return { ...rule, enum: valuesOf(choices, rule) }
  // The limits of one type have no meaning for another.
  const common = Object.fromEntries(COMMON.filter((name) => rule && name in rule).map((name) => [name, rule[name]]))
  const { type, ...others } = RULES[kind]
  const isNullable = [rule?.type].flat().includes('null')
  return { type: isNullable ? [type, 'null'] : type, ...common, ...others, ...(kind === 'choice' ? { enum: [...choices, ...(isNullable ? [null] : [])] } : {}) }
}

/** Returns the schema with these fields, or null if there is nothing to describe. @param {Field[]} fields @param {any} old */
export function schemaOf(fields, old) {
  if (!old && !fields.length) return null
  const shown = Object.keys(old?.properties ?? {})
  // A schema can also require members that it doesn't describe.
  const others = (old?.required ?? []).filter((name) => !shown.includes(name) && fields.every((field) => field.name !== name))
  const required = [...fields.filter(({ isRequired }) => isRequired).map(({ name }) => name), ...others]
  const properties = Object.fromEntries(fields.map((field) => [field.name, ruleOf(field)]))
  return { ...(old ?? { type: 'object' }), properties, ...(required.length || old?.required ? { required } : {}) }
}
