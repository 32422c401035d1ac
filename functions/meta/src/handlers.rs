//! The endpoints without a key.

use axum::extract::State;
use serde::Serialize;
use shared::app::App;
use shared::http::Answer;
use shared::http::openapi::Open;
use shared::http::reply;
use std::sync::LazyLock;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

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
    reply::json(&Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// The OpenAPI 3.1 document of this API.
#[utoipa::path(get, path = "/openapi.json", tag = "meta", security(()),
    responses((status = 200, description = "This document", body = Object), Open))]
pub async fn get_openapi() -> Answer {
    static DOCUMENT: LazyLock<OpenApi> = LazyLock::new(crate::document);
    reply::json(&*DOCUMENT)
}
