//! HTTP conventions that all functions share: a handler's arguments and responses, and the layers around it.
//!
//! [`requests`] contains a handler's arguments, [`responses`] its responses and errors.

pub mod base_url;
pub mod bulk;
pub mod endpoints;
pub mod openapi;
pub mod requests;
pub mod responses;
mod unmatched;

pub(crate) use endpoints::RequestContext;
pub use endpoints::service;
