//! Requests about many records at once: batches, imports and exports.

pub mod batch;
pub mod export;
pub mod import;
pub mod matching;
pub mod operations;
pub mod rows;
pub mod rows_body;
