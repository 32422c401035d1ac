//! Authentication by API key or signing link.
//!
//! The first argument of a handler is a [`Caller`] or a [`Signer`]. The only way to a [`VerifiedCaller`], and so to every write,
//! is [`Caller::verified`]. Neither data nor an error in the request is disclosed before the key is verified: see
//! `http::check`.

pub mod caller;
mod signer;

pub use caller::{Caller, Principal, VerifiedCaller};
pub use signer::Signer;
