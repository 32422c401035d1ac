//! API keys: permissions, costs of unauthenticated requests, and secrecy.

pub mod lifecycle;
pub mod limits;
pub mod secrets;
pub mod strangers;
