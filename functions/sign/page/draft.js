// Stores typed text and drawings in this tab, so that they survive a reload. Never stores the link's secret.

/** @type {{ linkId: string, draft: Draft }} */
let drafted = { linkId: '', draft: { fields: {}, keys: {} } }

/** @param {string} linkId */
const draftName = (linkId) => `sign:${linkId}`

/**
 * Returns the draft of a link.
 * @param {string} linkId
 * @returns {Draft}
 */
export function draftOf(linkId) {
  if (drafted.linkId !== linkId) {
    drafted = { linkId, draft: { fields: {}, keys: {} } }
    try {
      const { fields, keys } = JSON.parse(sessionStorage.getItem(draftName(linkId)) ?? '{}')
      if (fields && keys) drafted.draft = { fields, keys }
    } catch {
      // Storage is disabled, or its content is invalid.
    }
  }
  return drafted.draft
}

function storeDraft() {
  try {
    sessionStorage.setItem(draftName(drafted.linkId), JSON.stringify(drafted.draft))
  } catch {
    // If storage is full or disabled, the draft lasts as long as the page.
  }
}

/** @param {string} linkId */
export function removeDraft(linkId) {
  if (drafted.linkId === linkId) drafted = { linkId: '', draft: { fields: {}, keys: {} } }
  try {
    sessionStorage.removeItem(draftName(linkId))
  } catch {
    // If storage is disabled, there is no stored draft.
  }
}

/** @param {Field} field */
export function keepField(field) {
  drafted.draft.fields[field.open.step.key] = field.save()
  storeDraft()
}

/**
 * Returns a non-cryptographic hash of a body, because `crypto.subtle` is missing on plain HTTP.
 * @param {string} text
 */
function digestOf(text) {
  let [a, b] = [0x811c9dc5, 0x9747b28c]
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    a = Math.imul(a ^ unit, 0x01000193)
    b = Math.imul(b ^ unit ^ (a >>> 15), 0x5bd1e995)
  }
  return [text.length, a >>> 0, b >>> 0].map((part) => part.toString(36)).join('.')
}

/**
 * Returns the Idempotency-Key for a body: the same key if the same body is sent again.
 * @param {string} body
 */
export function keyFor(body) {
  const digest = digestOf(body)
  const { keys } = drafted.draft
  const random = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
  const key = (keys[digest] ??= `sign-${random()}`)
  storeDraft()
  return key
}
