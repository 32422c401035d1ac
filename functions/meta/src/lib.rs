//! What needs no key: `/v1/health`, `/v1/openapi.json` and the public keys of receipts; and the answers for what no route
//! takes.

mod fallback;
mod handlers;
mod receipt_keys;

/// The OpenAPI 3.1 document of every function, as a test writes it: a function that made it from the routes of all
/// would have to link all of them (docs/adr/0011).
pub const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

shared::endpoints! {
    handlers: get_health, get_openapi;
    receipt_keys: get_receipt_keys;
}

/// What the function serves: its own routes and, since the gateway gives it whatever no route takes, the 405 of the
/// paths of the others.
pub fn default_routes() -> axum::Router<shared::app::App> {
    routes().route("/v1/{*rest}", axum::routing::any(fallback::refuse))
}
