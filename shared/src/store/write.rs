//! The one way records are written: the record, its event, its markers and its references, all or nothing.

use super::error::{StoreError, WriteError};
use super::item::{self, LAST_HASH, UPDATED_AT, USES, VERSION};
use super::keys::{HS, Item, Key, Keys, PK, TYPE};
use super::transact::{Guard, Part, Refused};
use super::{Store, TenantStore};
use crate::domain::event::{self, Actor, Event};
use crate::domain::id::{EventId, Id};
use crate::domain::record::{Kind, Record, Reference, Stored, Unique};
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use serde_json::{Map, Value};

/// Who changes something, and when.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// Who.
    pub by: Actor,
    /// When the request came.
    pub at: Timestamp,
}

impl TenantStore {
    /// Writes a new thing.
    ///
    /// # Errors
    ///
    /// [`WriteError::Duplicate`] and [`WriteError::Dangling`], or the table.
    pub async fn create<T: Record>(&self, value: T, stamp: &Stamp) -> Result<Stored<T>, WriteError> {
        let (stored, parts) = self.creation(value, stamp)?;
        self.write(parts).await?;
        Ok(stored)
    }

    /// The parts of [`TenantStore::create`], for who has something to add.
    pub(super) fn creation<T: Record>(&self, value: T, stamp: &Stamp) -> Result<(Stored<T>, Vec<Part>), StoreError> {
        let changes = event::changes(&Map::new(), &value.audit());
        let (event, last_hash) = self.event::<T>(&value, "created", 1, stamp, changes, None)?;
        let stored = Stored { value, version: 1, created_at: stamp.at, updated_at: stamp.at, last_hash, uses: 0 };
        let mut parts = vec![Part { guard: Guard::Record, write: self.store.put_new(item::whole(&self.keys, &stored)?)? }, event];
        parts.extend(self.claims(&stored.value, &[], &stored.value.unique())?);
        parts.extend(self.counts(&[], &stored.value.references())?);
        Ok((stored, parts))
    }

    /// Replaces a thing by `next`. If nothing differs, nothing is written and the version stays.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stale`] when `old` is no longer the present state: read again and decide again.
    /// Otherwise as [`TenantStore::create`].
    pub async fn update<T: Record>(&self, old: &Stored<T>, next: T, stamp: &Stamp) -> Result<Stored<T>, WriteError> {
        self.replace(old, next, stamp, false).await
    }

    /// [`TenantStore::update`], if nothing points to the thing.
    ///
    /// # Errors
    ///
    /// [`WriteError::InUse`], or as [`TenantStore::update`].
    pub async fn update_unused<T: Record>(&self, old: &Stored<T>, next: T, stamp: &Stamp) -> Result<Stored<T>, WriteError> {
        self.replace(old, next, stamp, true).await
    }

    async fn replace<T: Record>(&self, old: &Stored<T>, next: T, stamp: &Stamp, unused: bool) -> Result<Stored<T>, WriteError> {
        let changes = old.changes_to(&next);
        if changes.is_empty() {
            return Ok(old.clone());
        }
        let version = old.version + 1;
        let (event, last_hash) = self.event::<T>(&next, "updated", version, stamp, changes, Some(&old.last_hash))?;
        let stored = Stored { value: next, version, updated_at: stamp.at, last_hash, ..old.clone() };
        let mut parts = vec![
            Part {
                guard: if unused { Guard::Unused(old.version) } else { Guard::Record },
                write: self.update_of(old, &stored, unused)?,
            },
            event,
        ];
        parts.extend(self.claims(&stored.value, &old.value.unique(), &stored.value.unique())?);
        parts.extend(self.counts(&old.value.references(), &stored.value.references())?);
        self.write(parts).await?;
        Ok(stored)
    }

    /// Deletes a thing that nothing points to. Its events stay.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stale`], [`WriteError::InUse`], or the table.
    pub async fn delete<T: Record>(&self, old: &Stored<T>, stamp: &Stamp) -> Result<(), WriteError> {
        let changes = event::changes(&old.value.audit(), &Map::new());
        let (event, _) = self.event::<T>(&old.value, "deleted", old.version + 1, stamp, changes, Some(&old.last_hash))?;
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
        let mut parts =
            vec![Part { guard: Guard::Unused(old.version), write: TransactWriteItem::builder().delete(delete).build() }, event];
        let freed: Vec<Unique> = old.value.unique().into_iter().filter(|unique| !unique.kept).collect();
        parts.extend(self.claims(&old.value, &freed, &[])?);
        parts.extend(self.counts(&old.value.references(), &[])?);
        self.write(parts).await
    }

