//! The unit of work: the only way to write records. A unit collects changes and commits them in one transaction: each record with
//! one event per change, the markers of its unique values, and the reference counts of the records that it refers to. A
//! transaction that conflicts with another is retried. Signature images are written as separate items.
//!
//! The cost of writing an item, or of checking a condition on an item, depends on the size of the whole item. Records can be
//! large, so references are counted in a separate small item per record, `REFERENCES#<noun>#<id>`. This item also has the
//! attributes that references can require, and changes in the same transaction as the record.
//!
//! The condition of a write has two forms: a DynamoDB expression, and a function for dry runs.

use crate::domain::history::event::{
    self, Actor, Commitment, Commitments, Event, Verb, pointers_of_changes, side_and_field, value_of,
};
use crate::domain::processes::instance::ImageName;
use crate::domain::record::{
    IdempotentRequest, Kind, Mismatch, Precondition, Record, Reference, RequiredValue, Stored, StoredResponse, Unique, changes,
};
use crate::domain::values::id::{AssetId, EventId, Id};
use crate::domain::values::signature_image::SignatureImage;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, COMMITMENTS, ENTRY, HS, Item, Key, Keys, LS, PK, Section, TYPE, commitments_attribute};
use crate::store::table::blobs::{Blob, BlobName, blob_of, take_blob};
use crate::store::table::read::{CREATED_AT, LAST_EVENT, LAST_HASH, LISTED, OWNER, UPDATED_AT, USES, VERSION};
use crate::store::table::stored_responses::IMAGE;
use crate::store::{OPERATION_TIMEOUT, Reader, Store, StoreError, WriteError, Writer, is_retryable, pause};
use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::primitives;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use serde_dynamo::aws_sdk_dynamodb_1::to_item;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio::time::Instant;
use uuid::Uuid;

/// Maximum number of items in a transaction (AWS: TransactWriteItems).
pub const MAX_TRANSACTION_ITEMS: usize = 100;
/// Maximum size of the items in a transaction. DynamoDB allows 4 MB; the difference is for parts that are not measured here, such
/// as reference items and the keys of updated records.
const MAX_TRANSACTION_BYTES: usize = 3_800_000;

/// The properties that all changes of one request share.
#[derive(Debug, Clone)]
pub struct ChangeContext {
    pub actor: Actor,
    pub at: Timestamp,
    /// The request, if it has an idempotency key.
    pub idempotency: Option<IdempotentRequest>,
    /// What the request expects of a record: `If-Match`, or the `updated_at` in a PATCH.
    pub precondition: Option<Precondition>,
    /// Whether the changes erase values about a person. If so, the events of the changes omit the old values, too.
    pub is_erasure: bool,
}

impl ChangeContext {
    /// Returns the context of changes on the operator's command line.
    #[must_use]
    pub fn operator(at: Timestamp) -> Self {
        Self { actor: Actor::operator(), at, idempotency: None, precondition: None, is_erasure: false }
    }
}

#[derive(Debug)]
pub enum CommitFailure<E> {
    /// A write conflict: read again and decide again.
    Outdated(WriteError),
    /// A retry would fail the same way.
    Failed(E),
}

impl<E: From<WriteError>> From<WriteError> for CommitFailure<E> {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stale | WriteError::MissingReference(_) => Self::Outdated(error),
            other => Self::Failed(other.into()),
        }
    }
}

/// Changes that take effect together or not at all.
pub struct UnitOfWork<'a> {
    pub(in crate::store) store: &'a Writer,
    context: &'a ChangeContext,
    items: Vec<TransactionItem>,
    reference_counts: BTreeMap<(Kind, Uuid), ReferenceCount>,
    blobs: BTreeSet<BlobName>,
    /// Size of the updated records. Put items are measured in `commit_with`.
    updated_bytes: usize,
    /// The time by which the unit must be committed. Events get their IDs when they are added to the unit, and readers of the
    /// change feed rely on an event being written soon after its ID was created.
    deadline: Instant,
    /// Whether the precondition's record was changed at an expected version.
    precondition_met: bool,
    /// Number of items of a different unit that count toward the limit.
    counted: usize,
}

/// A change to the number of references to a record.
#[derive(Default)]
struct ReferenceCount {
    delta: i64,
    added: Option<Reference>,
}

impl<'a> UnitOfWork<'a> {
    /// Starts an empty unit of work, which fails unless it is committed within [`OPERATION_TIMEOUT`].
    #[must_use]
    pub fn new(store: &'a Writer, context: &'a ChangeContext) -> Self {
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

    /// Starts an empty unit of work for trying out further changes: [`fits`](UnitOfWork::fits) counts the changes of both units.
    #[must_use]
    pub fn trial(&self) -> Self {
        let counted = self.counted + self.items.len() + self.reference_counts.len();
        Self { counted, ..Self::new(self.store, self.context) }
    }

    /// Whether the changes so far fit in one transaction, including a stored response.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.counted + self.items.len() + self.reference_counts.len() < MAX_TRANSACTION_ITEMS
    }

    /// Requires that `reference` can be added now, even if the reference already exists.
    pub fn require(&mut self, reference: Reference) {
        let count = self.reference_counts.entry((reference.kind, reference.id)).or_default();
        count.added = Some(reference);
    }

    /// Compares `old` with the request's precondition, if the precondition concerns this record. The write itself
    /// is also conditional on that version.
    fn check_precondition<T: Record>(&mut self, old: &Stored<T>) -> Result<(), WriteError> {
        let Some(precondition) = self.context.precondition.as_ref().filter(|it| it.record_id == old.value.id().uuid()) else {
            return Ok(());
        };
        precondition.expected.check(old).map_err(WriteError::PreconditionFailed)?;
        self.precondition_met = true;
        Ok(())
    }

    /// Puts a blob, unless the table is known to have it. Several records can share a blob.
    fn put_blob(&mut self, blob: Option<Blob>) {
        if let Some(blob) = blob.filter(|blob| !self.blobs.contains(&blob.name)) {
            self.blobs.insert(blob.name.clone());
            self.items.extend(self.store.blob_put(blob));
        }
    }

    pub(in crate::store) fn add(&mut self, item: TransactionItem) {
        self.items.push(item);
    }

    /// Sums the changes per referenced record, because a transaction can write an item only once.
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

