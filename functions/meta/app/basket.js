// What is selected in the inventory, and what can be done with it.
import { Problem, assetTypes, intent, may, plan, send } from './api.js'
import { MOST, assetLink, fieldName, valueOf } from './asset.js'
import { controlsOf } from './editor.js'
import { button, h, saveFile, show } from './elements.js'
import { select } from './fields.js'
import { attempt, field, planBox, problemBox } from './form.js'
import { closed, colon, link, query, say } from './page.js'
import { settle } from './suggest.js'
import { t } from './texts.js'

export const MOST_CHOSEN = 2000
const MOST_SHOWN = 50
/** Maximum number of labels in a request, and the layouts of their sheets. */
const MOST_LABELS = 100
const LAYOUTS = { 'a4-24': '70 × 37 mm', 'a4-21': '63,5 × 38,1 mm', 'a4-65': '38,1 × 21,2 mm', 'letter-30': '66,7 × 25,4 mm', 'letter-80': '44,5 × 12,7 mm' }

/** IDs of the selected assets. @type {Set<string>} */
export const chosen = new Set()

export const mayChoose = () => may('assets:write') || !closed.has('take-back')

/**
 * Creates the basket. `changed` tells it that the selection has changed, and `listed` that the list has: a form stays as it is.
 * @param {{ cleared: () => void, moved: () => void, gone: () => void, found: () => number, chooseAll: () => Promise<void> }} told
 *   `cleared`: nothing is selected any more. `moved`: assets have changed. `gone`: some no longer exist. `found`: how many assets the
 *   filters find. `chooseAll` selects them
 */
export function basket({ cleared, moved, gone, found, chooseAll }) {
  const place = h('div.basket', { role: 'region', ariaLabel: t('chosen'), hidden: true })
  let chosenAnew = draw
  function draw() {
    chosenAnew = draw
    place.hidden = chosen.size === 0
    const assets = [...chosen].join()
    const process = (kind, look) => link(t(`nav.${kind}`), kind, { assets }, `button ${look}`)
    show(place, h('span', t('chosen-count', { count: chosen.size })),
      may('processes:write') && (chosen.size <= MOST ? [process('hand-over', 'primary'), process('take-back', ''), link(t('start'), 'start', { assets }, 'button')]
        : h('span.hint', t('nav.hand-over'), ', ', t('nav.take-back'), colon(), t('fault.too_large', { count: MOST }))),
      may('assets:write') && button(t('change'), async () => {
        const form = changeForm({ types: await assetTypes(), cancelled: draw, changed: moved, gone })
        chosenAnew = form.ask
        show(place, form.parts)
        form.focus()
      }),
      button(t('labels'), () => {
        chosenAnew = () => {}
        show(place, labelForm(draw))
      }),
      found() > chosen.size && found() <= MOST_CHOSEN && button(t('choose-all', { count: found() }), () => chooseAll().then(draw), 'plain'),
      button(t('choose-none'), () => {
        chosen.clear()
        cleared()
        draw()
      }, 'plain'))
  }
  return { place, draw, changed: () => (chosen.size ? chosenAnew() : draw()), listed: () => chosenAnew === draw && draw() }
}

/** Creates the form that saves sheets of labels, to be printed. */
function labelForm(cancelled) {
  const layout = select(Object.entries(LAYOUTS).map(([name, size]) => [name, `${name} · ${size}`]))
  const about = h('div.about')
  const save = async () => {
    const all = [...chosen]
    for (let n = 0; n < all.length; n += MOST_LABELS) {
      const { body } = await send('GET', `/assets/labels${query({ ids: all.slice(n, n + MOST_LABELS).join(), layout: layout.value })}`, { as: 'text' })
      saveFile(`labels-${n / MOST_LABELS + 1}.html`, body, 'text/html')
    }
    cancelled()
  }
  return [about, field(t('sheet'), layout), button(t('save'), () => attempt(about, save), 'primary'), button(t('cancel'), cancelled, 'plain')]
}

/** Selects or unselects the assets of checkboxes, up to the maximum. */
export function choose(boxes, isChosen) {
  for (const box of boxes) {
    if (isChosen && chosen.size >= MOST_CHOSEN && !chosen.has(box.value)) say(t('fault.too_large', { count: MOST_CHOSEN }))
    else chosen[isChosen ? 'add' : 'delete'](box.value)
    box.checked = chosen.has(box.value)
  }
}

/** Sends a change of the selected assets in batches. Unselects assets that no longer exist. @param {(done: number) => void} told */
async function each(send, body, told) {
  const all = [...chosen], done = []
  for (let n = 0; n < all.length; n += MOST) {
    told(n)
    const part = all.slice(n, n + MOST)
    const operations = part.map((id) => ({ op: 'update', id, body }))
    try {
      done.push(...(await send('/assets/batch', { operations })).data.map(({ data }) => data))
    } catch (error) {
      if (error.code === 'NOT_FOUND') for (const { pointer } of error.errors) chosen.delete(part[pointer.split('/')[2]])
      throw error
    }
  }
  return done
}

/** Creates the form that changes one field of the selected assets, so that others' changes are kept. */
function changeForm({ types, cancelled, changed, gone }) {
  const all = controlsOf({ location: null }, types).filter(({ name }) => name !== 'serial_number')
  const which = select(all.map(({ name }) => [name, fieldName(name)]), 'location', { change: () => (swap(), ask()) })
  const one = () => /** @type {any} */ (all.find(({ name }) => name === which.value))
  const box = h('div')
  const about = h('div.about')
  const act = h('div')
  const swap = () => show(box, field(t('new-value'), one().control))
  const written = () => `${which.value}=${one().control.value}`
  const refused = (error) => {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'NOT_FOUND') gone()
    if (!chosen.size) return say(error.text), cancelled()
    ask()
    show(about, problemBox(error))
    one().control.focus({ preventScroll: true })
  }
  const working = (done) => show(act, h('progress', { max: chosen.size, value: done, ariaLabel: t('checking') }))
  const preview = async () => {
    const asked = [written(), ...chosen].join()
    await settle(one().control)
    const { name, value } = one()
    const body = { [name]: value() || null }
    const after = await each(plan, body, working)
    if ([written(), ...chosen].join() !== asked) return ask()
    const line = async (asset) => h('li', assetLink(asset), ' → ', await valueOf(name, asset[name]))
    show(about, planBox(t('would-happen'), [await Promise.all(after.slice(0, MOST_SHOWN).map(line)),
      after.length > MOST_SHOWN && h('li', t('elsewhere-count', { count: after.length - MOST_SHOWN }))]))
    show(act, button(t('go-on'), () => change(body).catch(refused), 'primary'))
    act.querySelector('button').focus({ preventScroll: true })
  }
  const change = async (body) => {
    const { length: count } = await each(intent(), body, working)
    chosen.clear()
    say(t('changed', { count }))
    changed()
  }
  const ask = () => {
    show(about)
    show(act, button(t('change-all', { count: chosen.size }), () => preview().catch(refused), 'primary'))
  }
  for (const { control } of all) {
    control.addEventListener('keydown', (event) => event.key === 'Enter' && !event.defaultPrevented && act.querySelector('button')?.click())
    for (const type of ['input', 'chosen']) control.addEventListener(type, ask)
  }
  swap()
  ask()
  return { parts: [about, field(t('change'), which), box, act, button(t('cancel'), cancelled, 'plain')], ask, focus: () => one().control.focus({ preventScroll: true }) }
}
