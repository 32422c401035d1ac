//! Refreshes list indexes (docs/adr/0008), and caches them in a function instance, within a memory budget.

use super::ListIndex;
use super::change_event::{AppliedEvents, ChangeEvent, Inconsistent, MANY_EVENTS, UnknownEvent, apply_events};
use super::load::PartialIndex;
use super::snapshots::SnapshotError;
use crate::domain::record::Record;
use crate::domain::values::id::{EventId, TenantId};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{ENTRY, Keys};
use crate::store::{
    CLOCK_SKEW, SECONDARY_INDEX_LAG, Store, StoreError, TenantStore, TornReadRetry, USUAL_EVENT_DELAY, max_event_delay,
    max_secondary_index_delay,
};
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, Select};
use chrono::TimeDelta;
use futures_util::future::try_join_all;
use futures_util::try_join;
use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Age at which an index is loaded again, which limits how long an undetected error lasts.
const RELOADED_AFTER: TimeDelta = TimeDelta::hours(1);
/// How long lists are refused after an index turned out to be too large.
const RETRY_AFTER_TOO_LARGE: TimeDelta = TimeDelta::minutes(10);
/// Number of rows in the secondary index that cost as much to read as one page of events. With more events, loading the index
/// again is cheaper than reading them.
const ROWS_PER_EVENT_PAGE: usize = 6_400;

/// How fresh a list index must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Includes the events since the index was last used.
    Refreshed,
    /// Loaded again, because the table contradicts the index.
    Reloaded,
}

/// Events from a part of the change feed.
#[derive(Default)]
pub struct Events {
    /// Events that the index must apply.
    pub events: Vec<ChangeEvent>,
    /// Events about unknown kinds.
    pub unknown: HashSet<UnknownEvent>,
    /// IDs of all other events.
    pub others: Vec<EventId>,
}

/// Why a list index can't be loaded or brought up to date.
pub(super) enum RefreshError {
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

impl TenantStore {
    /// Refreshes or loads the index first. While the secondary index contradicts the table, or without memory for indexes, the
    /// index is built from the records themselves; the second value then has the IDs of unreadable records.
    ///
    /// The index contains every write before this call.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::ListTooLarge`] when the index exceeds the memory budget, [`StoreError::NotLoaded`] when it is not
    /// loaded yet, or must be built from too many records, and other errors when the table can't be read. After an error, the
    /// index is unchanged or dropped.
    pub async fn with_list_index<I: ListIndex, T>(
        &self,
        freshness: Freshness,
        read: impl FnOnce(&I) -> T,
    ) -> Result<(T, Vec<Uuid>), StoreError> {
        let shared = self.store.list_indexes.slot::<I>(self.id);
        let mut slot = shared.lock().await;
        let now = self.store.now();
        let is_refused = matches!(&*slot, CacheSlot::Refused(_, until) if *until > now);
        if self.store.list_indexes.budget() == 0 && !is_refused {
            self.refuse(&mut slot, &shared, Refusal::Contradicted);
        } else if !is_refused {
            match self.refresh_or_load(&mut slot, &shared, freshness, now).await {
                Ok((loaded, bytes)) => {
                    let result = read(&loaded.index);
                    self.store.list_indexes.set_bytes::<I>(self.id, &shared, bytes);
                    return Ok((result, Vec::new()));
                }
                Err(RefreshError::Store(error)) => return Err(error),
                Err(RefreshError::TooLarge) => self.refuse(&mut slot, &shared, Refusal::TooLarge),
                Err(RefreshError::Inconsistent | RefreshError::TooManyEvents) => {
                    self.refuse(&mut slot, &shared, Refusal::Contradicted);
                }
            }
        }
        if let CacheSlot::Refused(Refusal::Contradicted, until) = *slot {
            if let Some((index, unreadable)) = self.index_of_records::<I>().await? {
                return Ok((read(&index), unreadable));
            }
            *slot = CacheSlot::Refused(Refusal::TooMany, until);
        }
        let CacheSlot::Refused(refusal, until) = *slot else { return Err(StoreError::broken("a list index without a state")) };
        let kind = I::Entity::KIND.noun();
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
        tracing::warn!(tenant_id = %self.id, kind = I::Entity::KIND.noun(), %until, ?refusal, "no list index until then");
        *slot = CacheSlot::Refused(refusal, until);
        self.store.list_indexes.set_bytes::<I>(self.id, shared, 0);
    }

