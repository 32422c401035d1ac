//! Authentication by API key or signing link, and changes on behalf of callers.
//!
//! The first argument of a handler is a [`Caller`] or a [`Signer`]. The only way to a [`VerifiedCaller`], and so to every write,
//! is [`Caller::verified`]. Neither data nor an error in the request is disclosed before the key is verified: see
//! `http::endpoints`.

pub mod caller;
mod command;
mod idempotent_enqueue;
mod import;
mod signer;

pub use caller::{Caller, Principal, VerifiedCaller};
pub use command::{Assigned, unknown_reference};
pub use import::{RowInputs, Rows};
pub use signer::Signer;
