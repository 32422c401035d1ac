//! Leads people who scanned the address of a label to the inventory's page.

use super::endpoints::BASE;
use super::responses::html;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// A browser that opens `/v1/assets/by-tag/{tag}` has no key: it is redirected to the page at this tag, whether or not an asset
/// has it. Nothing is read.
pub(super) async fn lead_to_page(request: Request, next: Next) -> Response {
    match page_of(&request) {
        Some(address) => (StatusCode::FOUND, [(header::LOCATION, address)]).into_response(),
        None => next.run(request).await,
    }
}

fn page_of(request: &Request) -> Option<HeaderValue> {
    let tag = request.uri().path().strip_prefix(BASE)?.strip_prefix("/assets/by-tag/")?;
    let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_tag = !tag.is_empty() && !tag.contains('/');
    let is_person = html::is_wanted(request.headers()) && !request.headers().contains_key(header::AUTHORIZATION);
    if is_look && is_tag && is_person { HeaderValue::try_from(format!("{BASE}/app#/tag/{tag}")).ok() } else { None }
}
