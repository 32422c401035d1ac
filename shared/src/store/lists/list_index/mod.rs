//! The list index: an in-memory, columnar copy of the fields that lists of a tenant's assets, users, process instances and
//! movements need. Lists are filtered, searched, sorted and counted here; the table remains the source of truth.
//!
//! - *Columns*: each record has a row with fixed-size values ([`Columns`]), texts to search and texts to compare. Only the
//!   records of a page are then read from the table.
//! - *Facets*: values that many rows share, such as the status, are stored once, with a row count. Totals and statistics by facet
//!   don't read the rows.
//! - *Coded columns*: locations, models and custom fields are dictionary-encoded: each text is stored once, and rows contain its
//!   number. If custom fields exceed the memory budget, only these columns are dropped.
//! - *Segments*: rows are sorted newest first, in segments of at most 256, column by column, with all their texts in one string.
//!   A search skips segments that lack a trigram of a word, and scans the others sequentially. A change moves a few kilobytes,
//!   however many rows there are.
//! - *Change feed*: an index is loaded from the secondary index `list_index`. Before each list, the events since the last list
//!   are read consistently from the table and applied (`apply_events`).
//! - *Versions*: each event contains the version of the record that the event creates. So applying events is idempotent, and a
//!   missed event is detected.
//! - *Torn reads*: a read can see only some of the items that a transaction has written. Events that don't continue from the
//!   index, and records that contradict it, are read again for as long as a transaction can take to become fully visible.
//! - *Inconsistency*: if a contradiction lasts longer, the index is discarded and loaded again. If that doesn't help, lists read
//!   the records themselves for a while, unless there are too many.
//! - *Memory*: an index that exceeds the budget is refused for a while, and so are its lists.
//!
//! docs/adr/0008-list-index.md has the reasons, the tolerated delays and the costs.

mod columns;
mod load;
mod rows;
mod snapshot_writer;
mod snapshots;

use crate::domain::history::event::{EventType, Verb};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::json;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{ENTRY, Item, Keys, Section};
use crate::store::{
    CLOCK_SKEW, Reader, SECONDARY_INDEX_LAG, Store, StoreError, TornReadRetry, USUAL_EVENT_DELAY, max_event_delay,
    max_secondary_index_delay,
};
use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, Select};
use chrono::TimeDelta;
pub(in crate::store) use columns::{
    AssetColumns, AssetFacet, AssetIndex, AssetVectors, InstanceColumns, InstanceFacet, LOCATION, MODEL, MovementColumns,
    UNFIT_AFTER, UserColumns, UserFacet, row_from_item, summed,
};
use futures_util::future::try_join_all;
use futures_util::{join, try_join};
pub(in crate::store) use load::OpenInstances;
use load::PartialIndex;
pub use rows::CodedCondition;
pub(in crate::store) use rows::{
    ColumnFilter, ColumnVectors, Columns, RowQuery, SearchTerms, SortBy, SortOrder, SortedRows, narrow, rows_of,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
pub(in crate::store) use snapshot_writer::Pace;
pub use snapshot_writer::{MAX_SNAPSHOT_TIME, SnapshotReport};
use snapshots::{Decoder, Encoder, SnapshotError};
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// An in-memory index for lists of one kind.
pub trait ListIndex: Default + Send + 'static {
    type Entity: Record;
    /// The sections of the secondary index that contain the rows.
    const SECTIONS: &'static [Section];
    const HAS_SNAPSHOTS: bool = true;
    /// Whether the index removes records that still exist, and ignores their later events.
    const DROPS_ENDED: bool = false;
    /// Other kinds of records whose fields lists show. There are few such records, so they are read from the table itself.
    const JOINED_KINDS: &'static [Kind];

    /// Adds an item from the secondary index or, for a joined kind, from the table.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the item.
    fn load_item(&mut self, kind: Kind, item: &Item) -> Result<(), Inconsistent>;

    /// Returns the version of a record; `None` if the index doesn't have the record.
    fn version(&self, kind: Kind, id: Uuid) -> Option<u64>;

    /// Adds the event's record, or updates it to its next version.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
    fn apply_change(&mut self, event: &ChangeEvent) -> Result<(), Inconsistent>;

    fn remove(&mut self, kind: Kind, id: Uuid);

    /// Frees unused memory that loading reserved.
    fn shrink_to_fit(&mut self);

    fn bytes(&self) -> usize;

    fn len(&self) -> usize;

    fn encode(&self, encoder: &mut Encoder);

    /// Reads an index from a snapshot; `None` if the bytes aren't output of [`ListIndex::encode`].
    ///
    /// Without `with_optional`, omits optional parts, and doesn't read the rest of the snapshot.
    fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self>;

    /// Returns the part of [`ListIndex::bytes`] that is optional.
    fn optional_bytes(&self) -> usize {
        0
    }

    /// Permanently drops optional parts, which only some lists need. Returns whether there were any optional parts.
    fn leave_out(&mut self) -> bool {
        false
    }

    /// Whether the event removes its record from the index forever.
    fn is_removed_by(event: &ChangeEvent) -> bool {
        event.is_deletion()
    }

    /// Whether changes to records of this kind must be applied to the index.
    fn follows(kind: Kind) -> bool {
        kind == Self::Entity::KIND || Self::JOINED_KINDS.contains(&kind)
    }
}

