//! Assets: their fields, changes, transitions, tags, labels and statistics.

pub mod asset;
pub mod asset_tag;
pub mod change;
pub mod csv_cell;
pub mod details;
pub mod groups;
pub mod label;
pub mod label_url;
pub mod listed;
pub mod location;
pub mod seen;
pub mod stats;
pub mod tag;
pub mod transitions;
