// What is selected in the inventory, and what can be done with it.
import { Problem, intent, may, plan } from './api.js'
import { MOST, assetLink } from './asset.js'
import { button, h, own, show } from './elements.js'
import { fault, field, locationField, planBox, problemBox } from './form.js'
import { closed, colon, link, say } from './page.js'
import { t } from './texts.js'

const MOST_CHOSEN = 100

/** IDs of the selected assets. @type {Set<string>} */
export const chosen = new Set()

export const mayChoose = () => may('assets:write') || !closed.has('take-back')

/**
 * Creates the basket. `changed` tells it that the selection has changed.
 * @param {{ cleared: () => void, moved: () => void, gone: () => void }} told `cleared`: nothing is selected any more. `moved`: assets have
 *   moved. `gone`: some no longer exist
 */
export function basket({ cleared, moved, gone }) {
  const place = h('div.basket', { role: 'region', ariaLabel: t('chosen'), hidden: true })
  let chosenAnew = draw
  function draw() {
    chosenAnew = draw
    place.hidden = chosen.size === 0
    const assets = [...chosen].join()
    const process = (kind, look) => link(t(`nav.${kind}`), kind, { assets }, `button ${look}`)
    show(place, h('span', t('chosen-count', { count: chosen.size })),
      may('processes:write') && (chosen.size <= MOST ? [process('hand-over', 'primary'), process('take-back', '')]
        : h('span.hint', t('nav.hand-over'), ', ', t('nav.take-back'), colon(), t('fault.too_large', { count: MOST }))),
      may('assets:write') && button(t('move-to'), () => {
        const form = moveForm({ cancelled: draw, moved, gone })
        chosenAnew = form.ask
        show(place, form.parts)
        form.field.focus({ preventScroll: true })
      }),
      button(t('choose-none'), () => {
        chosen.clear()
        cleared()
        draw()
      }, 'plain'))
  }
  return { place, draw, changed: () => (chosen.size ? chosenAnew() : draw()) }
}

/** Selects or unselects the assets of checkboxes, up to the maximum. */
export function choose(boxes, isChosen) {
  for (const box of boxes) {
    if (isChosen && chosen.size >= MOST_CHOSEN && !chosen.has(box.value)) say(t('fault.too_large', { count: MOST_CHOSEN }))
    else chosen[isChosen ? 'add' : 'delete'](box.value)
    box.checked = chosen.has(box.value)
  }
}

/** Sends the change of the selected assets in batches. Unselects assets that no longer exist. */
async function each(send, location) {
  const all = [...chosen], done = []
  for (let n = 0; n < all.length; n += MOST) {
    const part = all.slice(n, n + MOST)
    const operations = part.map((id) => ({ op: 'update', id, body: { location } }))
    try {
      done.push(...(await send('/assets/batch', { operations })).data.map(({ data }) => data))
    } catch (error) {
      if (error.code === 'NOT_FOUND') for (const { pointer } of error.errors) chosen.delete(part[pointer.split('/')[2]])
      throw error
    }
  }
  return done
}

/** Creates the form that moves the selected assets. Changes only the location, so that others' changes are kept. */
function moveForm({ cancelled, moved, gone }) {
  const place = locationField('', () => ask())
  const about = h('div.about')
  const act = h('div')
  const refused = (error) => {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'NOT_FOUND') gone()
    if (!chosen.size) return say(error.text), cancelled()
    ask()
    show(about, problemBox(error))
    place.focus({ preventScroll: true })
  }
  const preview = async () => {
    const asked = [place.value, ...chosen].join()
    const location = place.value.trim()
    if (!location) return refused(fault('required', '/location'))
    const after = await each(plan, location)
    if ([place.value, ...chosen].join() !== asked) return
    show(about, planBox(t('would-happen'), after.map((asset) => h('li', assetLink(asset), ' → ', own(asset.location)))))
    show(act, button(t('go-on'), () => move(location).catch(refused), 'primary'))
    act.querySelector('button').focus({ preventScroll: true })
  }
  const move = async (location) => {
    const { length: count } = await each(intent(), location)
    chosen.clear()
    say(t('moved', { count, place: location }))
    moved()
  }
  const ask = () => {
    show(about)
    show(act, button(t('move-all', { count: chosen.size }), () => preview().catch(refused), 'primary'))
  }
  place.addEventListener('keydown', (event) => event.key === 'Enter' && !event.defaultPrevented && act.querySelector('button').click())
  place.addEventListener('input', ask)
  ask()
  return { parts: [about, field(t('move-to'), place), act, button(t('cancel'), cancelled, 'plain')], field: place, ask }
}
