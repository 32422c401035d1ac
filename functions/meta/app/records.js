// Divides a file into parts that are small enough for a request. What a row means is for the service to say.

/** A request has at most so many rows, and characters so that it stays below 1 MiB as JSON. */
const MOST_ROWS = 200
const MOST_CHARACTERS = 250_000
const DELIMITERS = { semicolon: ';', tab: '\t', pipe: '|' }

/**
 * A row of a file: its text and, in CSV, where each cell begins and ends in it.
 * @typedef {{ text: string, cells: number[][] }} Record
 */

const given = (parameters, name) => parameters.find((one) => one.name === name)?.value

/** Returns the character between cells. @param {string} text @param {any[]} parameters */
export const delimiterOf = (text, parameters) => DELIMITERS[given(parameters, 'delimiter') ?? ''] ?? /^sep=([,;\t|])/.exec(text)?.[1] ?? ','

/** Whether a file isn't JSON. @param {string} text */
export const isCsv = (text) => !/^\s*[[{]/.test(text)

/** Returns the beginning of a file, for a request: whole lines or, of JSON, whole objects. @param {string} text */
export function beginning(text) {
  if (!isCsv(text)) return parts('', objects(text).map((row) => row.text))[0]?.text ?? ''
  return text.length <= MOST_CHARACTERS ? text : text.slice(0, text.lastIndexOf('\n', MOST_CHARACTERS) + 1 || MOST_CHARACTERS)
}

/**
 * Divides a text into what comes before its rows, and the rows that aren't blank.
 * @param {string} text @param {{ name: string, value: string }[]} parameters
 * @returns {{ head: string, rows: Record[] }}
 */
export function divided(text, parameters) {
  if (!isCsv(text)) return { head: '', rows: objects(text) }
  const delimiter = delimiterOf(text, parameters)
  const header = Number(given(parameters, 'header_line') ?? 0)
  const next = reader(text, delimiter)
  let at = 0
  let line = 1
  for (let record = next(at); record; record = next(at)) {
    const isHeader = header ? line >= header : !isBlank(record) && !/^sep=.$/.test(record.text)
    line += text.slice(at, record.next).match(/\r\n|\n|\r/g)?.length ?? 0
    at = record.next
    if (isHeader) break
  }
  const rows = []
  for (let record = next(at), from = at; record; record = next(from)) {
    from = record.next
    if (!isBlank(record)) rows.push({ text: record.text, cells: record.cells })
  }
  return { head: text.slice(0, at), rows }
}

const isBlank = ({ text, cells }) => cells.every(([from, to]) => /^[\s"]*$/.test(text.slice(from, to)))

/**
 * Returns a function that reads the record at a place. A line break in a quoted cell doesn't end it, but a quote that is never closed
 * is a character like others.
 * @param {string} text
 */
function reader(text, delimiter) {
  const ends = new RegExp(`[\\r\\n${delimiter}]`, 'g')
  const lastQuote = text.lastIndexOf('"')
  /** Returns where the quoted cell ends that begins here. */
  const closed = (start) => {
    for (let at = start + 1; at <= lastQuote; at += 2) {
      at = text.indexOf('"', at)
      if (text[at + 1] !== '"') return at + 1
    }
    return start
  }
  return (start) => {
    if (start >= text.length) return null
    /** @type {number[][]} */
    const cells = []
    for (let from = start; ;) {
      ends.lastIndex = text[from] === '"' ? closed(from) : from
      const to = ends.exec(text)?.index ?? text.length
      cells.push([from - start, to - start])
      if (text[to] === delimiter) from = to + 1
      else return { text: text.slice(start, to), cells, next: to + (text.startsWith('\r\n', to) ? 2 : 1) }
    }
  }
}

/** Returns the objects of a JSON array, or of a file with an object on each line, each on one line. @param {string} text */
function objects(text) {
  const rows = []
  const marks = /["{}[\]]/g
  let depth = 0
  let start = 0
  for (let mark = marks.exec(text); mark; mark = marks.exec(text)) {
    const [sign] = mark
    if (sign === '"') {
      const string = /"(?:[^"\\]|\\.)*"/gy
      string.lastIndex = mark.index
      marks.lastIndex = string.exec(text) ? string.lastIndex : text.length
    } else if (sign === '{') {
      if (depth === 0) start = mark.index
      depth += 1
    } else if (sign === '}') {
      depth -= 1
      if (depth === 0) rows.push({ text: text.slice(start, mark.index + 1).replace(/[\r\n]+\s*/g, ' '), cells: [] })
    }
  }
  return rows
}

/** Returns the text of a record without some of its cells. @param {Record} record @param {number[]} columns */
export const withoutCells = ({ text, cells }, columns) =>
  cells.map(([from, to], n) => (columns.includes(n) ? '' : text.slice(from, to)) + text.slice(to, cells[n + 1]?.[0] ?? to)).join('')

/** Returns a cell as text, without its quotes. @param {Record} record @param {number} column */
export function cell({ text, cells }, column) {
  const raw = text.slice(...(cells[column] ?? [0, 0])).trim()
  return raw.length > 1 && raw.startsWith('"') && raw.endsWith('"') ? raw.slice(1, -1).replaceAll('""', '"').trim() : raw
}

/** Groups rows, by their index, into requests. @param {string} head @param {string[]} rows */
export function parts(head, rows, indexes = [...rows.keys()]) {
  /** @type {{ text: string, indexes: number[] }[]} */
  const all = []
  let part = null
  for (const index of indexes) {
    const row = `${rows[index]}\n`
    if (!part || part.indexes.length === MOST_ROWS || part.text.length + row.length > MOST_CHARACTERS) {
      part = { text: head, indexes: [] }
      all.push(part)
    }
    part.text += row
    part.indexes.push(index)
  }
  return all
}