    /// Commits the changes of a request that can't have an idempotency key, in one transaction. An empty unit costs nothing.
    ///
    /// # Errors
    ///
    /// - [`WriteError::Stale`] when a record has changed since it was read: read it again and decide again.
    /// - [`WriteError::InUse`] when a record has references and must not have any.
    /// - [`WriteError::Duplicate`] when a unique value is taken.
    /// - [`WriteError::MissingReference`] when a referenced record no longer exists or can't be referenced.
    /// - [`WriteError::PreconditionFailed`] when the request's precondition was not met.
    /// - [`WriteError::TooLarge`] when the changes don't fit in one transaction. Only movements and batches can be that large.
    /// - [`WriteError::Store`] when the table can't be written.
    pub async fn commit(self) -> Result<(), WriteError> {
        self.commit_with(|| Err(StoreError::broken("a request with an idempotency key, and no response to store"))).await
    }

    /// Commits the changes in one transaction, together with the response if the request has an idempotency key.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::commit`], and:
    ///
    /// - [`WriteError::AlreadyAnswered`] when a response is stored under the idempotency key.
    /// - [`WriteError::InProgress`] when the same request is in progress.
    /// - [`WriteError::ResponseTooLong`] when the response is too long to be stored.
    pub async fn commit_with(self, response: impl FnOnce() -> Result<StoredResponse, StoreError>) -> Result<(), WriteError> {
        if self.context.precondition.is_some() && !self.precondition_met {
            return Err(WriteError::PreconditionFailed(Mismatch::Version));
        }
        let mut items = Vec::new();
        // Check this condition first: only the first failed condition is reported, and in a retry of the request, other
        // conditions fail, too.
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
        let put_bytes: usize = items.iter().filter_map(|item| item.write.put().map(size)).sum();
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

impl UnitOfWork<'_> {
    /// Creates a record.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the record can't be stored, or when lists show records of its kind and its ID was
    /// not created at the context's time.
    pub fn create<T: Record>(&mut self, value: T) -> Result<Stored<T>, StoreError> {
        self.create_in_steps(value, Vec::new())
    }

    /// Creates a record that has already changed from `value` to each of `later` in turn. The record is written once, in its last
    /// version. Its history has an event for the creation, and one for each change.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::create`].
    pub fn create_in_steps<T: Record>(&mut self, value: T, later: Vec<T>) -> Result<Stored<T>, StoreError> {
        let at = self.context.at;
        if Section::of(T::KIND, value.is_ended()).is_some() && value.id().timestamp() != at {
            return Err(StoreError::broken(
                "lists take a record's creation time from its ID, but this ID contains a different time",
            ));
        }
        let mut event_ids = self.store.event_ids(1 + later.len())?.into_iter();
        let event = RecordChange {
            event_id: event_ids.next().ok_or_else(|| StoreError::broken("an event without an id"))?,
            record: (T::KIND, value.id().uuid()),
            verb: Verb::Created,
            version: 1,
            changes: changes(&Map::new(), &value.history_fields()),
            personal_fields: T::PERSONAL_FIELDS,
            previous_hash: None,
        };
        let place = self.items.len();
        let NewEvent { id: last_event, hash: last_hash, item } = self.store.event_item(self.context, event)?;
        self.items.push(TransactionItem::put_new(Purpose::Invariant, item));
        self.items.extend(self.store.unique_markers(&value, &[], &value.unique()));
        self.items.extend(self.store.reference_item_put(&value));
        self.count_references(&[], &value.references());
        self.store.note_created(T::KIND, value.id().uuid());
        let created = Stored { value, version: 1, created_at: at, updated_at: at, last_hash, last_event };
        let stored = self.add_changes(created, Verb::Updated, later.into_iter().zip(event_ids))?;
        let (item, blob) = from_record(&self.store.keys, &stored)?;
        self.put_blob(blob);
        self.items.insert(place, TransactionItem::put_new(Purpose::RecordState, item));
        Ok(stored)
    }

    /// Replaces `old` with `next`, if the record is still at `old`'s version.
    ///
    /// If `old` and `next` are equal, writes nothing, and the version stays the same.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::PreconditionFailed`] when the request expects a version other than `old`'s, and
    /// [`WriteError::Store`] when the record can't be stored.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, vec![next], Verb::Updated, false)
    }

    /// Replaces `old` with each of `versions` in turn, if the record is still at `old`'s version. The record is written once, in
    /// its last version, and its history has an event for each change. The record's unique values, and the attributes that
    /// references to it require, must not change more than once.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::update`].
    pub fn update_in_steps<T: Record>(&mut self, old: &Stored<T>, versions: Vec<T>) -> Result<Stored<T>, WriteError> {
        self.replace(old, versions, Verb::Updated, false)
    }

