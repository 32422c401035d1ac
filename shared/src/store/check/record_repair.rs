//! Writing a record and its events in a repair.

use super::change::Change;
use super::facts::RecordFacts;
use super::past::Past;
use super::{RecordKey, TenantCheck, named};
use crate::domain::actor::Actor;
use crate::domain::history::chain::ChainHead;
use crate::domain::history::event::Verb;
use crate::domain::people::personal_fields;
use crate::domain::record::{Kind, Record, Stored, changes};
use crate::domain::restore::{HistoryFields, canonical};
use crate::domain::values::id::{EventId, Id};
use crate::store::history::history_head::HistoryHead;
use crate::store::keys::Item;
use crate::store::table::change_context::ChangeContext;
use crate::store::table::error::StoreError;
use crate::store::table::item;
use crate::store::table::transaction_items::RecordChange;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct Present<T> {
    pub(super) item: Item,
    pub(super) stored: Stored<T>,
}

pub(super) fn with_head<T>(record: Stored<T>, HistoryHead { chain, last_event }: HistoryHead) -> Stored<T> {
    Stored { version: chain.version, last_hash: chain.last_hash, last_event, ..record }
}

impl TenantCheck<'_> {
    /// After the repairs so far.
    pub(super) async fn present<T: Record>(&self, id: Uuid) -> Result<Option<Present<T>>, StoreError> {
        let Some(item) = self.item(&self.store.keys.record(T::KIND, id)).await? else { return Ok(None) };
        // One that can't be read shows nothing.
        let read = item::read::<T>(self.with_known_blob(item.clone())).map(Some);
        let Some(stored) = StoreError::tolerate_unreadable(read)? else { return Ok(None) };
        // A tenant has one record of some kinds, whatever its id is.
        Ok((stored.value.id().uuid() == id).then_some(Present { item, stored }))
    }

    pub(super) fn context(&self) -> ChangeContext {
        ChangeContext { actor: Actor::repair(), ..ChangeContext::operator(self.store.store.now()) }
    }

    /// Adds an entry of the operator's to a record's history, which changes its fields from `before` to `after`. Returns
    /// the change, and the end of the history with it.
    pub(super) fn add_entry(
        &self,
        change: Change,
        record: RecordKey,
        (verb, version): (Verb, u64),
        (before, after): (&HistoryFields, &HistoryFields),
        previous_hash: Option<&str>,
    ) -> Result<(Change, HistoryHead), StoreError> {
        let changes = changes(&canonical(before), &canonical(after));
        let event_id = EventId::new(self.store.store.now(), self.store.store.random()?);
        let personal_fields = personal_fields(record.0);
        let transaction_start = version;
        let described =
            RecordChange { event_id, record, verb, version, changes, personal_fields, previous_hash, transaction_start };
        let event = self.store.event_item(&self.context(), described)?;
        let change = change.insert(event.item)?;
        let chain = ChainHead { version, last_hash: event.hash };
        Ok((change, HistoryHead { chain, last_event: event.id }))
    }

    /// Adds the change of a record by the operator, with its entry in the history.
    pub(super) fn add_update<T: Record>(
        &self,
        change: Change,
        present: &Present<T>,
        next: T,
    ) -> Result<(Change, Stored<T>), StoreError> {
        let old = &present.stored;
        let version = old.version + 1;
        let record = (T::KIND, next.id().uuid());
        let fields = (&old.value.history_fields(), &next.history_fields());
        let (change, head) = self.add_entry(change, record, (Verb::Updated, version), fields, Some(&old.last_hash))?;
        let is_shown = old.changes_to(&next).keys().any(|field| T::is_shown(field));
        let updated_at = if is_shown { self.context().at } else { old.updated_at };
        let stored = with_head(Stored { value: next, updated_at, ..old.clone() }, head);
        let (item, _) = item::from_record(&self.store.keys, &stored)?;
        Ok((change.replace(&present.item, item)?, stored))
    }

    /// Changes an existing record to `next` by an entry of the operator's; `None` leaves it.
    pub(super) async fn update<T: Record>(
        &mut self,
        id: Uuid,
        problem: impl Into<String>,
        repair: impl Into<String>,
        next: impl FnOnce(&T) -> Option<T>,
    ) -> Result<(), StoreError> {
        let Some(present) = self.present::<T>(id).await? else { return Ok(()) };
        let Some(next) = next(&present.stored.value) else { return Ok(()) };
        let (change, stored) = self.add_update(self.change(), &present, next)?;
        if self.repair(named((T::KIND, stored.value.id().uuid())), problem, repair, change).await? {
            self.learn(&stored);
        }
        Ok(())
    }

    /// Adds entries of the operator's to a history, up to and including `version`. The last has all of the changes, from
    /// `before` to `after`. Returns the change, and the end of the history with them.
    pub(super) fn extend_history(
        &self,
        mut change: Change,
        record: RecordKey,
        past: &Past,
        (verb, version): (Verb, u64),
        (before, after): (&HistoryFields, &HistoryFields),
    ) -> Result<(Change, HistoryHead), StoreError> {
        let mut head = past.head();
        for number in past.version() + 1..=version {
            let verb = if number == 1 && verb == Verb::Updated { Verb::Created } else { verb };
            let changed = (before, if number == version { after } else { before });
            let previous = head.as_ref().map(|head| head.chain.last_hash.as_str());
            let (added, next) = self.add_entry(change, record, (verb, number), changed, previous)?;
            (change, head) = (added, Some(next));
        }
        Ok((change, head.ok_or_else(|| StoreError::broken("a history without entries"))?))
    }

    /// Adds an entry of the operator's that deletes a record, and its tombstone.
    pub(super) async fn end_history(
        &self,
        change: Change,
        record: RecordKey,
        past: &Past,
    ) -> Result<(Change, HistoryHead), StoreError> {
        let changed = (&past.fields(), &HistoryFields::new());
        let (change, head) = self.extend_history(change, record, past, (Verb::Deleted, past.version() + 1), changed)?;
        let tombstone = self.store.tombstone(record.0, record.1, &head);
        let change = match self.item(&self.store.keys.tombstone(record.0, record.1)).await? {
            Some(present) => change.replace(&present, tombstone)?,
            None => change.insert(tombstone)?,
        };
        Ok((change, head))
    }

    /// Writes a record in the place of the item `before`, with the rest of `change`. Returns whether that took effect.
    pub(super) async fn write<T: Record>(
        &mut self,
        change: Change,
        before: Option<&Item>,
        stored: &Stored<T>,
        problem: impl Into<String>,
        repair: impl Into<String>,
    ) -> Result<bool, StoreError> {
        let (item, blob) = item::from_record(&self.store.keys, stored)?;
        let change = self.add_blob(change, blob)?;
        let change = match before {
            Some(before) => change.replace(before, item)?,
            None => change.insert(item)?,
        };
        let is_repaired = self.repair(named((T::KIND, stored.value.id().uuid())), problem, repair, change).await?;
        if is_repaired {
            self.learn(stored);
        }
        Ok(is_repaired)
    }

    /// Remembers a record as a repair has left it.
    pub(super) fn learn<T: Record>(&mut self, stored: &Stored<T>) {
        let id = stored.value.id().uuid();
        self.records.insert((T::KIND, id), RecordFacts::of(self.store, stored));
        self.history_lengths.insert(id, stored.version);
    }

    /// Remembers that a repair has removed a record, whose history has this many entries.
    pub(super) fn forget(&mut self, kind: Kind, id: Uuid, entries: u64) {
        self.records.remove(&(kind, id));
        self.history_lengths.insert(id, entries);
    }
}
