//! The conventions of the API, the same for every function: a handler's arguments and responses, and the layers around it.
//!
//! [`requests`] has a handler's arguments, [`responses`] its successes, [`error`] its errors.

pub mod base_url;
pub mod bulk;
pub(crate) mod credential_check;
mod dry_run;
pub mod endpoints;
pub mod error;
mod observe;
pub mod openapi;
pub mod requests;
pub mod responses;
mod unmatched;

use crate::app::App;
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_request};
pub(crate) use observe::RequestContext;

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
