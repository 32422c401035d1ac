//! `/v1/catalog`: asset types, manufacturers and models.

mod asset_types;
mod manufacturers;
mod models;

const READ_ONLY: &[&str] = &["id", "created_at", "updated_at"];

shared::endpoints! {
    asset_types: list_asset_types, create_asset_type, get_asset_type, update_asset_type, delete_asset_type;
    manufacturers: list_manufacturers, create_manufacturer, get_manufacturer, update_manufacturer, delete_manufacturer;
    models: list_models, create_model, get_model, update_model, delete_model;
}
