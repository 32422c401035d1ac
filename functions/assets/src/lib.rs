//! `/v1/assets`: the inventory.

pub mod bulk;
mod commands;
mod handlers;
mod startable;
mod wire;

shared::endpoints! {
    handlers: list_assets, create_asset, get_asset, update_asset, delete_asset, get_asset_history;
    startable: list_asset_processes;
}
