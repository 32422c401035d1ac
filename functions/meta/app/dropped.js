// Files that are dropped on any view.
import { mayLeave } from './page.js'

/** @type {File | null} */
let dropped = null

/** Returns the file that was dropped last, once. */
export function takeDropped() {
  const file = dropped
  dropped = null
  return file
}

/** Keeps a dropped file, and calls `open`. @param {() => void} open */
export function takeFiles(open) {
  const hasFile = ({ dataTransfer }) => dataTransfer?.types.includes('Files')
  addEventListener('dragover', (event) => hasFile(event) && event.preventDefault())
  addEventListener('drop', (event) => {
    if (!hasFile(event)) return
    event.preventDefault()
    const file = event.dataTransfer?.files[0]
    if (!file || !mayLeave()) return
    dropped = file
    open()
  })
}
