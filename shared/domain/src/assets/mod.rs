//! Assets: their fields, changes, transitions, tags, labels and statistics.

pub mod asset;
pub mod bound;
pub mod code;
pub mod csv_cell;
pub mod hint;
pub mod label;
pub mod seen;
pub mod stats;