/// Age at which an index is loaded again, which limits how long an undetected error lasts.
const RELOADED_AFTER: TimeDelta = TimeDelta::hours(1);
/// How long lists are refused after an index turned out to be too large.
const RETRY_AFTER_TOO_LARGE: TimeDelta = TimeDelta::minutes(10);
/// Number of rows in the secondary index that cost as much to read as one page of events. If there are more pages of events,
/// loading the index again is cheaper than reading them.
const ROWS_PER_EVENT_PAGE: usize = 6_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The index includes the events since its last use.
    Refreshed,
    /// The index is loaded again, because the table contradicts it.
    Reloaded,
}

/// Events from a part of the change feed.
#[derive(Default)]
pub struct Events {
    /// Events that the index must apply.
    pub events: Vec<ChangeEvent>,
    pub unknown: HashSet<UnknownEvent>,
    /// IDs of all other events.
    pub others: Vec<EventId>,
}

/// Why a list index can't be loaded or brought up to date.
enum RefreshError {
    Store(StoreError),
    /// The index would exceed the memory budget.
    TooLarge,
    /// The index contradicts the table or the change feed.
    Inconsistent,
    /// There are too many events since the last refresh.
    TooManyEvents,
}

impl From<Inconsistent> for RefreshError {
    fn from(_: Inconsistent) -> Self {
        Self::Inconsistent
    }
}

impl From<StoreError> for RefreshError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Reader {
    /// Passes the index to a function. Refreshes or loads the index first. While the secondary index contradicts the table, or if
    /// there is no memory for indexes, the index is built from the records themselves; the second value then contains the IDs of
    /// unreadable records.
    ///
    /// The index contains every write before this call.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::ListTooLarge`] when the index exceeds the memory budget, [`StoreError::NotLoaded`] when the index is
    /// not loaded yet or would have to be built from too many records, and other errors when the table can't be read. After an
    /// error, the index is unchanged or dropped.
    pub async fn with_list_index<I: ListIndex, T>(
        &self,
        freshness: Freshness,
        read: impl FnOnce(&I) -> T,
    ) -> Result<(T, Vec<Uuid>), StoreError> {
        self.with_list_index_and(freshness, std::future::ready(Ok(())), |index, ()| read(index)).await
    }