    /// Like [`UnitOfWork::update`], with a "seen" event.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::update`].
    pub fn update_seen<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, vec![next], Verb::Seen, false)
    }

    /// Requires that the record is still at `old`'s version, without changing it. The request's precondition doesn't apply to
    /// this record.
    pub fn expect<T: Record>(&mut self, old: &Stored<T>) {
        let key = self.store.keys.record(T::KIND, old.value.id().uuid());
        self.items.push(self.store.version_check(key, Some(old.version)));
    }

    /// Replaces `old` with `next`, if the record is still at `old`'s version and nothing references it.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::update`]. If the record is referenced, [`UnitOfWork::commit`] returns [`WriteError::InUse`].
    pub fn update_unreferenced<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, vec![next], Verb::Updated, true)
    }

    fn replace<T: Record>(
        &mut self,
        old: &Stored<T>,
        versions: Vec<T>,
        verb: Verb,
        is_unreferenced: bool,
    ) -> Result<Stored<T>, WriteError> {
        self.check_precondition(old)?;
        // Compare whole values, not just audited fields: an API key's secret, for example, is stored but never shown.
        let mut states = vec![old.value.clone()];
        states.extend(versions);
        states.dedup();
        let versions = states.split_off(1);
        if versions.is_empty() {
            return Ok(old.clone());
        }
        let place = self.items.len();
        let event_ids = self.store.event_ids(versions.len())?;
        let stored = self.add_changes(old.clone(), verb, versions.into_iter().zip(event_ids))?;
        let (before, _) = attributes(&old.value)?;
        let (after, blob) = attributes(&stored.value)?;
        self.updated_bytes += size(&after);
        if blob_of(&before) != blob_of(&after) {
            self.put_blob(blob);
        }
        self.items.insert(place, self.store.update_item(old, &stored, &before, &after));
        self.items.extend(self.store.reference_item_update(old, &stored.value, is_unreferenced));
        self.items.extend(self.store.unique_markers(&stored.value, &old.value.unique(), &stored.value.unique()));
        Ok(stored)
    }

    /// Adds the event of each change, and counts references. A reference that one change adds and a later change removes must
    /// meet its requirements, too. Returns the record after the last change.
    fn add_changes<T: Record>(
        &mut self,
        mut stored: Stored<T>,
        verb: Verb,
        versions: impl Iterator<Item = (T, EventId)>,
    ) -> Result<Stored<T>, StoreError> {
        for (mut next, event_id) in versions {
            next.stamp(&stored.value, self.context.at);
            let (changes, version) = (stored.changes_to(&next), stored.version + 1);
            let updated_at = if changes.keys().any(|field| T::is_shown(field)) { self.context.at } else { stored.updated_at };
            let change = RecordChange {
                event_id,
                record: (T::KIND, next.id().uuid()),
                verb,
                version,
                changes,
                personal_fields: T::PERSONAL_FIELDS,
                previous_hash: Some(&stored.last_hash),
            };
            let NewEvent { id: last_event, hash: last_hash, item } = self.store.event_item(self.context, change)?;
            self.items.push(TransactionItem::put_new(Purpose::Invariant, item));
            self.count_references(&stored.value.references(), &next.references());
            stored = Stored { value: next, version, updated_at, last_hash, last_event, ..stored };
        }
        Ok(stored)
    }

    /// Deletes a record, if it is still at `old`'s version and nothing references it. Its events stay, and a tombstone with the
    /// end of its history replaces the record.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::PreconditionFailed`] when the request expects a version other than `old`'s, and
    /// [`WriteError::Store`] when the event can't be stored.
    pub fn delete<T: Record>(&mut self, old: &Stored<T>) -> Result<(), WriteError> {
        self.check_precondition(old)?;
        let changes = changes(&old.value.history_fields(), &Map::new());
        let version = old.version + 1;
        let change = RecordChange {
            event_id: EventId::new(self.store.store.now(), self.store.store.random()?),
            record: (T::KIND, old.value.id().uuid()),
            verb: Verb::Deleted,
            version,
            changes,
            personal_fields: T::PERSONAL_FIELDS,
            previous_hash: Some(&old.last_hash),
        };
        let event = self.store.event_item(self.context, change)?;
        let tombstone = self.store.tombstone_item(T::KIND, old.value.id().uuid(), version, &event);
        self.items.extend([self.store.delete_item(old), TransactionItem::put_new(Purpose::Invariant, event.item)]);
        self.items.extend(self.store.reference_item_deletion(&old.value));
        self.items.push(tombstone);
        let freed: Vec<Unique> = old.value.unique().into_iter().filter(|unique| !unique.reserved_after_deletion).collect();
        self.items.extend(self.store.unique_markers(&old.value, &freed, &[]));
        self.count_references(&old.value.references(), &[]);
        Ok(())
    }

    /// Stores a signature image. An image is never overwritten: a different image has a different name.
    ///
    /// If a signature is sent before its step and then replaced, the first image stays in the table. Only a cancelled instance of
    /// a movement still shows it.
    pub fn put_signature_image(&mut self, name: &ImageName, image: &SignatureImage) {
        let mut item = self.store.keys.signature(name).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("signature".to_owned()));
        item.insert(IMAGE.to_owned(), AttributeValue::B(primitives::Blob::new(image.bytes())));
        self.add(TransactionItem::put_blob(item, IMAGE));
    }
}

impl Reader {
    /// Builds the reference item of a record with `uses` references; `None` if no record can refer to its kind.
    pub(in crate::store) fn reference_item<T: Record>(&self, value: &T, uses: u64) -> Option<Item> {
        let attributes = value.referenceable_attributes()?;
        let mut item = self.keys.references(T::KIND, value.id().uuid()).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("references".to_owned()));
        item.insert(USES.to_owned(), AttributeValue::N(uses.to_string()));
        item.extend(attributes.iter().map(|it| (it.attribute.to_owned(), attribute_value(&it.value))));
        Some(item)
    }

    pub(in crate::store) fn reference_item_put<T: Record>(&self, value: &T) -> Option<TransactionItem> {
        self.reference_item(value, 0).map(|item| TransactionItem::put_new(Purpose::Invariant, item))
    }

    /// Sets the changed attributes of the reference item. With `is_unreferenced`, requires that nothing refers to the record.
    pub(in crate::store) fn reference_item_update<T: Record>(
        &self,
        old: &Stored<T>,
        next: &T,
        is_unreferenced: bool,
    ) -> Option<TransactionItem> {
        let (before, after) = (old.value.referenceable_attributes()?, next.referenceable_attributes()?);
        let changed = after.iter().filter(|attribute| !before.contains(attribute));
        let set: Item = changed.map(|it| (it.attribute.to_owned(), attribute_value(&it.value))).collect();
        let key = self.keys.references(T::KIND, next.id().uuid());
        let write = match (set.is_empty(), is_unreferenced) {
            (true, false) => return None,
            (true, true) => Write::Check(key),
            (false, _) => Write::Update { key, set, remove: Vec::new() },
        };
        let (purpose, condition) = match is_unreferenced {
            true => (Purpose::Unreferenced, unreferenced()),
            false => (Purpose::RecordState, Condition::EXISTS),
        };
        Some(TransactionItem { purpose, condition, write })
    }

    /// Deletes the reference item. Fails if anything refers to the record.
    pub(in crate::store) fn reference_item_deletion<T: Record>(&self, value: &T) -> Option<TransactionItem> {
        value.referenceable_attributes()?;
        let write = Write::Delete(self.keys.references(T::KIND, value.id().uuid()));
        Some(TransactionItem { purpose: Purpose::Unreferenced, condition: unreferenced(), write })
    }

    /// Updates the count, or checks the reference item if the count stays the same.
    ///
    /// For an added reference, the record must meet the reference's requirements. The record's version doesn't matter, so that
    /// several units of work can add references at the same time.
    pub(in crate::store) fn reference_count_item(
        &self,
        kind: Kind,
        id: Uuid,
        delta: i64,
        added: Option<&Reference>,
    ) -> TransactionItem {
        let required = added.into_iter().flat_map(|added| &added.requirements);
        let required = required.map(|it| Condition::is(it.attribute, attribute_value(&it.value)));
        let condition = Condition::All(std::iter::once(Condition::EXISTS).chain(required).collect());
        let key = self.keys.references(kind, id);
        let write = if delta == 0 { Write::Check(key) } else { Write::Add { key, attribute: USES, delta } };
        let purpose = added.map_or(Purpose::RecordState, |added| Purpose::Reference(added.field));
        TransactionItem { purpose, condition, write }
    }
}

