//! The unit of work: the only way to write records.
//!
//! A unit collects changes and commits them in one transaction: each record with its event, the markers of its unique
//! values, and the reference counts of the records that it refers to.

use super::TenantStore;
use super::change_context::ChangeContext;
use super::client::OPERATION_TIMEOUT;
use super::content_items::{ContentName, ContentText, content_of};
use super::error::{StoreError, WriteError};
use super::item::{self, OWNER, USES};
use super::keys::{self, HS, Item, Section};
use super::transaction::{Condition, TransactionError, TransactionItem};
use crate::domain::event::{self, Verb};
use crate::domain::id::Id;
use crate::domain::record::{Kind, Record, Reference, Stored, Unique};
use crate::domain::request::StoredResponse;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;
use uuid::Uuid;

/// The maximum number of items in a transaction (AWS: TransactWriteItems).
pub const MAX_TRANSACTION_ITEMS: usize = 100;
/// How large the items of a transaction may be. DynamoDB allows 4 MB; the rest is for what is not measured here, such as
/// reference items and the keys of updated records.
const MAX_TRANSACTION_BYTES: usize = 3_800_000;

/// Changes that take effect together or not at all.
pub struct UnitOfWork<'a> {
    store: &'a TenantStore,
    context: &'a ChangeContext,
    items: Vec<TransactionItem>,
    reference_counts: BTreeMap<(Kind, Uuid), ReferenceCount>,
    /// The content that new or changed records have.
    content: BTreeSet<ContentName>,
    /// The size of the records that are updated. Items that are put are measured in `commit_with`.
    updated_bytes: usize,
    /// In a dry run: the items that the updated records would have.
    updated_items: Vec<Item>,
    /// When the unit must be committed. Events get their ids when they are added, and readers of the change feed rely
    /// on an event being written soon after its id was created.
    deadline: Instant,
    /// Whether the record that the precondition is about was changed at an expected version.
    precondition_met: bool,
}

/// How the number of references to a record changes.
#[derive(Default)]
struct ReferenceCount {
    delta: i64,
    /// A reference that the unit adds, if there is one.
    added: Option<Reference>,
}

impl<'a> UnitOfWork<'a> {
    /// Starts an empty unit of work. It must be committed within [`OPERATION_TIMEOUT`].
    #[must_use]
    pub fn new(store: &'a TenantStore, context: &'a ChangeContext) -> Self {
        Self {
            store,
            context,
            items: Vec::new(),
            reference_counts: BTreeMap::new(),
            content: BTreeSet::new(),
            updated_bytes: 0,
            updated_items: Vec::new(),
            deadline: Instant::now() + OPERATION_TIMEOUT,
            precondition_met: false,
        }
    }

    /// Adds a new record.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the record can't be stored, or when it is of a listed kind and its id was
    /// not created at the context's time.
    pub fn create<T: Record>(&mut self, value: T) -> Result<Stored<T>, StoreError> {
        let changes = event::changes(&Map::new(), &value.audit());
        let event = self.store.event_item((T::KIND, value.id().uuid()), Verb::Created, 1, self.context, changes, None)?;
        let at = self.context.at;
        if Section::of(T::KIND, value.is_ended()).is_some() && value.id().timestamp() != at {
            return Err(StoreError::broken("lists take a record's creation time from its id, and this id has another"));
        }
        let (last_hash, last_event) = (event.hash, event.id);
        let stored = Stored { value, version: 1, created_at: at, updated_at: at, last_hash, last_event };
        let (item, content) = item::from_record(&self.store.keys, &stored)?;
        let put = self.store.store.put_new(item)?;
        self.put_content(content)?;
        self.items.extend([TransactionItem { condition: Condition::RecordState, write: put }, event.item]);
        self.items.extend(self.store.unique_markers(&stored.value, &[], &stored.value.unique())?);
        self.items.extend(self.store.reference_item_put(&stored.value)?);
        self.count_references(&[], &stored.value.references());
        self.store.note_assigned(&stored.value.id().to_string());
        Ok(stored)
    }

