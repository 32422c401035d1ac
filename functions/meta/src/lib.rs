//! The documentation page, the inventory page, `/v1/health`, `/v1/openapi.json` and the public keys of receipts, which need no
//! API key.

mod app;
mod docs;
mod handlers;
mod index;
mod packed;
mod receipt_keys;

use axum::routing::get;
use shared::http::responses::ApiError;

/// The OpenAPI 3.1 document of all functions: docs/openapi.json, which a test writes, without whitespace. Generating it at run
/// time would link every function into this one (docs/adr/0011).
pub const DOCUMENT: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

shared::endpoints! {
    app: get_app;
    docs: get_docs;
    handlers: get_health, get_openapi;
    receipt_keys: get_receipt_keys;
}

/// Returns all routes, including those that the OpenAPI document doesn't describe.
pub fn all_routes() -> axum::Router<shared::services::App> {
    let only_get = async || ApiError::MethodNotAllowed("This path takes GET, HEAD.".to_owned());
    routes()
        .route("/", get(index::get_index).fallback(only_get))
        .route("/v1", get(index::get_index).fallback(only_get))
        .route(docs::VIEWER_PATH, get(docs::get_viewer).fallback(only_get))
        .route(app::FILES_PATH, get(app::get_file).fallback(only_get))
}