impl Writer {
    /// Deletes a record that nothing references, in a separate unit of work. Its events stay.
    ///
    /// # Errors
    ///
    /// Same as [`UnitOfWork::delete`] and [`UnitOfWork::commit`].
    pub async fn delete<T: Record>(&self, old: &Stored<T>, context: &ChangeContext) -> Result<(), WriteError> {
        let mut unit = UnitOfWork::new(self, context);
        unit.delete(old)?;
        unit.commit().await
    }
}

pub(in crate::store) fn write_error(error: TransactionError) -> WriteError {
    match error {
        TransactionError::ConditionFailed(Purpose::RecordState, _) => WriteError::Stale,
        TransactionError::ConditionFailed(Purpose::Unreferenced, present) => {
            present.and_then(|item| number_of(&item, USES)).map_or(WriteError::Stale, WriteError::InUse)
        }
        TransactionError::ConditionFailed(Purpose::UniqueValue(kind, field), marker) => {
            WriteError::Duplicate(field, marker.and_then(|item| marker_owner(kind, &item)))
        }
        TransactionError::ConditionFailed(Purpose::Reference(field), _) => WriteError::MissingReference(field),
        TransactionError::ConditionFailed(Purpose::NoStoredResponse, _) => WriteError::AlreadyAnswered,
        TransactionError::ConditionFailed(Purpose::Invariant, _) => {
            StoreError::broken("a condition that must always hold has failed").into()
        }
        TransactionError::ConcurrentRequest => WriteError::InProgress,
        TransactionError::Store(error) => error.into(),
    }
}

fn marker_owner(kind: Kind, marker: &Item) -> Option<(Kind, Uuid)> {
    keys::record_id_of_sort_key(kind, marker.get(OWNER)?.as_s().ok()?).map(|id| (kind, id))
}

fn number_of(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn attribute_value(value: &RequiredValue) -> AttributeValue {
    match value {
        RequiredValue::Text(text) => AttributeValue::S(text.clone()),
        RequiredValue::Bool(flag) => AttributeValue::Bool(*flag),
    }
}

fn unreferenced() -> Condition {
    Condition::is(USES, AttributeValue::N("0".to_owned()))
}

/// Returns a record's attributes without keys and metadata, and its blob, which is stored in a separate item.
fn attributes<T: Record>(value: &T) -> Result<(Item, Option<Blob>), StoreError> {
    let mut attributes: Item = to_item(value).map_err(StoreError::broken)?;
    attributes.extend(value.listed().map(|text| (LISTED.to_owned(), AttributeValue::S(text))));
    let blob = take_blob(T::KIND, &mut attributes);
    Ok((attributes, blob))
}

fn list_index_key<T: Record>(value: &T) -> Option<AttributeValue> {
    Keys::list_index(T::KIND, value.id().uuid(), value.is_ended())
}

/// Returns a record's whole item, and its blob, which is stored in a separate item.
pub(in crate::store) fn from_record<T: Record>(keys: &Keys, stored: &Stored<T>) -> Result<(Item, Option<Blob>), StoreError> {
    let (mut item, blob) = attributes(&stored.value)?;
    let id = stored.value.id().uuid();
    item.extend(keys.record(T::KIND, id).item());
    item.insert(TYPE.to_owned(), AttributeValue::S(T::KIND.as_str().to_owned()));
    item.insert(VERSION.to_owned(), AttributeValue::N(stored.version.to_string()));
    item.insert(CREATED_AT.to_owned(), AttributeValue::S(stored.created_at.to_string()));
    item.insert(UPDATED_AT.to_owned(), AttributeValue::S(stored.updated_at.to_string()));
    item.insert(LAST_HASH.to_owned(), AttributeValue::S(stored.last_hash.clone()));
    item.insert(LAST_EVENT.to_owned(), AttributeValue::S(stored.last_event.short()));
    item.extend(list_index_key(&stored.value).map(|sort| (LS.to_owned(), sort)));
    Ok((item, blob))
}

/// Returns the approximate size of an item's names and values in bytes, as DynamoDB counts it.
pub(in crate::store) fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(blob) => blob.as_ref().len(),
        AttributeValue::L(list) => list.iter().map(|value| 4 + size_of_value(value)).sum(),
        AttributeValue::M(map) => 4 + size(map),
        _ => 1,
    }
}

