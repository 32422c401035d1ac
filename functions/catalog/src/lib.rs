//! `/v1/catalog`: asset types, manufacturers and models (contract 5).

mod asset_types;
mod manufacturers;
mod models;

use shared::domain::text::SearchText;
use shared::http::params::{Limit, PageNumber};

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

shared::endpoints! {
    asset_types: list_asset_types, create_asset_type, get_asset_type, update_asset_type, delete_asset_type;
    manufacturers: list_manufacturers, create_manufacturer, get_manufacturer, update_manufacturer, delete_manufacturer;
    models: list_models, create_model, get_model, update_model, delete_model;
}
