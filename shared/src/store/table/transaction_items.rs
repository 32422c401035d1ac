//! The writes that a transaction consists of. Each is conditional.

use crate::domain::history::commitments::{Commitment, Commitments, pointers_of_changes, side_and_field, value_of};
use crate::domain::history::event::{self, Event, Verb};
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::values::id::{AssetId, EventId, Id};
use crate::store::keys::{COMMITMENTS, ENTRY, HS, Item, Key, Keys, LS, PK, TYPE, commitments_attribute};
use crate::store::table::change_context::ChangeContext;
use crate::store::table::error::StoreError;
use crate::store::table::item::{self, LAST_EVENT, LAST_HASH, OWNER, UPDATED_AT, VERSION};
use crate::store::table::transaction::{Condition, TransactionItem};
use crate::store::{Store, TenantStore};
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use uuid::Uuid;

/// Ready to be committed.
pub(in crate::store) struct NewEvent {
    pub(in crate::store) id: EventId,
    pub(in crate::store) hash: String,
    pub(in crate::store) item: TransactionItem,
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

    /// The event as a write, and as the record refers to it.
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
        let item = TransactionItem { condition: Condition::Invariant, write: self.store.put_new(item)? };
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
    ) -> Result<TransactWriteItem, StoreError> {
        let mut update = Update::builder()
            .table_name(&self.store.table)
            .set_key(Some(self.record_key::<T>(&old.value).item()))
            .condition_expression("#version = :old")
            .expression_attribute_names("#version", VERSION)
            .expression_attribute_values(":old", number(old.version));
        let mut sets: Vec<(&str, AttributeValue)> = vec![
            (VERSION, number(next.version)),
            (UPDATED_AT, AttributeValue::S(next.updated_at.to_string())),
            (LAST_HASH, AttributeValue::S(next.last_hash.clone())),
            (LAST_EVENT, AttributeValue::S(next.last_event.short())),
        ];
        sets.extend(after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(n, v)| (n.as_str(), v.clone())));
        let list_index_key =
            item::list_index_key(&next.value).filter(|key| Some(key) != item::list_index_key(&old.value).as_ref());
        sets.extend(list_index_key.map(|key| (LS, key)));
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        for (n, (name, value)) in sets.into_iter().enumerate() {
            set.push(format!("#s{n} = :s{n}"));
            update = update.expression_attribute_names(format!("#s{n}"), name);
            update = update.expression_attribute_values(format!(":s{n}"), value);
        }
        for (n, name) in removed.enumerate() {
            remove.push(format!("#r{n}"));
            update = update.expression_attribute_names(format!("#r{n}"), name);
        }
        let mut expression = format!("SET {}", set.join(", "));
        if !remove.is_empty() {
            expression.push_str(&format!(" REMOVE {}", remove.join(", ")));
        }
        let update = update.update_expression(expression).build();
        Ok(TransactWriteItem::builder().update(update.map_err(StoreError::broken)?).build())
    }

    /// `None`: there must be no record.
    pub(in crate::store) fn version_check(&self, key: &Key, version: Option<u64>) -> Result<TransactionItem, StoreError> {
        let check = ConditionCheck::builder().table_name(&self.store.table).set_key(Some(key.item()));
        let check = match version {
            None => check.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", PK),
            Some(version) => check
                .condition_expression("#version = :version")
                .expression_attribute_names("#version", VERSION)
                .expression_attribute_values(":version", number(version)),
        };
        let write = TransactWriteItem::builder().condition_check(check.build().map_err(StoreError::broken)?).build();
        Ok(TransactionItem { condition: Condition::RecordState, write })
    }

    /// The record must be at `old`'s version.
    pub(in crate::store) fn delete_item<T: Record>(&self, old: &Stored<T>) -> Result<TransactWriteItem, StoreError> {
        let delete = Delete::builder()
            .table_name(&self.store.table)
            .set_key(Some(self.record_key::<T>(&old.value).item()))
            .condition_expression("#version = :version")
            .expression_attribute_names("#version", VERSION)
            .expression_attribute_values(":version", number(old.version))
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// The `new` ones are put, `old` ones not among them are deleted.
    pub(in crate::store) fn unique_markers<T: Record>(
        &self,
        value: &T,
        old: &[Unique],
        new: &[Unique],
    ) -> Result<Vec<TransactionItem>, StoreError> {
        let owner = AttributeValue::S(self.record_key::<T>(value).sort().to_owned());
        let mut items = Vec::new();
        for unique in new.iter().filter(|unique| !old.contains(unique)) {
            let mut marker = self.keys.unique(T::KIND, unique).item();
            marker.insert(TYPE.to_owned(), AttributeValue::S("marker".to_owned()));
            marker.insert(OWNER.to_owned(), owner.clone());
            let condition = Condition::UniqueValue(T::KIND, unique.field);
            items.push(TransactionItem { condition, write: self.store.put_new(marker)? });
        }
        for unique in old.iter().filter(|unique| !new.contains(unique)) {
            let delete = Delete::builder()
                .table_name(&self.store.table)
                .set_key(Some(self.keys.unique(T::KIND, unique).item()))
                .condition_expression("#owner = :owner")
                .expression_attribute_names("#owner", OWNER)
                .expression_attribute_values(":owner", owner.clone())
                .build()
                .map_err(StoreError::broken)?;
            let write = TransactWriteItem::builder().delete(delete).build();
            items.push(TransactionItem { condition: Condition::RecordState, write });
        }
        Ok(items)
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

impl Store {
    /// The item must not exist yet. Otherwise the error contains the present item.
    pub(in crate::store) fn put_new(&self, item: Item) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// The key has the hash of this attribute: an existing item is the same.
    pub(in crate::store) fn put_blob(&self, item: Item, attribute: &str) -> Result<TransactionItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#pk) OR attribute_exists(#attribute)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#attribute", attribute)
            .build()
            .map_err(StoreError::broken)?;
        let write = TransactWriteItem::builder().put(put).build();
        Ok(TransactionItem { condition: Condition::Invariant, write })
    }
}
