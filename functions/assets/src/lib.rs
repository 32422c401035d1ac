//! `/v1/assets`: the inventory (interface 4.1 to 4.5).

mod handlers;
mod startable;
mod wire;
mod work;

use shared::app::App;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The routes of this function.
#[must_use]
pub fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new().routes(routes!(handlers::list_assets, handlers::create_asset)).routes(routes!(
        handlers::get_asset,
        handlers::update_asset,
        handlers::delete_asset
    ));
    let routes = routes.routes(routes!(startable::list_asset_processes)).routes(routes!(handlers::get_asset_history));
    OpenApiRouter::new().nest("/v1", routes)
}
