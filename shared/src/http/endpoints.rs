//! A function's endpoints: routes and OpenAPI document are generated from one list. Also the middleware, which gives each request
//! an ID, a log line and a time limit, stores responses, and renders errors, panics and dry runs. The middleware also receives a
//! request once for all extractors: the body up to a limit, path parameters and query.
//!
//! A request's credential is checked by a task, which the extractor of the credential starts. A handler can read meanwhile, and
//! waits for `Check::passed` before anything with an effect. The middleware sends the handler's response only once the check has
//! passed. Otherwise it sends the error from the check, regardless of the handler's response.

use super::openapi::{self, ANY_STATUS, DescribedHandler, QueryParameters, Schemas};
use super::requests::params::{Params, decode};
use super::responses::{ApiError, ApiResponse, ConflictCode, html};
use super::unmatched;
use crate::app::App;
use crate::domain::keys::api_key::{BearerToken, Credential, Rate};
use crate::domain::record::{ERASED, IdempotentRequest, StoredResponse, if_none_match_contains};
use crate::domain::values::field_error::{ErrorLocation, FieldError};
use crate::domain::values::id::{ApiKeyId, LinkId, TenantId};
use crate::log::error_chain;
use crate::store::{DryRun, PreviousRequest, Reader, with_deadline};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use futures_util::future::{BoxFuture, Shared};
use futures_util::{FutureExt, TryFutureExt};
use http_body_util::BodyExt;
use lambda_http::RequestExt;
#[doc(hidden)]
pub use pastey::paste;
use serde_json::Value;
use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;
use utoipa::__dev::Tags;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Components, HttpMethod, OpenApi, OpenApiBuilder, RefOr, Required};

/// The prefix of every endpoint's path.
pub const BASE: &str = "/v1";

/// The query parameter that every write has.
const DRY_RUN_PARAMETER: &str = "dry_run";

