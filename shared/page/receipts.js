// Saved receipts: the page with the signed receipt, and the check of its signature.

const MARK = 'signed-receipt'

/**
 * Adds the signed receipt to a printable one, so that the saved file can be verified. A browser doesn't run it.
 * @param {string} page @param {object} signed
 */
export const withSigned = (page, signed) =>
  page.replace(/<\/body>/i, () => `<script type="application/json" id="${MARK}">${JSON.stringify(signed).replaceAll('<', '\\u003c')}<\/script>\n</body>`)

/** Returns the signed receipt in a saved file, a page or JSON, or null. @param {string} text @returns {any} */
export function signedIn(text) {
  const [, marked] = new RegExp(`id="${MARK}">([^<]*)<`).exec(text) ?? []
  try {
    const signed = JSON.parse(marked ?? text)
    return signed.receipt && signed.signature ? signed : null
  } catch {
    return null
  }
}

/** Writes a value as canonical JSON (RFC 8785), whose numbers and texts are JavaScript's own. @param {any} value @returns {string} */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (Object(value) !== value) return JSON.stringify(value)
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`
}

/** @param {string} text base64url */
const bytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))

/**
 * Returns whether a receipt has a valid signature of one of these public keys (Ed25519, RFC 8037).
 * @param {{ receipt: any, signature: { kid: string, value: string } }} signed @param {{ kid: string, x: string }[]} keys
 */
export async function isSignedBy({ receipt, signature }, keys) {
  const key = keys.find(({ kid }) => kid === signature.kid)
  if (!key) return false
  const algorithm = { name: 'Ed25519' }
  const imported = await crypto.subtle.importKey('raw', bytes(key.x), algorithm, false, ['verify'])
  return crypto.subtle.verify(algorithm, imported, bytes(signature.value), new TextEncoder().encode(canonical(receipt)))
}
