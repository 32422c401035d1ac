//! Tombstones, which take the place of deleted records.

use super::{RecordKey, TenantCheck, named};
use crate::store::history::history_head::HistoryHead;
use crate::store::keys::{Item, Key, TOMBSTONES, deleted_record};
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;

impl TenantCheck<'_> {
    /// Compares the tombstones with the histories that end with a deletion.
    pub(super) async fn check_tombstones(&mut self) -> Result<(), StoreError> {
        let mut expected: BTreeMap<RecordKey, HistoryHead> = std::mem::take(&mut self.deletions);
        let mut pages = self.store.beginning(AttributeValue::S(TOMBSTONES.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let Some((Some(kind), id)) = Key::of(&item).as_ref().and_then(deleted_record) else { continue };
                let head = expected.remove(&(kind, id));
                if !self.unrepaired.contains(&id) {
                    self.check_tombstone((kind, id), &item, head).await?;
                }
            }
        }
        for (record, head) in expected {
            let key = self.store.keys.tombstone(record.0, record.1);
            if self.unrepaired.contains(&record.1) || self.item(&key).await?.is_some() {
                continue;
            }
            let change = self.change().insert(self.store.tombstone(record.0, record.1, &head))?;
            self.repair(named(record), "it was deleted, but its tombstone is missing", "writes the tombstone", change).await?;
        }
        Ok(())
    }

    async fn check_tombstone(&mut self, record: RecordKey, item: &Item, head: Option<HistoryHead>) -> Result<(), StoreError> {
        let Some(head) = head else {
            let change = self.change().remove(item)?;
            let problem = "it has a tombstone, but its history does not end with a deletion";
            return self.repair(named(record), problem, "removes the tombstone", change).await.map(drop);
        };
        let next = self.store.tombstone(record.0, record.1, &head);
        if next != *item && self.item(&self.store.keys.tombstone(record.0, record.1)).await?.as_ref() != Some(&next) {
            let change = self.change().replace(item, next)?;
            let problem = "its tombstone names another event than that of its deletion";
            self.repair(named(record), problem, "corrects the tombstone", change).await?;
        }
        Ok(())
    }
}
