//! The support of every test: the service with a table of its own, clients with keys, and sample resources.

mod api;
pub mod bulk;
mod client;
pub mod costs;
pub mod document;
pub mod dropping;
mod each_place;
pub mod functions;
pub mod gateway;
pub mod log;
pub mod operations;
pub mod people;
pub mod processes;
pub mod property;
pub mod queue;
pub mod receipts;
mod response;
pub mod samples;
pub mod signing;
pub mod table;
pub mod webhooks;

pub use api::{Api, Replica};
pub use client::{Client, call};
pub use dev_server::test_data::{case_count, full_tests, sample};
pub use each_place::{Disturbance, at_each_place};
pub use gateway::over_http;
pub use property::{paused_runtime, runtime};
pub use response::Reply;
pub use table::dump::all_items;
pub use table::snapshot::Snapshot;

/// A well-formed id that no resource has.
pub const UNKNOWN_ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
