//! The layer around all routes: request IDs, log lines, stored responses, and the rendering of errors and panics. It ends a
//! request while there is still time to respond.

use super::dry_run::into_dry_run;
use super::error::{ApiError, ConflictCode};
use super::requests::extract::list_header;
use super::responses::ApiResponse;
use crate::app::App;
use crate::domain::keys::lease::Rate;
use crate::domain::request::{ERASED, IdempotentRequest, StoredResponse, if_none_match_contains};
use crate::domain::values::id::{ApiKeyId, LinkId, TenantId};
use crate::log::error_chain;
use crate::store::{DryRun, PreviousRequest, TenantStore, with_deadline};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use lambda_http::RequestExt;
use serde_json::Value;
use std::any::Any;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Marks a response that was stored when the same request came before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The time that an error waits for the stored response of the same request.
const STORED_RESPONSE_TIMEOUT: Duration = Duration::from_millis(400);
/// The time between the end of a request and Lambda's deadline. Lambda stops a function at its deadline, and the client would get
/// a response of API Gateway's without a request ID.
const MARGIN: Duration = Duration::from_millis(500);

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

/// Runs a request until shortly before Lambda's deadline for it, and then responds with 503. Operations under way are dropped:
/// each write is one transaction, so it takes effect as a whole or not at all. Outside of Lambda there is no deadline.
pub(super) async fn end_in_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(deadline) = request.lambda_context_ref().map(|context| context.deadline) else {
        return next.run(request).await;
    };
    let now = u64::try_from(app.store().now().millis()).unwrap_or_default();
    // Lambda never passes on a deadline in the past; `cargo lambda watch` does, when it has none.
    let Some(left) = deadline.checked_sub(now) else { return next.run(request).await };
    let left = Duration::from_millis(left).saturating_sub(MARGIN);
    let request = with_deadline(tokio::time::Instant::now() + left, next.run(request));
    match tokio::time::timeout(left, request).await {
        Ok(response) => response,
        Err(elapsed) => ApiError::timed_out(elapsed).into_response(),
    }
}

/// Notes on one request, written by the key check and read by the layer around all routes. Each is written once.
#[derive(Clone, Default)]
pub(crate) struct RequestContext(Arc<Notes>);

#[derive(Default)]
struct Notes {
    request_id: String,
    tenant: OnceLock<TenantId>,
    key: OnceLock<ApiKeyId>,
    link: OnceLock<LinkId>,
    rate: OnceLock<Rate>,
    idempotent_request: OnceLock<(TenantStore, IdempotentRequest)>,
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

    /// A problem document, as the response to a part of the request.
    pub(crate) fn problem(&self, error: &ApiError) -> StoredResponse {
        let problem = error.problem(&self.0.request_id);
        StoredResponse::new(problem.status, serde_json::to_string(&problem).unwrap_or_default())
    }

    /// Notes that all parts of the request were executed before.
    pub(crate) fn note_replay(&self) {
        let _ = self.0.replayed.set(());
    }

    /// Marks the response if all parts were executed before.
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

    /// Notes that the request has an idempotency key, and the previous request under it.
    pub(crate) fn note_idempotent_request(
        &self,
        store: TenantStore,
        request: IdempotentRequest,
        previous: Option<PreviousRequest>,
    ) {
        let _ = self.0.idempotent_request.set((store, request));
        if let Some(previous) = previous {
            let _ = self.0.previous.set(previous);
        }
    }

    /// Nothing is written; `dry_run` collects the writes.
    pub(crate) fn note_dry_run(&self, dry_run: DryRun) {
        let _ = self.0.dry_run.set(dry_run);
    }

    /// `None` for a real request.
    fn dry_run(&self) -> Option<&DryRun> {
        self.0.dry_run.get()
    }

    /// The IDs of the caller's tenant, API key and signing link, once verified.
    fn caller(&self) -> [Option<String>; 3] {
        let Notes { tenant, key, link, .. } = &*self.0;
        [tenant.get().map(ToString::to_string), key.get().map(ToString::to_string), link.get().map(ToString::to_string)]
    }

    /// Adds the `X-RateLimit-…` headers, once the key or link is verified. The number of remaining requests is left out if it is
    /// not known.
    fn add_rate_limit(&self, headers: &mut HeaderMap) {
        let Some(rate) = self.0.rate.get() else { return };
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(rate.limit));
        let remaining = rate.remaining().map(HeaderValue::from);
        headers.extend(remaining.map(|remaining| (HeaderName::from_static("x-ratelimit-remaining"), remaining)));
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(rate.reset));
    }

    /// Decides whether a stored response is sent instead of an error, and returns it.
    ///
    /// An error may only mean that the request took effect before, or, after a timeout, that it has now. So the stored
    /// response is looked up for every error of a request with an idempotency key.
    async fn stored_response(&self) -> Option<Response> {
        let (store, request) = self.0.idempotent_request.get()?;
        let previous = match self.0.previous.get() {
            Some(previous) => Some(previous.clone()),
            // The handler may have used up nearly all the time that there is.
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
            // Each part of the request has its stored response.
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
