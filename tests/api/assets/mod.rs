//! Assets: single requests, batches, imports, exports, places, scans and labels.

pub mod batch;
pub mod custom_fields;
pub mod expand;
pub mod export;
pub mod groups;
pub mod import;
pub mod import_interrupted;
pub mod import_matching;
pub mod labels;
pub mod labels_printed;
pub mod places;
pub mod private_names;
pub mod seen;
pub mod single;
pub mod stats;
pub mod tags;
pub mod upsert;
