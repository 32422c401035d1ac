//! The writes that a transaction consists of. Each is conditional.

use crate::domain::history::commitments::{Commitment, Commitments, pointers_of_changes, side_and_field, value_of};
use crate::domain::history::event::{self, Event, Verb};
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::values::id::{AssetId, EventId, Id};
use crate::store::TenantStore;
use crate::store::keys::{COMMITMENTS, ENTRY, HS, Item, Key, Keys, LS, TYPE, commitments_attribute};
use crate::store::table::change_context::ChangeContext;
use crate::store::table::condition::Condition;
use crate::store::table::error::StoreError;
use crate::store::table::item::{self, LAST_EVENT, LAST_HASH, OWNER, UPDATED_AT, VERSION};
use crate::store::table::transaction::{Purpose, TransactionItem, Write};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use uuid::Uuid;

/// Ready to be committed.
pub(in crate::store) struct NewEvent {
    pub(in crate::store) id: EventId,
    pub(in crate::store) hash: String,
    pub(in crate::store) item: Item,
}

/// The sort key, in the index `list_index`, of an event that assigns an asset to a user.
fn assignment(kind: Kind, event: &Event) -> Option<AttributeValue> {
    let user = event.changes.get("assigned_to").filter(|_| kind == Kind::Asset)?.get("new")?.as_str()?.parse().ok()?;
    Some(Keys::assignment(user, AssetId::from_uuid(event.entity_id)))
}

/// The attribute of an event that is not the first of its record in its transaction: the version of the first.
pub(in crate::store) const TRANSACTION_START: &str = "transaction_start";

pub(in crate::store) struct RecordChange<'a> {
    pub(in crate::store) event_id: EventId,
    pub(in crate::store) record: (Kind, Uuid),
    pub(in crate::store) verb: Verb,
    pub(in crate::store) version: u64,
    pub(in crate::store) changes: Map<String, Value>,
    /// The fields of the changes that are about people.
    pub(in crate::store) personal_fields: &'static [&'static str],
    pub(in crate::store) previous_hash: Option<&'a str>,
    /// The version of the first change of the same record in the same transaction.
    pub(in crate::store) transaction_start: u64,
}

impl TenantStore {
    fn record_key<T: Record>(&self, value: &T) -> Key {
        self.keys.record(T::KIND, value.id().uuid())
    }

    /// For events of one record that are written together, in ascending order: the change feed is in the order of ids, and must
    /// have the record's versions in theirs.
    pub(in crate::store) fn event_ids(&self, count: usize) -> Result<Vec<EventId>, StoreError> {
        let ids: Result<Vec<EventId>, StoreError> =
            (0..count).map(|_| Ok(EventId::new(self.store.now(), self.store.random()?))).collect();
        ids.map(|mut ids| {
            ids.sort_unstable();
            ids
        })
    }

    /// The event as an item, and as the record refers to it.
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
        if version > change.transaction_start {
            item.insert(TRANSACTION_START.to_owned(), number(change.transaction_start));
        }
        Ok(NewEvent { id: event.id, hash, item })
    }

    fn commitments(&self, pointers: Vec<String>) -> Result<Commitments, StoreError> {
        pointers.into_iter().map(|pointer| Ok((pointer, Commitment::Salt(self.store.random()?)))).collect()
    }

    /// The record must be at `old`'s version. `before` and `after` are its attributes.
    ///
    /// Only attributes that differ are set: others, such as a key's last use, are written without a version.
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
        let list_index_key =
            item::list_index_key(&next.value).filter(|key| Some(key) != item::list_index_key(&old.value).as_ref());
        set.extend(list_index_key.map(|key| (LS.to_owned(), key)));
        let remove = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        let write = Write::Update { key: self.record_key::<T>(&old.value), set, remove };
        TransactionItem { purpose: Purpose::RecordState, condition: has_version(old.version), write }
    }

    /// `None`: there must be no record.
    pub(in crate::store) fn version_check(&self, key: Key, version: Option<u64>) -> TransactionItem {
        let condition = version.map_or(Condition::MISSING, has_version);
        TransactionItem { purpose: Purpose::RecordState, condition, write: Write::Check(key) }
    }

    /// The record must be at `old`'s version.
    pub(in crate::store) fn delete_item<T: Record>(&self, old: &Stored<T>) -> TransactionItem {
        let write = Write::Delete(self.record_key::<T>(&old.value));
        TransactionItem { purpose: Purpose::RecordState, condition: has_version(old.version), write }
    }

    /// The `new` ones are put, `old` ones not among them are deleted.
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

/// The text that a change puts in place of the old value at this pointer; `None` if it stays.
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
