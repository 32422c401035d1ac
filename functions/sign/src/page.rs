//! The signing page: one document, built from the files in `page`.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use shared::http::openapi::{Describe, InputErrors, Schemas, add_headers};
use shared::http::requests::params::Params;
use shared::http::responses::ApiError;
use shared::http::responses::html::{self, HtmlPage};
use shared::services::App;
use utoipa::openapi::path::Operation;

const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/sign.html"));

/// The page's policy: its own style sheet and script, images that it creates itself, and requests to its own origin.
const POLICY: HeaderValue = HeaderValue::from_static(concat!(
    "default-src 'none'; script-src 'sha256-",
    env!("SCRIPT_HASH"),
    "'; style-src 'sha256-",
    env!("STYLE_HASH"),
    "'; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
));

/// The page, which browsers can cache for 5 minutes.
pub struct SignPage(HtmlPage);

impl IntoResponse for SignPage {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for SignPage {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        HtmlPage::describe(operation, schemas);
        add_headers(operation, "200", &["ETag"]);
    }
}

/// Get the signing page
///
/// For the person who opens a signing link. The link's secret is in the fragment of the page's URL, which browsers don't
/// send. Needs a browser.
#[utoipa::path(get, path = "/sign", tag = "signing", security(()), responses(InputErrors))]
pub async fn get_sign_page(State(_): State<App>, RawQuery(query): RawQuery) -> Result<SignPage, ApiError> {
    Params::parse(query.as_deref().unwrap_or_default())?.finish()?;
    let page = html::page_with_policy(PAGE, POLICY)
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"))
        .with_header(header::ETAG, HeaderValue::from_static(concat!("\"1-", env!("PAGE_TAG"), "\"")));
    Ok(SignPage(HtmlPage(page)))
}