/// A condition of a write, which the current item must meet.
#[derive(Debug, Clone)]
pub(in crate::store) enum Condition {
    Has(&'static str),
    /// The attribute is missing, or there is no item.
    Lacks(&'static str),
    Is(String, AttributeValue),
    /// The attribute is a number, at most this large.
    AtMost(&'static str, i64),
    All(Vec<Self>),
    Any(Vec<Self>),
}

impl Condition {
    /// The item exists: every item has a partition key.
    pub(in crate::store) const EXISTS: Self = Self::Has(PK);
    pub(in crate::store) const MISSING: Self = Self::Lacks(PK);
    pub(in crate::store) const ALWAYS: Self = Self::All(Vec::new());

    pub(in crate::store) fn is(attribute: &str, value: AttributeValue) -> Self {
        Self::Is(attribute.to_owned(), value)
    }

    /// Returns the DynamoDB expression; empty if nothing is required.
    pub(in crate::store) fn expression(&self, placeholders: &mut Placeholders) -> String {
        match self {
            Self::Has(attribute) => format!("attribute_exists({})", placeholders.name(attribute)),
            Self::Lacks(attribute) => format!("attribute_not_exists({})", placeholders.name(attribute)),
            Self::Is(attribute, value) => format!("{} = {}", placeholders.name(attribute), placeholders.value(value.clone())),
            Self::AtMost(attribute, limit) => {
                let limit = AttributeValue::N(limit.to_string());
                format!("{} <= {}", placeholders.name(attribute), placeholders.value(limit))
            }
            // AND binds tighter than OR.
            Self::All(conditions) => joined(conditions, " AND ", placeholders),
            Self::Any(conditions) => format!("({})", joined(conditions, " OR ", placeholders)),
        }
    }

    /// Whether an item meets the condition; `None` stands for a missing item.
    pub(in crate::store) fn is_met_by(&self, item: Option<&Item>) -> bool {
        let present = |attribute: &str| item?.get(attribute);
        match self {
            Self::Has(attribute) => present(attribute).is_some(),
            Self::Lacks(attribute) => present(attribute).is_none(),
            Self::Is(attribute, value) => present(attribute) == Some(value),
            Self::AtMost(attribute, limit) => {
                let number = present(attribute).and_then(|value| value.as_n().ok()?.parse::<i64>().ok());
                number.is_some_and(|number| number <= *limit)
            }
            Self::All(conditions) => conditions.iter().all(|condition| condition.is_met_by(item)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.is_met_by(item)),
        }
    }
}

fn joined(conditions: &[Condition], operator: &str, placeholders: &mut Placeholders) -> String {
    conditions.iter().map(|condition| condition.expression(placeholders)).collect::<Vec<_>>().join(operator)
}

/// The names and values behind the placeholders in a request's expressions.
#[derive(Default)]
pub(in crate::store) struct Placeholders {
    names: HashMap<String, String>,
    values: Item,
}

impl Placeholders {
    pub(in crate::store) fn name(&mut self, attribute: &str) -> String {
        let placeholder = format!("#n{}", self.names.len());
        self.names.insert(placeholder.clone(), attribute.to_owned());
        placeholder
    }

    pub(in crate::store) fn value(&mut self, value: AttributeValue) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// Returns the maps of names and values; `None` instead of an empty map, which DynamoDB rejects.
    pub(in crate::store) fn into_maps(self) -> (Option<HashMap<String, String>>, Option<Item>) {
        (Some(self.names).filter(|names| !names.is_empty()), Some(self.values).filter(|values| !values.is_empty()))
    }
}

/// The purpose of an item's condition, which determines the meaning of its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Purpose {
    /// The record is new, or unchanged since it was read.
    RecordState,
    Unreferenced,
    /// No other record of this kind has the same value in this field.
    UniqueValue(Kind, &'static str),
    /// The record that this field refers to exists and can be referenced.
    Reference(&'static str),
    NoStoredResponse,
    /// The condition always holds, unless the service has a bug.
    Invariant,
}

pub(in crate::store) enum Write {
    Put(Item),
    Update {
        key: Key,
        set: Item,
        remove: Vec<String>,
    },
    /// Adds `delta` to an attribute that is a number.
    Add {
        key: Key,
        attribute: &'static str,
        delta: i64,
    },
    Delete(Key),
    /// Only checks the condition, and writes nothing.
    Check(Key),
}

impl Write {
    pub(in crate::store) fn key(&self) -> Result<Key, StoreError> {
        match self {
            Self::Put(item) => Key::of(item).ok_or_else(|| StoreError::broken("an item without a key")),
            Self::Update { key, .. } | Self::Add { key, .. } | Self::Delete(key) | Self::Check(key) => Ok(key.clone()),
        }
    }

    pub(in crate::store) fn put(&self) -> Option<&Item> {
        if let Self::Put(item) = self { Some(item) } else { None }
    }

    /// Returns the update expression; empty for writes other than updates.
    fn update_expression(&self, placeholders: &mut Placeholders) -> String {
        match self {
            Self::Update { set, remove, .. } => {
                let mut clauses = Vec::new();
                for (attribute, value) in set {
                    clauses.push(format!("{} = {}", placeholders.name(attribute), placeholders.value(value.clone())));
                }
                let removed: Vec<String> = remove.iter().map(|attribute| placeholders.name(attribute)).collect();
                let remove = if removed.is_empty() { String::new() } else { format!(" REMOVE {}", removed.join(", ")) };
                format!("SET {}{remove}", clauses.join(", "))
            }
            Self::Add { attribute, delta, .. } => {
                let delta = AttributeValue::N(delta.to_string());
                format!("ADD {} {}", placeholders.name(attribute), placeholders.value(delta))
            }
            Self::Put(_) | Self::Delete(_) | Self::Check(_) => String::new(),
        }
    }

    /// Returns the item after the write; `None` stands for a missing item.
    pub(in crate::store) fn applied_to(self, before: Option<Item>) -> Option<Item> {
        match self {
            Self::Put(item) => Some(item),
            Self::Update { key, set, remove } => {
                let mut item = before.unwrap_or_else(|| key.item());
                item.retain(|attribute, _| !remove.contains(attribute));
                item.extend(set);
                Some(item)
            }
            Self::Add { key, attribute, delta } => {
                let mut item = before.unwrap_or_else(|| key.item());
                let number = item.get(attribute).and_then(|number| number.as_n().ok()?.parse::<i64>().ok()).unwrap_or_default();
                item.insert(attribute.to_owned(), AttributeValue::N((number + delta).to_string()));
                Some(item)
            }
            Self::Delete(_) => None,
            Self::Check(_) => before,
        }
    }
}

pub(in crate::store) struct TransactionItem {
    pub(in crate::store) purpose: Purpose,
    pub(in crate::store) condition: Condition,
    pub(in crate::store) write: Write,
}

impl TransactionItem {
    /// Puts an item that must not exist yet.
    pub(in crate::store) fn put_new(purpose: Purpose, item: Item) -> Self {
        Self { purpose, condition: Condition::MISSING, write: Write::Put(item) }
    }

    /// Puts a blob's item. The key contains the hash of `attribute`, so an existing item is identical.
    pub(in crate::store) fn put_blob(item: Item, attribute: &'static str) -> Self {
        let condition = Condition::Any(vec![Condition::MISSING, Condition::Has(attribute)]);
        Self { purpose: Purpose::Invariant, condition, write: Write::Put(item) }
    }

    fn into_request(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let mut placeholders = Placeholders::default();
        let condition = Some(self.condition.expression(&mut placeholders)).filter(|condition| !condition.is_empty());
        let changes = self.write.update_expression(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        // The errors for these purposes report the conflicting item.
        let shows_item = matches!(self.purpose, Purpose::Unreferenced | Purpose::UniqueValue(..));
        let returned = shows_item.then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        let request = TransactWriteItem::builder();
        let request = match self.write {
            Write::Put(item) => {
                let put = Put::builder().table_name(table).set_item(Some(item)).set_condition_expression(condition);
                let put = put.set_expression_attribute_names(names).set_expression_attribute_values(values);
                request.put(put.set_return_values_on_condition_check_failure(returned).build()?)
            }
            Write::Update { key, .. } | Write::Add { key, .. } => {
                let update = Update::builder().table_name(table).set_key(Some(key.item())).update_expression(changes);
                let update = update.set_expression_attribute_names(names).set_expression_attribute_values(values);
                let update = update.set_condition_expression(condition);
                request.update(update.set_return_values_on_condition_check_failure(returned).build()?)
            }
            Write::Delete(key) => {
                let delete = Delete::builder().table_name(table).set_key(Some(key.item())).set_condition_expression(condition);
                let delete = delete.set_expression_attribute_names(names).set_expression_attribute_values(values);
                request.delete(delete.set_return_values_on_condition_check_failure(returned).build()?)
            }
            Write::Check(key) => {
                let check = ConditionCheck::builder().table_name(table).set_key(Some(key.item()));
                let check = check.set_expression_attribute_names(names).set_expression_attribute_values(values);
                let check = check.set_condition_expression(condition);
                request.condition_check(check.set_return_values_on_condition_check_failure(returned).build()?)
            }
        };
        Ok(request.build())
    }
}

pub(in crate::store) enum TransactionError {
    /// The first failed condition, with the current item if the error reports it.
    ConditionFailed(Purpose, Option<Item>),
    /// Another function instance was still writing the same request at the deadline.
    ConcurrentRequest,
    Store(StoreError),
}

impl Store {
    /// Writes all items or none, and gives up at `deadline`. So an event, which gets its ID while the unit of work is built, is
    /// written by that time or never.
    ///
    /// The SDK retries throttled and timed-out attempts with the same ClientRequestToken, so an attempt whose response
    /// was lost is not executed twice. The SDK does not retry a TransactionConflict; this function does.
    pub(in crate::store) async fn transact(
        &self,
        items: Vec<TransactionItem>,
        deadline: Instant,
    ) -> Result<(), TransactionError> {
        let purposes: Vec<Purpose> = items.iter().map(|item| item.purpose).collect();
        let writes: Result<Vec<_>, BuildError> = items.into_iter().map(|item| item.into_request(&self.table)).collect();
        let writes = writes.map_err(|error| TransactionError::Store(StoreError::broken(error)))?;
        for round in 0.. {
            if Instant::now() >= deadline {
                return Err(TransactionError::Store(StoreError::TooLate));
            }
            let request = Box::pin(self.client.transact_write_items().set_transact_items(Some(writes.clone())).send());
            let error = match tokio::time::timeout_at(deadline, request).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(elapsed) => return Err(TransactionError::Store(StoreError::Unavailable(elapsed.into()))),
            };
            let Some(reasons) = cancellation_reasons(&error) else { return Err(TransactionError::Store(error.into())) };
            let failed = |reason: &&CancellationReason| reason.code() == Some("ConditionalCheckFailed");
            if let Some((purpose, reason)) = purposes.iter().zip(reasons).find(|(_, reason)| failed(reason)) {
                return Err(TransactionError::ConditionFailed(*purpose, reason.item.clone()));
            }
            let retryable = |code: &str| code == "TransactionConflict" || is_retryable(code);
            if !reasons.iter().filter_map(CancellationReason::code).any(retryable) {
                return Err(TransactionError::Store(StoreError::Internal(error.into())));
            }
            pause(self, round).await;
            if Instant::now() >= deadline {
                let same_request = |(purpose, reason): (&Purpose, &CancellationReason)| {
                    *purpose == Purpose::NoStoredResponse && reason.code() == Some("TransactionConflict")
                };
                if purposes.iter().zip(reasons).any(same_request) {
                    return Err(TransactionError::ConcurrentRequest);
                }
                return Err(TransactionError::Store(StoreError::Unavailable(error.into())));
            }
        }
        unreachable!("the loop ends by returning")
    }
}

fn cancellation_reasons(error: &SdkError<TransactWriteItemsError>) -> Option<&[CancellationReason]> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => Some(cancelled.cancellation_reasons()),
        _ => None,
    }
}

pub(in crate::store) struct NewEvent {
    pub(in crate::store) id: EventId,
    pub(in crate::store) hash: String,
    pub(in crate::store) item: Item,
}

pub(in crate::store) struct RecordChange<'a> {
    pub(in crate::store) event_id: EventId,
    pub(in crate::store) record: (Kind, Uuid),
    pub(in crate::store) verb: Verb,
    pub(in crate::store) version: u64,
    pub(in crate::store) changes: Map<String, Value>,
    /// Changed fields that are about people.
    pub(in crate::store) personal_fields: &'static [&'static str],
    pub(in crate::store) previous_hash: Option<&'a str>,
}

