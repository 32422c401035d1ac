//! The gate that every request with a key goes through (contract 3).
//!
//! A handler gets a [`Gate`], which knows what came with the request but not yet whether its key is good. The
//! only way on is [`Gate::enter`]: it checks the key while it reads what the handler needs, and nothing that was
//! read, nor any fault of the request, is told before the check has passed.

mod asked;
mod gate;
mod session;

pub use gate::{Gate, Session};
pub use session::{TRIES, keep, missing};
