//! Repairs of one record and its history.

use super::past::Past;
use super::record_repair::Present;
use super::{TenantCheck, named};
use crate::domain::assets::asset::Asset;
use crate::domain::catalog::Model;
use crate::domain::history::chain::{ChainHead, HistoryEntry};
use crate::domain::history::event::{Event, Verb};
use crate::domain::history::restore::{AuditFields, Origin, Restore, RestoreError, replay, restore};
use crate::domain::processes::process::Process;
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use crate::store::history::history_head::HistoryHead;
use crate::store::keys::{Item, Key};
use crate::store::lists::list_index::max_event_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item;
use serde_json::Value;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Brings a record to the state that its events describe; or, where they don't show everything, adds an entry that
    /// returns to the record's own state.
    pub(super) async fn roll_forward<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let Present { item, stored: old } = &present;
        let new_events = past.events.get(usize::try_from(old.version).unwrap_or(usize::MAX)..).unwrap_or_default();
        let fields = replay(old.value.audit(), new_events);
        let (Some(first), Some(last)) = (past.events.first(), &past.last) else { return Ok(()) };
        let (id, version) = (old.value.id(), past.events.len() as u64);
        let record = (T::KIND, id.uuid());
        let model = self.model_of(&fields).await?;
        let origin = Origin { old: Some(&old.value), model: model.as_ref(), ..Origin::unknown(&first.actor) };
        let problem = format!("it is at version {}, but its history is at {version}", old.version);
        let updated_at = shown_change::<T>(new_events).unwrap_or(old.updated_at);
        match restore(id, &fields, &origin) {
            Ok(value) => {
                let stored = Stored { value, updated_at, ..old.clone() }.at(end(version, last));
                let (next, content) = item::from_record(&self.store.keys, &stored)?;
                let change = self.add_content(self.change(), content)?.replace(item, next)?;
                let repair = format!("sets it to what its history says of version {version}");
                if self.repair(named(record), problem, repair, change).await? {
                    self.learn(&stored);
                }
            }
            Err(error) => {
                let change = self.remove_responses(self.change(), id.uuid(), old.version + 1)?;
                let changed = (&fields, &old.value.audit());
                let (change, head) = self.add_entry(change, record, (Verb::Updated, version + 1), changed, Some(&last.hash))?;
                let stored = Stored { updated_at: self.context().at, ..old.clone() }.at(head);
                let change = change.replace(item, item::from_record(&self.store.keys, &stored)?.0)?;
                let repair = format!("keeps its present state and says so in a new entry, because {error}{}", advice(T::KIND));
                if self.repair(named(record), problem, repair, change).await? {
                    self.learn(&stored);
                }
            }
        }
        Ok(())
    }

    /// Replaces the lost last entries of a history by the operator's: the last has all of the changes.
    pub(super) async fn replace_entry<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let Present { item, stored: old } = &present;
        let record = (T::KIND, old.value.id().uuid());
        let (before, after) = (past.fields(), old.value.audit());
        let (mut change, mut head) = (self.change(), None);
        let first = past.events.len() as u64 + 1;
        for version in first..=old.version {
            let verb = if version == 1 { Verb::Created } else { Verb::Updated };
            let changed = if version == old.version { (&before, &after) } else { (&before, &before) };
            let latest: Option<&HistoryHead> = head.as_ref();
            let previous =
                latest.map(|head| head.chain.last_hash.as_str()).or(past.last.as_ref().map(|entry| entry.hash.as_str()));
            let (added, next) = self.add_entry(change, record, (verb, version), changed, previous)?;
            (change, head) = (added, Some(next));
        }
        let Some(head) = head else { return Ok(()) };
        let stored = old.clone().at(head);
        let change = change.replace(item, item::from_record(&self.store.keys, &stored)?.0)?;
        let problem = match old.version - first {
            0 => format!("its history lacks the entry of version {first}"),
            _ => format!("its history lacks the entries from version {first} to {}", old.version),
        };
        let repair = "adds an entry of the operator's with the same change";
        if self.repair(named(record), problem, repair, change).await? {
            self.learn(&stored);
        }
        Ok(())
    }

    /// Restores a lost record from its history. If it was deleted, or can't be restored, closes the history.
    pub(super) async fn restore_record<T: Restore>(&mut self, id: Uuid, past: &Past) -> Result<(), StoreError> {
        let Some(last) = &past.last else { return Ok(()) };
        let (fields, version) = (past.fields(), past.events.len() as u64);
        let reason = match self.restored::<T>(id, past).await? {
            Ok(stored) if self.was_deleted(&stored.value, past).await? => "its deletion took effect".to_owned(),
            Ok(stored) => {
                let (item, content) = item::from_record(&self.store.keys, &stored)?;
                let change = self.add_content(self.change(), content)?.insert(item)?;
                let repair = format!("restores it from its history, at version {version}");
                if self.repair(named((T::KIND, id)), "the record is lost", repair, change).await? {
                    self.learn(&stored);
                }
                return Ok(());
            }
            Err(error) if T::KIND == Kind::ApiKey => format!("{error}; create another key"),
            Err(error) if T::KIND == Kind::Link => format!("{error}; make another link"),
            Err(error) if T::KIND == Kind::Webhook => format!("{error}; create another webhook"),
            Err(error) => format!("{error}{}", advice(T::KIND)),
        };
        self.close_history::<T>(id, &fields, version + 1, &last.hash, &reason).await
    }

    /// Returns the record that a history describes, or why it does not say all of it.
    pub(super) async fn restored<T: Restore>(
        &self,
        id: Uuid,
        past: &Past,
    ) -> Result<Result<Stored<T>, RestoreError>, StoreError> {
        let (Some(first), Some(last)) = (past.events.first(), &past.last) else {
            return Ok(Err(RestoreError::NotShown("any entry")));
        };
        let fields = past.fields();
        let (model, process, asset) =
            (self.model_of(&fields).await?, self.process_of(&fields, first.at).await?, self.asset_of(&fields, first.at).await?);
        let origin =
            Origin { model: model.as_ref(), process: process.as_ref(), asset: asset.as_ref(), ..Origin::unknown(&first.actor) };
        let updated_at = shown_change::<T>(&past.events).unwrap_or(first.at);
        Ok(restore(T::Id::from_uuid(id), &fields, &origin).map(|value| Stored {
            value,
            version: past.events.len() as u64,
            created_at: first.at,
            updated_at,
            last_hash: last.hash.clone(),
            last_event: last.id,
        }))
    }

    /// Ends the history of a record that no longer exists with an entry of the operator's.
    async fn close_history<T: Restore>(
        &mut self,
        id: Uuid,
        fields: &AuditFields,
        version: u64,
        previous_hash: &str,
        reason: &str,
    ) -> Result<(), StoreError> {
        let change = self.remove_responses(self.change(), id, 1)?;
        let changed = (fields, &AuditFields::new());
        let record = (T::KIND, id);
        let (change, head) = self.add_entry(change, record, (Verb::Deleted, version), changed, Some(previous_hash))?;
        let tombstone = self.store.tombstone(T::KIND, id, &head);
        let change = match self.item(&self.store.keys.tombstone(T::KIND, id)).await? {
            Some(present) => change.replace(&present, tombstone)?,
            None => change.insert(tombstone)?,
        };
        let problem = "its history ends without a deletion, but the record is missing";
        let repair = format!("ends the history with an entry of the operator's, because {reason}");
        if self.repair(named((T::KIND, id)), problem, repair, change).await? {
            self.deletions.insert(record, head);
            self.forget(T::KIND, id, version);
        }
        Ok(())
    }

    /// Removes a record that its history says was deleted.
    pub(super) async fn finish_deletion<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let id = present.stored.value.id().uuid();
        let change = self.change().remove(&present.item)?;
        let problem = "it still exists, but its history says that it was deleted";
        if self.repair(named((T::KIND, id)), problem, "deletes it", change).await? {
            self.forget(T::KIND, id, past.events.len() as u64);
        }
        Ok(())
    }

    /// Returns whether a missing record was deleted, and only the event of that is lost: a deletion writes a tombstone, and
    /// removes the reference item and the unique markers, in the same transaction. A creation of the last moment may have
    /// lost the same items, and is completed; nobody can delete a system process.
    async fn was_deleted<T: Record>(&self, value: &T, past: &Past) -> Result<bool, StoreError> {
        let id = value.id().uuid();
        if self.item(&self.store.keys.tombstone(T::KIND, id)).await?.is_some() {
            return Ok(true);
        }
        let is_recent = |event: &Event| self.latest_event.is_none_or(|latest| event.at.plus(max_event_delay()) >= latest);
        let is_permanent = past.fields().get("is_system") == Some(&Value::Bool(true));
        if is_permanent || past.events.first().is_some_and(is_recent) {
            return Ok(false);
        }
        let key = self.store.keys.record(T::KIND, id);
        if let Some(key) = self.store.reference_item(value, 0).as_ref().and_then(Key::of)
            && self.item(&key).await?.is_none()
        {
            return Ok(true);
        }
        for unique in value.unique().iter().filter(|unique| !unique.reserved_after_deletion) {
            let marker: Option<Item> = self.item(&self.store.keys.unique(T::KIND, unique)).await?;
            let owner = marker.as_ref().and_then(|marker| marker.get(item::OWNER)?.as_s().ok());
            if owner.map(String::as_str) != Some(key.sort()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn model_of(&self, fields: &AuditFields) -> Result<Option<Model>, StoreError> {
        match id_in(fields, "model_id") {
            Some(id) => Ok(self.present::<Model>(id).await?.map(|present| present.stored.value)),
            None => Ok(None),
        }
    }

    async fn process_of(&self, fields: &AuditFields, at: Timestamp) -> Result<Option<Process>, StoreError> {
        match id_in(fields, "process_id") {
            Some(id) => self.process_at(id, at).await,
            None => Ok(None),
        }
    }

    async fn asset_of(&self, fields: &AuditFields, at: Timestamp) -> Result<Option<Asset>, StoreError> {
        match id_in(fields, "asset_id") {
            Some(id) => self.asset_at(id, at).await,
            None => Ok(None),
        }
    }
}

/// Returns the end of a history whose last entry is `last`.
fn end(version: u64, last: &HistoryEntry) -> HistoryHead {
    HistoryHead { chain: ChainHead { version, last_hash: last.hash.clone() }, last_event: last.id }
}

fn id_in(fields: &AuditFields, name: &str) -> Option<Uuid> {
    fields.get(name).and_then(Value::as_str)?.parse().ok()
}

/// Returns when the last of these events was that changed a field which the API shows.
fn shown_change<T: Record>(events: &[Event]) -> Option<Timestamp> {
    let is_shown = |event: &&Event| event.version == 1 || event.changes.keys().any(|field| T::is_shown(field));
    events.iter().rfind(is_shown).map(|event| event.at)
}

/// Returns what the operator should do about a record of this kind that could not be restored.
fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::ApiKey => "; an older secret may be valid again: rotate or revoke the key",
        Kind::ReceiptKeys => "; receipts that the lost key signed can only be verified with a copy of its public key",
        _ => "",
    }
}
