//! `/v1/users`: the people that assets are assigned to (contract 4).

mod handlers;
mod wire;

use shared::app::App;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The routes of this function.
#[must_use]
pub fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new().routes(routes!(handlers::list_users, handlers::create_user)).routes(routes!(
        handlers::get_user,
        handlers::update_user,
        handlers::delete_user
    ));
    OpenApiRouter::new().nest("/v1", routes)
}
