//! The conventions of the API, the same for every function: what a handler takes and returns, and what happens around it.
//!
//! [`extract`] has a handler's arguments, [`response`] and [`page`] its successes, [`error`] its errors.

pub mod base_url;
pub mod body;
pub mod bulk;
mod conflict_code;
mod deadline;
pub mod describe;
mod dry_run;
pub mod endpoints;
pub mod error;
mod error_sources;
pub mod extract;
pub mod feed;
mod from_json;
pub mod history;
pub mod html;
pub mod no_body;
mod observe;
pub mod openapi;
pub mod page;
pub mod params;
pub mod problem;
mod read_only;
pub(crate) mod receive;
mod request_notes;
pub mod response;

use crate::app::App;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use error::ApiError;
pub(crate) use observe::list_header;
pub(crate) use request_notes::RequestNotes;

/// What the error of an unknown path says where nothing is known that is like it.
pub const ALL_PATHS: &str = "All paths begin with /v1/; /v1/openapi.json describes them.";

/// Returns the service that Lambda, the dev server and the tests run: the routes, with a deadline, a log line and an ID
/// for each request.
pub fn service(routes: Router<App>, app: App) -> Router {
    routes
        .fallback(async |request: Request| unknown_path(&request, ALL_PATHS))
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed(METHODS_IN_HEADER.to_owned()))
        .layer(from_fn_with_state(app.clone(), deadline::enforce))
        .layer(from_fn_with_state(app.clone(), observe::observe))
        .with_state(app)
}

/// What the error of a method says where nothing else is known.
const METHODS_IN_HEADER: &str = "The Allow header lists the methods of this path.";

/// Returns the response to a path without a route: a redirect to the path without its trailing slash, or 404 with a hint
/// at the paths that there are.
pub fn unknown_path(request: &Request, hint: impl Into<String>) -> Response {
    let path = request.uri().path();
    let unknown = || ApiError::UnknownPath(hint.into()).into_response();
    // Only below /v1/: a Location of `//host` would lead to another site.
    let bare = path.strip_suffix('/').filter(|bare| path.starts_with("/v1/") && !bare.ends_with('/'));
    let Some(bare) = bare else { return unknown() };
    let target = request.uri().query().map_or_else(|| bare.to_owned(), |query| format!("{bare}?{query}"));
    match HeaderValue::try_from(target) {
        Ok(target) => (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, target)]).into_response(),
        Err(_) => unknown(),
    }
}
