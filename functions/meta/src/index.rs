//! The index at `/` and `/v1`: links, as JSON, and as a page for browsers.

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use shared::http::responses::{ApiError, ApiResponse, Json, Success, html};

const STYLE: &str = include_str!("../templates/index.css");

#[derive(Clone, Copy, Serialize, Template)]
#[template(path = "index.html")]
struct Index {
    name: &'static str,
    version: &'static str,
    app: &'static str,
    documentation: &'static str,
    openapi: &'static str,
    health: &'static str,
    #[serde(skip)]
    style: &'static str,
}

const INDEX: Index = Index {
    name: "Asset and Process Lifecycle Service",
    version: env!("CARGO_PKG_VERSION"),
    app: "/v1/app",
    documentation: "/v1/docs",
    openapi: "/v1/openapi.json",
    health: "/v1/health",
    style: STYLE,
};

/// Returns the index in the format that the client prefers.
///
/// # Errors
///
/// Returns [`ApiError::Internal`] if the page can't be rendered, which never happens.
pub async fn get_index(headers: HeaderMap) -> Result<ApiResponse, ApiError> {
    let response = if html::is_wanted(&headers) {
        html::page(INDEX.render().map_err(|error| ApiError::Internal(error.into()))?, STYLE)?
    } else {
        Json(INDEX).to_response()?
    };
    Ok(response.with_header(header::VARY, HeaderValue::from_static("accept")))
}
