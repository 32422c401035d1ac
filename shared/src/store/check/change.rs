//! The transaction of a repair.

use super::{CheckMode, Finding, TenantCheck};
use crate::domain::id::EventId;
use crate::store::Store;
use crate::store::client::OPERATION_TIMEOUT;
use crate::store::error::StoreError;
use crate::store::history::entry_of;
use crate::store::item::{LAST_HASH, VERSION};
use crate::store::keys::{Item, Key, Keys, PK, SK, event_id};
use crate::store::list_index::max_event_delay;
use crate::store::transaction::{Condition, TransactionError, TransactionItem};
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, TransactWriteItem};
use std::collections::HashMap;
use tokio::time::Instant;

/// Attributes that differ whenever a record's item does, but for the time of a key's last use.
const RECORD_STATE: [&str; 2] = [VERSION, LAST_HASH];
/// Longer values are not compared. Items that have them have others that differ as well.
const MAX_COMPARED_BYTES: usize = 1024;

/// Writes that repair something together. Each of them requires that its item is still as it was read.
pub(super) struct Change {
    store: Store,
    items: Vec<TransactionItem>,
    /// What the items will be.
    planned: Vec<(Key, Option<Item>)>,
}

impl Change {
    /// Adds a new item.
    pub(super) fn insert(self, item: Item) -> Result<Self, StoreError> {
        let write = self.store.put_new(item.clone())?;
        self.with(&item.clone(), Some(item), write)
    }

    /// Adds the replacement of an item.
    pub(super) fn replace(self, before: &Item, after: Item) -> Result<Self, StoreError> {
        let (condition, names, values) = unchanged(before);
        let put = Put::builder()
            .table_name(&self.store.table)
            .set_item(Some(after.clone()))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .build()
            .map_err(StoreError::broken)?;
        self.with(before, Some(after), TransactWriteItem::builder().put(put).build())
    }

    /// Adds the removal of an item.
    pub(super) fn remove(self, before: &Item) -> Result<Self, StoreError> {
        let (condition, names, values) = unchanged(before);
        let key = Key::of(before).ok_or_else(|| StoreError::broken("an item without a key"))?;
        let delete = Delete::builder()
            .table_name(&self.store.table)
            .set_key(Some(key.item()))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .build()
            .map_err(StoreError::broken)?;
        self.with(before, None, TransactWriteItem::builder().delete(delete).build())
    }

    fn with(mut self, before: &Item, after: Option<Item>, write: TransactWriteItem) -> Result<Self, StoreError> {
        let key = Key::of(before).ok_or_else(|| StoreError::broken("an item without a key"))?;
        self.items.push(TransactionItem { condition: Condition::RecordState, write });
        self.planned.push((key, after));
        Ok(self)
    }
}

/// Returns the condition that an item is as it was read.
fn unchanged(before: &Item) -> (String, HashMap<String, String>, Item) {
    let (mut names, mut values) = (HashMap::from([("#pk".to_owned(), PK.to_owned())]), Item::new());
    let is_compared = |name: &str, value: &AttributeValue| {
        let is_short = value.as_s().map_or(true, |text| text.len() <= MAX_COMPARED_BYTES) && !value.is_b();
        name != PK && name != SK && is_short
    };
    let compared: Vec<(&str, Option<&AttributeValue>)> = if before.contains_key(VERSION) {
        RECORD_STATE.iter().map(|name| (*name, before.get(*name))).collect()
    } else {
        before.iter().filter(|(name, value)| is_compared(name, value)).map(|(name, value)| (name.as_str(), Some(value))).collect()
    };
    let mut condition = "attribute_exists(#pk)".to_owned();
    for (n, (name, value)) in compared.into_iter().enumerate() {
        names.insert(format!("#c{n}"), name.to_owned());
        match value {
            Some(value) => {
                values.insert(format!(":c{n}"), value.clone());
                condition.push_str(&format!(" AND #c{n} = :c{n}"));
            }
            None => condition.push_str(&format!(" AND attribute_not_exists(#c{n})")),
        }
    }
    (condition, names, values)
}

impl TenantCheck<'_> {
    /// Returns a change without writes.
    pub(super) fn change(&self) -> Change {
        Change { store: self.store.store().clone(), items: Vec::new(), planned: Vec::new() }
    }

    /// Records a finding and, if the check repairs, writes its repair. Returns whether the repair took effect or, for a
    /// check that only reads, would have.
    pub(super) async fn repair(
        &mut self,
        subject: impl Into<String>,
        problem: impl Into<String>,
        repair: impl Into<String>,
        change: Change,
    ) -> Result<bool, StoreError> {
        let mut finding =
            Finding { subject: subject.into(), problem: problem.into(), repair: Ok(repair.into()), is_repaired: false };
        let Change { items, planned, .. } = change;
        if self.mode == CheckMode::ReadOnly {
            self.planned.extend(planned);
            self.findings.push(finding);
            return Ok(true);
        }
        if self.is_written_by_others().await? {
            finding.repair = Err("others are writing to the tenant; stop them and check again".into());
        } else {
            match self.store.store().transact(items, Instant::now() + OPERATION_TIMEOUT).await {
                Ok(()) => finding.is_repaired = true,
                Err(TransactionError::ConditionFailed(..) | TransactionError::ConcurrentRequest) => {
                    finding.repair = Err("it has changed since it was read; check again".into());
                }
                Err(TransactionError::Store(error)) => return Err(error),
            }
        }
        if finding.is_repaired {
            self.know_events(&planned);
        }
        let is_repaired = finding.is_repaired;
        self.findings.push(finding);
        Ok(is_repaired)
    }

    /// Remembers the events that a repair has written.
    fn know_events(&mut self, written: &[(Key, Option<Item>)]) {
        for entry in written.iter().filter_map(|(_, item)| entry_of(item.as_ref()?)) {
            self.known_events.insert(entry.id);
            if let Some(((_, id), _)) = crate::domain::chain::subject(&entry.text) {
                self.recent.entry(id).or_default().push(entry);
            }
        }
    }

    /// Remembers the events that may still become visible late, so that others that appear are known to be new.
    pub(super) async fn know_recent_events(&mut self) -> Result<(), StoreError> {
        self.known_events = self.recent_events().await?.into_iter().collect();
        Ok(())
    }

    /// Returns whether there are events that are new since the check began and that it has not written.
    async fn is_written_by_others(&self) -> Result<bool, StoreError> {
        Ok(self.recent_events().await?.iter().any(|id| !self.known_events.contains(id)))
    }

    async fn recent_events(&self) -> Result<Vec<EventId>, StoreError> {
        let (from, to) = Keys::events_since(self.began.plus(-max_event_delay()));
        let query = self.store.events_query(from, to).projection_expression("#pk, #sk");
        let items = self.store.every(query).await?;
        Ok(items.iter().filter_map(Key::of).filter_map(|key| event_id(&key)).collect())
    }

    /// Reads an item as it is after the repairs so far.
    pub(super) async fn item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        match self.planned.get(key) {
            Some(planned) => Ok(planned.clone()),
            None => self.store.item(key).await,
        }
    }
}
