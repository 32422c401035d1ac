//! Transactions: writes with conditions, and retries while a transaction conflicts with others.

use crate::domain::history::commitments::{Commitment, Commitments, pointers_of_changes, side_and_field, value_of};
use crate::domain::history::event::{self, Event, Verb};
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::values::id::{AssetId, EventId, Id};
use crate::store::keys::{COMMITMENTS, ENTRY, HS, Item, Key, Keys, LS, TYPE, commitments_attribute};
use crate::store::table::error::{StoreError, is_retryable};
use crate::store::table::read::{self, LAST_EVENT, LAST_HASH, OWNER, UPDATED_AT, VERSION};
use crate::store::table::times::pause;
use crate::store::table::unit_of_work::{ChangeContext, Condition, Placeholders};
use crate::store::{Store, TenantStore};
use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use tokio::time::Instant;
use uuid::Uuid;

/// The purpose of an item's condition, which determines the meaning of its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Purpose {
    /// The record is new, or unchanged since it was read.
    RecordState,
    /// Nothing refers to the record.
    Unreferenced,
    /// No other record of this kind has the same value in this field.
    UniqueValue(Kind, &'static str),
    /// The record that this field refers to exists and can be referenced.
    Reference(&'static str),
    /// No response is stored for the request yet.
    NoStoredResponse,
    /// Something that always holds, unless the service has a bug.
    Invariant,
}

pub(in crate::store) enum Write {
    Put(Item),
    Update {
        key: Key,
        set: Item,
        remove: Vec<String>,
    },
    /// Adds to a number.
    Add {
        key: Key,
        attribute: &'static str,
        delta: i64,
    },
    Delete(Key),
    /// Only checks the condition.
    Check(Key),
}

impl Write {
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] for an item without a key.
    pub(in crate::store) fn key(&self) -> Result<Key, StoreError> {
        match self {
            Self::Put(item) => Key::of(item).ok_or_else(|| StoreError::broken("an item without a key")),
            Self::Update { key, .. } | Self::Add { key, .. } | Self::Delete(key) | Self::Check(key) => Ok(key.clone()),
        }
    }

    pub(in crate::store) fn put(&self) -> Option<&Item> {
        if let Self::Put(item) = self { Some(item) } else { None }
    }

    /// Empty for writes other than updates.
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

    /// Returns the item after the write; `None` is a missing item.
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
    /// Requires that the item doesn't exist yet.
    pub(in crate::store) fn put_new(purpose: Purpose, item: Item) -> Self {
        Self { purpose, condition: Condition::MISSING, write: Write::Put(item) }
    }

    /// The key contains the hash of this attribute, so an existing item is identical.
    pub(in crate::store) fn put_blob(item: Item, attribute: &'static str) -> Self {
        let condition = Condition::Any(vec![Condition::MISSING, Condition::Has(attribute)]);
        Self { purpose: Purpose::Invariant, condition, write: Write::Put(item) }
    }

    fn into_request(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let mut placeholders = Placeholders::default();
        let condition = Some(self.condition.expression(&mut placeholders)).filter(|condition| !condition.is_empty());
        let changes = self.write.update_expression(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        // These errors report the conflicting item.
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
    /// Another function instance was writing the same request until the deadline.
    ConcurrentRequest,
    Store(StoreError),
}

impl Store {
    /// Writes all items or none, and gives up at `deadline`. So an event, which gets its ID while the unit of work is built, is
    /// written by then or never.
    ///
    /// The SDK retries throttled and timed-out attempts with the same ClientRequestToken, so an attempt whose response
    /// was lost is not executed twice. It does not retry a TransactionConflict; this function does.
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
            let request = self.client.transact_write_items().set_transact_items(Some(writes.clone())).send();
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

/// An event, ready to be committed.
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

impl TenantStore {
    fn record_key<T: Record>(&self, value: &T) -> Key {
        self.keys.record(T::KIND, value.id().uuid())
    }

    /// IDs for events of one record that are written together. They are in ascending order, because the change feed is sorted by
    /// ID and must have the record's versions in order.
    pub(in crate::store) fn event_ids(&self, count: usize) -> Result<Vec<EventId>, StoreError> {
        let ids: Result<Vec<EventId>, StoreError> =
            (0..count).map(|_| Ok(EventId::new(self.store.now(), self.store.random()?))).collect();
        ids.map(|mut ids| {
            ids.sort_unstable();
            ids
        })
    }

    /// The event's item, and what the record stores about the event.
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
    /// Sets only changed attributes, because others, such as a key's `last_used_at`, are written without a version.
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
            read::list_index_key(&next.value).filter(|key| Some(key) != read::list_index_key(&old.value).as_ref());
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

    /// Puts the markers of added unique values, and deletes the markers of removed ones.
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

/// The sort key, in the index `list_index`, of an event that assigns an asset to a user.
fn assignment(kind: Kind, event: &Event) -> Option<AttributeValue> {
    let user = event.changes.get("assigned_to").filter(|_| kind == Kind::Asset)?.get("new")?.as_str()?.parse().ok()?;
    Some(Keys::assignment(user, AssetId::from_uuid(event.entity_id)))
}

/// The text that replaces the old value at this pointer; `None` if the value stays the same.
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
