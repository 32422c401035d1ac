//! The directories that a function instance keeps, within a budget of memory.

use super::index::ListIndex;
use super::refresh::LoadedIndex;
use crate::domain::id::TenantId;
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an instance knows of one tenant's things of one kind.
#[derive(Debug, Default)]
pub enum Slot<B> {
    /// Nothing: the next list loads them.
    #[default]
    Empty,
    /// All of them, as of the last list.
    Loaded(LoadedIndex<B>),
    /// That a directory would be too big or could not be trusted until then: lists read the table itself.
    Unavailable(Timestamp),
}

/// One request at a time looks into a slot, so that many at once load it once.
pub type SharedSlot<B> = Arc<tokio::sync::Mutex<Slot<B>>>;

struct Entry {
    slot: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_thing: HashMap<(TenantId, Kind), Entry>,
    uses: u64,
}

/// All slots of a function instance.
pub struct Cache {
    budget: usize,
    entries: Mutex<Entries>,
}

impl Cache {
    /// A cache that keeps at most `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self { budget, entries: Mutex::default() }
    }

    /// How many bytes it may keep.
    pub fn budget(&self) -> usize {
        self.budget
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Each change under the lock is whole, so a panic elsewhere leaves nothing half done.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of one tenant's things of one kind, if there is one.
    pub fn present<B: ListIndex>(&self, tenant: TenantId, kind: Kind) -> Option<SharedSlot<B>> {
        let mut entries = self.entries();
        entries.uses += 1;
        let used = entries.uses;
        let entry = entries.by_thing.get_mut(&(tenant, kind))?;
        entry.used = used;
        Arc::clone(&entry.slot).downcast().ok()
    }

    /// The slot of one tenant's things of one kind.
    pub fn slot<B: ListIndex>(&self, tenant: TenantId, kind: Kind) -> SharedSlot<B> {
        let mut entries = self.entries();
        entries.uses += 1;
        let used = entries.uses;
        let fresh = || Entry { slot: Arc::new(tokio::sync::Mutex::new(Slot::<B>::Empty)), bytes: 0, used };
        let entry = entries.by_thing.entry((tenant, kind)).or_insert_with(fresh);
        entry.used = used;
        // Each kind has one type of book, so this is always the slot that was put there.
        Arc::clone(&entry.slot).downcast().unwrap_or_default()
    }

    /// Notes what a slot holds now; those used longest ago make room for it.
    pub fn weigh<B: ListIndex>(&self, tenant: TenantId, slot: &SharedSlot<B>, bytes: usize) {
        let kind = B::Entity::KIND;
        let mut entries = self.entries();
        match entries.by_thing.get_mut(&(tenant, kind)) {
            Some(entry) if std::ptr::addr_eq(Arc::as_ptr(&entry.slot), Arc::as_ptr(slot)) => entry.bytes = bytes,
            // The slot was thrown out while it was filled: it goes with whoever still looks into it.
            _ => return,
        }
        let mut total: usize = entries.by_thing.values().map(|entry| entry.bytes).sum();
        while total > self.budget {
            let others = entries.by_thing.iter().filter(|(thing, entry)| **thing != (tenant, kind) && entry.bytes > 0);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used).map(|(thing, _)| *thing) else { break };
            total -= entries.by_thing.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
    }

    /// How many bytes it keeps.
    pub fn bytes(&self) -> usize {
        self.entries().by_thing.values().map(|entry| entry.bytes).sum()
    }

    /// Throws everything away; the next lists load again.
    pub fn clear(&self) {
        self.entries().by_thing.clear();
    }
}
