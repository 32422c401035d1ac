// Forms that make or change something of the organization, lists of such things, and buttons that ask on the page before they act.
import { Problem, get, intent, send } from './api.js'
import { button, every, h, hint, own, part, show } from './elements.js'
import { input } from './fields.js'
import { attempt, blocking, check, clearProblems, empty, field, form, mark, pager, showProblems, submit } from './form.js'
import { colon, go, href, link, mayLeave, say, sayAfter, skeleton } from './page.js'
import { t } from './texts.js'

/**
 * A part of a form: a member of the request's body, its element, and its value. `told` writes a value.
 * @typedef {{ name: string, label: any, element: HTMLElement, value: () => any, told?: (value: any) => string }} Part
 */

/**
 * Creates a part with a text. An empty one is null, unless it is `required`.
 * @param {string} name @param {string} label @param {string | null} [old] @param {Record<string, any>} [options] @returns {Part}
 */
export function textPart(name, label, old, { type = 'text', required = false, ...more } = {}) {
  const control = type === 'textarea' ? h('textarea', { rows: 2, value: old ?? '', ...more }) : input(type, old, more)
  return { name, label, element: field(required ? label : [label, h('span.hint', ` (${t('optional')})`)], control, `/${name}`), value: () => control.value.trim() || (required ? '' : null) }
}

/** Creates a part from a control. @param {any} control @returns {Part} */
export const controlPart = (name, label, control, value = () => control.value, told = undefined) =>
  ({ name, label, element: field(label, control, `/${name}`), value, told })

/**
 * Creates the form of a record. Without `record` it makes a new one, else it sends what was edited, so that others' changes are kept.
 * @param {{ title: string, path: string, parts: Part[], record?: { data: any, etag: string }, saved: (data: any) => any, cancelled?: () => any,
 *   text?: string, isTitled?: boolean, about?: any,
 *   signal: AbortSignal, post?: (path: string, body: any) => Promise<any>, located?: (pointer: string) => string, check?: () => any }} options
 *   `isTitled`: shows the title. `located`: the pointer of the control that a refusal belongs to. `check`: throws what the page finds itself
 */
export function recordForm({ title, path, parts, record, saved, cancelled, text = t('save'), isTitled = true, about = null, signal, post = intent(), located = (pointer) => pointer, check: checkMore = () => {} }) {
  const place = h('div')
  const values = () => Object.fromEntries(parts.map(({ name, value }) => [name, value()]))
  const first = JSON.stringify(values())
  let { data: known, etag = '' } = record ?? { data: null }

  async function save() {
    await check(element, place)
    checkMore()
    const [was, now] = [JSON.parse(first), values()]
    const isSent = ([name, value]) => (record ? JSON.stringify(value) !== JSON.stringify(was[name]) : value !== null)
    const body = Object.fromEntries(Object.entries(now).filter(isSent))
    if (record && !Object.keys(body).length) return show(place, hint({ role: 'status' }, t('no-change')))
    const { data } = record ? (await send('PATCH', path, { body, headers: { 'if-match': etag } })).body : await post(path, body)
    delete element.dataset.edited
    await sayAfter(() => saved(data), t('saved'))
  }

  async function refused(error) {
    if (!(error instanceof Problem) || error.code !== 'PRECONDITION_FAILED') {
      for (const fault of error.errors ?? []) if (fault.pointer) fault.pointer = located(fault.pointer)
      showProblems(element, place, error)
      const taken = error.code === 'DUPLICATE' && every(element, '[data-pointer]').find(({ dataset }) => dataset.pointer === `/${error.body.field}`)
      if (!taken) return
      show(place)
      mark(taken, error, error.text)
      return taken.focus()
    }
    const { body: { data }, etag: tag } = await send('GET', path, { signal })
    const told = ({ name, label, told = (value) => value ?? '–' }) =>
      JSON.stringify(known[name]) !== JSON.stringify(data[name]) && h('li', h('b', label), colon(), own(told(data[name])))
    show(place, h('div.problem', { role: 'alert' }, h('p', error.text), h('ul', parts.map(told))))
    known = data
    etag = tag
  }

  /** Gives the focus a place, if what had it is gone. */
  function refocus() {
    if (document.activeElement === document.body) (element.isConnected ? element.querySelector('[type=submit]') : part('main').querySelector('h1'))?.focus()
  }
  const leave = cancelled && (() => {
    if (!mayLeave()) return
    delete element.dataset.edited
    cancelled()
    refocus()
  })
  const element = form(() => {
    clearProblems(element, place)
    return blocking([element], save).catch((error) => attempt(place, () => refused(error))).then(refocus)
  }, isTitled && h('h2', title), about, h('div.parts', parts.map(({ element }) => element)), place,
  h('div.actions', submit(text), leave && button(t('cancel'), leave, 'plain')))
  element.ariaLabel = title
  for (const type of ['input', 'chosen']) element.addEventListener(type, () => {
    element.dataset.edited = ''
    clearProblems(element, place)
  })
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !leave) return
    event.preventDefault()
    leave()
  })
  return element
}

