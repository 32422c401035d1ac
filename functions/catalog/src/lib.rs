//! `/v1/catalog`: asset types, manufacturers and models (contract 5).

mod asset_types;
mod manufacturers;
mod models;

use shared::app::App;
use shared::domain::text::SearchText;
use shared::http::params::{Limit, PageNumber};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Fields of a catalog entry that nobody sets.
const READ_ONLY: &[&str] = &["id", "created_at", "updated_at"];

shared::query! {
    /// Which entries to list.
    pub struct CatalogQuery {
        /// Page number; default 1.
        page: PageNumber as PageNumber,
        /// Items per page; default 20, maximum 100.
        limit: Limit as Limit,
        /// Search by name (and code); every word must occur.
        q: SearchText as SearchText,
    }
}

/// The routes of this function.
#[must_use]
pub fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
        .routes(routes!(asset_types::list_asset_types, asset_types::create_asset_type))
        .routes(routes!(asset_types::get_asset_type, asset_types::update_asset_type, asset_types::delete_asset_type))
        .routes(routes!(manufacturers::list_manufacturers, manufacturers::create_manufacturer))
        .routes(routes!(manufacturers::get_manufacturer, manufacturers::update_manufacturer, manufacturers::delete_manufacturer))
        .routes(routes!(models::list_models, models::create_model))
        .routes(routes!(models::get_model, models::update_model, models::delete_model));
    OpenApiRouter::new().nest("/v1", routes)
}
