//! Code shared by all functions: key authentication, the table and HTTP.
//!
//! Dependencies point one way: functions → [`request`] → [`auth`] → [`http`] → [`services`] → [`store`] → [`domain`]. docs/architecture.md has the map.

pub mod app;
pub mod auth;
pub use {aws, domain};
pub mod event_view;
pub use fields;
pub mod http;
pub mod key_encryption;
pub mod log;
pub mod queue;
pub mod request;
pub mod services;
pub mod store;