    /// Replaces `old` by `next`, if the record is still at `old`'s version.
    ///
    /// If the two are equal, nothing is written and the version stays.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::PreconditionFailed`] when the request expects another version than `old`'s, and
    /// [`WriteError::Store`] when the record can't be stored.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, next, false)
    }

    /// Replaces `old` by `next`, if the record is still at `old`'s version and nothing references it.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update`]. If the record is referenced, [`UnitOfWork::commit`] returns [`WriteError::InUse`].
    pub fn update_unreferenced<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, next, true)
    }

    fn replace<T: Record>(&mut self, old: &Stored<T>, next: T, is_unreferenced: bool) -> Result<Stored<T>, WriteError> {
        self.check_precondition(old)?;
        // The audited fields can't decide this: an API key's secret, for one, is stored and never shown.
        if old.value == next {
            return Ok(old.clone());
        }
        let changes = old.changes_to(&next);
        let version = old.version + 1;
        let updated_at = if changes.keys().any(|field| T::is_shown(field)) { self.context.at } else { old.updated_at };
        let event = self.store.event_item(
            (T::KIND, next.id().uuid()),
            Verb::Updated,
            version,
            self.context,
            changes,
            Some(&old.last_hash),
        )?;
        let (last_hash, last_event) = (event.hash, event.id);
        let stored = Stored { value: next, version, updated_at, last_hash, last_event, ..old.clone() };
        let (before, _) = item::attributes(&old.value)?;
        let (after, content) = item::attributes(&stored.value)?;
        let write = self.store.update_item(old, &stored, &before, &after)?;
        self.updated_bytes += item::size(&after);
        if content_of(&before) != content_of(&after) {
            self.put_content(content)?;
        }
        self.items.extend([TransactionItem { condition: Condition::RecordState, write }, event.item]);
        self.items.extend(self.store.reference_item_update(old, &stored.value, is_unreferenced)?);
        self.items.extend(self.store.unique_markers(&stored.value, &old.value.unique(), &stored.value.unique())?);
        self.count_references(&old.value.references(), &stored.value.references());
        if self.store.dry_run.is_some() {
            self.updated_items.push(item::from_record(&self.store.keys, &stored)?.0);
        }
        Ok(stored)
    }

    /// Deletes a record, if it is still at `old`'s version and nothing references it. Its events stay, and a tombstone
    /// takes its place, so that the end of its history is known.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::PreconditionFailed`] when the request expects another version than `old`'s, and
    /// [`WriteError::Store`] when the event can't be stored.
    pub fn delete<T: Record>(&mut self, old: &Stored<T>) -> Result<(), WriteError> {
        self.check_precondition(old)?;
        let changes = event::changes(&old.value.audit(), &Map::new());
        let version = old.version + 1;
        let event = self.store.event_item(
            (T::KIND, old.value.id().uuid()),
            Verb::Deleted,
            version,
            self.context,
            changes,
            Some(&old.last_hash),
        )?;
        let write = self.store.delete_item(old)?;
        let tombstone = self.store.tombstone_item(T::KIND, old.value.id().uuid(), version, &event)?;
        self.items.extend([TransactionItem { condition: Condition::RecordState, write }, event.item]);
        self.items.extend(self.store.reference_item_deletion(&old.value)?);
        self.items.push(tombstone);
        let freed: Vec<Unique> = old.value.unique().into_iter().filter(|unique| !unique.reserved_after_deletion).collect();
        self.items.extend(self.store.unique_markers(&old.value, &freed, &[])?);
        self.count_references(&old.value.references(), &[]);
        Ok(())
    }

    /// Requires that `reference` could be added now, also if it was there before.
    pub fn require(&mut self, reference: Reference) {
        let count = self.reference_counts.entry((reference.kind, reference.id)).or_default();
        count.added = Some(reference);
    }

    /// Compares the version of `old` with the request's precondition, if that is about this record. The write itself
    /// is conditional on the same version.
    fn check_precondition<T: Record>(&mut self, old: &Stored<T>) -> Result<(), WriteError> {
        let Some(precondition) = self.context.precondition.as_ref().filter(|it| it.record_id == old.value.id().uuid()) else {
            return Ok(());
        };
        if !precondition.expected.contains(old.version) {
            return Err(WriteError::PreconditionFailed);
        }
        self.precondition_met = true;
        Ok(())
    }

    /// Adds the put of content that the tenant's table is not known to have. Several records may have the same content.
    fn put_content(&mut self, content: Option<ContentText>) -> Result<(), StoreError> {
        if let Some(content) = content.filter(|content| !self.content.contains(&content.name)) {
            self.content.insert(content.name.clone());
            self.items.extend(self.store.content_put(content)?);
        }
        Ok(())
    }

    /// Adds an item that is not a record.
    pub(super) fn add(&mut self, item: TransactionItem) {
        self.items.push(item);
    }

    /// Adds up the changes per referenced record, since a transaction may write an item only once.
    fn count_references(&mut self, old: &[Reference], new: &[Reference]) {
        for reference in new.iter().filter(|reference| !old.contains(reference)) {
            let count = self.reference_counts.entry((reference.kind, reference.id)).or_default();
            count.delta += 1;
            count.added = Some(reference.clone());
        }
        for reference in old.iter().filter(|reference| !new.contains(reference)) {
            self.reference_counts.entry((reference.kind, reference.id)).or_default().delta -= 1;
        }
    }

    /// Commits the changes in one transaction, for requests that can't have an idempotency key. An empty unit costs
    /// nothing.
    ///
    /// # Errors
    ///
    /// - [`WriteError::Stale`] when a record has changed since it was read: read it again and decide again.
    /// - [`WriteError::InUse`] when a record that must not be referenced is.
    /// - [`WriteError::Duplicate`] when a unique value is taken.
    /// - [`WriteError::MissingReference`] when a referenced record is gone or can't be referenced.
    /// - [`WriteError::PreconditionFailed`] when the request's precondition was not met.
    /// - [`WriteError::TooLarge`] when the changes don't fit into one transaction. Only movements can be so large.
    /// - [`WriteError::Store`] when the table can't be written.
    pub async fn commit(self) -> Result<(), WriteError> {
        self.commit_with(|| Err(StoreError::broken("a request with an idempotency key, and no response to store"))).await
    }

    /// Commits the changes in one transaction, together with the response if the request has an idempotency key.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::commit`], and:
    ///
    /// - [`WriteError::AlreadyAnswered`] when a response is stored under the idempotency key.
    /// - [`WriteError::InProgress`] when the same request is being answered at the same time.
    /// - [`WriteError::ResponseTooLong`] when the response is too long to be stored.
    pub async fn commit_with(self, response: impl FnOnce() -> Result<StoredResponse, StoreError>) -> Result<(), WriteError> {
        if self.context.precondition.is_some() && !self.precondition_met {
            return Err(WriteError::PreconditionFailed);
        }
        let mut items = Vec::new();
        // First, because the first failed condition is reported: when a request is repeated, others fail as well.
        if let Some(idempotency) = &self.context.idempotency {
            let puts = self.items.iter().filter_map(|item| item.write.put());
            let entries = puts.filter_map(|put| put.item().get(HS).cloned()).collect();
            items.push(self.store.store_response(idempotency, &response()?, entries, self.context.at)?);
        }
        items.extend(self.items);
        for ((kind, id), count) in self.reference_counts {
            let condition = count.added.as_ref().map_or(Condition::RecordState, |added| Condition::Reference(added.field));
            let write = self.store.reference_count_item(kind, id, count.delta, count.added.as_ref())?;
            items.push(TransactionItem { condition, write });
        }
        if items.is_empty() {
            return Ok(());
        }
        let put_bytes: usize = items.iter().filter_map(|item| Some(item::size(item.write.put()?.item()))).sum();
        if self.updated_bytes + put_bytes > MAX_TRANSACTION_BYTES || items.len() > MAX_TRANSACTION_ITEMS {
            return Err(WriteError::TooLarge);
        }
        let store = &self.store.store;
        let committed = match &self.store.dry_run {
            Some(dry_run) => store.try_out(dry_run, items, self.updated_items, self.deadline).await,
            None => store.transact(items, self.deadline).await,
        };
        committed.map_err(write_error)
    }
}

