//! API keys: what they permit, what they cost strangers, and what they keep secret.

pub mod lifecycle;
pub mod limits;
pub mod policies;
pub mod refused_requests;
pub mod secrets;
pub mod strangers;
pub mod strength;
