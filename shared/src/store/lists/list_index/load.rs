//! Loading a list index from the table.

use super::ListIndex;
use super::cache::{CacheSlot, LoadedIndex, SharedSlot};
use super::change_event::{AppliedEvents, UnknownEvent, apply_events};
use super::partial_index::{BucketRange, Cursor, PartialIndex, bucket, bucket_count, bucket_number, split};
use super::refresh::{Events, RefreshError, log_left_out};
use crate::domain::record::Kind;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, Item};
use crate::store::table::error::StoreError;
use crate::store::table::read::TornReadRetry;
use crate::store::table::times::{CLOCK_SKEW, MAX_LOAD_AGE, max_secondary_index_delay, pause, time_to_read};
use crate::store::{Store, TenantStore};
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures_util::TryFutureExt;
use futures_util::future::try_join_all;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The doublings of the first pause after a throttled read: it takes up to 80 ms, and later up to 640 ms.
const FIRST_THROTTLED_ROUND: u32 = 3;

/// One request's part of loading an index.
struct Loading<'l, I> {
    /// Changed by whole pages, so that a request that is cancelled leaves nothing inconsistent.
    partial: Mutex<&'l mut PartialIndex<I>>,
    spent_before: Duration,
    began: Instant,
}

impl<'l, I: ListIndex> Loading<'l, I> {
    fn partial(&self) -> MutexGuard<'_, &'l mut PartialIndex<I>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a page of items and moves the cursor behind it. Returns the bytes of the index then.
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

impl TenantStore {
    /// Loads a list index into its slot: the sections of the secondary index, the joined kinds from the table, and the events
    /// that the secondary index may not contain yet. Goes on where an earlier request was ended.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::NotLoaded`] when the request's time is over, and another error of the store when the table can't be
    /// read. The loaded part stays in the slot.
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

    /// Returns the time of the index's state, and the events of unknown kinds.
    async fn load_rest<I: ListIndex>(
        &self,
        loading: &Loading<'_, I>,
        shared: &SharedSlot<I>,
        now: Timestamp,
    ) -> Result<(Timestamp, HashSet<UnknownEvent>), RefreshError> {
        let since = loading.partial().began_at.plus(-max_secondary_index_delay());
        // Writes before this request are among the events by now, and writes meanwhile may be in the
        // index or not. But a record that moves to another section meanwhile may be found in neither: its event is read
        // afterwards.
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

    /// Events that the secondary index may not contain yet.
    async fn events_to_load<I: ListIndex>(&self, since: Timestamp) -> Result<Events, RefreshError> {
        let is_throttled = |error: &RefreshError| matches!(error, RefreshError::Store(error) if error.is_throttling());
        self.while_throttled(is_throttled, || self.events_since::<I>(since.plus(-CLOCK_SKEW), None)).await
    }

    /// Reads the records themselves whose events don't follow from the index: they moved from one section to another, or one of
    /// their events is not visible yet. Each record contains the changes of its events. Returns whether all were found: one that
    /// is missing may be deleted by a transaction whose event is not visible yet.
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

    /// Adds a page to the index, which counts for the memory budget at once.
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

    /// The writer of snapshots pauses after a page.
    pub(super) async fn keep_pace(&self, page: &QueryOutput) {
        if let Some(pace) = &self.store.read_pace {
            let units = page.consumed_capacity.as_ref().and_then(|capacity| capacity.capacity_units).unwrap_or_default();
            let pause = pace.lock().unwrap_or_else(PoisonError::into_inner).pause_after(units);
            tokio::time::sleep(pause).await;
        }
    }

    /// Repeats a read after a random pause while it is throttled: function instances that start together throttle one
    /// another, and none of them must give up what it has read.
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
