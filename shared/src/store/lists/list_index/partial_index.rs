//! A list index while it is loaded. It stays in its slot between requests, so that the next one goes on where the last
//! one was ended.

use super::ListIndex;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, BUCKETS, Item};
use aws_sdk_dynamodb::types::AttributeValue;
use std::time::Duration;

/// The number of ranges of the secondary index that are read at the same time, once it turns out to have more than one page.
pub const PARALLEL_RANGES: usize = 4;
/// In seconds.
const MAX_RETRY_AFTER: u64 = 30;
/// The share of the buckets from which, and up to which, the rest is estimated. The hashes of ids spread rows over buckets, so the
/// size of the whole is known after 40 buckets to a tenth: each of the ranges ends within a bucket. Later, a load may as well end.
const ESTIMATED_SHARES: std::ops::Range<f64> = 0.01..0.05;
/// The multiple of the memory budget that a load's estimate must exceed: more than the estimate can be wrong.
const CLEARLY_TOO_LARGE: f64 = 1.25;

#[derive(Debug, Clone, Default, PartialEq)]
pub enum Cursor {
    #[default]
    Start,
    /// Up to and including the item with this key.
    After(Item),
    End,
}

impl Cursor {
    pub fn after_page(last_evaluated_key: Option<Item>) -> Self {
        last_evaluated_key.map_or(Self::End, Self::After)
    }

    /// The `ExclusiveStartKey` of the next page; `None` for the first.
    pub fn start_key(&self) -> Option<Item> {
        match self {
            Self::After(key) => Some(key.clone()),
            Self::Start | Self::End => None,
        }
    }
}

/// Successive buckets of the sections, and the progress of reading them.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketRange {
    pub from: usize,
    /// Included in the range.
    pub to: usize,
    pub cursor: Cursor,
}

#[derive(Debug)]
pub struct PartialIndex<I> {
    pub index: I,
    /// The beginning of the load: earlier writes are in the table's indexes or among the events since then.
    pub began_at: Timestamp,
    pub joined: Vec<Cursor>,
    /// The ranges of the secondary index; none before its first page is read.
    pub ranges: Vec<BucketRange>,
    /// The time that requests have spent on loading.
    pub spent: Duration,
}

/// The number of buckets in all sections of an index.
pub fn bucket_count<I: ListIndex>() -> usize {
    I::SECTIONS.len() * BUCKETS
}

/// `number` counts over all sections of an index. Their letters follow each other.
pub fn bucket<I: ListIndex>(number: usize) -> Option<AttributeValue> {
    I::SECTIONS.get(number / BUCKETS).map(|section| section.bucket(number % BUCKETS))
}

/// Counted over all sections of an index.
pub fn bucket_number<I: ListIndex>(key: &Item) -> Option<usize> {
    let sort_key = key.get(keys::LS)?;
    let numbers = I::SECTIONS.iter().enumerate().filter_map(|(n, section)| Some(n * BUCKETS + section.bucket_number(sort_key)?));
    numbers.last()
}

impl<I: ListIndex> PartialIndex<I> {
    pub fn new(began_at: Timestamp) -> Self {
        let joined = vec![Cursor::Start; I::JOINED_KINDS.len()];
        Self { index: I::default(), began_at, joined, ranges: Vec::new(), spent: Duration::ZERO }
    }

    /// From 0 to 1.
    fn share_read(&self) -> f64 {
        let read = self.ranges.iter().map(|range| match &range.cursor {
            Cursor::Start => 0,
            Cursor::After(key) => bucket_number::<I>(key).map_or(0, |bucket| bucket.saturating_sub(range.from)),
            Cursor::End => range.to + 1 - range.from,
        });
        // The first page ended where the first range begins.
        let before = self.ranges.first().map_or(0, |range| range.from);
        (before + read.sum::<usize>()) as f64 / bucket_count::<I>() as f64
    }

    /// It takes more than `budget` bytes, or will certainly do when it is loaded.
    pub fn exceeds(&self, budget: usize) -> bool {
        let (bytes, share) = (self.index.bytes(), self.share_read());
        // Sections differ in how many rows their buckets have.
        let is_estimated = I::SECTIONS.len() == 1 && ESTIMATED_SHARES.contains(&share);
        bytes > budget || is_estimated && bytes as f64 / share > budget as f64 * CLEARLY_TOO_LARGE
    }

    /// In seconds: then a request probably finds the index loaded, or has enough time to load the rest, for which it has
    /// `budget`.
    pub fn retry_after(&self, budget: Duration) -> u64 {
        let share = self.share_read();
        let left = if share > 0.0 { self.spent.as_secs_f64() * (1.0 - share) / share } else { f64::INFINITY };
        // Half of the time, since the estimate is rough.
        let seconds = (left - budget.as_secs_f64() / 2.0).ceil();
        (1..MAX_RETRY_AFTER).find(|whole| *whole as f64 >= seconds).unwrap_or(MAX_RETRY_AFTER)
    }
}

