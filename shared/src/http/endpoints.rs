//! A function's endpoints: routes and OpenAPI document are generated from one list. Also the layers around the routes.

use super::openapi::{self, DescribedHandler, Schemas};
use super::requests::extract::receive;
use super::{base_url, credential_check, dry_run, observe, unmatched};
use crate::app::App;
use axum::Router;
use axum::handler::Handler;
use axum::middleware::{from_fn, from_fn_with_state, map_request};
use axum::routing::{MethodFilter, on};
#[doc(hidden)]
pub use pastey::paste;
// `utoipa::Path` omits the tag of `#[utoipa::path(tag = …)]`; only this trait, which the attribute implements, has it.
use utoipa::__dev::Tags;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{Components, HttpMethod, OpenApi, OpenApiBuilder};

/// The prefix of every endpoint's path.
pub const BASE: &str = "/v1";

/// The service that Lambda, the dev server and the tests run: the routes, with a deadline, a log line and an ID for each request.
pub fn service(routes: Router<App>, app: App) -> Router {
    routes
        .fallback(unmatched::refuse)
        .method_not_allowed_fallback(unmatched::refuse)
        .layer(from_fn(credential_check::join))
        .layer(from_fn(unmatched::lead_to_page))
        .layer(map_request(base_url::refuse_without_one_host))
        .layer(from_fn_with_state(app.clone(), observe::end_in_time))
        .layer(from_fn_with_state(app.clone(), observe::observe))
        .with_state(app)
}

/// Generates `routes()` and `description()` from handlers with `#[utoipa::path]`, listed by module.
///
/// A deployed function calls only `routes()`: building the descriptions took more than half of its start time (docs/adr/0011).
#[macro_export]
macro_rules! endpoints {
    ($($module:ident: $($handler:ident),+;)+) => {
        $crate::http::endpoints::paste! {
            /// Returns the routes of this function.
            pub fn routes() -> axum::Router<$crate::app::App> {
                let routes = axum::Router::new();
                $($(let routes = $crate::http::endpoints::add_route::<$module::[<__path_ $handler>], _, _>(routes, $module::$handler);)+)+
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

pub fn add_route<P: utoipa::Path, H: Handler<T, App>, T: 'static>(routes: Router<App>, handler: H) -> Router<App> {
    let methods = P::methods().iter().map(method_filter).reduce(MethodFilter::or);
    match methods {
        Some(methods) => routes.route(&format!("{BASE}{}", P::path()), on(methods, handler).route_layer(from_fn(receive))),
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
        operation.tags = Some(P::tags().into_iter().map(str::to_owned).collect());
        H::describe(&mut operation, &mut self.schemas);
        let is_read = P::methods().iter().all(|method| *method == HttpMethod::Get);
        if !is_read {
            dry_run::describe(&mut operation);
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
