//! What all functions of the service share.
//!
//! Dependencies go one way: functions → [`http`] and [`auth`] → [`store`] → [`domain`]. docs/architecture.md has the map.

pub mod app;
pub mod auth;
pub mod domain;
pub mod http;
pub mod key_encryption;
pub mod lambda;
pub mod log;
pub mod queue;
pub mod store;
