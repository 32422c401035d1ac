//! The list indexes that a function instance keeps, within a memory budget.

use super::ListIndex;
use super::change_event::{AppliedEvents, MANY_EVENTS, UnknownEvent};
use super::partial_index::PartialIndex;
use crate::domain::values::id::TenantId;
use crate::domain::values::time::Timestamp;
use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A list index as it was at `synced_at`.
#[derive(Debug)]
pub struct LoadedIndex<I> {
    pub index: I,
    /// The beginning of the last read of events: the index contains every earlier write.
    pub(super) synced_at: Timestamp,
    pub(super) loaded_at: Timestamp,
    /// The recent events whose kind of record this version of the service does not have, as of `synced_at`.
    pub(super) unknown_events: HashSet<UnknownEvent>,
    pub(super) applied: AppliedEvents,
}

#[derive(Debug, Default)]
pub enum CacheSlot<I> {
    /// Nothing yet: the next list loads an index.
    #[default]
    Empty,
    /// A part of an index: the next list loads the rest.
    Loading(PartialIndex<I>),
    /// An index, up to date as of the last list.
    Loaded(LoadedIndex<I>),
    /// No index until this time: its load would end in the same way.
    Refused(Refusal, Timestamp),
}

/// Why there is no index for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It would exceed the memory budget: there are no lists.
    TooLarge,
    /// The table contradicts the secondary index, or the budget is 0: lists read the records themselves.
    Contradicted,
    /// The same, and there are too many records to be read for each list.
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

/// A slot that one request at a time uses, so that concurrent requests load an index only once.
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
    /// Counts uses, as the time for `last_used`.
    uses: u64,
}

/// All slots of a function instance. The least recently used indexes are evicted.
pub struct ListIndexCache {
    budget: usize,
    many_events: usize,
    entries: Mutex<CacheEntries>,
}

impl ListIndexCache {
    /// `budget`: the bytes that all indexes may use together.
    pub fn new(budget: usize) -> Self {
        Self { budget, many_events: MANY_EVENTS, entries: Mutex::default() }
    }

    /// Indexes with this number of applied events count them, instead of [`MANY_EVENTS`].
    pub fn with_many_events(self, many_events: usize) -> Self {
        Self { many_events, ..self }
    }

    pub fn many_events(&self) -> usize {
        self.many_events
    }

    /// The bytes that all indexes may use together.
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
        // The key names the type, so the slot always has it.
        Arc::clone(&entry.slot).downcast().unwrap_or_default()
    }

    /// Evicts the least recently used others until all fit the budget.
    pub fn set_bytes<I: ListIndex>(&self, tenant: TenantId, slot: &SharedSlot<I>, bytes: usize) {
        let key = (tenant, TypeId::of::<I>());
        let mut entries = self.entries();
        match entries.by_key.get_mut(&key) {
            Some(entry) if std::ptr::addr_eq(Arc::as_ptr(&entry.slot), Arc::as_ptr(slot)) => entry.bytes = bytes,
            // The slot was evicted while it was filled, and is dropped by the last request that uses it.
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
