//! API keys: their rights, the costs of strangers' requests, and secrecy.

pub mod lifecycle;
pub mod limits;
pub mod secrets;
pub mod strangers;