/**
 * Creates a button that asks before it acts: on the page, in its own place. If the action would be refused, says why instead.
 * @param {string} text @param {string} question @param {() => Promise<any>} act @param {() => Promise<any>} [tried]
 */
export function asking(text, question, act, tried = async () => {}) {
  const box = h('div.asking')
  const rest = () => {
    show(box, button(text, ask, 'plain'))
    return box.querySelector('button')
  }
  const refused = (error) => {
    if (!(error instanceof Problem)) throw error
    rest()?.focus()
    box.append(h('p.wrong', { role: 'alert' }, error.code === 'IN_USE' && error.body.count ? t('used-by', { count: error.body.count }) : error.text))
  }
  const ask = async () => {
    try {
      await tried()
    } catch (error) {
      return refused(error)
    }
    const yes = button(text, () => act().catch(refused))
    show(box, h('p', { role: 'status' }, question), h('div.actions', yes, button(t('cancel'), () => rest()?.focus(), 'plain')))
    yes.focus()
  }
  rest()
  return box
}

/** Creates a button that deletes what nothing uses. @param {string} path @param {string} name @param {() => any} done */
export const deleting = (path, name, done) =>
  asking(t('delete'), t('delete-ask', { name }), async () => {
    await send('DELETE', path)
    await sayAfter(done, t('deleted', { name }))
  }, () => send('DELETE', `${path}?dry_run=true`))

const LIMIT = 50

/**
 * Shows a page of a list, a line for each item. `at` is the view with the list.
 * @param {Element} place
 * @param {{ path: string, at: string, params: any, signal: AbortSignal, line: (item: any) => any, none: string, query?: Record<string, any> }} list
 */
export async function showLines(place, list) {
  const { path, at, params, signal, line, none, query = {} } = list
  if (!place.children.length) show(place, skeleton(4))
  await attempt(place, async () => {
    const { data, meta } = await get(path, signal, { ...query, q: params.q, page: Number(params.page) || 1, limit: LIMIT })
    if (!data.length && meta.total) return go(at, { ...params, page: '' }, true)
    const lines = await Promise.all(data.map(line))
    // The focus stays at the line that had it, or goes to the one that has taken its place.
    const focused = every(place, '.lines > li').findIndex((line) => line.contains(document.activeElement))
    show(place, lines.length ? h('ul.plain-list.lines', lines.map((one) => h('li', one))) : empty(params.q ? t('nothing-found') : none),
      pager(meta, (page, text) => link(text, at, { ...params, page }, 'button')))
    const next = every(place, '.lines > li')[Math.min(focused, lines.length - 1)]
    if (focused >= 0) (next?.querySelector('a, button, summary') ?? part('main').querySelector('h1')).focus()
  }, () => showLines(place, list))
}

/** Creates the card of a list. @param {string} title @param {...any} children */
export const listCard = (title, ...children) => h('section.card', { ariaLabel: title }, ...children)

/** Copies a text. Browsers have a clipboard only with HTTPS. @param {string} label @param {string} text @param {string} [look] */
export const copying = (label, text, look) =>
  navigator.clipboard && button(label, async () => {
    await navigator.clipboard.writeText(text)
    say(t('copied'))
  }, look)

/** Shows a secret that the service tells only once, until it is closed. It is kept nowhere else. @param {any[]} children */
export function once(title, secret, ...children) {
  const close = button(t('close'), () => {
    box.remove()
    part('main').querySelector('h1').focus()
  }, 'plain')
  const box = h('section.plan.once', { ariaLabel: title, tabIndex: -1 }, h('h2', title), secret ? children : h('p', t('secret-lost')), close)
  return box
}

/** Goes to a view, even if it is the one that is shown. */
export const goAnew = (path) => (location.hash === href(path) ? dispatchEvent(new Event('hashchange')) : go(path))

/** Focuses the first field of a form. @param {Element} form */
export const focusFirst = (form) => every(form, 'input, select')[0]?.focus()
