//! The signing page, and the endpoints that it calls with a signing link's secret instead of an API key.
//!
//! The handlers of these endpoints are in the crate `processes`, next to the rules that they share. They run in a separate
//! function, together with the page, so that a widely shared link slows down nobody else (docs/adr/0019).

mod page;

use axum::Router;
use shared::services::App;
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
