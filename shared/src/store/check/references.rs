//! The reference items: how many records refer to a record, and what references can require of it.

use super::{RecordKey, TenantCheck, named};
use crate::store::keys::{Item, Key, REFERENCES, TYPE};
use crate::store::table::error::StoreError;
use crate::store::table::item::USES;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap};

impl TenantCheck<'_> {
    /// Compares the reference items with the records and with what refers to them.
    pub(super) async fn check_references(&mut self) -> Result<(), StoreError> {
        let mut expected = self.reference_items();
        let mut pages = self.store.beginning(AttributeValue::S(REFERENCES.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let Some(key) = Key::of(&item) else { continue };
                match expected.remove(key.sort()) {
                    Some((record, expected)) => self.check_reference_item(record, &item, expected).await?,
                    None => {
                        let change = self.change().remove(&item)?;
                        let subject = format!("reference item {}", key.sort());
                        self.repair(subject, "the record does not exist", "removes it", change).await?;
                    }
                }
            }
        }
        for (record, item) in expected.into_values() {
            let change = self.change().insert(item)?;
            self.repair(named(record), "its reference item is missing", "counts its references again", change).await?;
        }
        Ok(())
    }

    async fn check_reference_item(&mut self, record: RecordKey, item: &Item, expected: Item) -> Result<(), StoreError> {
        let mut next = item.clone();
        next.extend(expected);
        if next == *item {
            return Ok(());
        }
        let number = |item: &Item| item.get(USES).and_then(|uses| uses.as_n().ok()).cloned().unwrap_or_default();
        let problem = match (number(item), number(&next)) {
            (stored, counted) if stored != counted => {
                format!("its reference item counts {stored} references, but there are {counted}")
            }
            _ => "its reference item has other values than the record".to_owned(),
        };
        let change = self.change().replace(item, next)?;
        self.repair(named(record), problem, "writes the reference item again", change).await.map(drop)
    }

    /// Returns the reference items that there must be, by sort key. Reports references to what does not exist. These count,
    /// too: without its reference item, nobody could remove a reference. Such an item meets no requirement, so that it gets
    /// no new references.
    fn reference_items(&mut self) -> BTreeMap<String, (RecordKey, Item)> {
        let mut counts: HashMap<RecordKey, u64> = HashMap::new();
        let mut dangling = Vec::new();
        for (record, facts) in &self.records {
            for reference in &facts.references {
                *counts.entry(*reference).or_default() += 1;
                if !self.records.contains_key(reference) {
                    dangling.push((*record, *reference));
                }
            }
        }
        let mut missing = BTreeMap::new();
        for (record, reference) in dangling {
            let key = self.store.keys.references(reference.0, reference.1);
            let mut item = key.item();
            item.insert(TYPE.to_owned(), AttributeValue::S("references".to_owned()));
            item.insert(USES.to_owned(), AttributeValue::N(counts.get(&reference).copied().unwrap_or(0).to_string()));
            missing.insert(key.sort().to_owned(), (reference, item));
            let problem = format!("it refers to {}, which does not exist", named(reference));
            self.report(named(record), problem, "change the reference, or cancel the process instance");
        }
        let item = |(record, facts): (&RecordKey, &super::facts::RecordFacts)| {
            let mut item = facts.reference_item.clone()?;
            let count = counts.get(record).copied().unwrap_or(0);
            item.insert(USES.to_owned(), AttributeValue::N(count.to_string()));
            Some((Key::of(&item)?.sort().to_owned(), (*record, item)))
        };
        self.records.iter().filter_map(item).chain(missing).collect()
    }
}
