// Text of the files that people have.

/** Windows-1252 has a character for each byte, so it comes last. */
const LAST = 'windows-1252'
const MARKS = /** @type {[string, number[]][]} */ ([['utf-8', [0xef, 0xbb, 0xbf]], ['utf-16le', [0xff, 0xfe]], ['utf-16be', [0xfe, 0xff]]])
/** How a workbook and an old workbook begin. */
const WORKBOOKS = [[0x50, 0x4b, 3, 4], [0xd0, 0xcf, 0x11, 0xe0]]
const LOOKED_AT = 1000

const begins = (bytes, mark) => mark.every((byte, n) => bytes[n] === byte)

/** Whether the file is a spreadsheet's own, which the service doesn't read. @param {Uint8Array} bytes */
export const isWorkbook = (bytes) => WORKBOOKS.some((mark) => begins(bytes, mark))

/** Decodes UTF-8, UTF-16 with or without a mark, and Windows-1252. @param {Uint8Array} bytes */
export function decoded(bytes) {
  const [encoding] = MARKS.find(([, mark]) => begins(bytes, mark)) ?? [withoutMark(bytes)]
  return new TextDecoder(encoding).decode(bytes)
}

/** @param {Uint8Array} bytes */
function withoutMark(bytes) {
  const beginning = bytes.subarray(0, LOOKED_AT)
  const zeros = (odd) => beginning.filter((byte, n) => byte === 0 && n % 2 === odd).length
  // In most languages' texts, nearly every other byte of UTF-16 is zero.
  const most = beginning.length / 4
  if (zeros(1) > most) return 'utf-16le'
  if (zeros(0) > most) return 'utf-16be'
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return 'utf-8'
  } catch {
    return LAST
  }
}
