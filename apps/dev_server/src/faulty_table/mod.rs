//! A table that is as weak as AWS permits: torn reads, late indexes, lost answers, throttling. For simulations at random, for
//! tests as they plan it ([`planned`]), for benchmarks by the capacity of partitions ([`CapacityLimit`]).
//!
//! The embedded engine is always consistent. [`FaultyTable`] puts it behind an HTTP client for the SDK that executes calls
//! in this process, without sockets, so that tokio's paused clock drives everything: the SDK's timeouts and retries, the
//! service's pauses, and the delays of the table. Every decision comes from one seed.
//!
//! Several copies of the engine's database make the weaknesses: one that transactions and single reads use, one that
//! queries and batches use, and one for each secondary index. A write reaches the first at once, and each of its items
//! reaches the others at a time of its own.

mod capacity_limit;
mod objects;
pub mod planned;
mod requests;
mod table;
mod weaknesses;

pub use capacity_limit::{CapacityLimit, Usage};
pub use objects::FaultyObjects;
pub use table::{FaultyTable, WHOLE_LISTS};
pub use weaknesses::{SeededRandom, Weaknesses};
