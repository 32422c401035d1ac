//! `/v1/assets`, with histories, labels, imports and exports, and `/v1/stats`, the statistics on assets.

mod bulk;
mod changes;
mod handlers;
mod history;
mod labels;
mod lookup;
mod seen;
mod startable;
mod stats;

use bulk::{batch, by_serial, export, import, suggest};
pub use handlers::AssetView;

shared::endpoints! {
    handlers: list_assets, create_asset, get_asset, get_asset_by_tag, update_asset, delete_asset;
    batch: batch_assets;
    import: import_assets;
    suggest: suggest_asset_import;
    export: export_assets;
    by_serial: put_asset_by_serial;
    history: get_asset_history;
    seen: see_assets;
    startable: list_asset_processes;
    labels: get_asset_label, get_label_page;
    stats: get_stats;
}
