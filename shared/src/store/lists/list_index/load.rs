//! Loads a list index from the table. A partly loaded index stays in its slot between requests, so that the next request
//! continues where the previous request stopped.
//!
//! A list index with a snapshot is loaded from the snapshot instead. If the snapshot or the object store is faulty, the index is
//! loaded from the table, so that the list doesn't fail.
//!
//! Also two special list indexes: one is built from the records themselves for a single list, while the secondary index
//! contradicts the table; the other contains only process instances in progress, because ended instances accumulate.

use super::columns::{InstanceColumns, row_from_item};
use super::rows::SortedRows;
use super::snapshots::{
    Decoder, Encoder, MAX_HEADER_BYTES, SnapshotError, SnapshotHeader, SnapshotSource, check_snapshot, decode_index,
};
use super::{
    AppliedEvents, CacheSlot, ChangeEvent, Events, Inconsistent, ListIndex, LoadedIndex, RefreshError, SharedSlot, UnknownEvent,
    apply_events, log_left_out,
};
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::record::{Kind, Record};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, BUCKETS, Item, Section};
use crate::store::table::read;
use crate::store::{
    CLOCK_SKEW, MAX_LOAD_AGE, Reader, Store, StoreError, TornReadRetry, max_secondary_index_delay, pause, time_to_read,
};
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use futures_util::TryFutureExt;
use futures_util::future::try_join_all;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

/// Backoff round after the first throttled read. Its pause is up to 80 ms; later pauses are up to 640 ms.
const FIRST_THROTTLED_ROUND: u32 = 3;

/// One request's part of a load.
struct Loading<'l, I> {
    /// The part loaded so far. Changed by whole pages, so that a cancelled request leaves nothing inconsistent.
    partial: Mutex<&'l mut PartialIndex<I>>,
    spent_before: Duration,
    began: Instant,
}

impl<'l, I: ListIndex> Loading<'l, I> {
    fn partial(&self) -> MutexGuard<'_, &'l mut PartialIndex<I>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a page of items and advances the cursor. Returns the size of the index in bytes.
    fn add(
        &self,
        store: &Store,
        kind: Kind,
        page: QueryOutput,
        set_cursor: impl FnOnce(&mut PartialIndex<I>, Option<Item>),
    ) -> Result<usize, RefreshError> {
        let mut partial = self.partial();
        for item in page.items.unwrap_or_default() {
            partial.index.load_item(kind, &item)?;
        }
        set_cursor(&mut partial, page.last_evaluated_key);
        partial.spent = self.spent_before + self.began.elapsed();
        let budget = store.list_indexes.budget();
        if partial.exceeds(budget) {
            partial.index.shrink_to_fit();
        }
        if partial.exceeds(budget) && partial.index.leave_out() {
            log_left_out::<I>(store);
        }
        let bytes = partial.index.bytes();
        if partial.exceeds(budget) { Err(RefreshError::TooLarge) } else { Ok(bytes) }
    }
}

impl Reader {
    /// Loads a list index into its slot: the sections of the secondary index, the joined kinds from the table, and the events
    /// that the secondary index may not contain yet. Continues where an earlier request stopped.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::NotLoaded`] when the request runs out of time, and other store errors when the table can't be read.
    /// The loaded part stays in the slot.
    pub(super) async fn load_index<I: ListIndex>(
        &self,
        slot: &mut CacheSlot<I>,
        shared: &SharedSlot<I>,
    ) -> Result<(), RefreshError> {
        let now = self.store.now();
        if !matches!(slot, CacheSlot::Loading(partial) if partial.began_at.plus(MAX_LOAD_AGE) > now) {
            *slot = CacheSlot::Loading(PartialIndex::new(now));
        }
        let CacheSlot::Loading(partial) = slot else { return Err(RefreshError::Inconsistent) };
        let (time_left, spent_before) = (time_to_read(), partial.spent);
        let loading = Loading { partial: Mutex::new(&mut *partial), spent_before, began: Instant::now() };
        let read = timeout(time_left, self.load_rest(&loading, shared, now)).await;
        let Ok(read) = read else {
            partial.spent = partial.spent.max(spent_before + time_left);
            return Err(RefreshError::Store(StoreError::NotLoaded(partial.retry_after(time_left))));
        };
        let (synced_at, unknown_events) = read?;
        if let CacheSlot::Loading(PartialIndex { mut index, began_at, .. }) = std::mem::take(slot) {
            index.shrink_to_fit();
            *slot = CacheSlot::Loaded(LoadedIndex {
                index,
                synced_at,
                loaded_at: began_at,
                unknown_events,
                applied: AppliedEvents::default(),
            });
        }
        Ok(())
    }

