//! Pages for people, and graphics: they can't be framed, and load and run nothing, unless a page has a policy of its own.

use super::ApiResponse;
use super::accept::{preferred_language, prefers_html};
use crate::app::App;
use crate::domain::tenants::locale::{Language, Locale};
use crate::domain::values::field_error::ValueError;
use crate::http::error::ApiError;
use crate::http::openapi::describe::{Describe, Schemas, add_content, add_headers, add_response};
use crate::http::requests::params::FromParam;
use crate::http::requests::receive::list_header;
use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64_simd::STANDARD;
use sha2::{Digest, Sha256};
use std::marker::PhantomData;
use utoipa::openapi::path::Operation;
use utoipa::{PartialSchema, ToSchema};

/// The style of pages to print. Their Content-Security-Policy permits this text and no other.
pub const STYLE: &str = "body{font:11pt/1.4 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#111;background:#fff}\
h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:1.5em 0 .4em;break-after:avoid}\
h3{font-size:1em;margin:1em 0 .3em;break-after:avoid}p{margin:.4em 0}\
table{border-collapse:collapse;width:100%;margin:.4em 0 1em}th,td{border:1px solid #999;padding:.35em .5em;text-align:left;\
vertical-align:top;overflow-wrap:anywhere}th{font-weight:600}img{display:block;max-width:min(20em,100%);max-height:10em;background:#fff}\
code{font-size:9pt;overflow-wrap:anywhere}td{white-space:pre-line}tr{break-inside:avoid}.note{font-size:9pt;color:#444}\
@media screen and (max-width:34em){body{margin:1em auto}tr{display:block;border:1px solid #999;margin-bottom:.6em}\
th,td{display:block;border:0;padding:.25em .5em}}\
@media print{@page{margin:16mm}body{margin:0;padding:0;max-width:none}}";

/// The format of what can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = DocumentFormat)]
pub enum Format {
    /// The data.
    Json,
    /// A page to print.
    Html,
}

impl FromParam for Format {
    fn from_param(text: &str) -> Result<Self, ValueError> {
        match text {
            "json" => Ok(Self::Json),
            "html" => Ok(Self::Html),
            _ => Err(ValueError::new("must be json or html")),
        }
    }
}

/// The language that the client asks for with `Accept-Language`, if pages have it.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedLanguage(Option<Language>);

impl AcceptedLanguage {
    #[must_use]
    pub fn or_language_of(self, locale: &Locale) -> Language {
        self.0.unwrap_or_else(|| locale.language())
    }
}

impl FromRequestParts<App> for AcceptedLanguage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let header = list_header(&parts.headers, &header::ACCEPT_LANGUAGE);
        Ok(Self(header.and_then(|header| preferred_language(&header))))
    }
}

impl Describe for AcceptedLanguage {
    /// The descriptions of the operations name the header.
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// A page.
pub struct HtmlPage(pub ApiResponse);

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for HtmlPage {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        add_response(operation, "200", "The page", [("text/html", String::schema())]);
        add_headers(operation, "200", &["Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"]);
    }
}

/// A response `J` as JSON, or what it says as a page to print.
pub struct Printable<J>(ApiResponse, PhantomData<J>);

impl<J> From<ApiResponse> for Printable<J> {
    fn from(response: ApiResponse) -> Self {
        Self(response, PhantomData)
    }
}

impl<J> IntoResponse for Printable<J> {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl<J: Describe> Describe for Printable<J> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        J::describe(operation, schemas);
        add_content(operation, "200", "text/html", String::schema());
    }
}

/// The policy of a graphic. Scripts fall under `default-src`.
const NOTHING: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `style` is the only style sheet, named by its hash (CSP 3 §2.3.1). The page's images are data URLs.
///
/// # Errors
///
/// Returns [`ApiError::Internal`] for a policy that no header can hold, which never happens.
pub fn page(html: String, style: &str) -> Result<ApiResponse, ApiError> {
    let hash = STANDARD.encode_to_string(Sha256::digest(style));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(page_with_policy(html, policy))
}

#[must_use]
pub fn page_with_policy(html: impl Into<Bytes>, policy: HeaderValue) -> ApiResponse {
    let referrer = (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));
    ApiResponse::new("text/html; charset=utf-8", html)
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(referrer.0, referrer.1)
        .with_header(header::CONTENT_SECURITY_POLICY, policy)
}

/// The client wants a page rather than JSON, as browsers do.
#[must_use]
pub fn is_wanted(headers: &HeaderMap) -> bool {
    list_header(headers, &header::ACCEPT).is_some_and(|accept| prefers_html(&accept))
}

/// A file to show. It would be saved under `name`, with `_` for all but ASCII letters, digits, `-` and `.`, and the extension.
///
/// # Errors
///
/// Returns [`ApiError::Internal`] for a name that no header can hold, which never happens.
pub fn file(content_type: &'static str, content: impl Into<Bytes>, name: &str, extension: &str) -> Result<ApiResponse, ApiError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let disposition = format!("inline; filename=\"{name}.{extension}\"");
    let disposition = HeaderValue::try_from(disposition).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(ApiResponse::new(content_type, content)
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .with_header(header::CONTENT_DISPOSITION, disposition)
        .with_header(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING)))
}
