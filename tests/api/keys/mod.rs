//! API keys: their rights, the costs of strangers' requests, and secrecy.

pub mod ceiling;
pub mod lifecycle;
pub mod limits;
pub mod policies;
pub mod refused_requests;
pub mod secrets;
pub mod strangers;
pub mod strength;
