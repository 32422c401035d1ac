//! The documentation, `/v1/health`, `/v1/openapi.json` and the public keys of receipts, which need no API key; and responses
//! for requests that no route takes.

mod docs;
mod fallback;
mod handlers;
mod index;
mod receipt_keys;

use axum::routing::{any, get};
use shared::http::error::ApiError;

pub use fallback::refuse;

/// The OpenAPI 3.1 document of all functions: docs/openapi.json, which a test writes, without blanks. Making it at run time
/// would link every function into this one (docs/adr/0011).
pub const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

shared::endpoints! {
    docs: get_docs;
    handlers: get_health, get_openapi;
    receipt_keys: get_receipt_keys;
}

/// Returns the routes of the deployed function. API Gateway also sends it every request that no route takes: for a page or a
/// script, or one that it refuses with 404, 405 or a redirect.
pub fn default_routes() -> axum::Router<shared::app::App> {
    with_default_route(routes())
}

/// Returns the routes with those that the OpenAPI document doesn't describe, and [`refuse`] for whatever none of them takes.
pub fn with_default_route(routes: axum::Router<shared::app::App>) -> axum::Router<shared::app::App> {
    let only_get = async || ApiError::MethodNotAllowed("This path takes GET, HEAD.".to_owned());
    routes
        .route("/", get(index::get_index).fallback(only_get))
        .route("/v1", get(index::get_index).fallback(only_get))
        .route(docs::VIEWER_PATH, get(docs::get_viewer).fallback(only_get))
        .route("/v1/{*rest}", any(refuse))
        .method_not_allowed_fallback(refuse)
}
