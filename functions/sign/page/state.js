// What the page has of the link.

/**
 * `submitted`: what this tab submitted. `isWarned`: whether the signer was warned that nothing is ticked. `retry`: the action for when
 * the connection is back.
 * @type {{ session: SigningSession | null, fields: Field[], submitted: Submitted[], isSending: boolean, isWarned: boolean, retry: (() => void) | null }}
 */
export const signing = { session: null, fields: [], submitted: [], isSending: false, isWarned: false, retry: null }