impl TenantStore {
    /// Deletes a record that nothing references, as a unit of work of its own. Its events stay.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::delete`] and [`UnitOfWork::commit`].
    pub async fn delete<T: Record>(&self, old: &Stored<T>, context: &ChangeContext) -> Result<(), WriteError> {
        let mut unit = UnitOfWork::new(self, context);
        unit.delete(old)?;
        unit.commit().await
    }
}

/// Says what a failed transaction means for the records.
pub(super) fn write_error(error: TransactionError) -> WriteError {
    match error {
        TransactionError::ConditionFailed(Condition::RecordState, _) => WriteError::Stale,
        TransactionError::ConditionFailed(Condition::Unreferenced, present) => {
            present.and_then(|item| number(&item, USES)).map_or(WriteError::Stale, WriteError::InUse)
        }
        TransactionError::ConditionFailed(Condition::UniqueValue(kind, field), marker) => {
            WriteError::Duplicate(field, marker.and_then(|item| marker_owner(kind, &item)))
        }
        TransactionError::ConditionFailed(Condition::Reference(field), _) => WriteError::MissingReference(field),
        TransactionError::ConditionFailed(Condition::NoStoredResponse, _) => WriteError::AlreadyAnswered,
        TransactionError::ConditionFailed(Condition::Invariant, _) => {
            StoreError::broken("a condition failed that must always hold").into()
        }
        TransactionError::ConcurrentRequest => WriteError::InProgress,
        TransactionError::Store(error) => error.into(),
    }
}

/// The record that a marker of a unique value belongs to.
fn marker_owner(kind: Kind, marker: &Item) -> Option<(Kind, Uuid)> {
    keys::record_id_of_sort_key(kind, marker.get(OWNER)?.as_s().ok()?).map(|id| (kind, id))
}

fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}