/// Builds the service that Lambda, the dev server and the tests run: the routes, with a deadline, a log line and an ID for each
/// request.
pub fn service(routes: Router<App>, app: App) -> Router {
    routes
        .fallback(unmatched::refuse)
        .method_not_allowed_fallback(unmatched::refuse)
        .layer(from_fn(lead_to_page))
        .layer(map_request(refuse_without_one_host))
        .layer(from_fn_with_state(app.clone(), end_in_time))
        .layer(from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Marks an HTTP/1.1 request with no `Host` header or several, which a server must reject (RFC 9112 §3.2).
#[derive(Debug, Clone, Copy)]
pub struct WithoutOneHost;

async fn refuse_without_one_host(request: Request) -> Result<Request, ApiError> {
    match request.extensions().get::<WithoutOneHost>() {
        Some(WithoutOneHost) => Err(ApiError::Malformed("The request must have one Host header.".to_owned())),
        None => Ok(request),
    }
}

/// Redirects a browser that opens `/v1/assets/by-tag/{tag}` without a key to the inventory page for this tag. Doesn't read the
/// table, so the asset need not exist. Also redirects from a page's URL in which a mail program has encoded the `#`.
async fn lead_to_page(request: Request, next: Next) -> Response {
    match page_of(&request).or_else(|| page_with_fragment(&request)) {
        Some(address) => (StatusCode::FOUND, [(header::LOCATION, address)]).into_response(),
        None => next.run(request).await,
    }
}

fn page_of(request: &Request) -> Option<HeaderValue> {
    let tag = request.uri().path().strip_prefix(BASE)?.strip_prefix("/assets/by-tag/")?;
    let is_tag = !tag.is_empty() && !tag.contains('/');
    let is_person = html::is_wanted(request.headers()) && !request.headers().contains_key(header::AUTHORIZATION);
    if is_look(request) && is_tag && is_person { HeaderValue::try_from(format!("{BASE}/app#/tag/{tag}")).ok() } else { None }
}

/// Returns the page's URL with a `#` instead of `%23`. The part after it, which can be a link's secret, is never logged.
fn page_with_fragment(request: &Request) -> Option<HeaderValue> {
    let path = request.uri().path().strip_prefix(BASE)?;
    let (page, fragment) = PAGES_WITH_FRAGMENT.iter().find_map(|page| {
        let rest = path.strip_prefix(page)?;
        rest.strip_prefix('/').unwrap_or(rest).strip_prefix("%23").map(|fragment| (page, fragment))
    })?;
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    if is_look(request) { HeaderValue::try_from(format!("{BASE}{page}#{fragment}{query}")).ok() } else { None }
}

fn is_look(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// Generates `routes()` and `description()` from handlers with `#[utoipa::path]`, listed by module.
///
/// A deployed function calls only `routes()`: building the descriptions took more than half of its start time (docs/adr/0011).
#[macro_export]
macro_rules! endpoints {
    ($($module:ident: $($handler:ident),+;)+) => {
        $crate::http::endpoints::paste! {
            pub fn routes() -> axum::Router<$crate::app::App> {
                let routes = axum::Router::new();
                $($(let routes = $crate::http::endpoints::add_route::<$module::[<__path_ $handler>], _, _, _>(routes, $module::$handler);)+)+
                routes
            }

            /// Returns this function's part of the OpenAPI document.
            #[must_use]
            pub fn description() -> utoipa::openapi::OpenApi {
                let mut description = $crate::http::endpoints::Description::default();
                $($(description.add::<$module::[<__path_ $handler>], _, _>($module::$handler);)+)+
                description.into_openapi()
            }
        }
    };
}

fn method_filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}

pub fn add_route<P, H, T, A>(routes: Router<App>, handler: H) -> Router<App>
where
    P: utoipa::Path,
    H: Handler<T, App> + DescribedHandler<A>,
    T: 'static,
{
    let methods = P::methods().iter().map(method_filter).reduce(MethodFilter::or);
    let receive = from_fn_with_state(H::QUERY, receive);
    match methods {
        Some(methods) => routes.route(&format!("{BASE}{}", P::path()), on(methods, handler).route_layer(receive)),
        None => routes,
    }
}

#[derive(Default)]
pub struct Description {
    paths: Paths,
    schemas: Schemas,
}

impl Description {
    /// Adds the operation of `P`, with the descriptions of its handler's types.
    pub fn add<P: utoipa::Path + Tags<'static>, H: DescribedHandler<A>, A>(&mut self, _: H) {
        let mut operation = P::operation();
        // `P::operation()` omits the tag of `#[utoipa::path(tag = …)]`.
        operation.tags = Some(P::tags().into_iter().map(str::to_owned).collect());
        H::describe(&mut operation, &mut self.schemas);
        let is_read = P::methods().iter().all(|method| *method == HttpMethod::Get);
        if !is_read {
            describe_dry_run(&mut operation);
        }
        openapi::add_shared_headers(&P::methods(), &mut operation);
        self.paths.add_path_operation(P::path(), P::methods(), operation);
    }

    #[must_use]
    pub fn into_openapi(self) -> OpenApi {
        let mut components = Components::new();
        components.schemas.extend(self.schemas);
        OpenApiBuilder::new().paths(self.paths).components(Some(components)).build()
    }
}

impl ApiError {
    /// Returns a response that carries the error. The middleware, which knows the request ID, renders it.
    fn response(error: Arc<Self>) -> Response {
        let (status, ..) = error.status_code_title();
        let mut response = status.into_response();
        response.extensions_mut().insert(error);
        response
    }

    /// Renders the problem document (RFC 9457).
    fn render(&self, request_id: &str) -> Response {
        let (status, ..) = self.status_code_title();
        let body = serde_json::to_vec(&self.problem(request_id)).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(self, Self::Unauthorized | Self::BadLink(_)) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self, Self::UnsupportedContentCoding) {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        headers.extend(self.retry_after().map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))));
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        Self::response(Arc::new(self))
    }
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The inventory page and the signing page, whose URLs end with a fragment.
const PAGES_WITH_FRAGMENT: [&str; 2] = ["/app", "/sign"];
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

