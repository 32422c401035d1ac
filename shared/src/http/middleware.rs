//! What surrounds every request: an ID, a log line, a time limit, the stored response of an earlier attempt, and the rendering of
//! errors, panics and dry runs.

use super::received::list_header;
use super::responses::{ApiError, ApiResponse, ConflictCode};
use crate::domain::keys::api_key::Rate;
use crate::domain::record::{ERASED, IdempotentRequest, StoredResponse, if_none_match_contains};
use crate::domain::values::id::{ApiKeyId, LinkId, TenantId};
use crate::log::error_chain;
use crate::services::App;
use crate::store::{DryRun, PreviousRequest, Reader, with_deadline};
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use lambda_http::RequestExt;
use serde_json::Value;
use std::any::Any;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Header that marks a replayed response: an earlier attempt has stored it.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Time limit for the lookup of a stored response after an error. If the lookup takes longer, the response is a 503.
const STORED_RESPONSE_TIMEOUT: Duration = Duration::from_millis(400);
/// Time left until Lambda's deadline when a request is aborted. At the deadline, Lambda stops the function, and the client would
/// get API Gateway's response, without a request ID.
const MARGIN: Duration = Duration::from_millis(500);

/// Assigns a request ID, runs the request, renders its error and logs one line. A log line never contains a body, a query, a key
/// or a name.
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
    // A response may be cached only if its handler sets `Cache-Control`.
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

/// Turns a response into a 304 if `If-None-Match` contains its `ETag`. Ignores a header that isn't a list of entity tags.
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

/// Header of the response to a dry run.
const DRY_RUN: HeaderName = HeaderName::from_static("dry-run");

/// Turns a response into a dry run's response. In JSON, null replaces values that only the real request would assign. A success
/// gets the header `Dry-Run` and status 200, and loses `Location` and `ETag`.
async fn into_dry_run(response: Response, dry_run: &DryRun) -> Response {
    let (mut parts, body) = response.into_parts();
    let content_type = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_json = matches!(content_type, Some(b"application/json" | b"application/problem+json"));
    let body = match is_json {
        // A handler's body is in memory and can't fail.
        true => Body::from(with_nulls(&body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(), dry_run)),
        false => body,
    };
    if parts.status.is_success() {
        parts.headers.insert(DRY_RUN, HeaderValue::from_static("true"));
        parts.headers.remove(header::LOCATION);
        parts.headers.remove(header::ETAG);
        parts.status = StatusCode::OK;
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body)
}

/// Replaces placeholders with null, but not in member names. Works on the text, so that numbers keep their digits.
fn with_nulls(json: &[u8], dry_run: &DryRun) -> Vec<u8> {
    let mut written = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let (before, string) = rest.split_at(start);
        let (string, after) = string.split_at(string_len(string));
        // Placeholders have no characters that JSON escapes.
        let text = string.get(1..string.len() - 1).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        let is_name = after.first() == Some(&b':');
        written.extend_from_slice(before);
        written.extend_from_slice(if !is_name && dry_run.is_placeholder(text) { b"null" } else { string });
        rest = after;
    }
    written.extend_from_slice(rest);
    written
}

/// Returns the length of the JSON string at the start of `json`, including its quotes.
fn string_len(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Returns Lambda's request ID, which Lambda's own log lines contain, too. Outside Lambda, returns a new ID.
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

/// Responds with 503 if the request is still running shortly before Lambda's deadline. Operations in flight are dropped: each
/// write is one transaction, so it takes effect completely or not at all. Outside Lambda, there is no deadline.
pub(super) async fn end_in_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(deadline) = request.lambda_context_ref().map(|context| context.deadline) else {
        return next.run(request).await;
    };
    let now = u64::try_from(app.store().now().millis()).unwrap_or_default();
    // `cargo lambda watch` passes a deadline in the past if it has none. Lambda never does.
    let Some(left) = deadline.checked_sub(now) else { return next.run(request).await };
    let left = Duration::from_millis(left).saturating_sub(MARGIN);
    let request = with_deadline(tokio::time::Instant::now() + left, next.run(request));
    match tokio::time::timeout(left, request).await {
        Ok(response) => response,
        Err(elapsed) => ApiError::timed_out(elapsed).into_response(),
    }
}

/// Notes about one request, written by the key check and read by the middleware. Each note is written once.
#[derive(Clone, Default)]
pub(crate) struct RequestContext(Arc<Notes>);

#[derive(Default)]
struct Notes {
    request_id: String,
    tenant: OnceLock<TenantId>,
    key: OnceLock<ApiKeyId>,
    link: OnceLock<LinkId>,
    rate: OnceLock<Rate>,
    idempotent_request: OnceLock<(Reader, IdempotentRequest)>,
    previous: OnceLock<PreviousRequest>,
    replayed: OnceLock<()>,
    dry_run: OnceLock<DryRun>,
}

impl RequestContext {
    fn new(request_id: String) -> Self {
        Self(Arc::new(Notes { request_id, ..Notes::default() }))
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.0.request_id
    }