/// Splits the buckets from `next` to the last of `count` into ranges that are read in parallel. The first continues after
/// `last_key`, the last key of the page that was read.
pub fn split(next: usize, count: usize, last_key: Item) -> Vec<BucketRange> {
    let left = count - next;
    let bound = |n: usize| next + left * n / PARALLEL_RANGES;
    let bounds = (0..PARALLEL_RANGES).map(|n| (bound(n), bound(n + 1))).filter(|(from, to)| from < to);
    let mut ranges: Vec<BucketRange> = bounds.map(|(from, to)| BucketRange { from, to: to - 1, cursor: Cursor::Start }).collect();
    if let Some(first) = ranges.first_mut() {
        first.cursor = Cursor::After(last_key);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::super::{AssetIndex, InstanceColumns, SortedRows};
    use super::*;
    use crate::domain::record::Kind;
    use crate::domain::values::id::{Id, TenantId};
    use crate::store::keys::Keys;

    fn key(bucket: &AttributeValue) -> Item {
        Item::from([(keys::LS.to_owned(), bucket.clone())])
    }

    #[test]
    fn ranges_cover_every_bucket_once() {
        for count in [BUCKETS, 2 * BUCKETS] {
            for next in [0, 1, 1000, count - 3, count - 1] {
                let ranges = split(next, count, Item::new());
                let all: Vec<usize> = ranges.iter().flat_map(|range| range.from..=range.to).collect();
                assert_eq!(all, (next..count).collect::<Vec<_>>());
                assert!(ranges.iter().enumerate().all(|(n, range)| (range.cursor == Cursor::Start) == (n > 0)));
            }
        }
    }

    #[test]
    fn the_buckets_of_two_sections_follow_each_other() {
        type Instances = SortedRows<InstanceColumns>;
        for number in [0, 1, BUCKETS - 1, BUCKETS, 2 * BUCKETS - 1] {
            let bucket = bucket::<Instances>(number).unwrap();
            assert_eq!(bucket_number::<Instances>(&key(&bucket)), Some(number));
        }
        let text = |number| bucket::<Instances>(number).unwrap().as_s().unwrap().clone();
        assert!(text(BUCKETS - 1) < text(BUCKETS));
        assert_eq!(bucket::<Instances>(2 * BUCKETS), None);
        assert_eq!(bucket_number::<AssetIndex>(&key(&bucket::<Instances>(0).unwrap())), None);
    }

    #[test]
    fn an_index_that_will_be_too_large_is_known_after_one_percent_of_the_buckets() {
        let mut partial = PartialIndex::<AssetIndex>::new(Timestamp::default());
        let keys = Keys::of(TenantId::new(Timestamp::default(), [0; 10]));
        let mut asset = keys.record(Kind::Asset, uuid::Uuid::max()).item();
        asset.insert("version".to_owned(), AttributeValue::N("1".to_owned()));
        partial.index.load_item(Kind::Asset, &asset).unwrap();
        let bytes = partial.index.bytes();
        for (buckets, budget, exceeds) in [
            (BUCKETS / 50, bytes * 30, true),
            (BUCKETS / 50, bytes * 45, false),
            (BUCKETS / 200, bytes * 30, false),
            (BUCKETS / 2, bytes, false),
            (BUCKETS / 2, bytes - 1, true),
        ] {
            partial.ranges = split(buckets, BUCKETS, key(&bucket::<AssetIndex>(buckets).unwrap()));
            assert_eq!(partial.exceeds(budget), exceeds, "{buckets} buckets of {bytes} bytes, budget {budget}");
        }
    }

    #[test]
    fn the_time_to_retry_follows_from_the_progress() {
        let budget = Duration::from_secs(10);
        let mut partial = PartialIndex::<AssetIndex>::new(Timestamp::default());
        assert_eq!(partial.retry_after(budget), MAX_RETRY_AFTER);
        partial.spent = Duration::from_secs(10);
        for (read, seconds) in [(BUCKETS / 2, 5), (BUCKETS / 4, 25), (BUCKETS * 9 / 10, 1), (1, MAX_RETRY_AFTER)] {
            partial.ranges = split(read, BUCKETS, key(&bucket::<AssetIndex>(read).unwrap()));
            assert_eq!(partial.retry_after(budget), seconds, "{read} buckets read");
        }
        partial.ranges.iter_mut().for_each(|range| range.cursor = Cursor::End);
        assert_eq!(partial.retry_after(budget), 1);
    }
}
