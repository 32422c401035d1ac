//! The signing page.

use axum::extract::State;
use shared::app::App;
use shared::http::error::ApiError;
use shared::http::openapi::OpenErrors;
use shared::http::response::ApiResponse;

/// Get the signing page
///
/// For the person who opens a signing link. The link's secret is in the fragment of the page's address, which browsers don't
/// send. Needs a browser.
#[utoipa::path(get, path = "/sign", tag = "signing", security(()),
    responses((status = 200, description = "The page", content_type = "text/html", body = String), OpenErrors))]
pub async fn get_sign_page(State(_): State<App>) -> Result<ApiResponse, ApiError> {
    Ok(ApiResponse::new("text/html; charset=utf-8", ""))
}
