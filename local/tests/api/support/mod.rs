//! What every test uses: the service with a table of its own, clients with keys, and sample resources.

mod api;
pub mod bulk;
mod client;
mod described;
pub mod dropping;
mod dump;
mod each_place;
pub mod fault_injection;
pub mod functions;
pub mod history;
mod indexes;
pub mod objects;
pub mod observed_key_encryption;
pub mod operations;
pub mod pipeline;
pub mod processes;
pub mod receipts;
pub mod receivers;
pub mod recording_queue;
mod response;
pub mod samples;
pub mod signing;
mod snapshot;
pub mod stream;
pub mod webhook_queue;

pub use api::{Api, Replica};
pub use client::{Client, call};
pub use dump::all_items;
pub use each_place::at_each_place;
pub use local::sample::{case_count, full_tests, sample};
pub use response::Reply;
pub use snapshot::Snapshot;

/// A well-formed id that no resource has.
pub const UNKNOWN_ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Returns a runtime whose clock is paused, as a weak table needs it.
pub fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}
