//! Changes of records in a unit of work: each change of a record has an event, however many the transaction makes.

use super::UnitOfWork;
use crate::domain::history::event::Verb;
use crate::domain::record::{Record, Stored, Unique, changes};
use crate::domain::values::id::{EventId, Id};
use crate::store::keys::Section;
use crate::store::table::deduplicated_blobs::blob_of;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::item;
use crate::store::table::transaction::{Purpose, TransactionItem};
use crate::store::table::transaction_items::{NewEvent, RecordChange};
use serde_json::Map;

impl UnitOfWork<'_> {
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the record can't be stored, or when it is of a listed kind and its id was not
    /// created at the context's time.
    pub fn create<T: Record>(&mut self, value: T) -> Result<Stored<T>, StoreError> {
        self.create_in_steps(value, Vec::new())
    }

    /// The record has already changed: to each of `later`, one after another. Its history has an event for its creation and one
    /// for each change.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::create`].
    pub fn create_in_steps<T: Record>(&mut self, value: T, later: Vec<T>) -> Result<Stored<T>, StoreError> {
        let at = self.context.at;
        if Section::of(T::KIND, value.is_ended()).is_some() && value.id().timestamp() != at {
            return Err(StoreError::broken("lists take a record's creation time from its id, and this id has another"));
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
            transaction_start: 1,
        };
        let place = self.items.len();
        let NewEvent { id: last_event, hash: last_hash, item } = self.store.event_item(self.context, event)?;
        self.items.push(TransactionItem::put_new(Purpose::Invariant, item));
        self.items.extend(self.store.unique_markers(&value, &[], &value.unique()));
        self.items.extend(self.store.reference_item_put(&value));
        self.count_references(&[], &value.references());
        self.store.note_assigned(&value.id().to_string());
        let created = Stored { value, version: 1, created_at: at, updated_at: at, last_hash, last_event };
        let stored = self.add_changes(created, (Verb::Updated, 1), later.into_iter().zip(event_ids))?;
        let (item, blob) = item::from_record(&self.store.keys, &stored)?;
        self.put_blob(blob);
        self.items.insert(place, TransactionItem::put_new(Purpose::RecordState, item));
        Ok(stored)
    }

    /// The record must still be at `old`'s version.
    ///
    /// If the two are equal, nothing is written and the version stays.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::PreconditionFailed`] when the request expects another version than `old`'s, and
    /// [`WriteError::Store`] when the record can't be stored.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, vec![next], Verb::Updated, false)
    }

    /// Replaces `old` by each of `versions`, one after another, if the record is still at `old`'s version. The record is written
    /// once, in its last version, and its history has an event for each change. Its unique values and the attributes that
    /// references to it require must not change more than once.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update`].
    pub fn update_in_steps<T: Record>(&mut self, old: &Stored<T>, versions: Vec<T>) -> Result<Stored<T>, WriteError> {
        self.replace(old, versions, Verb::Updated, false)
    }

    /// As [`UnitOfWork::update`], with an event that says that the record was seen.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update`].
    pub fn update_seen<T: Record>(&mut self, old: &Stored<T>, next: T) -> Result<Stored<T>, WriteError> {
        self.replace(old, vec![next], Verb::Seen, false)
    }

    /// Requires that the record is still at `old`'s version, and leaves it as it is. The request's precondition is not about
    /// such a record.
    pub fn expect<T: Record>(&mut self, old: &Stored<T>) {
        let key = self.store.keys.record(T::KIND, old.value.id().uuid());
        self.items.push(self.store.version_check(key, Some(old.version)));
    }

    /// Replaces `old` by `next`, if the record is still at `old`'s version and nothing references it.
    ///
    /// # Errors
    ///
    /// As [`UnitOfWork::update`]. If the record is referenced, [`UnitOfWork::commit`] returns [`WriteError::InUse`].
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
        // The audited fields can't decide this: an API key's secret, for one, is stored and never shown.
        let mut states = vec![old.value.clone()];
        states.extend(versions);
        states.dedup();
        let versions = states.split_off(1);
        if versions.is_empty() {
            return Ok(old.clone());
        }
        let place = self.items.len();
        let event_ids = self.store.event_ids(versions.len())?;
        let stored = self.add_changes(old.clone(), (verb, old.version + 1), versions.into_iter().zip(event_ids))?;
        let (before, _) = item::attributes(&old.value)?;
        let (after, blob) = item::attributes(&stored.value)?;
        self.updated_bytes += item::size(&after);
        if blob_of(&before) != blob_of(&after) {
            self.put_blob(blob);
        }
        self.items.insert(place, self.store.update_item(old, &stored, &before, &after));
        self.items.extend(self.store.reference_item_update(old, &stored.value, is_unreferenced));
        self.items.extend(self.store.unique_markers(&stored.value, &old.value.unique(), &stored.value.unique()));
        Ok(stored)
    }

    /// Adds the event of each change, and counts references: one that a change adds and another removes must meet its
    /// requirements as well. Returns the record after the last change.
    fn add_changes<T: Record>(
        &mut self,
        mut stored: Stored<T>,
        (verb, transaction_start): (Verb, u64),
        versions: impl Iterator<Item = (T, EventId)>,
    ) -> Result<Stored<T>, StoreError> {
        for (next, event_id) in versions {
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
                transaction_start,
            };
            let NewEvent { id: last_event, hash: last_hash, item } = self.store.event_item(self.context, change)?;
            self.items.push(TransactionItem::put_new(Purpose::Invariant, item));
            self.count_references(&stored.value.references(), &next.references());
            stored = Stored { value: next, version, updated_at, last_hash, last_event, ..stored };
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
            transaction_start: version,
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
}
