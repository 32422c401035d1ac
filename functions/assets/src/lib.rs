//! `/v1/assets`: the inventory.

pub mod bulk;
mod commands;
pub mod details;
mod expand;
mod handlers;
mod query;
mod wire;

pub use wire::AssetView;

shared::endpoints! {
    handlers: list_assets, create_asset, get_asset, update_asset, delete_asset;
}
