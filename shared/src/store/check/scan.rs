//! Reading all items of a tenant, page after page.

use super::facts::RecordFacts;
use super::{RecordKey, TenantCheck, named};
use crate::domain::history::chain::{Chain, HistoryEntry, is_by_operator, subject};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::Id;
use crate::domain::values::time::Timestamp;
use crate::store::history::history_head::HistoryHead;
use crate::store::keys::{Item, Key, LS, TYPE};
use crate::store::table::delays::max_secondary_index_delay;
use crate::store::table::error::{StoreError, UnreadableRecord};
use crate::store::table::item;
use uuid::Uuid;

/// All kinds, in the order of repairs: a record comes after those that it is restored from.
pub(super) const ORDER: [Kind; 13] = [
    Kind::Tenant,
    Kind::ApiKey,
    Kind::User,
    Kind::AssetType,
    Kind::Manufacturer,
    Kind::Model,
    Kind::Process,
    Kind::Asset,
    Kind::Instance,
    Kind::Movement,
    Kind::ReceiptKeys,
    Kind::Link,
    Kind::Webhook,
];

#[derive(Debug, Default)]
pub(super) struct ScannedChain {
    /// `None` if this version of the service does not know the kind.
    pub(super) kind: Option<Kind>,
    pub(super) chain: Chain,
    /// The event with the highest version.
    pub(super) last: Option<HistoryHead>,
}

impl TenantCheck<'_> {
    /// Reports a tenant that has lost its record and its history.
    pub(super) fn check_tenant(&mut self) {
        let id = self.store.id().uuid();
        if !self.records.contains_key(&(Kind::Tenant, id)) && !self.chains.contains_key(&id) {
            let obstacle = "restore the table to another moment";
            self.report(named((Kind::Tenant, id)), "its record and its history are lost", obstacle);
        }
    }

    /// Records come before events, so that the events contain all changes of each record.
    pub(super) async fn scan_records(&mut self) -> Result<(), StoreError> {
        for kind in ORDER {
            with_type!(kind, T => self.scan_kind::<T>().await?);
        }
        Ok(())
    }

    async fn scan_kind<T: Record>(&mut self) -> Result<(), StoreError> {
        let mut pages = self.store.of_kind(T::KIND).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                self.scan_record::<T>(item).await?;
            }
        }
        Ok(())
    }

    async fn scan_record<T: Record>(&mut self, item: Item) -> Result<(), StoreError> {
        let key = Key::of(&item).ok_or_else(|| StoreError::broken("an item without a key"))?;
        let stored = match item::read::<T>(self.with_blob(item.clone()).await?) {
            Ok(stored) => stored,
            Err(StoreError::Unreadable(UnreadableRecord { id, cause, .. })) => {
                // Of some kinds a tenant has one record, with an id that is not in its key.
                let own_id = || item.get("id").and_then(|id| id.as_s().ok()?.parse::<Uuid>().ok());
                match id.or_else(own_id) {
                    Some(id) => drop(self.unreadable.insert(id, (T::KIND, item, cause))),
                    None => {
                        let subject = format!("{} at {}", T::KIND.noun(), key.sort());
                        self.unknown.insert(Uuid::nil());
                        self.report_unreadable(T::KIND, subject, &cause);
                    }
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let record: RecordKey = (T::KIND, stored.value.id().uuid());
        let facts = RecordFacts::of(self.store, &stored);
        let chain = Chain::new(Some(facts.head.chain.clone()));
        self.chains.insert(record.1, ScannedChain { kind: Some(T::KIND), chain, ..ScannedChain::default() });
        self.records.insert(record, facts);
        let (expected, _) = item::from_record(&self.store.keys, &stored)?;
        let mut repaired = item.clone();
        repaired.extend(expected.into_iter().filter(|(name, _)| [TYPE, LS].contains(&name.as_str())));
        if repaired != item {
            let change = self.change().replace(&item, repaired)?;
            let problem = "its item lacks what the list index needs, or has it wrong";
            self.repair(named(record), problem, "writes these attributes", change).await?;
        }
        Ok(())
    }

    pub(super) async fn scan_events(&mut self, progress: &mut impl FnMut(u64)) -> Result<(), StoreError> {
        let recent_since = self.began.plus(-max_secondary_index_delay());
        let store = self.store;
        let add = |entries: Vec<HistoryEntry>| {
            for entry in entries {
                self.events += 1;
                self.look_for_erased_people(&entry);
                if !is_by_operator(&entry.text) {
                    self.latest_event = self.latest_event.max(Some(entry.id.timestamp()));
                }
                let Some(((kind, id), version)) = subject(&entry.text) else {
                    self.report(format!("event {}", entry.id), "it can't be read", "events are never changed");
                    continue;
                };
                let scanned = self.chains.entry(id).or_default();
                scanned.kind = scanned.kind.or(kind);
                scanned.chain.add(version, &entry);
                if scanned.last.as_ref().is_none_or(|last| last.chain.version < version) {
                    scanned.last = Some(HistoryHead::after(version, &entry));
                }
                if entry.id.timestamp() >= recent_since {
                    self.recent.entry(id).or_default().push(entry);
                }
            }
            progress(self.events);
        };
        store.each_page_of_entries(Timestamp::from_millis(0), add).await
    }
}
