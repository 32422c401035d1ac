//! The request that every request with a key goes through (contract 3).
//!
//! A handler gets a [`UnverifiedRequest`], which knows what came with the request but not yet whether its key is good. The
//! only way on is [`UnverifiedRequest::enter`]: it checks the key while it reads what the handler needs, and nothing that was
//! read, nor any field_error of the request, is told before the check has passed.

mod caller;
mod request_headers;
mod unverified;

pub use caller::{TRIES, keep, missing};
pub use unverified::{Caller, UnverifiedRequest};