impl Reader {
    fn record_key<T: Record>(&self, value: &T) -> Key {
        self.keys.record(T::KIND, value.id().uuid())
    }

    /// Returns IDs for events of one record that are written together. The IDs are in ascending order, because the change feed is
    /// sorted by ID and must contain the record's versions in order.
    pub(in crate::store) fn event_ids(&self, count: usize) -> Result<Vec<EventId>, StoreError> {
        let ids: Result<Vec<EventId>, StoreError> =
            (0..count).map(|_| Ok(EventId::new(self.store.now(), self.store.random()?))).collect();
        ids.map(|mut ids| {
            ids.sort_unstable();
            ids
        })
    }

    pub(in crate::store) fn event_item(&self, context: &ChangeContext, change: RecordChange<'_>) -> Result<NewEvent, StoreError> {
        let RecordChange { event_id, record: (kind, id), verb, version, changes, .. } = change;
        let mut personal = context.actor.personal_pointers();
        personal.extend(pointers_of_changes(&changes, change.personal_fields));
        let event = Event {
            id: event_id,
            at: context.at,
            event_type: verb.event_type(kind),
            entity_id: id,
            version,
            actor: context.actor.clone(),
            changes,
            previous_hash: change.previous_hash.map(str::to_owned),
        };
        let mut shown = serde_json::to_value(&event).map_err(StoreError::broken)?;
        let mut commitments = self.commitments(personal)?.with_unchanged(&shown);
        let mut entry = event::canonical(&shown).map_err(StoreError::broken)?;
        let hash = commitments.hash_of(Cow::Borrowed(&shown), &entry);
        let hash = hash.ok_or_else(|| StoreError::broken("an entry without a value that it commits to"))?;
        if context.is_erasure && commitments.erase(&mut shown, |pointer| replaced_by(&event.changes, pointer)) > 0 {
            entry = event::canonical(&shown).map_err(StoreError::broken)?;
        }
        let mut item = self.keys.event(event.id).item();
        item.extend(assignment(kind, &event).map(|key| (LS.to_owned(), key)));
        item.insert(TYPE.to_owned(), AttributeValue::S("event".to_owned()));
        item.insert(HS.to_owned(), Keys::history(event.entity_id, version));
        item.insert(ENTRY.to_owned(), AttributeValue::S(entry));
        item.extend(commitments_attribute(&commitments).map(|attribute| (COMMITMENTS.to_owned(), attribute)));
        item.insert("hash".to_owned(), AttributeValue::S(hash.clone()));
        Ok(NewEvent { id: event.id, hash, item })
    }

