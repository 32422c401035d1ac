//! The one way records are written: each with its event, its markers and its references, all or nothing.

use super::TenantStore;
use super::client::OPERATION;
use super::error::{StoreError, WriteError};
use super::item::{self, OWNER, USES, VERSION};
use super::keys::{self, Item, Keys};
use super::transaction::{Condition, TransactionError, TransactionItem};
use crate::domain::event::{self, Actor};
use crate::domain::id::Id;
use crate::domain::record::{Kind, Record, Reference, Stored, Unique};
use crate::domain::request::{IdempotentRequest, Precondition, StoredResponse};
use crate::domain::time::Timestamp;
use serde_json::Map;
use std::collections::BTreeMap;
use tokio::time::Instant;
use uuid::Uuid;

/// What the items of a transaction may weigh: 4 MB (AWS: TransactWriteItems), less what is pointed to, such as a
/// definition with many steps.
const LARGEST: usize = 3_800_000;

/// Who changes something, and when.
#[derive(Debug, Clone)]
pub struct ChangeContext {
    /// Who.
    pub by: Actor,
    /// When the request came.
    pub at: Timestamp,
    /// What the request is called, if it may come again.
    pub claim: Option<IdempotentRequest>,
    /// The version that the request is meant for.
    pub precondition: Option<Precondition>,
}

impl ChangeContext {
    /// The operator's.
    #[must_use]
    pub fn operator(at: Timestamp) -> Self {
        Self { by: Actor::operator(), at, claim: None, precondition: None }
    }
}

/// Changes of several things that take effect together or not at all.
pub struct UnitOfWork<'a> {
    store: &'a TenantStore,
    context: &'a ChangeContext,
    parts: Vec<TransactionItem>,
    counts: BTreeMap<(Kind, Uuid), Count>,
    /// What the records weigh that it updates; those that it puts can be weighed at the end.
    updated: usize,
    /// When it must be done: events get their ids as they are added.
    until: Instant,
    /// Whether the thing that the precondition is about was met, in a version that was expected.
    met: bool,
}

/// How many more or fewer things point to one after the work.
#[derive(Default)]
struct Count {
    delta: i64,
    /// A reference to it that is there now and was not before.
    gained: Option<Reference>,
}

impl<'a> UnitOfWork<'a> {
    /// Nothing to do yet.
    #[must_use]
    pub fn new(store: &'a TenantStore, context: &'a ChangeContext) -> Self {
        let until = Instant::now() + OPERATION;
        Self { store, context, parts: Vec::new(), counts: BTreeMap::new(), updated: 0, until, met: false }
    }

    /// Writes a new thing.
    ///
    /// # Errors
    ///
    /// It can't be an item.
    pub fn create<T: Record>(&mut self, value: T) -> Result<Stored<T>, StoreError> {
        let changes = event::changes(&Map::new(), &value.audit());
        let (event, last_hash) = self.store.event::<T>(&value, "created", 1, self.context, changes, None)?;
        let at = self.context.at;
        if Keys::list_index(T::KIND, value.id().uuid()).is_some() && value.id().made_at() != at {
            return Err(StoreError::broken("an id of another moment: lists tell from it when a thing was made"));
        }
        let stored = Stored { value, version: 1, created_at: at, updated_at: at, last_hash, uses: 0 };
        let put = self.store.store.put_new(item::whole(&self.store.keys, &stored)?)?;
        self.parts.extend([TransactionItem { guard: Condition::Record, write: put }, event]);
        self.parts.extend(self.store.claims(&stored.value, &[], &stored.value.unique())?);
        self.count(&[], &stored.value.references());
        Ok(stored)
    }

