//! Requests for many records at once: batches, imports and exports.

pub mod export;
pub mod import;
pub mod operations;
pub mod rows;
pub mod suggest;