/// Adds the parameter `dry_run` to a write. A creation returns 200 only in a dry run. Only the parameter's description mentions
/// that status, because with a second response schema, generated clients would return one of two types. `4XX` and `5XX` replace
/// the default response, which would also cover the 200. If the operation has a 200 anyway, its description mentions dry runs.
fn describe_dry_run(operation: &mut Operation) {
    let parameter = ParameterBuilder::new()
        .name(DRY_RUN_PARAMETER)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .schema(Some(ObjectBuilder::new().schema_type(Type::Boolean)))
        .description(Some(
            "With `true`, the request is processed as usual, but nothing is written. The response is the error that the request would get, or 200 with `Dry-Run: true` and the body of the real response, even if that is a 201. IDs, \
             asset tags, movement numbers and secrets that are not assigned yet are null.",
        ));
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter.build()));
    let responses = &mut operation.responses.responses;
    if !responses.contains_key("201") {
        return;
    }
    if let Some(RefOr::T(changed)) = responses.get_mut("200") {
        changed.description =
            "Changed. Also the status of a dry run that would create the resource; IDs and tags not yet assigned are then null, regardless of the schema."
                .to_owned();
    } else if let Some(errors) = responses.remove(ANY_STATUS) {
        responses.extend(["4XX", "5XX"].map(|range| (range.to_owned(), errors.clone())));
    }
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

pub(crate) enum ReceivedBody {
    Whole(Bytes),
    /// The body is larger than [`MAX_BODY_BYTES`].
    TooLarge,
    /// The connection ended before the body did.
    Incomplete,
    /// The body was not read, because the request has no credential. Every attempt to use it fails.
    Unread,
}

/// A request before its arguments are parsed.
pub(crate) struct ReceivedRequest {
    /// Path parameters by their name in the route; `None` for bad percent-encoding.
    pub(crate) path: Option<Vec<(String, String)>>,
    /// The text after `?`.
    query: String,
    /// Returns the names of the query parameters that the handler reads; `None` for a handler without a query.
    parameters: Option<QueryParameters>,
    method: Method,
    check: OnceLock<(AbortHandle, Shared<BoxFuture<'static, Checked<()>>>)>,
    pub(crate) content_type: Option<String>,
    /// The body is compressed or has another content coding.
    pub(crate) is_encoded: bool,
    pub(crate) body: ReceivedBody,
}

impl ReceivedRequest {
    /// Returns the query parameters, for a handler that reads them and reports unknown ones. Omits the `dry_run` of a write,
    /// which is already parsed.
    pub(crate) fn params(&self) -> Result<Params, ApiError> {
        Ok(self.read_params()?.0)
    }

    /// Rejects the query of a handler that reads none, and the body of a method without one.
    pub(crate) fn refuse_unread(&self) -> Result<(), ApiError> {
        if self.parameters.is_none() {
            self.read_params()?.0.finish()?;
        }
        self.refuse_body()
    }

    /// Rejects the body of a GET, HEAD or DELETE, whatever its content type. A client that sends one expects an effect, such as a
    /// dry run.
    fn refuse_body(&self) -> Result<(), ApiError> {
        let is_empty = match &self.body {
            _ if !has_no_body(&self.method) => true,
            ReceivedBody::Whole(bytes) => is_empty_object(bytes),
            ReceivedBody::TooLarge | ReceivedBody::Incomplete => false,
            ReceivedBody::Unread => true,
        };
        if is_empty {
            return Ok(());
        }
        let known = match self.parameters {
            Some(parameters) => parameters().join(", "),
            None if self.is_write() => DRY_RUN_PARAMETER.to_owned(),
            None => String::new(),
        };
        let parameters = if known.is_empty() { known } else { format!("; parameters go in the query: {known}") };
        let reason = format!("must be empty: a {} has no body{parameters}", self.method).into();
        Err(ApiError::Invalid(vec![FieldError { location: ErrorLocation::Pointer(String::new()), reason }]))
    }

    fn is_write(&self) -> bool {
        !self.method.is_safe()
    }

    /// Returns a new dry run if the request is one. Invalid parameters are reported later, all together.
    pub(crate) fn dry_run(&self) -> Option<DryRun> {
        self.read_params().is_ok_and(|(_, is_dry_run)| is_dry_run).then(DryRun::default)
    }