    /// Replaces a thing by `next`, on the condition that it is as `old`; `unused`: and that nothing points to it.
    /// If nothing differs, nothing is written and the version stays.
    ///
    /// # Errors
    ///
    /// [`WriteError::Unexpected`] when the request is meant for another version. It can't be an item.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, next: T, unused: bool) -> Result<Stored<T>, WriteError> {
        self.meet(old)?;
        // Not by what the history shows: an API key's secret, for one, is never shown.
        if old.value == next {
            return Ok(old.clone());
        }
        let changes = old.changes_to(&next);
        let version = old.version + 1;
        let updated_at = if changes.keys().any(|field| T::is_shown(field)) { self.context.at } else { old.updated_at };
        let (event, last_hash) = self.store.event::<T>(&next, "updated", version, self.context, changes, Some(&old.last_hash))?;
        let stored = Stored { value: next, version, updated_at, last_hash, ..old.clone() };
        let guard = if unused { Condition::Unused(old.version) } else { Condition::Record };
        let write = self.store.update_of(old, &stored, unused)?;
        self.updated += item::weight(&item::attributes(&stored.value)?);
        self.parts.extend([TransactionItem { guard, write }, event]);
        self.parts.extend(self.store.claims(&stored.value, &old.value.unique(), &stored.value.unique())?);
        self.count(&old.value.references(), &stored.value.references());
        Ok(stored)
    }

    /// Deletes a thing, on the condition that it is as `old` and nothing points to it. Its events stay.
    ///
    /// # Errors
    ///
    /// [`WriteError::Unexpected`] when the request is meant for another version. It can't be an item.
    pub fn delete<T: Record>(&mut self, old: &Stored<T>) -> Result<(), WriteError> {
        self.meet(old)?;
        let changes = event::changes(&old.value.audit(), &Map::new());
        let version = old.version + 1;
        let (event, _) = self.store.event::<T>(&old.value, "deleted", version, self.context, changes, Some(&old.last_hash))?;
        let write = self.store.delete_of(old)?;
        self.parts.extend([TransactionItem { guard: Condition::Unused(old.version), write }, event]);
        let freed: Vec<Unique> = old.value.unique().into_iter().filter(|unique| !unique.kept).collect();
        self.parts.extend(self.store.claims(&old.value, &freed, &[])?);
        self.count(&old.value.references(), &[]);
        Ok(())
    }

    /// Asks that what `reference` points to can be pointed to anew, although it may have been pointed to before.
    pub fn require(&mut self, reference: Reference) {
        let count = self.counts.entry((reference.kind, reference.id)).or_default();
        count.gained = Some(reference);
    }

    /// Compares a thing that is to be changed with what the request expects of it. What is compared here, the write's
    /// own condition holds fast: it asks for the version of `old`.
    fn meet<T: Record>(&mut self, old: &Stored<T>) -> Result<(), WriteError> {
        let Some(precondition) = self.context.precondition.as_ref().filter(|it| it.of == old.value.id().uuid()) else {
            return Ok(());
        };
        if !precondition.expected.holds(old.version) {
            return Err(WriteError::Unexpected);
        }
        self.met = true;
        Ok(())
    }

    /// Adds an item that is no record.
    pub(super) fn add(&mut self, part: TransactionItem) {
        self.parts.push(part);
    }

    /// Sums up per thing pointed to, since a transaction may touch an item only once.
    fn count(&mut self, old: &[Reference], new: &[Reference]) {
        for reference in new.iter().filter(|reference| !old.contains(reference)) {
            let count = self.counts.entry((reference.kind, reference.id)).or_default();
            count.delta += 1;
            count.gained = Some(reference.clone());
        }
        for reference in old.iter().filter(|reference| !new.contains(reference)) {
            self.counts.entry((reference.kind, reference.id)).or_default().delta -= 1;
        }
    }

    /// Does it, in one transaction; no work at all costs nothing. For what no POST asks for.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stale`] when something is no longer as it was read: read again and decide again.
    /// [`WriteError::TooLarge`] when it never can: only movements can be so.
    pub async fn commit(self) -> Result<(), WriteError> {
        self.commit_with(|| Err(StoreError::broken("a request that may come again, and no answer to keep"))).await
    }

    /// Does it, in one transaction, in which the answer is kept if the request has an idempotency key.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::commit`]; [`WriteError::AlreadyAnswered`], [`WriteError::InProgress`] and [`WriteError::ResponseTooLong`].
    pub async fn commit_with(self, answer: impl FnOnce() -> Result<StoredResponse, StoreError>) -> Result<(), WriteError> {
        if self.context.precondition.is_some() && !self.met {
            return Err(WriteError::Unexpected);
        }
        let mut parts = Vec::new();
        // First, so that it is the first to be looked at: when a request comes again, other conditions fail as well.
        if let Some(claim) = &self.context.claim {
            parts.push(self.store.keep(claim, &answer()?, self.context.at)?);
        }
        parts.extend(self.parts);
        for ((kind, id), count) in self.counts {
            let guard = count.gained.as_ref().map_or(Condition::Record, |gained| Condition::Reference(gained.field));
            let write = self.store.count_of(kind, id, count.delta, count.gained.as_ref())?;
            parts.push(TransactionItem { guard, write });
        }
        if parts.is_empty() {
            return Ok(());
        }
        let put: usize = parts.iter().filter_map(|part| Some(item::weight(part.write.put()?.item()))).sum();
        if self.updated + put > LARGEST {
            return Err(WriteError::TooLarge);
        }
        self.store.store.transact(parts, self.until).await.map_err(|refused| match refused {
            TransactionError::By(Condition::Record, _) => WriteError::Stale,
            TransactionError::By(Condition::Unused(version), present) => {
                let unchanged = present.filter(|item| count_in(item, VERSION) == Some(version));
                unchanged.and_then(|item| count_in(&item, USES)).map_or(WriteError::Stale, WriteError::InUse)
            }
            TransactionError::By(Condition::Unique(kind, field), marker) => {
                WriteError::Duplicate(field, marker.and_then(|item| owner(kind, &item)))
            }
            TransactionError::By(Condition::Reference(field), _) => WriteError::MissingReference(field),
            TransactionError::By(Condition::Answer, _) => WriteError::AlreadyAnswered,
            TransactionError::Rival => WriteError::InProgress,
            TransactionError::By(Condition::Certain, _) => StoreError::broken("a condition failed that never should").into(),
            TransactionError::Store(error) => error.into(),
        })
    }
}

