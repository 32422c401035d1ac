// A signature step: drawn, or typed as a name.
import { button, h, newId } from './elements.js'
import { isDrawn } from './ink.js'
import { Pad } from './pad.js'
import { canReadDrawings, pictureOfName, pictureOfStrokes } from './picture.js'
import { frame } from './steps.js'
import { t } from './texts.js'

/** @param {SessionStep} open @param {FieldDraft | undefined} kept @returns {Field} */
export function signatureField(open, kept) {
  const draft = { isTyped: false, name: '', strokes: /** @type {Stroke[]} */ ([]), ...Object(kept) }
  let { isTyped } = draft

  const pad = new Pad(() => {
    refresh()
    field.element.dispatchEvent(new Event('input', { bubbles: true }))
  })
  const placeholder = h('span.placeholder', { 'aria-hidden': 'true' }, t('sign-here'))
  const undo = button(t('undo'), () => pad.undo())
  const clear = button(t('clear'), () => pad.clear())
  const padHint = h('p.unseen', { id: newId() }, t('pad-hint'))
  pad.canvas.setAttribute('aria-describedby', padHint.id)
  const drawing = h('div', h('div.pad', placeholder, pad.canvas),
    padHint,
  )

  const name = h('input', { type: 'text', id: newId(), dir: 'auto', autocomplete: 'name', maxLength: 100, value: draft.name })
  const nameHint = h('p.hint', { id: newId() }, t('name-hint'))
  const preview = h('img', { alt: '', className: 'picture' })
  const typing = h('div', h('label', { htmlFor: name.id }, t('your-name')), name, nameHint, preview)
  name.addEventListener('input', () => refresh())

  const toggle = button('', () => {
    isTyped = !isTyped
    refresh()
    field.element.dispatchEvent(new Event('input', { bubbles: true }))
    if (isTyped) name.focus()
    else pad.layOut()
  }, 'plain')

  const tools = h('div.tools', undo, clear, toggle)
  const field = frame(open, { control: name, statement: open.step.statement }, drawing, typing, tools)
  name.setAttribute('aria-describedby', `${nameHint.id} ${field.error.id}`)

  function refresh() {
    drawing.hidden = undo.hidden = clear.hidden = isTyped
    typing.hidden = !isTyped
    toggle.textContent = isTyped ? t('draw-instead') : t('type-instead')
    placeholder.hidden = pad.strokes.length > 0
    undo.setAttribute('aria-disabled', String(!pad.canUndo()))
    clear.setAttribute('aria-disabled', String(pad.strokes.length === 0))
    if (isTyped) showPreview()
    field.control = isTyped ? name : toggle
  }

  function showPreview() {
    const picture = pictureOfName(name.value)
    preview.hidden = picture === null
    if (picture) preview.src = picture
  }

  if (draft.strokes.length) pad.strokes = draft.strokes
  refresh()
  return Object.assign(field, {
    value: () => (isTyped ? pictureOfName(name.value) : pictureOfStrokes(pad.strokes)),
    check() {
      const isMissing = isTyped ? pictureOfName(name.value) === null : !isDrawn(pad.strokes)
      if (isMissing && !isTyped && pad.strokes.length) return t('too-short')
      if (!isMissing && !canReadDrawings()) return t('hidden-drawing')
      // A stored signature doesn't count, because someone else made it.
      if (!isMissing || !open.step.required) return null
      return isTyped ? t('missing.name') : t('missing.signature')
    },
    save: () => ({ isTyped, name: name.value, strokes: pad.strokes }),
    isTyped: () => isTyped,
  })
}