    /// Like [`Reader::with_list_index`], but also passes the result of `beside`, which runs while the index is refreshed, so
    /// that it takes no further round trip.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::with_list_index`], and the error of `beside`.
    pub async fn with_list_index_and<I: ListIndex, B, T>(
        &self,
        freshness: Freshness,
        beside: impl Future<Output = Result<B, StoreError>>,
        read: impl FnOnce(&I, B) -> T,
    ) -> Result<(T, Vec<Uuid>), StoreError> {
        let shared = self.store.list_indexes.slot::<I>(self.id);
        let mut slot = shared.lock().await;
        let now = self.store.now();
        let is_refused = matches!(&*slot, CacheSlot::Refused(_, until) if *until > now);
        let beside = if self.store.list_indexes.budget() == 0 && !is_refused {
            self.refuse(&mut slot, &shared, Refusal::Contradicted);
            beside.await?
        } else if is_refused {
            beside.await?
        } else {
            let (refreshed, beside) = join!(self.refresh_or_load(&mut slot, &shared, freshness, now), beside);
            match refreshed {
                Ok((loaded, bytes)) => {
                    let result = read(&loaded.index, beside?);
                    self.store.list_indexes.set_bytes::<I>(self.id, &shared, bytes);
                    return Ok((result, Vec::new()));
                }
                Err(RefreshError::Store(error)) => return Err(error),
                Err(RefreshError::TooLarge) => self.refuse(&mut slot, &shared, Refusal::TooLarge),
                Err(RefreshError::Inconsistent | RefreshError::TooManyEvents) => {
                    self.refuse(&mut slot, &shared, Refusal::Contradicted);
                }
            }
            beside?
        };
        if let CacheSlot::Refused(Refusal::Contradicted, until) = *slot {
            if let Some((index, unreadable)) = self.index_of_records::<I>().await? {
                return Ok((read(&index, beside), unreadable));
            }
            *slot = CacheSlot::Refused(Refusal::TooMany, until);
        }
        let CacheSlot::Refused(refusal, until) = *slot else { return Err(StoreError::broken("a list index without a state")) };
        let kind = I::Entity::KIND.as_str();
        let seconds = u64::try_from(until.since(now).num_seconds()).unwrap_or_default().max(1);
        if refusal == Refusal::TooLarge {
            tracing::error!(metric = "oversized_lists", tenant_id = %self.id, kind, "a list index exceeds the memory budget");
            return Err(StoreError::ListTooLarge(seconds));
        }
        Err(StoreError::NotLoaded(seconds))
    }

    /// Drops the list index of a kind until the secondary index has caught up, because the table contradicts it even after a
    /// load.
    pub async fn refuse_list_index<I: ListIndex>(&self) {
        let shared = self.store.list_indexes.slot::<I>(self.id);
        let mut slot = shared.lock().await;
        self.refuse(&mut slot, &shared, Refusal::Contradicted);
    }

    fn refuse<I: ListIndex>(&self, slot: &mut CacheSlot<I>, shared: &SharedSlot<I>, refusal: Refusal) {
        let time = if refusal == Refusal::TooLarge { RETRY_AFTER_TOO_LARGE } else { retry_after_inconsistent() };
        let until = self.store.now().plus(time);
        tracing::warn!(tenant_id = %self.id, kind = I::Entity::KIND.as_str(), %until, ?refusal, "no list index until then");
        *slot = CacheSlot::Refused(refusal, until);
        self.store.list_indexes.set_bytes::<I>(self.id, shared, 0);
    }

