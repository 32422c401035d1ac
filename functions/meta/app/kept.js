// Keeps a file that is being imported, so that the import goes on after a reload: in the browser, until it is done or one signs out.

const NAME = 'import'
const STORE = 'parts'

/** @param {IDBRequest} request @returns {Promise<any>} */
const answer = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result)
  request.onerror = () => reject(request.error)
})

/** @param {(store: IDBObjectStore) => IDBRequest} act */
async function within(act) {
  const opening = indexedDB.open(NAME, 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE)
  const database = await answer(opening)
  try {
    return await answer(act(database.transaction(STORE, 'readwrite').objectStore(STORE)))
  } finally {
    database.close()
  }
}

/** Keeps a part of the import: `file` or `progress`. @param {string} part @param {any} value */
export const keep = (part, value) => within((store) => store.put(value, part))

/** Returns the kept import, or null. A browser that keeps nothing has none. */
export async function kept() {
  try {
    if (!(await indexedDB.databases()).some(({ name }) => name === NAME)) return null
    const [file, progress] = [await within((store) => store.get('file')), await within((store) => store.get('progress'))]
    return file && progress ? { file, progress } : null
  } catch {
    return null
  }
}

/** Forgets the kept import. */
export const forget = () => answer(indexedDB.deleteDatabase(NAME)).catch(() => {})
