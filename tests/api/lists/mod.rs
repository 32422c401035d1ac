//! Lists, their index and its snapshots.

pub mod filters;
pub mod index;
pub mod index_edges;
pub mod index_instances;
pub mod index_loads;
pub mod index_model;
pub mod index_races;
pub mod index_torn;
pub mod pages;
pub mod snapshot_policies;
pub mod snapshot_writer;
pub mod snapshots;
pub mod snapshots_s3;