    fn read_params(&self) -> Result<(Params, bool), ApiError> {
        let mut params = Params::parse(&self.query)?;
        let is_dry_run = self.is_write() && params.take::<bool>(DRY_RUN_PARAMETER) == Some(true);
        Ok((params, is_dry_run))
    }

    /// Returns a path parameter by its name in the route.
    pub(crate) fn path_parameter(&self, name: &str) -> Result<&str, ApiError> {
        let params = self.path.as_ref().ok_or_else(|| ApiError::Malformed("The URL has bad percent-encoding.".into()))?;
        let found = params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or(ApiError::NotFound)
    }

    /// Returns the body and its media type, without parameters such as `charset`. `missing` is the error's detail if there is no
    /// body.
    pub(in crate::http) fn whole_body(&self, missing: &str) -> Result<(&[u8], &str), ApiError> {
        let bytes = match &self.body {
            ReceivedBody::Whole(bytes) => bytes,
            ReceivedBody::TooLarge => return Err(ApiError::TooLarge),
            ReceivedBody::Incomplete => return Err(ApiError::Malformed("The body ended early.".into())),
            ReceivedBody::Unread => return Err(ApiError::Unauthorized),
        };
        if bytes.is_empty() {
            return Err(ApiError::Malformed(missing.into()));
        }
        if self.is_encoded {
            return Err(ApiError::UnsupportedContentCoding);
        }
        let content_type = self.content_type.as_deref().unwrap_or_default();
        Ok((bytes, media_type(content_type)))
    }
}

/// Stores a [`ReceivedRequest`] in the request's extensions, for the extractors, and runs the handler. Sends the handler's
/// response, or its panic, once the check of the request's credential has passed, and otherwise the error from the check.
async fn receive(State(parameters): State<Option<QueryParameters>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = params.ok().filter(|_| decode(parts.uri.path()).is_ok());
    let is_read = has_credential(&parts.headers) || has_no_body(&parts.method);
    let body = if is_read { receive_body(body).await } else { ReceivedBody::Unread };
    let received = Arc::new(ReceivedRequest {
        path: path.map(|params| params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        parameters,
        method: parts.method.clone(),
        check: OnceLock::new(),
        content_type: parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned),
        is_encoded: list_header(&parts.headers, &header::CONTENT_ENCODING).is_some_and(|codings| !is_identity(&codings)),
        body,
    });
    parts.extensions.insert(Arc::clone(&received));
    respond(next.run(Request::from_parts(parts, Body::empty())), &received).await
}

async fn respond(handler: impl Future<Output = Response>, received: &ReceivedRequest) -> Response {
    let _end = EndOfCheck(received);
    let response = AssertUnwindSafe(handler).catch_unwind().await;
    if let Some((_, check)) = received.check.get() {
        if let Err(error) = check.clone().await {
            return ApiError::response(error);
        }
    } else if response.as_ref().is_ok_and(|response| !response.status().is_client_error())
        && let Err(error) = received.refuse_body()
    {
        // The endpoint needs no credential.
        return error.into_response();
    }
    response.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Joins the lines of a header whose value is a list (RFC 9110 §5.3).
pub(crate) fn list_header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(HeaderValue::to_str).collect::<Result<_, _>>().ok()?;
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Removes parameters such as `charset` from a content type.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Returns the credential in the only `Authorization: Bearer …` header (RFC 6750 §2.1; the scheme is case-insensitive), if
/// well-formed.
pub(crate) fn bearer_token<C: Credential>(headers: &HeaderMap) -> Option<BearerToken<C>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (scheme, token) = values.next()?.to_str().ok()?.split_once(' ')?;
    let is_only = values.next().is_none() && scheme.eq_ignore_ascii_case("bearer");
    BearerToken::parse(token.trim()).filter(|_| is_only)
}

/// Whether there is a credential of any kind, valid or not.
fn has_credential(headers: &HeaderMap) -> bool {
    bearer_token::<ApiKeyId>(headers).is_some() || bearer_token::<LinkId>(headers).is_some()
}

/// Whether requests with this method have no body.
fn has_no_body(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::DELETE)
}