    /// Returns the time as of which the index is up to date, and the events about unknown kinds.
    async fn load_rest<I: ListIndex>(
        &self,
        loading: &Loading<'_, I>,
        shared: &SharedSlot<I>,
        now: Timestamp,
    ) -> Result<(Timestamp, HashSet<UnknownEvent>), RefreshError> {
        let since = loading.partial().began_at.plus(-max_secondary_index_delay());
        // Writes before this request are among the events by now, and concurrent writes may or may not be in the index. But a
        // record that moves between sections while they are read may be found in neither, so the events of kinds with several
        // sections are read afterwards.
        let early_events =
            async { if I::SECTIONS.len() == 1 { self.events_to_load::<I>(since).await.map(Some) } else { Ok(None) } };
        let (_, (), early_events) =
            futures_util::try_join!(self.load_joined_kinds(loading, shared), self.load_sections(loading, shared), early_events)?;
        let (mut synced_at, mut events) = match early_events {
            Some(events) => (now, events),
            None => (self.store.now(), self.events_to_load::<I>(since).await?),
        };
        let mut torn_read_retry = TornReadRetry::default();
        loop {
            let incomplete = apply_events(&mut loading.partial().index, events.events, since, &mut HashSet::new())?;
            if self.load_records(loading, &incomplete).await? {
                return Ok((synced_at, events.unknown));
            }
            if !torn_read_retry.pause(&self.store).await {
                return Err(RefreshError::Inconsistent);
            }
            (synced_at, events) = (self.store.now(), self.events_to_load::<I>(since).await?);
        }
    }

    /// Reads the events that the secondary index may not contain yet.
    async fn events_to_load<I: ListIndex>(&self, since: Timestamp) -> Result<Events, RefreshError> {
        let is_throttled = |error: &RefreshError| matches!(error, RefreshError::Store(error) if error.is_throttling());
        self.while_throttled(is_throttled, || self.events_since::<I>(since.plus(-CLOCK_SKEW), None)).await
    }

    /// Reads the records whose events don't continue from the index: records that moved between sections, and records with an
    /// event that is not visible yet. Each record contains the changes of its events. Returns whether all records were found: a
    /// missing record may have been deleted by a transaction whose event is not visible yet.
    async fn load_records<I: ListIndex>(
        &self,
        loading: &Loading<'_, I>,
        records: &[(Kind, uuid::Uuid)],
    ) -> Result<bool, RefreshError> {
        let keys: Vec<_> = records.iter().map(|(kind, id)| self.keys.record(*kind, *id)).collect();
        let items = self.items(&keys).await?;
        let mut partial = loading.partial();
        for ((kind, _), key) in records.iter().zip(&keys) {
            if let Some(item) = items.get(key) {
                partial.index.load_item(*kind, item)?;
            }
        }
        Ok(items.len() == records.len())
    }

    async fn load_joined_kinds<I: ListIndex>(
        &self,
        loading: &Loading<'_, I>,
        shared: &SharedSlot<I>,
    ) -> Result<(), RefreshError> {
        let kinds = I::JOINED_KINDS.iter().enumerate().map(async |(n, kind)| {
            loop {
                let cursor = loading.partial().joined.get(n).cloned().unwrap_or(Cursor::End);
                if cursor == Cursor::End {
                    return Ok::<(), RefreshError>(());
                }
                let query = self.of_kind(*kind).set_exclusive_start_key(cursor.start_key());
                let page = self.page(query).await?;
                self.add_page(loading, shared, *kind, page, |partial, last_key| {
                    partial.joined.get_mut(n).into_iter().for_each(|cursor| *cursor = Cursor::after_page(last_key.clone()));
                })?;
            }
        });
        try_join_all(kinds).await.map(drop)
    }

