//! The rest of each partition's capacity.

use super::Weaknesses;
use crate::token_bucket::TokenBucket;
use std::collections::HashMap;
use tokio::time::Instant;

/// A partition has a limit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Usage {
    Read,
    Write,
}

impl Usage {
    /// Units of a partition in a second; `None` for any number.
    pub fn limit(self, weaknesses: &Weaknesses) -> Option<f64> {
        let limit = match self {
            Self::Read => weaknesses.read_units_per_second,
            Self::Write => weaknesses.write_units_per_second,
        };
        (limit > 0).then_some(f64::from(limit))
    }
}

/// The name is that of an index; `None` for the table.
pub type Partition = (Option<String>, String);

/// A token bucket for each partition. A call that finds any units left is executed, and its units are taken afterwards,
/// when they are known.
#[derive(Debug, Default)]
pub struct Capacity(HashMap<(Partition, Usage), TokenBucket>);

impl Capacity {
    fn bucket(&mut self, partition: &Partition, usage: Usage, limit: f64, now: Instant) -> &mut TokenBucket {
        self.0.entry((partition.clone(), usage)).or_insert_with(|| TokenBucket::full(limit, now))
    }

    pub fn has_any(&mut self, partition: &Partition, usage: Usage, limit: f64, now: Instant) -> bool {
        self.bucket(partition, usage, limit, now).has_any(limit, now)
    }

    pub fn take(&mut self, partition: &Partition, usage: Usage, units: f64, limit: f64, now: Instant) {
        self.bucket(partition, usage, limit, now).take(units, limit, now);
    }
}