    /// Loads the index if there is none, or if the current index can't be refreshed. Returns the index and its size in bytes.
    async fn refresh_or_load<'s, I: ListIndex>(
        &self,
        slot: &'s mut CacheSlot<I>,
        shared: &SharedSlot<I>,
        freshness: Freshness,
        now: Timestamp,
    ) -> Result<(&'s LoadedIndex<I>, usize), RefreshError> {
        let refreshed = match slot.loaded() {
            Some(loaded) if freshness == Freshness::Refreshed && loaded.loaded_at.plus(RELOADED_AFTER) > now => {
                self.refresh(loaded, now).await
            }
            _ => Err(RefreshError::TooManyEvents),
        };
        let refreshed = match refreshed {
            Err(RefreshError::TooManyEvents) if freshness == Freshness::Refreshed && !matches!(slot, CacheSlot::Loading(_)) => {
                self.refresh_snapshot(slot, shared, now).await
            }
            refreshed => refreshed,
        };
        match refreshed {
            Ok(()) => {}
            Err(RefreshError::TooManyEvents | RefreshError::Inconsistent) => {
                if !matches!(slot, CacheSlot::Loading(_)) {
                    *slot = CacheSlot::Empty;
                    self.store.list_indexes.set_bytes::<I>(self.id, shared, 0);
                }
                Box::pin(self.load_index(slot, shared)).await?;
            }
            Err(error) => return Err(error),
        }
        let (loaded, budget) = (slot.loaded().ok_or(RefreshError::Inconsistent)?, self.store.list_indexes.budget());
        let mut bytes = loaded.index.bytes();
        if bytes > budget {
            loaded.index.shrink_to_fit();
            bytes = loaded.index.bytes();
        }
        if bytes > budget && loaded.index.leave_out() {
            log_left_out::<I>(&self.store);
            bytes = loaded.index.bytes();
        }
        if bytes > budget { Err(RefreshError::TooLarge) } else { Ok((loaded, bytes)) }
    }

    /// Loads the index from its snapshot, and applies later events. If reading these events costs more than a load, the snapshot
    /// isn't used. Other indexes are evicted before the snapshot is decoded.
    async fn refresh_snapshot<I: ListIndex>(
        &self,
        slot: &mut CacheSlot<I>,
        shared: &SharedSlot<I>,
        now: Timestamp,
    ) -> Result<(), RefreshError> {
        let set_bytes = |bytes| self.store.list_indexes.set_bytes::<I>(self.id, shared, bytes);
        *slot = CacheSlot::Empty;
        set_bytes(0);
        let snapshot = self.load_snapshot::<I>(now, set_bytes).await;
        let Ok(Some((_, loaded))) = snapshot else {
            set_bytes(0);
            return snapshot.and(Err(RefreshError::TooManyEvents));
        };
        *slot = CacheSlot::Loaded(loaded);
        let loaded = slot.loaded().ok_or(RefreshError::TooManyEvents)?;
        let refreshed = self.refresh(loaded, now).await;
        match refreshed {
            Err(RefreshError::Inconsistent) => self.log_ignored::<I>(SnapshotError::Inconsistent),
            Err(RefreshError::TooManyEvents) => self.log_ignored::<I>(SnapshotError::TooManyEvents),
            _ => {}
        }
        refreshed
    }

    /// Applies the events since the last refresh. If an event is missing, reads and applies all recent events again, which is
    /// idempotent.
    async fn refresh<I: ListIndex>(&self, loaded: &mut LoadedIndex<I>, now: Timestamp) -> Result<(), RefreshError> {
        let since = loaded.synced_at.plus(-max_event_delay());
        // Loading reads the most recent events anyway, so loading can be cheaper only after a longer pause.
        let is_long_ago = loaded.synced_at.plus(SECONDARY_INDEX_LAG) < now;
        let max_pages = is_long_ago.then_some(1 + loaded.index.len() / ROWS_PER_EVENT_PAGE);
        let mut torn_read_retry = TornReadRetry::default();
        loop {
            let Events { events, mut unknown, others } = self.new_events(loaded, since.plus(-CLOCK_SKEW), max_pages).await?;
            if !unknown.is_subset(&loaded.unknown_events) {
                return Err(RefreshError::Inconsistent);
            }
            let mut removed = loaded.applied.removed();
            let mut applied = AppliedEvents::default();
            applied.add::<I>(&events, others);
            if apply_events(&mut loaded.index, events, since, &mut removed)?.is_empty() {
                unknown.extend(loaded.unknown_events.iter().filter(|event| loaded.applied.contains(event)));
                (loaded.synced_at, loaded.unknown_events) = (now, unknown);
                loaded.applied.append(applied);
                loaded.applied.forget_before(now.plus(-(max_event_delay() + CLOCK_SKEW)));
                return Ok(());
            }
            if !torn_read_retry.pause(&self.store).await {
                return Err(RefreshError::Inconsistent);
            }
        }
    }

    /// Reads the events from `from` on that have not been applied yet, and possibly some applied events. After a burst, applied
    /// events are only counted: if the table has no more events than were applied, none is new, because events are never deleted.
    async fn new_events<I: ListIndex>(
        &self,
        loaded: &LoadedIndex<I>,
        from: Timestamp,
        max_pages: Option<usize>,
    ) -> Result<Events, RefreshError> {
        let counted_to = loaded.synced_at.plus(-USUAL_EVENT_DELAY);
        if loaded.applied.len() < self.store.list_indexes.many_events() {
            return self.events_since::<I>(from, max_pages).await;
        }
        let counts =
            try_join_all(loaded.applied.parts(from, counted_to).into_iter().map(async |(part, applied)| {
                Ok((self.count_events(part.start, part.end).await? != applied).then_some(part.start))
            }));
        let (recent, late) = try_join!(self.events_since::<I>(counted_to, max_pages), counts)?;
        match late.into_iter().flatten().min() {
            Some(start) => self.events_since::<I>(start, max_pages).await,
            None => Ok(recent),
        }
    }

    async fn count_events(&self, from: Timestamp, to: Timestamp) -> Result<usize, RefreshError> {
        let Some((from, to)) = Keys::events_in(from, to) else { return Ok(0) };
        let mut pages = self.events_query(from, to).select(Select::Count).into_paginator().send();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            count += usize::try_from(page.map_err(StoreError::from)?.count).unwrap_or_default();
        }
        Ok(count)
    }

    /// Reads all events since `since`. Fails with [`RefreshError::TooManyEvents`] if the events take more than `max_pages` pages;
    /// `None` means no limit.
    async fn events_since<I: ListIndex>(&self, since: Timestamp, max_pages: Option<usize>) -> Result<Events, RefreshError> {
        let (from, to) = Keys::events_since(since);
        let query = self.events_query(from, to).projection_expression("#entry").expression_attribute_names("#entry", ENTRY);
        let mut pages = query.return_consumed_capacity(ReturnConsumedCapacity::Total).into_paginator().send();
        let (mut read, mut pages_read) = (Events::default(), 0);
        while let Some(page) = pages.next().await {
            let page = page.map_err(StoreError::from)?;
            self.keep_pace(&page).await;
            for item in page.items.unwrap_or_default() {
                let entry = item.get(ENTRY).and_then(|entry| entry.as_s().ok()).ok_or(RefreshError::Inconsistent)?;
                match ChangeEvent::parse(entry)? {
                    Ok(event) if I::follows(event.kind) => read.events.push(event),
                    Ok(event) => read.others.push(event.id),
                    Err(unknown) => {
                        read.others.push(unknown.0);
                        read.unknown.insert(unknown);
                    }
                }
            }
            pages_read += 1;
            if page.last_evaluated_key.is_some() && max_pages.is_some_and(|max_pages| pages_read >= max_pages) {
                return Err(RefreshError::TooManyEvents);
            }
        }
        Ok(read)
    }

    /// Pauses after a page, in the snapshot writer only.
    async fn keep_pace(&self, page: &QueryOutput) {
        if let Some(pace) = &self.store.read_pace {
            let units = page.consumed_capacity.as_ref().and_then(|capacity| capacity.capacity_units).unwrap_or_default();
            let pause = pace.lock().unwrap_or_else(PoisonError::into_inner).pause_after(units);
            tokio::time::sleep(pause).await;
        }
    }
}

