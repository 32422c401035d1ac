//! The unit of work: the only way to write records.
//!
//! A unit collects changes and commits them in one transaction: each record with its event, the markers of its unique
//! values, and the reference counts of the records that it refers to.

mod records;

use crate::domain::record::{Kind, Record, Reference, Stored};
use crate::domain::request::StoredResponse;
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::client::OPERATION_TIMEOUT;
use crate::store::keys::{self, HS, Item};
use crate::store::table::change_context::ChangeContext;
use crate::store::table::deduplicated_blobs::{Blob, BlobName};
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::item::{self, OWNER, USES};
use crate::store::table::transaction::{Purpose, TransactionError, TransactionItem};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;
use uuid::Uuid;

/// The maximum number of items in a transaction (AWS: TransactWriteItems).
pub const MAX_TRANSACTION_ITEMS: usize = 100;
/// The largest size of the items of a transaction. DynamoDB allows 4 MB; the rest is for parts that are not measured here, such
/// as reference items and the keys of updated records.
const MAX_TRANSACTION_BYTES: usize = 3_800_000;

/// Changes that take effect together or not at all.
pub struct UnitOfWork<'a> {
    store: &'a TenantStore,
    context: &'a ChangeContext,
    items: Vec<TransactionItem>,
    reference_counts: BTreeMap<(Kind, Uuid), ReferenceCount>,
    blobs: BTreeSet<BlobName>,
    /// The size of the records that are updated. Items that are put are measured in `commit_with`.
    updated_bytes: usize,
    /// The unit must be committed by then. Events get their ids when they are added, and readers of the change feed rely on an
    /// event being written soon after its id was created.
    deadline: Instant,
    /// The record of the precondition was changed at an expected version.
    precondition_met: bool,
    /// Items of another unit that count as well.
    counted: usize,
}

/// A change of the number of references to a record.
#[derive(Default)]
struct ReferenceCount {
    delta: i64,
    added: Option<Reference>,
}

impl<'a> UnitOfWork<'a> {
    /// It must be committed within [`OPERATION_TIMEOUT`].
    #[must_use]
    pub fn new(store: &'a TenantStore, context: &'a ChangeContext) -> Self {
        Self {
            store,
            context,
            items: Vec::new(),
            reference_counts: BTreeMap::new(),
            blobs: BTreeSet::new(),
            updated_bytes: 0,
            deadline: Instant::now() + OPERATION_TIMEOUT,
            precondition_met: false,
            counted: 0,
        }
    }

    /// An empty unit of work, only to try out the next changes of this one: those that this one has so far count when it
    /// [fits](UnitOfWork::fits).
    #[must_use]
    pub fn trial(&self) -> Self {
        let counted = self.counted + self.items.len() + self.reference_counts.len();
        Self { counted, ..Self::new(self.store, self.context) }
    }

    /// The changes so far fit into one transaction, with any stored response.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.counted + self.items.len() + self.reference_counts.len() < MAX_TRANSACTION_ITEMS
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
        if !precondition.expected.contains(old.tag_version()) {
            return Err(WriteError::PreconditionFailed);
        }
        self.precondition_met = true;
        Ok(())
    }

    /// Adds the put of a blob that the tenant's table is not known to have. Several records may have the same.
    fn put_blob(&mut self, blob: Option<Blob>) {
        if let Some(blob) = blob.filter(|blob| !self.blobs.contains(&blob.name)) {
            self.blobs.insert(blob.name.clone());
            self.items.extend(self.store.blob_put(blob));
        }
    }

    pub(in crate::store) fn add(&mut self, item: TransactionItem) {
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
            let entries = self.items.iter().filter_map(|item| item.write.put()?.get(HS).cloned()).collect();
            items.push(self.store.store_response(idempotency, &response()?, entries, self.context.at)?);
        }
        items.extend(self.items);
        let counts = self.reference_counts.into_iter();
        items.extend(counts.map(|((kind, id), it)| self.store.reference_count_item(kind, id, it.delta, it.added.as_ref())));
        if items.is_empty() {
            return Ok(());
        }
        let put_bytes: usize = items.iter().filter_map(|item| item.write.put().map(item::size)).sum();
        if self.updated_bytes + put_bytes > MAX_TRANSACTION_BYTES || items.len() > MAX_TRANSACTION_ITEMS {
            return Err(WriteError::TooLarge);
        }
        let committed = match &self.store.dry_run {
            Some(dry_run) => self.store.try_out(dry_run, items).await,
            None => self.store.store.transact(items, self.deadline).await,
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

/// The meaning of a failed transaction for the records.
pub(in crate::store) fn write_error(error: TransactionError) -> WriteError {
    match error {
        TransactionError::ConditionFailed(Purpose::RecordState, _) => WriteError::Stale,
        TransactionError::ConditionFailed(Purpose::Unreferenced, present) => {
            present.and_then(|item| number(&item, USES)).map_or(WriteError::Stale, WriteError::InUse)
        }
        TransactionError::ConditionFailed(Purpose::UniqueValue(kind, field), marker) => {
            WriteError::Duplicate(field, marker.and_then(|item| marker_owner(kind, &item)))
        }
        TransactionError::ConditionFailed(Purpose::Reference(field), _) => WriteError::MissingReference(field),
        TransactionError::ConditionFailed(Purpose::NoStoredResponse, _) => WriteError::AlreadyAnswered,
        TransactionError::ConditionFailed(Purpose::Invariant, _) => {
            StoreError::broken("a condition failed that must always hold").into()
        }
        TransactionError::ConcurrentRequest => WriteError::InProgress,
        TransactionError::Store(error) => error.into(),
    }
}

/// `marker` is that of a unique value.
fn marker_owner(kind: Kind, marker: &Item) -> Option<(Kind, Uuid)> {
    keys::record_id_of_sort_key(kind, marker.get(OWNER)?.as_s().ok()?).map(|id| (kind, id))
}

fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}
