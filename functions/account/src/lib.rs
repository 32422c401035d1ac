//! `/v1/settings` and `/v1/keys`: a tenant's own affairs (contract 3 and 5).

mod key_wire;
mod keys;
mod settings;

use shared::app::App;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The routes of this function.
#[must_use]
pub fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
        .routes(routes!(settings::get_settings, settings::update_settings))
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::get_key, keys::delete_key))
        .routes(routes!(keys::rotate_key));
    OpenApiRouter::new().nest("/v1", routes)
}