/// Logs that optional columns were dropped, so that the operator can give the function more memory.
fn log_left_out<I: ListIndex>(store: &Store) {
    let (kind, budget) = (I::Entity::KIND.as_str(), store.list_indexes.budget());
    tracing::warn!(kind, budget, "custom fields exceed the memory budget of a list index");
}

/// Returns how long an index that could not be made consistent is unavailable. After this time, the secondary index contains the
/// changes that were missing from the events.
fn retry_after_inconsistent() -> TimeDelta {
    max_secondary_index_delay() + CLOCK_SKEW
}

/// A list index as of `synced_at`.
#[derive(Debug)]
pub struct LoadedIndex<I> {
    pub index: I,
    /// Start of the last read of events. The index contains every earlier write.
    synced_at: Timestamp,
    loaded_at: Timestamp,
    /// Recent events about unknown kinds, as of `synced_at`.
    unknown_events: HashSet<UnknownEvent>,
    applied: AppliedEvents,
}

#[derive(Debug, Default)]
pub enum CacheSlot<I> {
    /// Nothing yet: the next list loads an index.
    #[default]
    Empty,
    /// A partly loaded index: the next list loads the rest.
    Loading(PartialIndex<I>),
    /// An index, up to date as of the last list.
    Loaded(LoadedIndex<I>),
    /// No index until this time, because loading would fail the same way.
    Refused(Refusal, Timestamp),
}

/// Why there is no index for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The index would exceed the memory budget, so lists fail.
    TooLarge,
    /// The table contradicts the secondary index, or the budget is 0, so lists read the records themselves.
    Contradicted,
    /// Like `Contradicted`, but there are too many records to read for each list.
    TooMany,
}

impl<I> CacheSlot<I> {
    pub fn loaded(&mut self) -> Option<&mut LoadedIndex<I>> {
        match self {
            Self::Loaded(loaded) => Some(loaded),
            _ => None,
        }
    }
}

/// A slot used by one request at a time, so that concurrent requests load an index only once.
pub type SharedSlot<I> = Arc<tokio::sync::Mutex<CacheSlot<I>>>;

