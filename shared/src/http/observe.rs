//! The layer around all routes: request IDs, log lines, and the rendering of errors and panics.

use super::dry_run::into_dry_run;
use super::error::ApiError;
use super::request_context::RequestContext;
use super::requests::receive::list_header;
use crate::app::App;
use crate::domain::request::if_none_match_contains;
use crate::log::error_chain;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use lambda_http::RequestExt;
use std::any::Any;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Gives a request its ID, runs it, renders its error and logs one line about it. A log line never contains a body, a
/// query, a key or a name.
pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = request_id(&app, &request);
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let notes = RequestContext::new(request_id.clone());
    request.extensions_mut().insert(notes.clone());

    let if_none_match = list_header(request.headers(), &header::IF_NONE_MATCH);
    let outcome = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = outcome.unwrap_or_else(|panic| ApiError::Internal(panic_text(&*panic).into()).into_response());
    if response.extensions().get::<Arc<ApiError>>().is_some()
        && let Some(stored) = notes.stored_response().await
    {
        response = stored;
    }
    if method == Method::GET || method == Method::HEAD {
        response = not_modified(response, if_none_match.as_deref());
    }
    let error = response.extensions_mut().remove::<Arc<ApiError>>();
    if let Some(error) = &error {
        let allow = response.headers_mut().remove(header::ALLOW);
        response = error.render(&request_id);
        response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    }
    if let Some(dry_run) = notes.dry_run() {
        response = into_dry_run(response, dry_run).await;
    }
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(&request_id).ok().map(|id| (REQUEST_ID, id)));
    // Only files that never change may be stored.
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    notes.add_rate_limit(headers);
    notes.add_replayed(headers);

    let status = response.status().as_u16();
    let caller = notes.caller();
    let [tenant, key, link] = caller.each_ref().map(|id| id.as_deref());
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match error.as_deref().and_then(|error| error.source().map(error_chain)) {
        Some(cause) => {
            tracing::error!(request_id, %method, route, status, duration_ms, tenant_id = tenant, key_id = key, link_id = link, cause, "{method} {route} failed with {status}");
        }
        None => {
            tracing::info!(request_id, %method, route, status, duration_ms, tenant_id = tenant, key_id = key, link_id = link, "{method} {route} answered {status}");
        }
    }
    response
}

/// Turns a response into a 304 if `If-None-Match` names its `ETag`. A header that is not a list of entity tags names
/// none.
fn not_modified(response: Response, if_none_match: Option<&str>) -> Response {
    let names = |tag: &HeaderValue| if_none_match_contains(if_none_match?, tag.to_str().ok()?).ok();
    match response.headers().get(header::ETAG) {
        Some(tag) if response.status() == StatusCode::OK && names(tag) == Some(true) => {
            let mut short = (StatusCode::NOT_MODIFIED, [(header::ETAG, tag.clone())]).into_response();
            let cache_control = response.headers().get(header::CACHE_CONTROL).cloned();
            short.headers_mut().extend(cache_control.map(|value| (header::CACHE_CONTROL, value)));
            short
        }
        _ => response,
    }
}

/// Lambda's request ID, so that its log lines and ours are found together; outside of Lambda, a new ID.
fn request_id(app: &App, request: &Request) -> String {
    match request.lambda_context_ref() {
        Some(context) => context.request_id.clone(),
        None => app.request_id(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("no message"))
}
