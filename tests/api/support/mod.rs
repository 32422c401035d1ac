//! Support for all tests: the service with a separate table, clients with keys, and sample resources.

mod api;
pub mod bulk;
mod client;
mod disturbance;
pub mod document;
pub mod functions;
pub mod log;
pub mod operations;
pub mod people;
pub mod prelude;
pub mod processes;
pub mod property;
pub mod queue;
pub mod samples;
pub mod signing;
pub mod table;
pub mod webhooks;

pub use api::{Api, Replica, Template};
pub use client::{Client, Reply, call};
pub use dev_server::test_data::{case_count, full_tests, sample};
pub use disturbance::{Disturbance, at_each_place, dropped_after};
pub use property::{paused_runtime, runtime};

/// A well-formed ID that no resource has.
pub const UNKNOWN_ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
