// QR codes (ISO/IEC 18004) of URLs: byte mode, level M, versions 1 to 15, which is up to 412 bytes.
import { svg } from './elements.js'

/** Level M by version: data bytes, check bytes per block, and number of blocks. */
const DATA = [0, 16, 28, 44, 64, 86, 108, 124, 154, 182, 216, 254, 290, 334, 365, 415]
const CHECKS = [0, 10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24]
const BLOCKS = [0, 1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10]
const MASKS = [
  (x, y) => (x + y) % 2, (_, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2, (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
]

/** Multiplies in GF(2^8) with the polynomial 0x11d. */
function times(a, b) {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((b >> bit) & 1) * a)
  return product
}

/** Returns the Reed-Solomon check bytes. */
function checks(data, count) {
  const divisor = new Array(count).fill(0)
  divisor[count - 1] = 1
  for (let n = 0, root = 1; n < count; n++, root = times(root, 2))
    for (let i = 0; i < count; i++) divisor[i] = times(divisor[i], root) ^ (divisor[i + 1] ?? 0)
  const rest = new Array(count).fill(0)
  for (const byte of data) {
    const factor = byte ^ rest.shift()
    rest.push(0)
    divisor.forEach((value, i) => (rest[i] ^= times(value, factor)))
  }
  return rest
}

/** Appends the BCH remainder for format and version bits. */
function withRemainder(value, bits, polynomial) {
  let rest = value
  for (let n = 0; n < bits; n++) rest = (rest << 1) ^ ((rest >> (bits - 1)) * polynomial)
  return (value << bits) | rest
}

/** Encodes the text as interleaved data and check bytes. */
function codewords(text) {
  const bytes = [...new TextEncoder().encode(text)]
  const lengthBits = (version) => (version < 10 ? 8 : 16)
  let version = 1
  while (bytes.length * 8 + 4 + lengthBits(version) > DATA[version] * 8) if (++version >= DATA.length) throw new RangeError('too long for a code')
  let bits = '0100' + bytes.length.toString(2).padStart(lengthBits(version), '0') + bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  bits += '0000'.slice(0, DATA[version] * 8 - bits.length)
  bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0')
  const data = bits.match(/.{8}/g)?.map((byte) => parseInt(byte, 2)) ?? []
  for (let n = 0; data.length < DATA[version]; n++) data.push(n % 2 ? 0x11 : 0xec)
  const count = BLOCKS[version], short = Math.floor(data.length / count), long = data.length % count
  let at = 0
  const blocks = Array.from({ length: count }, (_, n) => data.slice(at, (at += short + (n >= count - long ? 1 : 0))))
  const ends = blocks.map((block) => checks(block, CHECKS[version]))
  const across = (parts, length) => Array.from({ length }, (_, i) => parts.map((part) => part[i])).flat().filter((byte) => byte !== undefined)
  return { version, all: [...across(blocks, short + 1), ...across(ends, CHECKS[version])] }
}

/** Returns the penalty of a mask, for long runs, blocks, finder-like patterns, and an uneven share of dark modules. */
function penalty(rows) {
  const columns = rows.map((_, x) => rows.map((row) => row[x]))
  const lines = [...rows, ...columns].map((line) => line.join(''))
  let sum = 0
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) sum += run.length - 2
    sum += 40 * [...line.matchAll(/(?=10111010000|00001011101)/g)].length
  }
  for (let y = 1; y < rows.length; y++)
    for (let x = 1; x < rows.length; x++) if (new Set([rows[y][x], rows[y - 1][x], rows[y][x - 1], rows[y - 1][x - 1]]).size === 1) sum += 3
  const dark = rows.flat().filter(Boolean).length / rows.length ** 2
  return sum + 10 * Math.floor(Math.abs(dark * 20 - 10))
}

/** Returns the modules of a code, 1 for dark. @param {string} text @returns {number[][]} */
export function modules(text) {
  const { version, all } = codewords(text)
  const size = version * 4 + 17
  const fixed = Array.from({ length: size }, () => new Array(size).fill(null))
  const set = (x, y, dark) => { if (fixed[y]?.[x] !== undefined) fixed[y][x] = Number(dark) }
  for (let n = 0; n < size; n++) set(n, 6, n % 2 === 0), set(6, n, n % 2 === 0)
  const square = (x, y, radius, light) => {
    for (let dy = -radius; dy <= radius; dy++) for (let dx = -radius; dx <= radius; dx++) set(x + dx, y + dy, !light.includes(Math.max(Math.abs(dx), Math.abs(dy))))
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) square(x, y, 4, [2, 4])
  const lines = version > 1 ? Math.floor(version / 7) + 2 : 0
  const step = Math.ceil((version * 4 + 4) / (lines * 2 - 2)) * 2
  const places = Array.from({ length: lines }, (_, n) => (n ? size - 7 - (lines - 1 - n) * step : 6))
  // No alignment patterns on the finder patterns.
  const far = size - 7
  for (const y of places) for (const x of places) if (!(x === 6 && (y === 6 || y === far)) && !(x === far && y === 6)) square(x, y, 2, [1])
  const format = (mask) => {
    // The bits before the mask are 0 for level M.
    const bits = withRemainder(mask, 10, 0x537) ^ 0x5412
    for (let n = 0; n < 15; n++) {
      const dark = (bits >> n) & 1
      set(8, n < 6 ? n : n < 8 ? n + 1 : size - 15 + n, dark)
      set(n < 8 ? size - 1 - n : n < 9 ? 7 : 14 - n, 8, dark)
    }
    set(8, size - 8, 1)
  }
  format(0)
  if (version > 6) {
    const bits = withRemainder(version, 12, 0x1f25)
    for (let n = 0; n < 18; n++) {
      const a = size - 11 + (n % 3), b = Math.floor(n / 3)
      set(a, b, (bits >> n) & 1), set(b, a, (bits >> n) & 1)
    }
  }
  const isFree = fixed.map((row) => row.map((value) => value === null))
  const drawn = MASKS.map((isLight, mask) => {
    format(mask)
    const rows = fixed.map((row) => [...row])
    let bit = 0
    for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
      if (right === 6) right = 5
      for (let n = 0; n < size; n++) {
        const y = up ? size - 1 - n : n
        for (const x of [right, right - 1]) {
          if (!isFree[y][x]) continue
          const value = ((all[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1
          rows[y][x] = value ^ Number(isLight(x, y) === 0)
          bit += 1
        }
      }
    }
    return rows
  })
  return drawn.reduce((best, rows) => (penalty(rows) < penalty(best) ? rows : best))
}

/** Draws a code with its quiet zone, dark on white even in dark mode. @param {string} text @param {string} name */
export function code(text, name) {
  const rows = modules(text)
  const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x + 4} ${y + 4}h1v1h-1z` : ''))).join('')
  const size = rows.length + 8
  return svg('svg', { viewBox: `0 0 ${size} ${size}`, role: 'img', 'aria-label': name, class: 'qr', 'shape-rendering': 'crispEdges' },
    svg('rect', { width: size, height: size, fill: '#fff' }), svg('path', { d: path, fill: '#000' }))
}
