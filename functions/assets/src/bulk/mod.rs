//! Many assets at once: batches, imports, exports, and upserts by serial number.

mod assets_in_bulk;
pub mod batch;
pub mod by_serial;
pub mod export;
pub mod import;
pub(crate) mod operation;
mod references;
mod row;
pub(crate) mod write;
