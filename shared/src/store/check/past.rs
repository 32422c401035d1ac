//! The history of one record, read to repair it.

use super::TenantCheck;
use crate::domain::history::chain::{Chain, ChainError, HistoryEntry, subject};
use crate::domain::history::event::Event;
use crate::domain::processes::instance::Signed;
use crate::domain::restore::{HistoryFields, Origin, Restore, replay, restore, submissions};
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use crate::store::history::history_head::HistoryHead;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{HISTORY, HS, Item, Key, Keys, LAST_VERSION, PK};
use crate::store::table::error::StoreError;
use serde_json::Map;
use std::collections::{BTreeMap, HashSet};
use uuid::Uuid;

/// The unbroken history of a record.
#[derive(Debug, Clone)]
pub(super) struct Past {
    /// The events, oldest first. The first has version 1.
    pub(super) events: Vec<Event>,
    /// The last event as it is stored.
    pub(super) last: Option<HistoryEntry>,
    /// Of an instance: the author of the value of each step.
    pub(super) submissions: BTreeMap<String, Signed>,
}

impl Past {
    pub(super) fn version(&self) -> u64 {
        self.events.len() as u64
    }

    pub(super) fn head(&self) -> Option<HistoryHead> {
        self.last.as_ref().map(|last| HistoryHead::after(self.version(), last))
    }

    pub(super) fn since(&self, version: u64) -> &[Event] {
        self.events.get(usize::try_from(version).unwrap_or(usize::MAX)..).unwrap_or_default()
    }

    pub(super) fn fields(&self) -> HistoryFields {
        replay(Map::new(), &self.events)
    }

    /// The record's first event always counts: clocks differ.
    fn fields_at(&self, at: Timestamp) -> HistoryFields {
        let past = self.events.iter().enumerate().filter(|(index, event)| *index == 0 || event.at <= at);
        replay(Map::new(), past.map(|(_, event)| event))
    }
}

impl TenantCheck<'_> {
    /// Reads the items of a record's events that the index `history` names, and the recent ones that it may still lack.
    pub(super) async fn entries(&self, record: Uuid) -> Result<Vec<Item>, StoreError> {
        let query = self.store.store.client.query().table_name(&self.store.store.table).index_name(HISTORY);
        let query = query
            .key_condition_expression("#pk = :pk AND #hs BETWEEN :from AND :to")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#hs", HS)
            .expression_attribute_values(":pk", self.store.keys.partition())
            .expression_attribute_values(":from", Keys::history(record, 0))
            .expression_attribute_values(":to", Keys::history(record, LAST_VERSION));
        let rows = self.store.every(query).await?;
        let recent = self.recent.get(&record).into_iter().flatten().map(|entry| self.store.keys.event(entry.id));
        let keys: HashSet<Key> = rows.iter().filter_map(Key::of).chain(recent).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        Ok(self.store.items(&keys).await?.into_values().collect())
    }

    /// Reads the history of a record; `None` if it is not complete, or broken.
    pub(super) async fn past(&self, record: Uuid) -> Result<Option<Past>, StoreError> {
        let stored = self.entries(record).await?;
        let recent = self.recent.get(&record).into_iter().flatten().cloned();
        let entries = stored.iter().filter_map(entry_of).chain(recent).filter(|entry| !self.removed_events.contains(&entry.id));
        let entries = entries.filter_map(|entry| Some((subject(&entry.text)?.1, entry))).collect();
        Ok(unbroken(entries))
    }

    /// The record at `at`, without the fields `left_out`.
    pub(super) async fn record_at<T: Restore>(
        &self,
        id: Uuid,
        at: Timestamp,
        left_out: &[&str],
    ) -> Result<Option<T>, StoreError> {
        let Some(past) = self.past(id).await? else { return Ok(None) };
        let Some(first) = past.events.first() else { return Ok(None) };
        let mut fields = past.fields_at(at);
        fields.retain(|name, _| !left_out.contains(&name.as_str()));
        Ok(restore(T::Id::from_uuid(id), &fields, &Origin::unknown(&first.actor)).ok())
    }
}

/// `None` if one is missing or wrong.
fn unbroken(entries: BTreeMap<u64, HistoryEntry>) -> Option<Past> {
    let mut chain = Chain::new(None);
    let mut events: Vec<Event> = Vec::new();
    for (version, entry) in &entries {
        chain.add(*version, entry);
        events.push(serde_json::from_str(&entry.text).ok()?);
    }
    let broken = chain.finish().broken.map(|link| link.reason);
    let is_whole = entries.is_empty() || broken.is_none_or(|reason| reason == ChainError::Gone);
    let submissions = submissions(events.iter().zip(entries.values().map(|entry| &entry.commitments)));
    is_whole.then(|| Past { events, submissions, last: entries.into_values().next_back() })
}
