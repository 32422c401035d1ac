//! Many users at once: batches, imports and exports.

pub mod batch;
pub mod export;
pub mod import;
pub(crate) mod operation;
mod users_in_bulk;
