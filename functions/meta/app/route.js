// What the page shows is in the fragment of its address: `#/assets?q=dell&status=in_use`.

/** @returns {{ path: string[], params: Record<string, string> }} */
export function current() {
  const [path = '', query = ''] = location.hash.slice(1).split('?')
  const parts = path.split('/').filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part)
    } catch {
      return part
    }
  })
  return { path: parts.length ? parts : ['assets'], params: Object.fromEntries(new URLSearchParams(query)) }
}

/** @param {string[]} path @param {Record<string, any>} [params] */
export function href(path, params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value !== '' && value !== undefined && value !== null)
  const query = kept.length ? `?${new URLSearchParams(kept.map(([name, value]) => [name, String(value)]))}` : ''
  return `#/${path.map(encodeURIComponent).join('/')}${query}`
}

/** Goes there; as the same step of the browser's history with `replace`. */
export function go(path, params = {}, replace = false) {
  const target = href(path, params)
  if (target === location.hash) return
  if (replace) {
    history.replaceState(null, '', target)
    dispatchEvent(new HashChangeEvent('hashchange'))
  } else location.hash = target
}