    /// Loads the index if there is none, or if it can't be refreshed. Returns it with its size in bytes.
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
                self.load_index(slot, shared).await?;
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

    /// Loads the index from its snapshot, and applies the events after it. If reading these costs more than a load, the snapshot
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

    /// Applies the events since the last refresh. If one is missing, all are read and applied again, which is idempotent.
    pub(super) async fn refresh<I: ListIndex>(&self, loaded: &mut LoadedIndex<I>, now: Timestamp) -> Result<(), RefreshError> {
        let since = loaded.synced_at.plus(-max_event_delay());
        // Loading reads the most recent events anyway, so it can be cheaper only after a longer pause.
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

    /// The events from `from` on that are not applied yet, and possibly some that are. After a burst, applied events are only
    /// counted: if the table has no more than these, none is new, because events are never changed or deleted.
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

    /// Reads at most `max_pages` pages.
    pub(super) async fn events_since<I: ListIndex>(
        &self,
        since: Timestamp,
        max_pages: Option<usize>,
    ) -> Result<Events, RefreshError> {
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
}

/// Tells the operator, who can give the function more memory.
pub(super) fn log_left_out<I: ListIndex>(store: &Store) {
    let (kind, budget) = (I::Entity::KIND.noun(), store.list_indexes.budget());
    tracing::warn!(kind, budget, "custom fields exceed the memory budget of a list index");
}

/// How long an index that could not be made consistent is unavailable. By then, the secondary index contains the changes that
/// were missing from the events.
fn retry_after_inconsistent() -> TimeDelta {
    max_secondary_index_delay() + CLOCK_SKEW
}

/// A list index as of `synced_at`.
#[derive(Debug)]
pub struct LoadedIndex<I> {
    pub index: I,
    /// Start of the last read of events. The index contains every earlier write.
    pub(super) synced_at: Timestamp,
    pub(super) loaded_at: Timestamp,
    /// Recent events about unknown kinds, as of `synced_at`.
    pub(super) unknown_events: HashSet<UnknownEvent>,
    pub(super) applied: AppliedEvents,
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
    /// No index until this time, because loading it would fail the same way.
    Refused(Refusal, Timestamp),
}

/// Why there is no index for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The index would exceed the memory budget, so lists fail.
    TooLarge,
    /// The table contradicts the secondary index, or the budget is 0, so lists read the records themselves.
    Contradicted,
    /// As `Contradicted`, but there are too many records to read for each list.
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
    /// By tenant and type of index.
    by_key: HashMap<(TenantId, TypeId), CacheEntry>,
    /// Number of uses so far, which is the clock for `last_used`.
    uses: u64,
}

/// All slots of a function instance. The least recently used indexes are evicted.
pub struct ListIndexCache {
    budget: usize,
    many_events: usize,
    entries: Mutex<CacheEntries>,
}

impl ListIndexCache {
    /// `budget` is the maximum size of all indexes together, in bytes.
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

    /// The maximum size of all indexes together, in bytes.
    pub fn budget(&self) -> usize {
        self.budget
    }

    fn entries(&self) -> MutexGuard<'_, CacheEntries> {
        // Each change under the lock is complete, so a panic elsewhere leaves nothing inconsistent.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an empty slot if there is none.
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

    /// Records the size of an index, and evicts the least recently used others until all fit in the budget.
    pub fn set_bytes<I: ListIndex>(&self, tenant: TenantId, slot: &SharedSlot<I>, bytes: usize) {
        let key = (tenant, TypeId::of::<I>());
        let mut entries = self.entries();
        match entries.by_key.get_mut(&key) {
            Some(entry) if std::ptr::addr_eq(Arc::as_ptr(&entry.slot), Arc::as_ptr(slot)) => entry.bytes = bytes,
            // The slot was evicted while being filled. The last request that uses it drops it.
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