    pub(super) async fn write(&self, parts: Vec<Part>) -> Result<(), WriteError> {
        self.store.transact(parts).await.map_err(|refused| match refused {
            Refused::By(Guard::Record, _) => WriteError::Stale,
            Refused::By(Guard::Unused(version), present) => match present.filter(|item| count_in(item, VERSION) == Some(version))
            {
                Some(item) => count_in(&item, USES).map_or(WriteError::Stale, WriteError::InUse),
                None => WriteError::Stale,
            },
            Refused::By(Guard::Unique(field), _) => WriteError::Duplicate(field),
            Refused::By(Guard::Reference(field), _) => WriteError::Dangling(field),
            Refused::By(Guard::Certain, _) => StoreError::broken("a condition failed that never should").into(),
            Refused::Store(error) => error.into(),
        })
    }

    fn record_key<T: Record>(&self, value: &T) -> Key {
        self.keys.record(T::KIND, value.id().uuid())
    }

    /// The event of a change, and its hash.
    fn event<T: Record>(
        &self,
        value: &T,
        verb: &str,
        version: u64,
        stamp: &Stamp,
        changes: Map<String, Value>,
        previous: Option<&str>,
    ) -> Result<(Part, String), StoreError> {
        let event = Event {
            id: EventId::new(self.store.now(), self.store.random()?),
            at: stamp.at,
            kind: format!("{}.{verb}", T::KIND.noun()),
            entity_id: value.id().uuid(),
            version,
            actor: stamp.by.clone(),
            changes,
            previous_hash: previous.map(str::to_owned),
        };
        let entry = event.canonical().map_err(StoreError::broken)?;
        let hash = event::hash(&entry);
        let mut item = self.keys.event(event.id).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("event".to_owned()));
        item.insert(HS.to_owned(), Keys::history(event.entity_id, event.id));
        item.insert("entry".to_owned(), AttributeValue::S(entry));
        item.insert("hash".to_owned(), AttributeValue::S(hash.clone()));
        Ok((Part { guard: Guard::Certain, write: self.store.put_new(item)? }, hash))
    }

    /// The update from one state to the next: only attributes that differ, so that `uses`, which others count
    /// up meanwhile, is left alone.
    fn update_of<T: Record>(&self, old: &Stored<T>, next: &Stored<T>, unused: bool) -> Result<TransactWriteItem, StoreError> {
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
    fn claims<T: Record>(&self, value: &T, old: &[Unique], new: &[Unique]) -> Result<Vec<Part>, StoreError> {
        let owner = AttributeValue::S(self.record_key::<T>(value).sort().to_owned());
        let mut parts = Vec::new();
        for unique in new.iter().filter(|unique| !old.contains(unique)) {
            let mut item = self.keys.unique(T::KIND, unique).item();
            item.insert(TYPE.to_owned(), AttributeValue::S("marker".to_owned()));
            item.insert("owner".to_owned(), owner.clone());
            parts.push(Part { guard: Guard::Unique(unique.field), write: self.store.put_new(item)? });
        }
        for unique in old.iter().filter(|unique| !new.contains(unique)) {
            let delete = Delete::builder()
                .table_name(&self.store.table)
                .set_key(Some(self.keys.unique(T::KIND, unique).item()))
                .condition_expression("#owner = :owner")
                .expression_attribute_names("#owner", "owner")
                .expression_attribute_values(":owner", owner.clone())
                .build()
                .map_err(StoreError::broken)?;
            parts.push(Part { guard: Guard::Record, write: TransactWriteItem::builder().delete(delete).build() });
        }
        Ok(parts)
    }

    /// References counted at what they point to.
    fn counts(&self, old: &[Reference], new: &[Reference]) -> Result<Vec<Part>, StoreError> {
        let gained = new.iter().filter(|reference| !old.contains(reference)).map(|r| (r, "1"));
        let lost = old.iter().filter(|reference| !new.contains(reference)).map(|r| (r, "-1"));
        gained.chain(lost).map(|(reference, step)| self.count(reference, step)).collect()
    }

    fn count(&self, reference: &Reference, step: &str) -> Result<Part, StoreError> {
        let gained = step == "1";
        let mut update = Update::builder()
            .table_name(&self.store.table)
            .set_key(Some(self.keys.record(reference.kind, reference.id).item()))
            .update_expression("ADD #uses :step")
            .expression_attribute_names("#uses", USES)
            .expression_attribute_names("#pk", PK)
            .expression_attribute_values(":step", AttributeValue::N(step.to_owned()));
        // An inactive user can be left, but not be given anything (contract 4).
        update = if gained && reference.kind == Kind::User {
            update
                .condition_expression("attribute_exists(#pk) AND #active = :active")
                .expression_attribute_names("#active", "is_active")
                .expression_attribute_values(":active", AttributeValue::Bool(true))
        } else {
            update.condition_expression("attribute_exists(#pk)")
        };
        let update = update.build().map_err(StoreError::broken)?;
        let guard = if gained { Guard::Reference(reference.field) } else { Guard::Record };
        Ok(Part { guard, write: TransactWriteItem::builder().update(update).build() })
    }
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A whole number among an item's attributes.
fn count_in(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

impl Store {
    /// A put of an item that must be new.
    pub(super) fn put_new(&self, item: Item) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK)
            .build()
            .map_err(StoreError::broken)?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}
