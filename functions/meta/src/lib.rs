//! `/v1/health`, `/v1/openapi.json` and the public keys of receipts, which need no API key; and responses for requests that
//! no route takes.

mod fallback;
mod handlers;
mod receipt_keys;

pub use fallback::refuse;

/// The OpenAPI 3.1 document of all functions, which a test writes. Making it at run time would link every function into
/// this one (docs/adr/0011).
pub const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

shared::endpoints! {
    handlers: get_health, get_openapi;
    receipt_keys: get_receipt_keys;
}

/// Returns the routes of the deployed function. API Gateway also sends it every request that no route takes, which it
/// refuses with 404, 405 or a redirect.
pub fn default_routes() -> axum::Router<shared::app::App> {
    with_refusals(routes())
}

/// Returns the routes with [`refuse`] for whatever they don't take.
pub fn with_refusals(routes: axum::Router<shared::app::App>) -> axum::Router<shared::app::App> {
    routes.route("/v1/{*rest}", axum::routing::any(refuse)).method_not_allowed_fallback(refuse)
}
