//! The documentation page: the OpenAPI document in a viewer that can send requests (docs/adr/0018).

use crate::packed;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use shared::http::openapi::InputErrors;
use shared::http::responses::html::{self, HtmlPage};
use shared::http::responses::{ApiError, ApiResponse};
use shared::services::App;

/// The viewer's script, compressed with gzip.
static VIEWER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/viewer.js.gz"));

/// Path of the viewer's script, which changes with its contents.
pub const VIEWER_PATH: &str = concat!("/v1/docs/viewer-", env!("VIEWER_VERSION"), ".js");

/// The page's policy: scripts and requests only from and to its own origin. The viewer creates its style sheets at run time, and
/// shows images in responses as blobs.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage {
    viewer: &'static str,
}

/// Get the documentation page
///
/// Shows this document and sends requests. Needs a browser.
#[utoipa::path(get, path = "/docs", tag = "meta", security(()), responses(InputErrors))]
pub async fn get_docs(State(_): State<App>) -> Result<HtmlPage, ApiError> {
    let page = DocsPage { viewer: VIEWER_PATH }.render().map_err(|error| ApiError::Internal(error.into()))?;
    Ok(HtmlPage(html::page_with_policy(page, POLICY)))
}

/// # Errors
///
/// Returns [`ApiError::Internal`] if the script can't be decompressed, which never happens.
pub async fn get_viewer(headers: HeaderMap) -> Result<ApiResponse, ApiError> {
    packed::response(&headers, "text/javascript; charset=utf-8", VIEWER)
}