    fn commitments(&self, pointers: Vec<String>) -> Result<Commitments, StoreError> {
        pointers.into_iter().map(|pointer| Ok((pointer, Commitment::Salt(self.store.random()?)))).collect()
    }

    /// Updates a record if it is at `old`'s version. `before` and `after` are its attributes.
    ///
    /// Sets only changed attributes, because other attributes, such as a key's `last_used_at`, are written without a new version.
    pub(in crate::store) fn update_item<T: Record>(
        &self,
        old: &Stored<T>,
        next: &Stored<T>,
        before: &Item,
        after: &Item,
    ) -> TransactionItem {
        let mut set = Item::from([
            (VERSION.to_owned(), number(next.version)),
            (UPDATED_AT.to_owned(), AttributeValue::S(next.updated_at.to_string())),
            (LAST_HASH.to_owned(), AttributeValue::S(next.last_hash.clone())),
            (LAST_EVENT.to_owned(), AttributeValue::S(next.last_event.short())),
        ]);
        let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
        set.extend(changed.map(|(name, value)| (name.clone(), value.clone())));
        let list_index_key = list_index_key(&next.value).filter(|key| Some(key) != list_index_key(&old.value).as_ref());
        set.extend(list_index_key.map(|key| (LS.to_owned(), key)));
        let remove = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        let write = Write::Update { key: self.record_key::<T>(&old.value), set, remove };
        TransactionItem { purpose: Purpose::RecordState, condition: has_version(old.version), write }
    }

    /// Requires a version of a record; `None` requires that there is no record.
    pub(in crate::store) fn version_check(&self, key: Key, version: Option<u64>) -> TransactionItem {
        let condition = version.map_or(Condition::MISSING, has_version);
        TransactionItem { purpose: Purpose::RecordState, condition, write: Write::Check(key) }
    }

    /// Deletes a record if it is at `old`'s version.
    pub(in crate::store) fn delete_item<T: Record>(&self, old: &Stored<T>) -> TransactionItem {
        let write = Write::Delete(self.record_key::<T>(&old.value));
        TransactionItem { purpose: Purpose::RecordState, condition: has_version(old.version), write }
    }

    /// Puts the markers of added unique values, and deletes the markers of removed values.
    pub(in crate::store) fn unique_markers<T: Record>(&self, value: &T, old: &[Unique], new: &[Unique]) -> Vec<TransactionItem> {
        let owner = AttributeValue::S(self.record_key::<T>(value).sort().to_owned());
        let mut items = Vec::new();
        for unique in new.iter().filter(|unique| !old.contains(unique)) {
            let mut marker = self.keys.unique(T::KIND, unique).item();
            marker.insert(TYPE.to_owned(), AttributeValue::S("marker".to_owned()));
            marker.insert(OWNER.to_owned(), owner.clone());
            items.push(TransactionItem::put_new(Purpose::UniqueValue(T::KIND, unique.field), marker));
        }
        for unique in old.iter().filter(|unique| !new.contains(unique)) {
            let (condition, write) = (Condition::is(OWNER, owner.clone()), Write::Delete(self.keys.unique(T::KIND, unique)));
            items.push(TransactionItem { purpose: Purpose::RecordState, condition, write });
        }
        items
    }
}

/// Returns the event's sort key in the index `list_index`, if the event assigns an asset to a user.
fn assignment(kind: Kind, event: &Event) -> Option<AttributeValue> {
    let user = event.changes.get("assigned_to").filter(|_| kind == Kind::Asset)?.get("new")?.as_str()?.parse().ok()?;
    Some(Keys::assignment(user, AssetId::from_uuid(event.entity_id)))
}