    /// Reads the sections of the secondary index: the first page and then, if there is more, the rest in parallel ranges.
    async fn load_sections<I: ListIndex>(&self, loading: &Loading<'_, I>, shared: &SharedSlot<I>) -> Result<(), RefreshError> {
        let (kind, count) = (<I::Entity as crate::domain::record::Record>::KIND, bucket_count::<I>());
        let whole = BucketRange { from: 0, to: count - 1, cursor: Cursor::Start };
        if loading.partial().ranges.is_empty() {
            let page = self.page(self.buckets::<I>(&whole)?).await?;
            let next = page.last_evaluated_key.as_ref().map(|key| bucket_number::<I>(key).ok_or(RefreshError::Inconsistent));
            let next = next.transpose()?;
            self.add_page(loading, shared, kind, page, |partial, last_key| {
                let ended = || vec![BucketRange { cursor: Cursor::End, ..whole.clone() }];
                partial.ranges = next.zip(last_key).map_or_else(ended, |(next, last_key)| split(next, count, last_key));
            })?;
        }
        let ranges = loading.partial().ranges.len();
        try_join_all((0..ranges).map(async |n| {
            loop {
                let range = loading.partial().ranges.get(n).cloned();
                let Some(range) = range.filter(|range| range.cursor != Cursor::End) else { return Ok::<(), RefreshError>(()) };
                let page = self.page(self.buckets::<I>(&range)?).await?;
                self.add_page(loading, shared, kind, page, |partial, last_key| {
                    partial.ranges.get_mut(n).into_iter().for_each(|range| range.cursor = Cursor::after_page(last_key.clone()));
                })?;
            }
        }))
        .await
        .map(drop)
    }

    /// Adds a page to the index. The page counts toward the memory budget immediately.
    fn add_page<I: ListIndex>(
        &self,
        loading: &Loading<'_, I>,
        shared: &SharedSlot<I>,
        kind: Kind,
        page: QueryOutput,
        set_cursor: impl FnOnce(&mut PartialIndex<I>, Option<Item>),
    ) -> Result<(), RefreshError> {
        let bytes = loading.add(&self.store, kind, page, set_cursor)?;
        self.store.list_indexes.set_bytes::<I>(self.id, shared, bytes);
        Ok(())
    }

    fn buckets<I: ListIndex>(&self, range: &BucketRange) -> Result<QueryFluentBuilder, RefreshError> {
        let bound = |number: usize| bucket::<I>(number).ok_or(RefreshError::Inconsistent);
        let query = self.store.client.query().table_name(&self.store.table).index_name(keys::LIST_INDEX);
        Ok(query
            .key_condition_expression("#pk = :pk AND #ls BETWEEN :from AND :to")
            .expression_attribute_names("#pk", keys::PK)
            .expression_attribute_names("#ls", keys::LS)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":from", bound(range.from)?)
            .expression_attribute_values(":to", bound(range.to)?)
            .set_exclusive_start_key(range.cursor.start_key()))
    }

    pub(super) async fn page(&self, query: QueryFluentBuilder) -> Result<QueryOutput, StoreError> {
        let query = query.return_consumed_capacity(ReturnConsumedCapacity::Total);
        let send = || query.clone().send().map_err(StoreError::from);
        let page = self.while_throttled(StoreError::is_throttling, send).await?;
        self.keep_pace(&page).await;
        Ok(page)
    }

    /// Retries a read with backoff while it is throttled: function instances that start together cause throttling for each other,
    /// and no instance should lose the pages that it has read.
    async fn while_throttled<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        is_throttled: impl Fn(&E) -> bool,
        read: impl Fn() -> F,
    ) -> Result<T, E> {
        let mut round = FIRST_THROTTLED_ROUND;
        loop {
            match read().await {
                Err(error) if is_throttled(&error) => pause(&self.store, round).await,
                outcome => return outcome,
            }
            round = round.saturating_add(1);
        }
    }
}

