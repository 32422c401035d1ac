//! `/v1/catalog`: asset types, manufacturers and models.

mod asset_types;
mod manufacturers;
mod models;

use shared::domain::text::SearchText;
use shared::http::params::{Limit, PageNumber};

/// Read-only fields of catalog entries.
const READ_ONLY: &[&str] = &["id", "created_at", "updated_at"];

shared::query! {
    /// Entries to list.
    pub struct CatalogQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
        /// Search text. Every word must occur in the name or code.
        q: SearchText as SearchText,
    }
}

shared::endpoints! {
    asset_types: list_asset_types, create_asset_type, get_asset_type, update_asset_type, delete_asset_type;
    manufacturers: list_manufacturers, create_manufacturer, get_manufacturer, update_manufacturer, delete_manufacturer;
    models: list_models, create_model, get_model, update_model, delete_model;
}
