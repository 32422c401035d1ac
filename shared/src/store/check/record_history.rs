//! Repairs of one record and its history.

use super::past::Past;
use super::record_repair::{Present, with_head};
use super::{TenantCheck, named};
use crate::domain::assets::asset::Asset;
use crate::domain::catalog::Model;
use crate::domain::history::event::{Event, Verb, scans};
use crate::domain::processes::process::Process;
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::restore::{HistoryFields, Origin, Restore, RestoreError, replay, restore};
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use crate::store::keys::{Item, Key};
use crate::store::table::delays::max_event_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item;
use serde_json::Value;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Brings a record to the state that its events describe; or, where they don't show everything, adds an entry that
    /// returns to the record's own state.
    pub(super) async fn roll_forward<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let Present { item, stored: old } = &present;
        let (id, version) = (old.value.id(), past.version());
        let problem = format!("it is at version {}, but its history is at {version}", old.version);
        let error = match self.restored(id.uuid(), past, Some(old)).await? {
            Ok(stored) => {
                let repair = format!("sets it to what its history says of version {version}");
                return self.write(self.change(), Some(item), &stored, problem, repair).await.map(drop);
            }
            Err(error) => error,
        };
        let change = self.remove_responses(self.change(), id.uuid(), old.version + 1)?;
        let changed = (&replay(old.value.history_fields(), past.since(old.version)), &old.value.history_fields());
        let (change, head) = self.extend_history(change, (T::KIND, id.uuid()), past, (Verb::Updated, version + 1), changed)?;
        let stored = with_head(Stored { updated_at: self.context().at, ..old.clone() }, head);
        let repair = format!("keeps its present state and says so in a new entry, because {error}{}", advice(T::KIND));
        self.write(change, Some(item), &stored, problem, repair).await.map(drop)
    }

    /// Replaces the lost last entries of a history by the operator's: the last has all of the changes.
    pub(super) async fn replace_entries<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let Present { item, stored: old } = &present;
        let (record, first) = ((T::KIND, old.value.id().uuid()), past.version() + 1);
        let changed = (&past.fields(), &old.value.history_fields());
        let (change, head) = self.extend_history(self.change(), record, past, (Verb::Updated, old.version), changed)?;
        let problem = match old.version - first {
            0 => format!("its history lacks the entry of version {first}"),
            _ => format!("its history lacks the entries from version {first} to {}", old.version),
        };
        let repair = "adds an entry of the operator's with the same change";
        self.write(change, Some(item), &with_head(old.clone(), head), problem, repair).await.map(drop)
    }

    pub(super) async fn name_last_event<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let (Present { item, stored }, Some(head)) = (present, past.head()) else { return Ok(()) };
        let problem = "it names another event than its last";
        self.write(self.change(), Some(&item), &with_head(stored, head), problem, "names its last event").await.map(drop)
    }

    /// Restores a lost record from its history. If it was deleted, or can't be restored, ends the history with an entry of
    /// the operator's.
    pub(super) async fn restore_record<T: Restore>(&mut self, id: Uuid, past: &Past) -> Result<(), StoreError> {
        let reason = match self.restored::<T>(id, past, None).await? {
            Ok(stored) if self.was_deleted(&stored.value, past).await? => "its deletion took effect".to_owned(),
            Ok(stored) => {
                let repair = format!("restores it from its history, at version {}", past.version());
                return self.write(self.change(), None, &stored, "the record is lost", repair).await.map(drop);
            }
            Err(error) if T::KIND == Kind::ApiKey => format!("{error}; create another key"),
            Err(error) if T::KIND == Kind::Link => format!("{error}; make another link"),
            Err(error) if T::KIND == Kind::Webhook => format!("{error}; create another webhook"),
            Err(error) => format!("{error}{}", advice(T::KIND)),
        };
        let (record, change) = ((T::KIND, id), self.change());
        let change = self.remove_responses(change, id, 1)?;
        let (change, head) = self.end_history(change, record, past).await?;
        let problem = "its history ends without a deletion, but the record is missing";
        let repair = format!("ends the history with an entry of the operator's, because {reason}");
        if self.repair(named(record), problem, repair, change).await? {
            self.forget(T::KIND, id, head.chain.version);
            self.deletions.insert(record, head);
        }
        Ok(())
    }

    /// As far as possible from the record's earlier state `old`. The inner error says why the history does not suffice.
    pub(super) async fn restored<T: Restore>(
        &self,
        id: Uuid,
        past: &Past,
        old: Option<&Stored<T>>,
    ) -> Result<Result<Stored<T>, RestoreError>, StoreError> {
        let (Some(first), Some(head)) = (past.events.first(), past.head()) else {
            return Ok(Err(RestoreError::NotShown("any entry")));
        };
        let new_events = past.since(old.map_or(0, |old| old.version));
        let fields = replay(old.map(|old| old.value.history_fields()).unwrap_or_default(), new_events);
        let (model, process, asset) =
            (self.model_of(&fields).await?, self.process_of(&fields, first.at).await?, self.asset_of(&fields, first.at).await?);
        let origin = Origin {
            old: old.map(|old| &old.value),
            creator: &first.actor,
            model: model.as_ref(),
            process: process.as_ref(),
            asset: asset.as_ref(),
            submissions: Some(&past.submissions),
            scans: Some(scans(&past.events)),
        };
        let (created_at, updated_at) = old.map_or((first.at, first.at), |old| (old.created_at, old.updated_at));
        Ok(restore(T::Id::from_uuid(id), &fields, &origin).map(|value| Stored {
            value,
            version: head.chain.version,
            created_at,
            updated_at: shown_change::<T>(new_events).unwrap_or(updated_at),
            last_hash: head.chain.last_hash,
            last_event: head.last_event,
        }))
    }

    /// Removes a record that its history says was deleted.
    pub(super) async fn finish_deletion<T: Restore>(&mut self, present: Present<T>, past: &Past) -> Result<(), StoreError> {
        let id = present.stored.value.id().uuid();
        let change = self.change().remove(&present.item)?;
        let problem = "it still exists, but its history says that it was deleted";
        if self.repair(named((T::KIND, id)), problem, "deletes it", change).await? {
            self.forget(T::KIND, id, past.version());
        }
        Ok(())
    }

    /// The record was deleted, and only the event of that is lost: a deletion writes a tombstone, and removes the reference item
    /// and the unique markers, in the same transaction. A creation of the last moment may have lost the same items, and is
    /// completed; nobody can delete a system process.
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

    async fn model_of(&self, fields: &HistoryFields) -> Result<Option<Model>, StoreError> {
        match id_in(fields, "model_id") {
            Some(id) => Ok(self.present::<Model>(id).await?.map(|present| present.stored.value)),
            None => Ok(None),
        }
    }

    async fn process_of(&self, fields: &HistoryFields, at: Timestamp) -> Result<Option<Process>, StoreError> {
        match id_in(fields, "process_id") {
            Some(id) => self.record_at(id, at, &[]).await,
            None => Ok(None),
        }
    }

    async fn asset_of(&self, fields: &HistoryFields, at: Timestamp) -> Result<Option<Asset>, StoreError> {
        match id_in(fields, "asset_id") {
            Some(id) => self.record_at(id, at, &["model_id"]).await,
            None => Ok(None),
        }
    }
}

fn id_in(fields: &HistoryFields, name: &str) -> Option<Uuid> {
    fields.get(name).and_then(Value::as_str)?.parse().ok()
}

/// The time of the last event that changed a field which the API shows.
fn shown_change<T: Record>(events: &[Event]) -> Option<Timestamp> {
    let is_shown = |event: &&Event| event.version == 1 || event.changes.keys().any(|field| T::is_shown(field));
    events.iter().rfind(is_shown).map(|event| event.at)
}

/// The operator's next step for a record that could not be restored.
fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::ApiKey => "; an older secret may be valid again: rotate or revoke the key",
        Kind::ReceiptKeys => "; receipts that the lost key signed can only be verified with a copy of its public key",
        _ => "",
    }
}
