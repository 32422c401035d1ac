//! The conventions of the interface, for every function alike (contract 1 and 2).

pub mod body;
mod deadline;
pub mod endpoints;
pub mod error;
pub mod history;
mod observe;
pub mod openapi;
pub mod params;
pub mod problem;
mod request_notes;
pub mod response;

use crate::app::App;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use error::ApiError;
pub(crate) use observe::{chain, listed};
pub(crate) use request_notes::RequestNotes;

/// What a handler gives.
pub type Answer = Result<response::Reply, ApiError>;

/// Turns routes into the service that Lambda, the dev server and the tests all run.
pub fn service(routes: Router<App>, app: App) -> Router {
    routes
        .fallback(unmatched)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(from_fn_with_state(app.clone(), deadline::keep))
        .layer(from_fn_with_state(app.clone(), observe::observe))
        .with_state(app)
}

/// What a path that no route has is answered with: 404, or 308 where only a slash at the end is too much (contract 1, "Base").
pub async fn unmatched(request: Request) -> Response {
    let path = request.uri().path();
    // Only below /v1/: a Location of `//host` would lead off the site.
    let bare = path.strip_suffix('/').filter(|bare| bare.starts_with("/v1/") && !bare.ends_with('/'));
    let Some(bare) = bare else { return ApiError::NotFound.into_response() };
    let target = request.uri().query().map_or_else(|| bare.to_owned(), |query| format!("{bare}?{query}"));
    match HeaderValue::try_from(target) {
        Ok(target) => (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, target)]).into_response(),
        Err(_) => ApiError::NotFound.into_response(),
    }
}
