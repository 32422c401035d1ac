// The QR codes that the page draws: a phone's camera read them once, and they stay as they are.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** SHA-256 of the modules of codes that zxing has read, by the length of their text: the ends of versions 1 to 15. */
const READ = {
  14: 'a38579063d6ec5bf',
  26: '78ba7c0a5f49669b',
  42: 'c28ed5038cf63868',
  62: 'dd178cf2846004e5',
  84: '491516defe180486',
  106: 'a55099ea516c49c2',
  122: '4f8d8bd43917fd94',
  152: '2ff672c3ac694c7f',
  180: 'dc773c29ef3083ff',
  213: 'aade1cd25fbe7bf2',
  251: 'baabd00862fb1838',
  287: 'ff5c9ad6b047dfbe',
  331: '459d797d0985f484',
  362: 'f12a5474e4f84fdb',
  412: 'b068869f1e66a6c6',
}

/** The script without what draws, which needs a document. */
async function modulesOf() {
  const script = readFileSync(new URL('../../../functions/meta/app/qr.js', import.meta.url), 'utf8')
  const alone = script.replace(/^import .*$/m, 'const svg = () => {}')
  return (await import(`data:text/javascript,${encodeURIComponent(alone)}`)).modules
}

async function codes() {
  const modules = await modulesOf()
  for (const [length, expected] of Object.entries(READ)) {
    const text = `https://x.example/v1/sign#sgn_${'aZ09-_'.repeat(100)}`.slice(0, Number(length))
    const rows = modules(text).map((row) => row.join('')).join('\n')
    assert.equal(createHash('sha256').update(rows).digest('hex').slice(0, 16), expected, `the code of ${length} bytes differs`)
  }
  assert.throws(() => modules('x'.repeat(413)), RangeError)
}

export const code = { 'the code of an address': codes }