/// Whether a body has only white space, or an object without members.
fn is_empty_object(body: &[u8]) -> bool {
    match body.trim_ascii() {
        [] => true,
        [b'{', inside @ .., b'}'] => inside.trim_ascii().is_empty(),
        _ => false,
    }
}

/// Whether a list of content codings leaves the body unencoded.
fn is_identity(codings: &str) -> bool {
    codings.split(',').map(str::trim).all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
}

/// A larger request body gets a 413.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// A body larger than [`MAX_BODY_BYTES`] is read up to this size and dropped, so that the client gets the 413 instead of a broken
/// connection. API Gateway accepts no larger bodies.
const MAX_BYTES_READ: usize = 10 * 1024 * 1024;

async fn receive_body(mut body: Body) -> ReceivedBody {
    let mut bytes = Vec::new();
    let mut received = 0usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return ReceivedBody::Incomplete };
        let Some(data) = frame.data_ref() else { continue };
        received = received.saturating_add(data.len());
        if received > MAX_BYTES_READ {
            return ReceivedBody::TooLarge;
        }
        if received <= MAX_BODY_BYTES {
            bytes.extend_from_slice(data);
        } else {
            bytes = Vec::new();
        }
    }
    if received > MAX_BODY_BYTES { ReceivedBody::TooLarge } else { ReceivedBody::Whole(bytes.into()) }
}

pub(crate) fn received(parts: &Parts) -> Result<Arc<ReceivedRequest>, ApiError> {
    let received = parts.extensions.get::<Arc<ReceivedRequest>>().cloned();
    received.ok_or_else(|| ApiError::Internal("a route outside http::service".into()))
}

type Checked<T> = Result<T, Arc<ApiError>>;

/// The check of a request's credential, which a task makes. All clones share its result, a `T`.
#[derive(Clone)]
pub(crate) struct Check<T: Clone>(Shared<BoxFuture<'static, Checked<T>>>);

impl<T: Clone + Send + Sync + 'static> Check<T> {
    /// Starts the task, and refuses what the handler doesn't read from the request. The task ends with the request. The errors of
    /// `check` concern the credential and the headers.
    pub(crate) fn start(
        received: &ReceivedRequest,
        check: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<Self, ApiError> {
        let task = tokio::spawn(check.in_current_span().with_current_subscriber());
        let abort = task.abort_handle();
        // A panic of the task is an error of this request alone.
        let result = task.map(|ended| ended.unwrap_or_else(|error| Err(ApiError::Internal(error.into()))));
        let check = result.map_err(Arc::new).boxed().shared();
        let _ = received.check.set((abort, check.clone().map_ok(drop).boxed().shared()));
        received.refuse_unread().map(|()| Self(check))
    }

    /// Waits until the check has passed. Returns [`ApiError::Unauthorized`] if the check fails; the middleware then sends the
    /// check's own error.
    pub(crate) async fn passed(&self) -> Result<T, ApiError> {
        self.0.clone().await.map_err(|_| ApiError::Unauthorized)
    }
}

/// Ends the check with its request. The check's task has the request, so dropping the request doesn't drop the task.
struct EndOfCheck<'a>(&'a ReceivedRequest);

