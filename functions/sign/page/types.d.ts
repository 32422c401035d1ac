// What the service sends to the page, and what the scripts hand to each other. Nothing of this file is served.

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

/** The texts of each language, by name: in one form, or by the categories of plurals. */
declare const TEXTS: Record<string, Record<string, string | Record<string, string>>>

interface Step {
  type: StepType
  key: string
  label: string
  required?: boolean
  items?: string[]
  options?: string[]
  /** Of a signature. */
  statement?: string
}

/** A step that was submitted before, or that the link opens. */
interface SessionStep {
  index: number
  step: Step
  /** What was stored for it; never a signature. */
  value: Json
  /** The name of the stored user. */
  user_name: string | null
  /** Whether a signature is stored for it. */
  is_stored: boolean
  /** Whether that signature is a typed name. */
  is_typed: boolean
  /** Whose signature it is. */
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
  /** The organization's. */
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
  /** Whether the process was cancelled after the last step that the link opens. */
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

/** What a field keeps in the draft. */
type FieldDraft = Json

interface Draft {
  fields: { [key: string]: FieldDraft }
  /** The Idempotency-Key of each body that was sent, by the body's digest. */
  keys: { [digest: string]: string }
}

/** The controls of a step. */
interface Field {
  open: SessionStep
  element: HTMLElement
  /** What an error is about. */
  control: HTMLElement
  error: HTMLElement
  /** Returns the value to submit; null if there is none. */
  value(): Json
  /** Returns what is wrong, in words. */
  check(): string | null
  /** Returns what the draft keeps. */
  save(): FieldDraft
  /** Shows the value as people read it, or null where the value says it. */
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

// Not yet in TypeScript's own list of what browsers have.
interface PointerEvent {
  getPredictedEvents(): PointerEvent[]
}
