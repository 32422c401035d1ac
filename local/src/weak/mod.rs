//! A table that is as weak as AWS permits, for simulations: torn reads, late indexes, lost answers, throttling.
//!
//! The embedded engine is always consistent. [`WeakTable`] puts it behind an HTTP client for the SDK that executes calls
//! in this process, without sockets, so that tokio's paused clock drives everything: the SDK's timeouts and retries, the
//! service's pauses, and the delays of the table. Every decision comes from one seed.
//!
//! Several copies of the engine's database make the weaknesses: one that transactions and single reads use, one that
//! queries and batches use, and one for each secondary index. A write reaches the first at once, and each of its items
//! reaches the others at a time of its own.

mod capacity;
mod databases;
mod http;
mod objects;
mod pending;
mod random;
mod requests;
mod table;
mod weaknesses;

pub use objects::WeakObjects;
pub use random::SeededRandom;
pub use table::{WHOLE_LISTS, WeakTable};
pub use weaknesses::Weaknesses;
