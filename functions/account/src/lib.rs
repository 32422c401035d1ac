//! `/v1/settings`, `/v1/keys` and `/v1/events`: a tenant's own affairs (contract 3 and 5).

mod events;
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
        .routes(routes!(keys::rotate_key))
        .routes(routes!(events::list_events));
    OpenApiRouter::new().nest("/v1", routes)
}
