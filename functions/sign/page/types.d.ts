// Types of the service's responses, and of values that the scripts pass to each other. This file is not served.

type Json = null | boolean | number | string | Json[] | { [member: string]: Json }

type StepType =
  | 'user_picker'
  | 'checklist'
  | 'signature'
  | 'text'
  | 'textarea'
  | 'select'
  | 'date'
  | 'confirmation'
  | 'complete'

/** The table of texts, which the build inserts. */
declare const TEXTS: string

interface Step {
  type: StepType
  key: string
  label: string
  required?: boolean
  items?: string[]
  options?: string[]
  /** The sentence that the signer confirms. Only for a signature. */
  statement?: string
}

/** A step that was submitted before, or that the link opens. */
interface SessionStep {
  index: number
  step: Step
  /** The stored value; never a signature. */
  value: Json
  user_name: string | null
  /** Whether a value or a signature is stored. */
  is_stored: boolean
  /** Whether the signature shows a typed name. */
  is_typed: boolean
  signed_by: string | null
  signed_at: string | null
}

interface SignedAsset {
  asset_tag: string
  name: string
  manufacturer: string | null
  model: string | null
  serial_number: string | null
  location: string | null
}

interface SigningSession {
  link_id: string
  organization: string
  locale: string
  process_name: string
  /** The status of the assets when the process is completed. */
  target_status: string
  movement_number: string | null
  assets: SignedAsset[]
  signer: { name: string; user_id: string | null }
  status: 'open' | 'used'
  ends_at: string
  /** Empty once the link is used. */
  submitted: SessionStep[]
  steps: SessionStep[]
  is_completed: boolean
  /** Whether the process was cancelled after the link's last step was submitted. */
  is_cancelled: boolean
}

interface Problem {
  code?: string
  detail?: string
  title?: string
  request_id?: string
  link_status?: string
  errors?: { pointer?: string; detail: string }[]
}

/** A response, or `status` 0 if none arrived. */
interface Reply {
  status: number
  body: any
}

interface ReceiptStep {
  step: Step
  value: Json
  user_name: string | null
  submitted_at: string
  submitted_by: { user_name: string | null; key_name: string | null }
}

interface SignedReceipt {
  receipt: { completed_at: string; steps: ReceiptStep[] }
  signature: { kid: string }
}

/** The x, the y and the width of each point, one after another, in CSS pixels from the middle of the pad. */
type Stroke = number[]

interface Box {
  left: number
  top: number
  right: number
  bottom: number
}

/** The part of the draft that belongs to a field. */
type FieldDraft = Json

interface Draft {
  fields: { [key: string]: FieldDraft }
  /** The Idempotency-Key of each body that was sent, by the body's digest. */
  keys: { [digest: string]: string }
}

interface Field {
  open: SessionStep
  element: HTMLElement
  /** The control that errors refer to. */
  control: HTMLElement
  error: HTMLElement
  /** Returns the value to submit; null if there is none. */
  value(): Json
  /** Returns the text of an error, or null if the value is valid. */
  check(): string | null
  /** Returns the field's part of the draft. */
  save(): FieldDraft
  /** Returns the value as readable text, if the value itself isn't readable. */
  summary?(): string
  /** Whether the signature is a typed name. */
  isTyped?(): boolean
}

/** A value that was submitted, as the page shows it afterwards. */
interface Submitted {
  step: Step
  value: Json
  userName: string | null
  image: string | null
  isSigned: boolean
  isTyped: boolean
  by: string | null
  at: string | null
}

// Not yet in TypeScript's library of browser APIs.
interface PointerEvent {
  getPredictedEvents(): PointerEvent[]
}