impl TenantStore {
    /// Writes a new thing; `answer` is what is kept for a request that may come again.
    ///
    /// # Errors
    ///
    /// [`WriteError::Duplicate`] and [`WriteError::MissingReference`], those of [`UnitOfWork::commit_with`], or the table.
    pub async fn create<T: Record>(
        &self,
        value: T,
        context: &ChangeContext,
        answer: impl FnOnce(&Stored<T>) -> Result<StoredResponse, StoreError>,
    ) -> Result<Stored<T>, WriteError> {
        let mut work = UnitOfWork::new(self, context);
        let stored = work.create(value)?;
        work.commit_with(|| answer(&stored)).await?;
        Ok(stored)
    }

    /// Replaces a thing by `next`; with `unused`, only if nothing points to it.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stale`] when `old` is no longer the present state: read again and decide again.
    /// [`WriteError::InUse`] with `unused`. Otherwise as [`TenantStore::create`].
    pub async fn update<T: Record>(
        &self,
        old: &Stored<T>,
        next: T,
        context: &ChangeContext,
        unused: bool,
        answer: impl FnOnce(&Stored<T>) -> Result<StoredResponse, StoreError>,
    ) -> Result<Stored<T>, WriteError> {
        let mut work = UnitOfWork::new(self, context);
        let stored = work.update(old, next, unused)?;
        work.commit_with(|| answer(&stored)).await?;
        Ok(stored)
    }

    /// Deletes a thing that nothing points to. Its events stay.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stale`], [`WriteError::InUse`], [`WriteError::Unexpected`], or the table.
    pub async fn delete<T: Record>(&self, old: &Stored<T>, context: &ChangeContext) -> Result<(), WriteError> {
        let mut work = UnitOfWork::new(self, context);
        work.delete(old)?;
        work.commit().await
    }
}

/// Whose marker it is.
fn owner(kind: Kind, marker: &Item) -> Option<(Kind, Uuid)> {
    keys::owner(kind, marker.get(OWNER)?.as_s().ok()?).map(|id| (kind, id))
}

/// A whole number among an item's attributes.
fn count_in(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}
