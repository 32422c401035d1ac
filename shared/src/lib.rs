//! What every function of the service shares.
//!
//! Knowledge goes one way: functions → [`http`] and [`auth`] → [`store`] → [`domain`].

pub mod app;
pub mod auth;
pub mod domain;
pub mod http;
pub mod key_encryption;
pub mod lambda;
pub mod log;
pub mod store;
