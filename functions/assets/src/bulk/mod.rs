//! Many assets at once: batches, imports, exports, and upserts by serial number.

pub mod batch;
pub mod by_serial;
pub mod export;
pub mod import;
mod row;
pub mod suggest;
