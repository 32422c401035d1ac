//! Many assets at once: batches, imports, exports, and upserts by serial number.

mod assets_in_bulk;
mod batch;
mod by_serial;
mod export;
mod import;
mod operation;
mod references;
mod row;

shared::endpoints! {
    batch: batch_assets;
    import: import_assets;
    export: export_assets;
    by_serial: put_asset_by_serial;
}
