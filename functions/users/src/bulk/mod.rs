//! Many users at once: batches, imports and exports.

mod batch;
mod export;
mod import;
mod operation;
mod users_in_bulk;

shared::endpoints! {
    batch: batch_users;
    import: import_users;
    export: export_users;
}
