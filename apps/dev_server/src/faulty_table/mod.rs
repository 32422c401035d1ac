//! A table as weak as AWS permits: torn reads, late indexes, lost responses, throttling. They occur at random in simulations, as
//! planned in tests ([`planned`]), and by the capacity of partitions in benchmarks ([`CapacityLimit`]).
//!
//! The embedded engine is always consistent. [`FaultyTable`] puts it behind an HTTP client for the SDK that executes calls
//! in this process, without sockets, so that tokio's paused clock drives everything: the SDK's timeouts and retries, the
//! service's pauses, and the delays of the table. Every decision comes from one seed.
//!
//! The weaknesses come from several copies of the engine's database: one for transactions and single reads, one for queries and
//! batches, and one for each secondary index. A write reaches the first copy at once, and each of its items reaches the other
//! copies at a separate time. [`Weaknesses`] sets which weaknesses occur, and how often.

mod capacity_limit;
mod objects;
pub mod planned;
mod table;

pub use capacity_limit::CapacityLimit;
pub use objects::FaultyObjects;
pub use table::{FaultyTable, WHOLE_LISTS};

use shared::store::Random;
use std::sync::{Arc, Mutex, PoisonError};

/// The weaknesses of a table. By default, there are none: every call is answered at once and every read is up to date.
#[derive(Debug, Clone, Default)]
pub struct Weaknesses {
    /// Maximum time, in milliseconds, that a request takes to the table. The same maximum applies to the response.
    pub latency_millis: u64,
    /// Requests per thousand that arrive up to 2.5 seconds late (`MAX_DELAY_MILLIS`).
    pub slow_per_mille: u64,
    /// Requests per thousand that never arrive.
    pub lost_before_per_mille: u64,
    /// Responses per thousand that never arrive.
    pub lost_after_per_mille: u64,
    /// Calls per thousand that get an internal error.
    pub failed_per_mille: u64,
    /// Calls per thousand that are throttled, regardless of the partition's consumption.
    pub throttled_per_mille: u64,
    /// Transactions per thousand that get a fake conflict.
    pub conflict_per_mille: u64,
    /// Period within which the items of a transaction become visible to queries and batches, one by one.
    pub torn_millis: u64,
    /// Maximum lag of a row of `list_index` behind the table.
    pub list_index_lag_millis: u64,
    /// Maximum lag of a row of `history` behind the table.
    pub history_lag_millis: u64,
    /// Queries per thousand that end before their page is full.
    pub cut_page_per_mille: u64,
    /// Batches per thousand that leave keys unprocessed.
    pub unprocessed_per_mille: u64,
    /// Per partition. 0 if unlimited.
    pub write_units_per_second: u32,
    /// Per partition. 0 if unlimited.
    pub read_units_per_second: u32,
}

/// Maximum delay of a request. Together with the latency of its response and the time until a transaction is visible, this is
/// within the 3 s that lists allow for (docs/adr/0008-list-index.md).
pub const MAX_DELAY_MILLIS: u64 = 2_500;

impl Weaknesses {
    /// Returns DynamoDB's everyday behaviour, without faults: calls take time, reads are torn, indexes lag, pages are cut, and
    /// hot partitions are throttled.
    #[must_use]
    pub fn ordinary() -> Self {
        Self {
            latency_millis: 4,
            torn_millis: 20,
            list_index_lag_millis: 1_000,
            history_lag_millis: 1_000,
            cut_page_per_mille: 200,
            write_units_per_second: 1_000,
            read_units_per_second: 3_000,
            ..Self::default()
        }
    }

    #[must_use]
    pub fn with_faults(self) -> Self {
        Self {
            slow_per_mille: 10,
            lost_before_per_mille: 15,
            lost_after_per_mille: 20,
            failed_per_mille: 10,
            throttled_per_mille: 20,
            conflict_per_mille: 40,
            unprocessed_per_mille: 100,
            ..self
        }
    }
}

/// A source of random numbers (SplitMix64) that returns the same sequence for the same seed.
#[derive(Debug)]
pub struct SeededRandom(Mutex<u64>);

impl SeededRandom {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.next() % limit }
    }

    /// Returns true `per_mille` times in a thousand. Draws no number for 0, so that switching off one weakness doesn't change the
    /// numbers for the others.
    pub fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1000) < per_mille
    }

    /// Returns a source that is seeded with this one's next number.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.next())
    }

    #[must_use]
    pub fn into_store_random(self) -> Random {
        let random = Arc::new(self);
        Arc::new(move |bytes| {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
            }
            Ok(())
        })
    }
}
