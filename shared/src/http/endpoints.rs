//! A function's endpoints, named once: for what serves them, and for the document that describes them.

use crate::app::App;
use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
#[doc(hidden)]
pub use pastey::paste;
#[doc(hidden)]
pub use utoipa_axum::{PathItemExt, router::OpenApiRouter, routes as described};

/// What stands before the path of every endpoint (contract 1, "Base").
pub const BASE: &str = "/v1";

/// Makes `routes()` and `description()` of handlers that have `#[utoipa::path]`, named by their modules.
///
/// A function serves the routes alone: making the descriptions, too, was more than half of its start, and a part of its
/// size (docs/adr/0011).
#[macro_export]
macro_rules! endpoints {
    ($($module:ident: $($handler:ident),+;)+) => {
        $crate::http::endpoints::paste! {
            /// The routes of this function.
            pub fn routes() -> axum::Router<$crate::app::App> {
                let routes = axum::Router::new();
                $($(let routes = $crate::http::endpoints::add::<$module::[<__path_ $handler>], _, _>(routes, $module::$handler);)+)+
                routes
            }
        }

        /// What the OpenAPI document says of them.
        #[must_use]
        pub fn description() -> utoipa::openapi::OpenApi {
            use $crate::http::endpoints::{BASE, OpenApiRouter, described};
            let routes = OpenApiRouter::<$crate::app::App>::new();
            $($(let routes = routes.routes(described!($module::$handler));)+)+
            OpenApiRouter::new().nest(BASE, routes).into_openapi()
        }
    };
}

/// Adds the route that `P` describes.
pub fn add<P: utoipa::Path, H: Handler<T, App>, T: 'static>(routes: Router<App>, handler: H) -> Router<App> {
    let methods = P::methods().iter().map(PathItemExt::to_method_filter).reduce(MethodFilter::or);
    match methods {
        Some(methods) => routes.route(&format!("{BASE}{}", P::path()), on(methods, handler)),
        None => routes,
    }
}
