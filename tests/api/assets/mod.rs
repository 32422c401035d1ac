//! Assets: single requests, batches, imports, exports, places, scans and labels.

pub mod batch;
pub mod codes;
pub mod custom_fields;
pub mod export;
pub mod import;
pub mod labels;
pub mod places;
pub mod single;
pub mod stats;
pub mod suggest;
pub mod tags;