impl Reader {
    pub(super) fn snapshot_source<I: ListIndex>(&self) -> SnapshotSource<'_> {
        SnapshotSource { table: &self.store.table, tenant: self.id, kind: I::Entity::KIND }
    }

    /// Loads the index from its snapshot, without the events since then; `None` if there is no usable snapshot. Calls `make_room`
    /// with the size of the index before decoding it.
    ///
    /// # Errors
    ///
    /// Returns [`RefreshError::Store`] when the table can't be read, and [`RefreshError::TooLarge`] when the index would exceed
    /// the memory budget: loading it from the table would fail the same way.
    pub(super) async fn load_snapshot<I: ListIndex>(
        &self,
        now: Timestamp,
        make_room: impl FnOnce(usize),
    ) -> Result<Option<(SnapshotHeader, LoadedIndex<I>)>, RefreshError> {
        let Some(objects) = self.store.snapshots.as_ref().filter(|_| I::HAS_SNAPSHOTS) else { return Ok(None) };
        let (source, budget) = (self.snapshot_source::<I>(), self.store.list_indexes.budget());
        let bytes = match objects.get(&source.key(), budget.saturating_add(MAX_HEADER_BYTES)).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.log_ignored::<I>(error);
                return Ok(None);
            }
        };
        let decoded = check_snapshot(source, &bytes, budget, now).and_then(|(header, body)| {
            let whole = Some(header.index_bytes).filter(|bytes| *bytes <= budget as u64).unwrap_or(header.least_bytes());
            make_room(usize::try_from(whole).unwrap_or(usize::MAX));
            Ok((header, decode_index(&header, body, budget, now)?))
        });
        drop(bytes);
        let (header, loaded) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                self.log_ignored::<I>(error);
                return if error == SnapshotError::TooLarge { Err(RefreshError::TooLarge) } else { Ok(None) };
            }
        };
        if self.item(&self.keys.event(header.latest_event)).await?.is_none() {
            self.log_ignored::<I>(SnapshotError::State);
            return Ok(None);
        }
        Ok(Some((header, loaded)))
    }

    /// Logs that a snapshot is ignored. The dashboard counts these lines.
    pub(super) fn log_ignored<I: ListIndex>(&self, reason: impl std::error::Error + 'static) {
        let cause = crate::log::error_chain(&reason);
        let kind = I::Entity::KIND.as_str();
        tracing::warn!(metric = "unused_snapshots", tenant_id = %self.id, kind, cause, "a snapshot is not used");
    }
}

/// Number of ranges of the secondary index that are read in parallel if the index has more than one page.
pub const PARALLEL_RANGES: usize = 4;
/// In seconds.
const MAX_RETRY_AFTER: u64 = 30;
/// The share of buckets read at which the total size is estimated. IDs spread rows randomly over buckets, so 40 buckets are
/// enough to estimate the total to within a tenth; the error comes from the ranges, each of which ends within a bucket. Once a
/// larger share is read, the load might as well finish.
const ESTIMATED_SHARES: std::ops::Range<f64> = 0.01..0.05;
/// A load stops when the estimate exceeds the memory budget by this factor, which is larger than the estimate's error.
const CLEARLY_TOO_LARGE: f64 = 1.25;

#[derive(Debug, Clone, Default, PartialEq)]
pub enum Cursor {
    #[default]
    Start,
    /// Everything was read up to and including the item with this key.
    After(Item),
    End,
}

impl Cursor {
    pub fn after_page(last_evaluated_key: Option<Item>) -> Self {
        last_evaluated_key.map_or(Self::End, Self::After)
    }

    /// Returns the `ExclusiveStartKey` of the next page; `None` for the first.
    pub fn start_key(&self) -> Option<Item> {
        match self {
            Self::After(key) => Some(key.clone()),
            Self::Start | Self::End => None,
        }
    }
}

/// Consecutive buckets of the sections, and the progress of reading them.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketRange {
    pub from: usize,
    /// Inclusive.
    pub to: usize,
    pub cursor: Cursor,
}

#[derive(Debug)]
pub struct PartialIndex<I> {
    pub index: I,
    /// When the load began. Earlier writes are in the table's indexes or among the events since then.
    pub began_at: Timestamp,
    pub joined: Vec<Cursor>,
    /// The ranges of the secondary index. Empty until its first page is read.
    pub ranges: Vec<BucketRange>,
    /// The time that requests have spent on loading so far.
    pub spent: Duration,
}

pub fn bucket_count<I: ListIndex>() -> usize {
    I::SECTIONS.len() * BUCKETS
}

/// Returns the sort key of a bucket. `number` counts across all sections of an index, whose letters are consecutive.
pub fn bucket<I: ListIndex>(number: usize) -> Option<AttributeValue> {
    I::SECTIONS.get(number / BUCKETS).map(|section| section.bucket(number % BUCKETS))
}