impl Drop for EndOfCheck<'_> {
    fn drop(&mut self) {
        if let Some((abort, _)) = self.0.check.get() {
            abort.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::oneshot;
    use tokio::sync::oneshot::error::TryRecvError;

    /// A request whose check the test completes.
    struct TestRequest {
        received: ReceivedRequest,
        check: Check<()>,
        end: oneshot::Sender<Result<(), ApiError>>,
    }

    fn received() -> ReceivedRequest {
        ReceivedRequest {
            path: Some(Vec::new()),
            query: String::new(),
            parameters: None,
            method: Method::GET,
            check: OnceLock::new(),
            content_type: None,
            is_encoded: false,
            body: ReceivedBody::Unread,
        }
    }

    fn begun() -> TestRequest {
        let (end, ended) = oneshot::channel();
        let received = received();
        let check = Check::start(&received, async { ended.await.unwrap() }).unwrap();
        TestRequest { received, check, end }
    }

    async fn ok() -> Response {
        StatusCode::OK.into_response()
    }

    #[tokio::test]
    async fn response_waits_for_the_check() {
        let request = begun();
        let mut response = pin!(respond(ok(), &request.received));
        assert!(response.as_mut().now_or_never().is_none(), "sent before the check has passed");
        request.end.send(Ok(())).unwrap();
        assert_eq!(response.await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn error_of_the_check_is_sent_whatever_the_handler_says() {
        let panicking = async || -> Response { panic!("a fault of the handler") };
        for handler in [ok().boxed(), async { ApiError::NotFound.into_response() }.boxed(), panicking().boxed()] {
            let request = begun();
            request.end.send(Err(ApiError::Unauthorized)).unwrap();
            assert_eq!(respond(handler, &request.received).await.status(), StatusCode::UNAUTHORIZED);
        }
    }

    #[tokio::test]
    async fn effect_waits_for_the_check_and_does_not_happen_if_that_fails() {
        for is_valid in [true, false] {
            let request = begun();
            let is_written = AtomicBool::new(false);
            let handler = async {
                if let Err(error) = request.check.passed().await {
                    return error.into_response();
                }
                is_written.store(true, Ordering::Relaxed);
                ok().await
            };
            let mut response = pin!(respond(handler, &request.received));
            assert!(response.as_mut().now_or_never().is_none() && !is_written.load(Ordering::Relaxed));
            request.end.send(if is_valid { Ok(()) } else { Err(ApiError::NotFound) }).unwrap();
            let expected = if is_valid { StatusCode::OK } else { StatusCode::NOT_FOUND };
            assert_eq!((response.await.status(), is_written.load(Ordering::Relaxed)), (expected, is_valid));
        }
    }

    #[tokio::test]
    async fn panic_of_the_check_is_a_500() {
        let received = received();
        let check: Check<()> = Check::start(&received, async { panic!("a fault of the check") }).unwrap();
        assert!(check.passed().await.is_err());
        assert_eq!(respond(ok(), &received).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[tokio::test]
    async fn check_ends_with_its_request() {
        let (running, mut ended) = oneshot::channel::<()>();
        let received = Arc::new(received());
        // As the check of a key, it has the request.
        let owned = (running, Arc::clone(&received));
        let check: Check<()> = Check::start(&received, async move {
            let _owned = owned;
            std::future::pending().await
        })
        .unwrap();
        let mut response = Box::pin(respond(ok(), &received));
        assert!(response.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!(ended.try_recv().is_err_and(|error| error == TryRecvError::Empty));
        drop(response);
        assert!(ended.await.is_err() && check.passed().await.is_err());
    }

    #[tokio::test]
    async fn query_of_a_handler_without_one_is_refused_once_the_check_has_passed() {
        for is_valid in [true, false] {
            let received = ReceivedRequest { query: "x=1".into(), ..received() };
            let check = async move { if is_valid { Ok(()) } else { Err(ApiError::Unauthorized) } };
            let refused = Check::start(&received, check).err().unwrap();
            let expected = if is_valid { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::UNAUTHORIZED };
            assert_eq!(respond(async { refused.into_response() }, &received).await.status(), expected);
        }
    }

    #[test]
    fn white_space_and_an_empty_object_count_as_an_empty_body() {
        for body in ["", " \r\n", "{}", " { \n} "] {
            assert!(is_empty_object(body.as_bytes()), "{body:?}");
        }
        for body in ["x", "[]", "{", "}", "null", "{\"dry_run\":true}", "{}{}", "\u{a0}"] {
            assert!(!is_empty_object(body.as_bytes()), "{body:?}");
        }
    }

    #[tokio::test]
    async fn request_without_a_credential_has_nothing_to_wait_for() {
        assert_eq!(respond(ok(), &received()).await.status(), StatusCode::OK);
    }

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
