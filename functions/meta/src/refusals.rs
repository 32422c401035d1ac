//! 405 for the paths of other functions.

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use shared::app::App;
use shared::http::error::ApiError;
use utoipa::openapi::PathItem;

/// Refuses every method of a path that has these.
pub(crate) fn of(item: &PathItem) -> MethodRouter<App> {
    let known = [
        ("GET,HEAD", item.get.is_some()),
        ("POST", item.post.is_some()),
        ("PATCH", item.patch.is_some()),
        ("DELETE", item.delete.is_some()),
    ];
    let names: Vec<&str> = known.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
    let allow = names.join(",");
    any(async move |request: Request| refuse(&request, &allow))
}

fn refuse(request: &Request, allow: &str) -> Response {
    let method = request.method().as_str();
    if allow.split(',').any(|known| known == method) {
        // The gateway has a route for it, unless the path is written in a way that the gateway reads otherwise.
        tracing::warn!("the gateway gave a request of another function's to this one: is it in template.yaml?");
        return ApiError::NotFound.into_response();
    }
    let mut response = ApiError::MethodNotAllowed.into_response();
    response.headers_mut().extend(HeaderValue::try_from(allow).ok().map(|allow| (header::ALLOW, allow)));
    response
}
