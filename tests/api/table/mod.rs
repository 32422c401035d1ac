//! The table: faults, races, costs and repairs.

pub mod costs;
pub mod failures;
pub mod faulty_table;
pub mod large_records;
pub mod races;
pub mod repair;
pub mod requests;
pub mod unreadable;
