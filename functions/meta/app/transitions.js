// Which status of an asset may follow which, as a form.
import { STATUSES } from './asset.js'
import { h, hint } from './elements.js'
import { choice } from './fields.js'
import { status } from './page.js'
import { t } from './texts.js'

/** Creates the editor of the permitted changes: null permits all. @param {Record<string, string[]> | null} old */
export function transitionsEditor(old) {
  const any = choice(t('transitions-any'), old === null, { change: () => draw() })
  const rows = STATUSES.map((from) => {
    const boxes = STATUSES.filter((to) => to !== from).map((to) => ({ to, ...choice(status(to), old?.[from]?.includes(to) ?? true) }))
    return { from, boxes, element: h('fieldset.field', h('legend', t('transitions-from', { status: status(from) })), boxes.map(({ element }) => element)) }
  })
  const some = h('div.grid', rows.map(({ element }) => element))
  const draw = () => {
    some.hidden = any.box.checked
  }
  draw()
  /** Returns the statuses that not every other may follow, with those that may. */
  function value() {
    if (any.box.checked) return null
    const limited = rows.filter(({ boxes }) => boxes.some(({ box }) => !box.checked))
    return Object.fromEntries(limited.map(({ from, boxes }) => [from, boxes.filter(({ box }) => box.checked).map(({ to }) => to)]))
  }
  const element = h('fieldset.field', { 'data-pointer': '/status_transitions' }, h('legend', t('setting.status_transitions')), hint(t('transitions-hint')), any.element, some)
  return { name: 'status_transitions', label: t('setting.status_transitions'), element, value, told: (value) => t(value ? 'transitions-some' : 'transitions-any') }
}
