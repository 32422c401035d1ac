//! Callers: the verification of API keys and of signing links, and changes on behalf of callers.
//!
//! A handler receives an [`UnverifiedRequest`]. The only way to a [`Caller`], and so to every write, is
//! [`UnverifiedRequest::authorize`]. Its variants verify the key while they run the handler's first reads, in one round trip and
//! mostly one call. Nothing that was read, and no error of the request, is disclosed before the key is verified.

mod caller;
mod command;
mod idempotent_enqueue;
mod one_record;
mod operations;
mod request_count;
mod request_headers;
mod resource;
mod signer;
mod unverified;
mod verify;

pub use caller::{Caller, Principal};
pub use command::Command;
pub use one_record::unknown_reference;
pub use operations::{ImportRow, Operation};
pub use signer::SigningRequester;
pub use unverified::UnverifiedRequest;
