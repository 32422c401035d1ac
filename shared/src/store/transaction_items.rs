//! The writes that a transaction is made of. Each has a condition.

use super::error::StoreError;
use super::item::{self, LAST_HASH, OWNER, UPDATED_AT, USES, VERSION};
use super::keys::{HS, Item, Key, Keys, PK, TYPE};
use super::transaction::{Condition, TransactionItem};
use super::unit_of_work::ChangeContext;
use super::{Store, TenantStore};
use crate::domain::event::{self, Event, Verb};
use crate::domain::id::{EventId, Id};
use crate::domain::record::{Kind, Record, Reference, RequiredValue, Stored, Unique};
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use serde_json::{Map, Value};
use std::collections::HashMap;
use uuid::Uuid;

impl TenantStore {
    fn record_key<T: Record>(&self, value: &T) -> Key {
        self.keys.record(T::KIND, value.id().uuid())
    }

    /// The event of a change, and its hash.
    pub(super) fn event<T: Record>(
        &self,
        value: &T,
        verb: Verb,
        version: u64,
        context: &ChangeContext,
        changes: Map<String, Value>,
        previous: Option<&str>,
    ) -> Result<(TransactionItem, String), StoreError> {
        let event = Event {
            id: EventId::new(self.store.now(), self.store.random()?),
            at: context.at,
            event_type: verb.event_type(T::KIND),
            entity_id: value.id().uuid(),
            version,
            actor: context.by.clone(),
            changes,
            previous_hash: previous.map(str::to_owned),
        };
        let entry = event.canonical().map_err(StoreError::broken)?;
        let hash = event::hash(&entry);
        let mut item = self.keys.event(event.id).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("event".to_owned()));
        item.insert(HS.to_owned(), Keys::history(event.entity_id, version));
        item.insert("entry".to_owned(), AttributeValue::S(entry));
        item.insert("hash".to_owned(), AttributeValue::S(hash.clone()));
        Ok((TransactionItem { guard: Condition::Certain, write: self.store.put_new(item)? }, hash))
    }

    /// The update from one state to the next: only attributes that differ, so that `uses`, which others count
    /// up meanwhile, is left alone.
    pub(super) fn update_of<T: Record>(
        &self,
        old: &Stored<T>,
        next: &Stored<T>,
        unused: bool,
    ) -> Result<TransactWriteItem, StoreError> {
        let (before, after) = (item::attributes(&old.value)?, item::attributes(&next.value)?);
        let mut update = Update::builder()
            .table_name(&self.store.table)
            .set_key(Some(self.record_key::<T>(&old.value).item()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .expression_attribute_names("#version", VERSION)
            .expression_attribute_values(":old", number(old.version));
        let mut condition = "#version = :old".to_owned();
        if unused {
            condition.push_str(" AND (attribute_not_exists(#uses) OR #uses = :none)");
            update = update.expression_attribute_names("#uses", USES).expression_attribute_values(":none", number(0));
        }
        let mut sets: Vec<(&str, AttributeValue)> = vec![
            (VERSION, number(next.version)),
            (UPDATED_AT, AttributeValue::S(next.updated_at.to_string())),
            (LAST_HASH, AttributeValue::S(next.last_hash.clone())),
        ];
        sets.extend(after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(n, v)| (n.as_str(), v.clone())));
        let removed = before.keys().filter(|name| !after.contains_key(*name));
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        for (place, (name, value)) in sets.into_iter().enumerate() {
            set.push(format!("#s{place} = :s{place}"));
            update = update.expression_attribute_names(format!("#s{place}"), name);
            update = update.expression_attribute_values(format!(":s{place}"), value);
        }
        for (place, name) in removed.enumerate() {
            remove.push(format!("#r{place}"));
            update = update.expression_attribute_names(format!("#r{place}"), name);
        }
        let mut expression = format!("SET {}", set.join(", "));
        if !remove.is_empty() {
            expression.push_str(&format!(" REMOVE {}", remove.join(", ")));
        }
        let update = update.update_expression(expression).condition_expression(condition).build();
        Ok(TransactWriteItem::builder().update(update.map_err(StoreError::broken)?).build())
    }

    /// Markers taken and given back.
    pub(super) fn claims<T: Record>(
        &self,
        value: &T,
        old: &[Unique],
        new: &[Unique],
    ) -> Result<Vec<TransactionItem>, StoreError> {
        let owner = AttributeValue::S(self.record_key::<T>(value).sort().to_owned());
        let mut parts = Vec::new();
        for unique in new.iter().filter(|unique| !old.contains(unique)) {
            let mut item = self.keys.unique(T::KIND, unique).item();
            item.insert(TYPE.to_owned(), AttributeValue::S("marker".to_owned()));
            item.insert(OWNER.to_owned(), owner.clone());
            parts.push(TransactionItem { guard: Condition::Unique(T::KIND, unique.field), write: self.store.put_new(item)? });
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
            parts.push(TransactionItem { guard: Condition::Record, write: TransactWriteItem::builder().delete(delete).build() });
        }
        Ok(parts)
    }

    /// The deletion of a thing as it is, if nothing points to it.
    pub(super) fn delete_of<T: Record>(&self, old: &Stored<T>) -> Result<TransactWriteItem, StoreError> {
        let delete = Delete::builder()
            .table_name(&self.store.table)
            .set_key(Some(self.record_key::<T>(&old.value).item()))
            .condition_expression("#version = :version AND (attribute_not_exists(#uses) OR #uses = :none)")
            .expression_attribute_names("#version", VERSION)
            .expression_attribute_names("#uses", USES)
            .expression_attribute_values(":version", number(old.version))
            .expression_attribute_values(":none", number(0))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Adds `delta` to the number of references to a record. `gained` is a new reference to it, whose requirements it must
    /// meet. Its version does not matter, since others may add references at the same time.
    pub(super) fn count_of(
        &self,
        kind: Kind,
        id: Uuid,
        delta: i64,
        gained: Option<&Reference>,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut names = HashMap::from([("#pk".to_owned(), PK.to_owned())]);
        let mut values = Item::new();
        let mut condition = "attribute_exists(#pk)".to_owned();
        for (place, requirement) in gained.iter().flat_map(|gained| &gained.requirements).enumerate() {
            condition.push_str(&format!(" AND #required{place} = :required{place}"));
            names.insert(format!("#required{place}"), requirement.attribute.to_owned());
            let value = match &requirement.value {
                RequiredValue::Text(text) => AttributeValue::S(text.clone()),
                RequiredValue::Bool(flag) => AttributeValue::Bool(*flag),
            };
            values.insert(format!(":required{place}"), value);
        }
        let key = self.keys.record(kind, id).item();
        if delta == 0 {
            let check = ConditionCheck::builder()
                .table_name(&self.store.table)
                .set_key(Some(key))
                .condition_expression(condition)
                .set_expression_attribute_names(Some(names))
                .set_expression_attribute_values((!values.is_empty()).then_some(values))
                .build()
                .map_err(StoreError::broken)?;
            return Ok(TransactWriteItem::builder().condition_check(check).build());
        }
        names.insert("#uses".to_owned(), USES.to_owned());
        values.insert(":step".to_owned(), AttributeValue::N(delta.to_string()));
        let update = Update::builder()
            .table_name(&self.store.table)
            .set_key(Some(key))
            .update_expression("ADD #uses :step")
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

impl Store {
    /// A put of an item that must be new; if there is one, the refusal has it.
    pub(super) fn put_new(&self, item: Item) -> Result<TransactWriteItem, StoreError> {
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
}
