//! The endpoints that need no API key.

use axum::extract::State;
use serde::Serialize;
use shared::http::openapi::InputErrors;
use shared::http::responses::{ApiError, ApiResponse, Json};
use shared::services::App;
use utoipa::ToSchema;

/// The state of the service.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`. If the service is unhealthy, the response is a problem document.
    status: &'static str,
    /// Version of the service.
    version: &'static str,
}

/// Check the health of the service
///
/// Checks that the service and its table respond.
#[utoipa::path(get, path = "/health", tag = "meta", security(()), responses(InputErrors))]
pub async fn get_health(State(app): State<App>) -> Result<Json<Health>, ApiError> {
    app.store().ping().await?;
    Ok(Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }))
}

/// Get the OpenAPI document
///
/// OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "meta", security(()),
    responses((status = 200, description = "OK", body = Object), InputErrors))]
pub async fn get_openapi(State(_): State<App>) -> Result<ApiResponse, ApiError> {
    Ok(ApiResponse::new("application/json", crate::DOCUMENT))
}