struct CacheEntry {
    slot: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    last_used: u64,
}

#[derive(Default)]
struct CacheEntries {
    by_key: HashMap<(TenantId, TypeId), CacheEntry>,
    /// Number of uses so far. Serves as the clock for `last_used`.
    uses: u64,
}

/// All slots of a function instance. The least recently used indexes are evicted.
pub struct ListIndexCache {
    budget: usize,
    many_events: usize,
    entries: Mutex<CacheEntries>,
}

impl ListIndexCache {
    /// Creates an empty cache. `budget` is the maximum size of all indexes together, in bytes.
    pub fn new(budget: usize) -> Self {
        Self { budget, many_events: MANY_EVENTS, entries: Mutex::default() }
    }

    /// Replaces [`MANY_EVENTS`].
    pub fn with_many_events(self, many_events: usize) -> Self {
        Self { many_events, ..self }
    }

    pub fn many_events(&self) -> usize {
        self.many_events
    }

    pub fn budget(&self) -> usize {
        self.budget
    }

    fn entries(&self) -> MutexGuard<'_, CacheEntries> {
        // A panic can't leave the map inconsistent, because each change to it is complete when the lock is released.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slot of an index. Adds an empty slot if there is none.
    pub fn slot<I: ListIndex>(&self, tenant: TenantId) -> SharedSlot<I> {
        let mut entries = self.entries();
        entries.uses += 1;
        let now = entries.uses;
        let empty = || CacheEntry { slot: Arc::new(tokio::sync::Mutex::new(CacheSlot::<I>::Empty)), bytes: 0, last_used: now };
        let entry = entries.by_key.entry((tenant, TypeId::of::<I>())).or_insert_with(empty);
        entry.last_used = now;
        // The key contains the type, so the slot always has it.
        Arc::clone(&entry.slot).downcast().unwrap_or_default()
    }

    /// Records the size of an index, and evicts other indexes, least recently used first, until all fit in the budget.
    pub fn set_bytes<I: ListIndex>(&self, tenant: TenantId, slot: &SharedSlot<I>, bytes: usize) {
        let key = (tenant, TypeId::of::<I>());
        let mut entries = self.entries();
        match entries.by_key.get_mut(&key) {
            Some(entry) if std::ptr::addr_eq(Arc::as_ptr(&entry.slot), Arc::as_ptr(slot)) => entry.bytes = bytes,
            // The slot was evicted while being filled. The last request that uses the slot drops it.
            _ => return,
        }
        let mut total: usize = entries.by_key.values().map(|entry| entry.bytes).sum();
        while total > self.budget {
            let others = entries.by_key.iter().filter(|(other, entry)| **other != key && entry.bytes > 0);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.last_used).map(|(other, _)| *other) else { break };
            total -= entries.by_key.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
    }

    pub fn bytes(&self) -> usize {
        self.entries().by_key.values().map(|entry| entry.bytes).sum()
    }

    /// Discards all indexes. The next lists load them again.
    pub fn clear(&self) {
        self.entries().by_key.clear();
    }
}

/// Maximum time between a record's ID and the ID of its creation event: longer than any request takes.
const MAX_TIME_TO_EVENT: TimeDelta = TimeDelta::minutes(1);
/// From this number on, applied events are counted instead of read. With fewer events, the extra query costs more than it saves.
pub const MANY_EVENTS: usize = 100;
/// Number of events that one query counts. At about 1 KB per event, this is less than a page.
const COUNTED_AT_ONCE: usize = 800;

/// The index contradicts the table or the change feed, or this version of the service can't read part of their data. The index
/// must be loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the list index is inconsistent with the table")]
pub struct Inconsistent;

/// An event about a kind of record that is unknown to this version of the service. No list shows such records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownEvent(EventId);

#[derive(Debug, Clone)]
pub struct ChangeEvent {
    pub kind: Kind,
    verb: Verb,
    pub id: EventId,
    pub record_id: Uuid,
    pub version: u64,
    pub at: Timestamp,
    changes: Changes,
}

/// The changed fields. Parsed lazily, because most events that a refresh reads are already in the index.
#[derive(Debug, Clone)]
struct Changes {
    text: Box<RawValue>,
    read: OnceCell<Option<Map<String, Value>>>,
}

