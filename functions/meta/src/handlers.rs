//! The endpoints without a key.

use axum::extract::State;
use serde::Serialize;
use shared::app::App;
use shared::http::Answer;
use shared::http::openapi::Open;
use shared::http::response::{self, Reply};
use std::sync::LazyLock;
use utoipa::ToSchema;

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`; otherwise the answer is a problem.
    status: &'static str,
    /// The version of this service.
    version: &'static str,
}

/// Says whether the service and its table answer.
#[utoipa::path(get, path = "/health", tag = "meta", security(()),
    responses((status = 200, description = "All is well", body = Health),
        (status = 503, description = "The table does not answer", body = shared::http::problem::Problem,
            content_type = "application/problem+json"), Open))]
pub async fn get_health(State(app): State<App>) -> Answer {
    app.store().ping().await?;
    response::json(&Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// The OpenAPI 3.1 document of this API.
#[utoipa::path(get, path = "/openapi.json", tag = "meta", security(()),
    responses((status = 200, description = "This document", body = Object), Open))]
pub async fn get_openapi() -> Answer {
    // StoredResponse with line breaks, for reading what changes in it; sent without.
    static COMPACT: LazyLock<String> = LazyLock::new(|| {
        let document: Option<serde_json::Value> = serde_json::from_str(crate::DOCUMENT).ok();
        document.map_or_else(|| crate::DOCUMENT.to_owned(), |document| document.to_string())
    });
    Ok(Reply::bytes("application/json", COMPACT.as_str()))
}
