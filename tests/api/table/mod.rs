//! The table: faults, races, costs and repairs.

pub mod costs;
pub mod deduplicated_blobs;
pub mod engine_port;
pub mod failed_calls;
pub mod failures;
pub mod faulty_table;
pub mod few_calls;
pub mod large_record_costs;
pub mod model;
pub mod races;
pub mod repair;
pub mod requests;
pub mod unreadable;