impl Changes {
    fn get(&self) -> Result<&Map<String, Value>, Inconsistent> {
        self.read.get_or_init(|| json::parse_object(self.text.get()).ok()).as_ref().ok_or(Inconsistent)
    }
}

/// The parts of an [`Event`](crate::domain::history::event::Event) that an index needs.
#[derive(Deserialize)]
struct Entry<'a> {
    id: EventId,
    at: Timestamp,
    #[serde(borrow, rename = "type")]
    event_type: Cow<'a, str>,
    entity_id: Uuid,
    version: u64,
    changes: Box<RawValue>,
}

impl ChangeEvent {
    /// Parses the text of a stored event.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when the event is about a known kind of record, but this version of the service can't read the
    /// event's contents.
    pub fn parse(entry: &str) -> Result<Result<Self, UnknownEvent>, Inconsistent> {
        let event: Entry<'_> = serde_json::from_str(entry).map_err(|_| Inconsistent)?;
        let EventType { kind, verb } = EventType::parse(&event.event_type).ok_or(Inconsistent)?;
        let Some(kind) = kind else { return Ok(Err(UnknownEvent(event.id))) };
        Ok(Ok(Self {
            kind,
            verb: verb.ok_or(Inconsistent)?,
            id: event.id,
            record_id: event.entity_id,
            version: event.version,
            at: event.at,
            changes: Changes { text: event.changes, read: OnceCell::new() },
        }))
    }

    /// Whether the record was created so long before `since` that the ID of its creation event is also earlier.
    fn is_of_older_record(&self, since: Timestamp) -> bool {
        let created_at = EventId::from_uuid(self.record_id).timestamp();
        self.verb != Verb::Created && created_at.plus(MAX_TIME_TO_EVENT) < since
    }

    pub fn record(&self) -> (Kind, Uuid) {
        (self.kind, self.record_id)
    }

    pub fn is_deletion(&self) -> bool {
        self.verb == Verb::Deleted
    }

    /// Returns the new text of a field; `None` if the event doesn't change the field, or its new value isn't text.
    pub fn new_text(&self, field: &str) -> Option<&str> {
        self.changes.get().ok()?.get(field)?.get("new")?.as_str()
    }

    /// Returns the new object of a field; `None` if the event doesn't change the field, or its new value isn't an object.
    pub fn new_object(&self, field: &str) -> Option<&Map<String, Value>> {
        self.changes.get().ok()?.get(field)?.get("new")?.as_object()
    }

    /// Whether the event changes a shown field. Such a change also sets `updated_at`.
    pub fn changes_shown_field<T: Record>(&self) -> bool {
        self.changes.get().is_ok_and(|changes| changes.keys().any(|field| T::is_shown(field)))
    }

    /// Returns the new values of changed fields, except values that are neither text nor Boolean.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] for a change without a new value, and for changes that can't be parsed.
    pub fn new_values(&self) -> Result<impl Iterator<Item = Result<(&str, Option<&str>), Inconsistent>>, Inconsistent> {
        Ok(self.changes.get()?.iter().filter_map(|(field, change)| match change.get("new") {
            None => Some(Err(Inconsistent)),
            Some(Value::Null) => Some(Ok((field.as_str(), None))),
            Some(Value::String(text)) => Some(Ok((field.as_str(), Some(text.as_str())))),
            Some(Value::Bool(flag)) => Some(Ok((field.as_str(), Some(if *flag { "true" } else { "false" })))),
            Some(_) => None,
        }))
    }
}

