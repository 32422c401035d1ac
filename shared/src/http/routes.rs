//! A function's routes and its part of the OpenAPI document, generated from one list of handlers.

use super::middleware::{end_in_time, observe};
use super::openapi::{self, ANY_STATUS, DescribedHandler, Schemas};
use super::received::receive;
use super::responses::{ApiError, html};
use super::unmatched;
use crate::services::App;
use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
#[doc(hidden)]
pub use pastey::paste;
use utoipa::__dev::Tags;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Components, HttpMethod, OpenApi, OpenApiBuilder, RefOr, Required};

/// The prefix of every endpoint's path.
pub const BASE: &str = "/v1";

/// The query parameter that every write has.
pub(super) const DRY_RUN_PARAMETER: &str = "dry_run";

/// The inventory page and the signing page, whose URLs end with a fragment.
const PAGES_WITH_FRAGMENT: [&str; 2] = ["/app", "/sign"];

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
        $crate::http::routes::paste! {
            pub fn routes() -> axum::Router<$crate::services::App> {
                let routes = axum::Router::new();
                $($(let routes = $crate::http::routes::add_route::<$module::[<__path_ $handler>], _, _, _>(routes, $module::$handler);)+)+
                routes
            }

            /// Returns this function's part of the OpenAPI document.
            #[must_use]
            pub fn description() -> utoipa::openapi::OpenApi {
                let mut description = $crate::http::routes::Description::default();
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
