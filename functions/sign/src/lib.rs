//! The signing page, and the endpoints that it calls with the secret of a signing link instead of an API key.
//!
//! The handlers of the calls are in the crate `processes`, beside the rules that they share. They are a function of their own,
//! with the page, so that a link in many hands slows down nobody else (docs/adr/0019).

mod page;

use axum::Router;
use shared::app::App;
use utoipa::openapi::OpenApi;

mod endpoints {
    use super::page;

    shared::endpoints! {
        page: get_sign_page;
    }
}

pub fn routes() -> Router<App> {
    endpoints::routes().merge(processes::signing::routes())
}

#[must_use]
pub fn description() -> OpenApi {
    let mut description = endpoints::description();
    description.merge(processes::signing::description());
    description
}