/// Applies the events since `since`, plus a short overlap before it. The events can be in any order and already applied.
///
/// The clocks of two function instances differ, so a record's deletion can have a lower ID than its creation. The events since
/// `since` alone could then contain the creation without the deletion, and bring the record back. So `events` must start as long
/// before `since` as clocks can differ. In this overlap, events of records that are not in the index are ignored: the index had
/// these records, and removed them. Later events of older records are ignored, too, if the index drops records that still exist
/// ([`ListIndex::DROPS_ENDED`]).
///
/// `removed` contains the records that earlier events of the overlap remove. Records that `events` remove are added to it.
///
/// Returns the records whose events don't continue from the index, because an event is missing: the index missed it, or its
/// transaction is only partly visible. Their later events are not applied.
///
/// # Errors
///
/// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
pub fn apply_events<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
    removed: &mut HashSet<(Kind, Uuid)>,
) -> Result<Vec<(Kind, Uuid)>, Inconsistent> {
    let mut incomplete = Vec::new();
    let mut by_record: BTreeMap<(Kind, Uuid), Vec<ChangeEvent>> = BTreeMap::new();
    for event in events {
        by_record.entry(event.record()).or_default().push(event);
    }
    for ((kind, id), mut events) in by_record {
        if removed.contains(&(kind, id)) || events.iter().any(I::is_removed_by) {
            removed.insert((kind, id));
            index.remove(kind, id);
            continue;
        }
        events.sort_by_key(|event| event.version);
        for event in events {
            let current = index.version(kind, id).unwrap_or(0);
            let is_removed = || event.id.timestamp() < since || I::DROPS_ENDED && event.is_of_older_record(since);
            if event.version <= current || current == 0 && is_removed() {
                continue;
            }
            // Because clocks differ, an event can be read before its predecessor, but hardly ever without the predecessor.
            if event.version > current + 1 || (current == 0) != (event.verb == Verb::Created) {
                incomplete.push((kind, id));
                break;
            }
            index.apply_change(&event)?;
        }
    }
    Ok(incomplete)
}

/// Recently applied events by ID. An event that removes its record is stored with the record.
#[derive(Debug, Default)]
pub struct AppliedEvents(BTreeMap<EventId, Option<(Kind, Uuid)>>);

impl AppliedEvents {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Splits the time from `from` to `to` into parts that are counted concurrently, with the number of applied events in each.
    pub fn parts(&self, from: Timestamp, to: Timestamp) -> Vec<(Range<Timestamp>, usize)> {
        let count = 1 + self.0.range(first_id(from)..first_id(to)).count() / COUNTED_AT_ONCE;
        let millis = to.since(from).num_milliseconds();
        let bound = |n: usize| Timestamp::from_millis(from.millis() + millis * n as i64 / count as i64);
        let parts = (0..count).map(|n| bound(n)..bound(n + 1));
        parts.map(|part| (part.clone(), self.0.range(first_id(part.start)..first_id(part.end)).count())).collect()
    }

    pub fn contains(&self, UnknownEvent(id): &UnknownEvent) -> bool {
        self.0.contains_key(id)
    }

    /// Returns the records that these events remove.
    pub fn removed(&self) -> HashSet<(Kind, Uuid)> {
        self.0.values().copied().flatten().collect()
    }

    pub fn add<I: ListIndex>(&mut self, events: &[ChangeEvent], others: Vec<EventId>) {
        self.0.extend(events.iter().map(|event| (event.id, I::is_removed_by(event).then(|| event.record()))));
        self.0.extend(others.into_iter().map(|id| (id, None)));
    }

    pub fn append(&mut self, Self(mut later): Self) {
        self.0.append(&mut later);
    }

    /// Drops events from before this time, which are not read again.
    pub fn forget_before(&mut self, time: Timestamp) {
        self.0 = self.0.split_off(&first_id(time));
    }
}

fn first_id(time: Timestamp) -> EventId {
    EventId::new(time, [0; 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_time_once_with_the_events_in_each() {
        let at = Timestamp::from_millis;
        let mut applied = AppliedEvents::default();
        applied.0.extend((0..2_000).map(|n| (EventId::new(at(5_000 + n * 3), [n as u8; 10]), None)));
        for (from, to) in [(0, 20_000), (5_000, 11_000), (5_001, 10_999), (6_000, 6_001), (20_000, 30_000)] {
            let parts = applied.parts(at(from), at(to));
            let bounds: Vec<Timestamp> = parts.iter().map(|(part, _)| part.start).chain([at(to)]).collect();
            assert_eq!(bounds.first(), Some(&at(from)));
            assert!(parts.iter().zip(&bounds[1..]).all(|((part, _), next)| part.end == *next));
            let inside = (0..2_000).filter(|n| (from..to).contains(&(5_000 + n * 3))).count();
            assert_eq!(parts.iter().map(|(_, count)| count).sum::<usize>(), inside, "{from} to {to}");
        }
        assert_eq!(applied.parts(at(5_000), at(11_000)).len(), 3);
        applied.forget_before(at(8_000));
        assert_eq!(applied.len(), 1_000);
    }
}