/// Returns the number of an item's bucket, counted across all sections of an index.
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

    /// Returns the share of buckets read, from 0 to 1.
    fn share_read(&self) -> f64 {
        let read = self.ranges.iter().map(|range| match &range.cursor {
            Cursor::Start => 0,
            Cursor::After(key) => bucket_number::<I>(key).map_or(0, |bucket| bucket.saturating_sub(range.from)),
            Cursor::End => range.to + 1 - range.from,
        });
        // The first page ended where the first range starts.
        let before = self.ranges.first().map_or(0, |range| range.from);
        (before + read.sum::<usize>()) as f64 / bucket_count::<I>() as f64
    }

    /// Whether the index takes more than `budget` bytes, or is estimated to take far more once it is loaded.
    pub fn exceeds(&self, budget: usize) -> bool {
        let (bytes, share) = (self.index.bytes(), self.share_read());
        // The number of rows per bucket differs between sections.
        let is_estimated = I::SECTIONS.len() == 1 && ESTIMATED_SHARES.contains(&share);
        bytes > budget || is_estimated && bytes as f64 / share > budget as f64 * CLEARLY_TOO_LARGE
    }

    /// Returns the number of seconds after which a request probably finds the index loaded, or can load the rest within `budget`.
    pub fn retry_after(&self, budget: Duration) -> u64 {
        let share = self.share_read();
        let left = if share > 0.0 { self.spent.as_secs_f64() * (1.0 - share) / share } else { f64::INFINITY };
        // Count on only half of the budget, because the estimate is rough.
        let seconds = (left - budget.as_secs_f64() / 2.0).ceil();
        (1..MAX_RETRY_AFTER).find(|whole| *whole as f64 >= seconds).unwrap_or(MAX_RETRY_AFTER)
    }
}

/// Splits the buckets from `next` to the last of `count` buckets into ranges that are read in parallel. The first range continues
/// after `last_key`, the last key of the first page.
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

/// Maximum number of 1 MB pages to read for one list: 1,024 read units, a third of a partition's capacity per second. With more
/// records, lists fail until the secondary index has caught up.
const MAX_PAGES: usize = 8;

impl Reader {
    /// Builds an index from the records themselves, and returns the IDs of unreadable records. `None` if there are too many
    /// records.
    pub(super) async fn index_of_records<I: ListIndex>(&self) -> Result<Option<(I, Vec<Uuid>)>, StoreError> {
        let (mut index, mut unreadable, mut pages_read) = (I::default(), Vec::new(), 0);
        for kind in I::JOINED_KINDS.iter().copied().chain([I::Entity::KIND]) {
            let mut pages = self.of_kind(kind).into_paginator().send();
            while let Some(page) = pages.next().await {
                let page = page?;
                for item in page.items.unwrap_or_default() {
                    unreadable.extend(add_record(&mut index, kind, item)?);
                }
                pages_read += 1;
                if pages_read >= MAX_PAGES && page.last_evaluated_key.is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(Some((index, unreadable)))
    }
}

/// Adds a record to the index, or returns the record's ID if it is unreadable. Ignores unreadable records of joined kinds.
fn add_record<I: ListIndex>(index: &mut I, kind: Kind, item: Item) -> Result<Option<Uuid>, StoreError> {
    if index.load_item(kind, &item).is_ok() || kind != I::Entity::KIND {
        return Ok(None);
    }
    // Logs which record is unreadable.
    match read::read::<I::Entity>(item) {
        Ok(_) => Err(StoreError::broken("a record without a row")),
        Err(error) => error.unreadable_id(),
    }
}

#[derive(Debug, Default)]
pub struct OpenInstances(pub SortedRows<InstanceColumns>);

impl ListIndex for OpenInstances {
    type Entity = Instance;
    const SECTIONS: &'static [Section] = &[Section::OpenInstances];
    /// Open instances are few and change often, so a snapshot would not help.
    const HAS_SNAPSHOTS: bool = false;
    /// Ended instances are removed, but can still change: an erasure can replace their `step_data`.
    const DROPS_ENDED: bool = true;
    const JOINED_KINDS: &'static [Kind] = &[];

    fn load_item(&mut self, _: Kind, item: &Item) -> Result<(), Inconsistent> {
        let row = row_from_item::<InstanceColumns>(item)?;
        if row.facet.status == Some(InstanceStatus::InProgress) {
            self.0.upsert(row);
        } else {
            self.0.remove(row.id);
        }
        Ok(())
    }

    fn version(&self, kind: Kind, id: Uuid) -> Option<u64> {
        self.0.version(kind, id)
    }

    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent> {
        self.0.apply_change(event)
    }

    fn remove(&mut self, _: Kind, id: Uuid) {
        self.0.remove(id);
    }

    /// Whether the event ends the instance. An ended instance is never resumed.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        let is_ended = |status: &str| status != InstanceStatus::InProgress.as_str();
        event.is_deletion() || event.new_text("status").is_some_and(is_ended)
    }

    fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, encoder: &mut Encoder) {
        self.0.encode(encoder);
    }

    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        SortedRows::decode(decoder, with_optional).map(Self)
    }
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
