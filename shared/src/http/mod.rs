//! HTTP conventions that all functions share: a handler's arguments and responses, and the layers around it.
//!
//! [`requests`] contains a handler's arguments, [`responses`] its responses and errors.

pub mod base_url;
pub mod bulk;
pub(crate) mod check;
pub mod middleware;
pub mod openapi;
pub mod problem;
pub(crate) mod received;
pub mod requests;
pub mod responses;
pub mod routes;
mod unmatched;

pub(crate) use middleware::RequestContext;
pub use routes::service;
