// A step that is signed: by drawing, or by typing a name.

const HIDDEN =
  'This browser hides what is drawn from the page, so it can’t be sent. Allow the page to read it, or open the link in another browser.'

/** @param {SessionStep} open @param {FieldDraft | undefined} kept @returns {Field} */
function signatureField(open, kept) {
  const draft = { isTyped: false, name: '', strokes: /** @type {Stroke[]} */ ([]), ...Object(kept) }
  let { isTyped } = draft

  const pad = new Pad(() => {
    refresh()
    field.element.dispatchEvent(new Event('input', { bubbles: true }))
  })
  const placeholder = create('span', { className: 'placeholder', 'aria-hidden': 'true' }, 'Sign here')
  const undo = button('Undo', () => pad.undo())
  const clear = button('Clear', () => pad.clear())
  const padHint = create(
    'p',
    { className: 'unseen', id: newId() },
    'Draw here, or choose “Type instead”.',
  )
  pad.canvas.setAttribute('aria-describedby', padHint.id)
  const drawing = create(
    'div',
    {},
    create('div', { className: 'pad' }, placeholder, pad.canvas),
    padHint,
  )

  const name = create('input', { type: 'text', id: newId(), dir: 'auto', autocomplete: 'name', maxLength: 100, value: draft.name })
  const nameHint = create('p', { className: 'hint', id: newId() }, 'The receipt will say that the name was typed.')
  const preview = create('img', { alt: '', className: 'picture' })
  const typing = create('div', {}, create('label', { htmlFor: name.id }, 'Your name'), name, nameHint, preview)
  name.addEventListener('input', () => refresh())

  const toggle = button('', () => {
    isTyped = !isTyped
    refresh()
    field.element.dispatchEvent(new Event('input', { bubbles: true }))
    if (isTyped) name.focus()
    else pad.layOut()
  }, 'plain')

  const tools = create('div', { className: 'tools' }, undo, clear, toggle)
  const field = frame(open, { control: name, statement: open.step.statement }, drawing, typing, tools)
  name.setAttribute('aria-describedby', `${nameHint.id} ${field.error.id}`)

  function refresh() {
    drawing.hidden = undo.hidden = clear.hidden = isTyped
    typing.hidden = !isTyped
    toggle.textContent = isTyped ? 'Draw instead' : 'Type instead'
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
      if (isMissing && !isTyped && pad.strokes.length) return 'Draw your signature with a stroke. A tap is too short.'
      if (!isMissing && !canReadDrawings()) return HIDDEN
      // A stored signature is somebody else's.
      if (!isMissing || !open.step.required) return null
      return isTyped ? 'Type your name.' : 'Sign here, or type your name instead.'
    },
    save: () => ({ isTyped, name: name.value, strokes: pad.strokes }),
    isTyped: () => isTyped,
  })
}