/// Returns the text that replaces the old value at this pointer; `None` if the value stays the same.
fn replaced_by(changes: &Map<String, Value>, pointer: &str) -> Option<String> {
    let ("old", field) = side_and_field(pointer)? else { return None };
    let next = value_of(changes, "new", &field)?;
    if value_of(changes, "old", &field)? == next { None } else { next.as_str().map(str::to_owned) }
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn has_version(version: u64) -> Condition {
    Condition::is(VERSION, number(version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::keys::{PK, SK};

    fn text(value: &str) -> AttributeValue {
        AttributeValue::S(value.to_owned())
    }

    fn named(name: &str, uses: i64) -> Item {
        let uses = AttributeValue::N(uses.to_string());
        Item::from([(PK.to_owned(), text("p")), ("name".to_owned(), text(name)), ("uses".to_owned(), uses)])
    }

    /// Returns the expression with names and values instead of placeholders.
    fn shown(condition: &Condition) -> String {
        let mut placeholders = Placeholders::default();
        let mut shown = condition.expression(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        for (placeholder, name) in names.unwrap_or_default() {
            shown = shown.replace(&placeholder, &name);
        }
        for (placeholder, value) in values.unwrap_or_default() {
            shown = shown.replace(&placeholder, value.as_s().or(value.as_n()).unwrap());
        }
        shown
    }

    #[test]
    fn a_condition_is_decided_as_the_table_decides_its_expression() {
        let (other, same) = (named("b", 9), named("a", 10));
        let is_a = || Condition::is("name", text("a"));
        for (condition, expression, of_none, of_other, of_same) in [
            (Condition::ALWAYS, "", true, true, true),
            (Condition::MISSING, "attribute_not_exists(PK)", true, false, false),
            (Condition::EXISTS, "attribute_exists(PK)", false, true, true),
            (Condition::Lacks("began"), "attribute_not_exists(began)", true, true, true),
            (is_a(), "name = a", false, false, true),
            (Condition::AtMost("uses", 9), "uses <= 9", false, true, false),
            (Condition::AtMost("name", 9), "name <= 9", false, false, false),
            (Condition::All(vec![Condition::EXISTS, is_a()]), "attribute_exists(PK) AND name = a", false, false, true),
            (Condition::Any(vec![Condition::MISSING, is_a()]), "(attribute_not_exists(PK) OR name = a)", true, false, true),
            (
                Condition::All(vec![Condition::Has("uses"), Condition::Any(vec![is_a(), Condition::AtMost("uses", 9)])]),
                "attribute_exists(uses) AND (name = a OR uses <= 9)",
                false,
                true,
                true,
            ),
        ] {
            assert_eq!(shown(&condition), expression);
            let met = [None, Some(&other), Some(&same)].map(|item| condition.is_met_by(item));
            assert_eq!(met, [of_none, of_other, of_same], "{expression}");
        }
    }

    #[test]
    fn an_expression_without_placeholders_has_no_maps() {
        assert_eq!(Placeholders::default().into_maps(), (None, None));
        let mut placeholders = Placeholders::default();
        Condition::EXISTS.expression(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        assert_eq!((names, values), (Some(HashMap::from([("#n0".to_owned(), PK.to_owned())])), None));
    }

    fn number(value: i64) -> AttributeValue {
        AttributeValue::N(value.to_string())
    }

    fn item(others: &[(&str, AttributeValue)]) -> Item {
        let key = [(PK, text("p")), (SK, text("s"))];
        key.iter().chain(others).map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn request(purpose: Purpose, condition: Condition, write: Write) -> TransactWriteItem {
        TransactionItem { purpose, condition, write }.into_request("t").unwrap()
    }

    #[test]
    fn an_update_leaves_what_its_expression_says() {
        let key = || Key::of(&item(&[])).unwrap();
        let rename = || Write::Update { key: key(), set: Item::from([("name".into(), text("b"))]), remove: vec!["notes".into()] };
        let update = request(Purpose::RecordState, Condition::is("version", number(1)), rename()).update.unwrap();
        assert_eq!(update.condition_expression.as_deref(), Some("#n0 = :v0"));
        assert_eq!(update.update_expression, "SET #n1 = :v1 REMOVE #n2");
        let names = update.expression_attribute_names.unwrap();
        assert_eq!(["#n0", "#n1", "#n2"].map(|name| names[name].as_str()), ["version", "name", "notes"]);
        assert_eq!(
            update.expression_attribute_values.unwrap(),
            Item::from([(":v0".into(), number(1)), (":v1".into(), text("b"))])
        );
        let before = item(&[("name", text("a")), ("notes", text("n")), ("version", number(1))]);
        assert_eq!(rename().applied_to(Some(before)), Some(item(&[("name", text("b")), ("version", number(1))])));

        let count = || Write::Add { key: key(), attribute: "uses", delta: -1 };
        let update = request(Purpose::RecordState, Condition::EXISTS, count()).update.unwrap();
        assert_eq!((update.key, update.update_expression.as_str()), (item(&[]), "ADD #n1 :v0"));
        for (before, after) in [(Some(item(&[("uses", number(3))])), 2), (Some(item(&[])), -1), (None, -1)] {
            assert_eq!(count().applied_to(before), Some(item(&[("uses", number(after))])));
        }
    }

    #[test]
    fn other_writes_leave_their_item_or_none_or_the_present_one() {
        let (old, new) = (item(&[("name", text("a"))]), item(&[("name", text("b"))]));
        let key = || Key::of(&old).unwrap();
        for before in [None, Some(old.clone())] {
            assert_eq!(Write::Put(new.clone()).applied_to(before.clone()), Some(new.clone()));
            assert_eq!(Write::Delete(key()).applied_to(before.clone()), None);
            assert_eq!(Write::Check(key()).applied_to(before.clone()), before);
        }
        let put = TransactionItem::put_new(Purpose::RecordState, new.clone()).into_request("t").unwrap().put.unwrap();
        assert_eq!((put.item, put.condition_expression.as_deref()), (new, Some("attribute_not_exists(#n0)")));
        let check = request(Purpose::RecordState, Condition::EXISTS, Write::Check(key())).condition_check.unwrap();
        assert_eq!((check.key, check.condition_expression.as_str()), (item(&[]), "attribute_exists(#n0)"));
        let delete = request(Purpose::RecordState, Condition::ALWAYS, Write::Delete(key())).delete.unwrap();
        assert_eq!((delete.condition_expression, delete.expression_attribute_names), (None, None));
        assert!(Write::Put(Item::new()).key().is_err());
    }

    #[test]
    fn the_present_item_is_asked_for_where_the_error_names_it() {
        for (purpose, expected) in [
            (Purpose::Unreferenced, Some(ReturnValuesOnConditionCheckFailure::AllOld)),
            (Purpose::UniqueValue(Kind::User, "email"), Some(ReturnValuesOnConditionCheckFailure::AllOld)),
            (Purpose::RecordState, None),
            (Purpose::Invariant, None),
        ] {
            let put = TransactionItem::put_new(purpose, item(&[])).into_request("t").unwrap().put.unwrap();
            assert_eq!(put.return_values_on_condition_check_failure, expected, "{purpose:?}");
        }
    }
}