    /// Renders an error as the response to one part of the request.
    pub(crate) fn problem(&self, error: &ApiError) -> StoredResponse {
        let problem = error.problem(&self.0.request_id);
        StoredResponse::new(problem.status, serde_json::to_string(&problem).unwrap_or_default())
    }

    /// Notes that an earlier attempt executed all parts of the request.
    pub(crate) fn note_replay(&self) {
        let _ = self.0.replayed.set(());
    }

    fn add_replayed(&self, headers: &mut HeaderMap) {
        headers.extend(self.0.replayed.get().map(|()| (REPLAYED, HeaderValue::from_static("true"))));
    }

    pub(crate) fn note_caller(&self, tenant: TenantId, key: ApiKeyId) {
        let _ = self.0.tenant.set(tenant);
        let _ = self.0.key.set(key);
    }

    pub(crate) fn note_signer(&self, tenant: TenantId, link: LinkId) {
        let _ = self.0.tenant.set(tenant);
        let _ = self.0.link.set(link);
    }

    pub(crate) fn note_rate(&self, rate: Rate) {
        let _ = self.0.rate.set(rate);
    }

    pub(crate) fn note_idempotent_request(&self, store: Reader, request: IdempotentRequest, previous: Option<PreviousRequest>) {
        let _ = self.0.idempotent_request.set((store, request));
        if let Some(previous) = previous {
            let _ = self.0.previous.set(previous);
        }
    }

    /// Notes that the request is a dry run. `dry_run` collects the writes that a real request would make.
    pub(crate) fn note_dry_run(&self, dry_run: DryRun) {
        let _ = self.0.dry_run.set(dry_run);
    }

    /// Returns the planned writes of a dry run; `None` for a real request.
    fn dry_run(&self) -> Option<&DryRun> {
        self.0.dry_run.get()
    }

    /// Returns the IDs of the caller's tenant, API key and signing link, once verified.
    fn caller(&self) -> [Option<String>; 3] {
        let Notes { tenant, key, link, .. } = &*self.0;
        [tenant.get().map(ToString::to_string), key.get().map(ToString::to_string), link.get().map(ToString::to_string)]
    }

    /// Adds the `X-RateLimit-…` headers if the key or link is verified. Omits the number of remaining requests if it is unknown.
    fn add_rate_limit(&self, headers: &mut HeaderMap) {
        let Some(rate) = self.0.rate.get() else { return };
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(rate.limit));
        let remaining = rate.remaining().map(HeaderValue::from);
        headers.extend(remaining.map(|remaining| (HeaderName::from_static("x-ratelimit-remaining"), remaining)));
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(rate.reset));
    }

    /// Returns the stored response if it must be sent instead of an error.
    ///
    /// An error can mean that the request took effect in an earlier attempt or, after a timeout, in this attempt. So every error
    /// of a request with an idempotency key looks up the stored response.
    async fn stored_response(&self) -> Option<Response> {
        let (store, request) = self.0.idempotent_request.get()?;
        let previous = match self.0.previous.get() {
            Some(previous) => Some(previous.clone()),
            // The handler may have used nearly all of the request's time.
            None => match tokio::time::timeout(STORED_RESPONSE_TIMEOUT, store.previous_request(request)).await {
                Ok(Ok(previous)) => previous,
                Ok(Err(error)) => return Some(ApiError::from(error).into_response()),
                Err(elapsed) => return Some(ApiError::timed_out(elapsed).into_response()),
            },
        };
        match previous? {
            PreviousRequest::Different => {
                Some(ApiError::idempotency_key("was already used for a different request").into_response())
            }
            // A request whose parts are committed separately has a stored response per part.
            PreviousRequest::Same(stored) if stored.is_in_parts => None,
            PreviousRequest::Same(stored) if *stored == StoredResponse::erased() => {
                Some(ApiError::conflict(ConflictCode::Conflict, ERASED, Value::Null).into_response())
            }
            PreviousRequest::Same(stored) => {
                let mut response = ApiResponse::from_stored(*stored).into_response();
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                Some(response)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dry_run(texts: &[&str]) -> DryRun {
        let dry_run = DryRun::default();
        texts.iter().for_each(|text| dry_run.add_placeholder(*text));
        dry_run
    }

    #[test]
    fn placeholders_become_null_and_everything_else_stays() {
        let known = dry_run(&["id-1", "id-2"]);
        for (json, expected) in [
            (r#"{"id":"id-1","of":["id-2","id-3"]}"#, r#"{"id":null,"of":[null,"id-3"]}"#),
            (r#"{"a":"","b":"id-1"}"#, r#"{"a":"","b":null}"#),
            (r#"{"id-1":"id-1","price":1249.00}"#, r#"{"id-1":null,"price":1249.00}"#),
            (r#"{"a":"\"id-1\"","b":"\\","c":"id-1"}"#, r#"{"a":"\"id-1\"","b":"\\","c":null}"#),
            (r#"{"path":"/v1/assets/id-1","text":"see id-1"}"#, r#"{"path":null,"text":"see id-1"}"#),
            (r#""id-1""#, "null"),
            ("[]", "[]"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(with_nulls(json.as_bytes(), &known)).unwrap(), expected, "{json}");
        }
    }
}
