//! Many users at once: batches, imports and exports.

pub mod batch;
pub mod export;
pub mod import;
pub mod suggest;
