//! Items that can be computed from the records: unique markers, reference items, tombstones, counters, and the tenant's
//! registration.

use super::{RecordKey, TenantCheck, named};
use crate::domain::record::Kind;
use crate::domain::values::id::{EventId, Id};
use crate::store::keys::{self, Item, Key, MARKERS, REFERENCES, TOMBSTONES, TYPE, deleted_record};
use crate::store::table::error::StoreError;
use crate::store::table::item::{OWNER, USES};
use crate::store::tenants::tenant_deletion::REGISTRATION;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Required items, by sort key, with the records that require them. Other attributes of an item don't matter.
pub(super) type DerivedItems = BTreeMap<String, (RecordKey, Item)>;

impl TenantCheck<'_> {
    /// Compares and repairs all items that follow from the records.
    pub(super) async fn check_derived_items(&mut self) -> Result<(), StoreError> {
        self.check_registration().await?;
        self.check_unique_markers().await?;
        let expected = self.reference_items();
        self.compare_items("reference item", REFERENCES, expected, |_, _, _| false).await?;
        self.check_movement_counter().await
    }

    /// Compares the items whose sort key begins with `prefix` with `expected`: writes missing items, corrects different ones, and
    /// removes those that nothing requires, unless they may stay.
    pub(super) async fn compare_items(
        &mut self,
        noun: &str,
        prefix: &str,
        mut expected: DerivedItems,
        may_stay: impl Fn(&Self, &Key, &Item) -> bool,
    ) -> Result<(), StoreError> {
        let mut pages = self.store.beginning(AttributeValue::S(prefix.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let Some(key) = Key::of(&item) else { continue };
                let wanted = expected.remove(key.sort());
                let Some(item) = self.planned.get(&key).cloned().unwrap_or(Some(item)) else { continue };
                if let Some((record, wanted)) = wanted {
                    let Some(difference) = difference(&item, &wanted) else { continue };
                    let change = self.change().replace(&item, item.clone().into_iter().chain(wanted).collect())?;
                    self.repair(named(record), format!("its {noun} {} {difference}", key.sort()), "corrects it", change).await?;
                } else if !may_stay(self, &key, &item) {
                    let change = self.change().remove(&item)?;
                    self.repair(format!("{noun} {}", key.sort()), "no record requires it", "removes it", change).await?;
                }
            }
        }
        for (sort_key, (record, item)) in expected {
            let key = self.store.keys.sibling(&sort_key);
            if self.item(&key).await?.is_none() {
                let repair = writes(&key, &item);
                let change = self.change().insert(item)?;
                self.repair(named(record), format!("its {noun} {sort_key} is missing"), repair, change).await?;
            }
        }
        Ok(())
    }

    async fn check_registration(&mut self) -> Result<(), StoreError> {
        let id = self.store.id();
        let key = keys::registry(id);
        if self.item(&key).await?.is_some() {
            return Ok(());
        }
        let change = self.change().insert(typed(&key, REGISTRATION))?;
        let subject = named((Kind::Tenant, id.uuid()));
        self.repair(subject, "the registry of tenants lacks it", "registers it", change).await.map(drop)
    }

    /// Compares the tombstones, which take the place of deleted records, with the histories that end with a deletion.
    pub(super) async fn check_tombstones(&mut self) -> Result<(), StoreError> {
        let deletions = std::mem::take(&mut self.deletions).into_iter().filter(|((_, id), _)| !self.unrepaired.contains(id));
        let expected = deletions.map(|(record, head)| {
            let item = self.store.tombstone(record.0, record.1, &head);
            (self.store.keys.tombstone(record.0, record.1).sort().to_owned(), (record, item))
        });
        let expected = expected.collect();
        let is_unsure = |check: &Self, key: &Key, _: &Item| match deleted_record(key) {
            Some((Some(_), id)) => check.unrepaired.contains(&id),
            _ => true,
        };
        self.compare_items("tombstone", TOMBSTONES, expected, is_unsure).await
    }

    async fn check_unique_markers(&mut self) -> Result<(), StoreError> {
        let mut owners: BTreeMap<String, Vec<RecordKey>> = BTreeMap::new();
        for ((kind, id), facts) in &self.records {
            for unique in &facts.unique {
                owners.entry(self.store.keys.unique(*kind, unique).sort().to_owned()).or_default().push((*kind, *id));
            }
        }
        let (mut expected, mut duplicates) = (DerivedItems::new(), BTreeSet::new());
        for (sort_key, owners) in owners {
            if let [owner] = owners.as_slice() {
                let mut marker = typed(&self.store.keys.sibling(&sort_key), "marker");
                let record = self.store.keys.record(owner.0, owner.1);
                marker.insert(OWNER.to_owned(), AttributeValue::S(record.sort().to_owned()));
                expected.insert(sort_key, (*owner, marker));
            } else {
                let names: Vec<String> = owners.iter().map(|owner| named(*owner)).collect();
                let problem = format!("{} have the same unique value", names.join(" and "));
                self.report(format!("unique marker {sort_key}"), problem, "change the value of one of them");
                duplicates.insert(sort_key);
            }
        }
        let may_stay =
            |check: &Self, key: &Key, marker: &Item| duplicates.contains(key.sort()) || check.is_still_reserved(key, marker);
        self.compare_items("unique marker", MARKERS, expected, may_stay).await
    }

    /// A value that no record has stays reserved: tags stay with the assets that had them.
    fn is_still_reserved(&self, key: &Key, marker: &Item) -> bool {
        let reserved = [(Kind::Asset, "asset_tag"), (Kind::Movement, "number")];
        let is_tag = reserved.iter().any(|(kind, field)| key.sort().starts_with(&format!("{MARKERS}{}.{field}#", kind.noun())));
        let owner = marker.get(OWNER).and_then(|owner| owner.as_s().ok()?.split_once('#'));
        let record = owner.and_then(|(_, id)| EventId::from_short(id)).map(Id::uuid);
        is_tag && record.is_some_and(|record| self.history_lengths.contains_key(&record))
    }

    /// The required reference items. References to missing records are reported. They count, too: without its reference item,
    /// nobody could remove a reference. Such an item meets no requirement, so that it gets no new references.
    fn reference_items(&mut self) -> DerivedItems {
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
        let mut expected = DerivedItems::new();
        let mut add = |record: RecordKey, mut item: Item| {
            item.insert(USES.to_owned(), AttributeValue::N(counts.get(&record).copied().unwrap_or(0).to_string()));
            expected.extend(Key::of(&item).map(|key| (key.sort().to_owned(), (record, item))));
        };
        for (record, reference) in dangling {
            add(reference, typed(&self.store.keys.references(reference.0, reference.1), "references"));
            let problem = format!("it refers to {}, which does not exist", named(reference));
            self.report(named(record), problem, "change the reference, or cancel the process instance");
        }
        for (record, facts) in &self.records {
            facts.reference_item.clone().into_iter().for_each(|item| add(*record, item));
        }
        expected
    }
}

/// An item with nothing but its key and type.
pub(super) fn typed(key: &Key, noun: &str) -> Item {
    let mut item = key.item();
    item.insert(TYPE.to_owned(), AttributeValue::S(noun.to_owned()));
    item
}

fn text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.clone(),
        AttributeValue::Bool(flag) => flag.to_string(),
        other => format!("{other:?}"),
    }
}

/// "writes it with value 8"
fn writes(key: &Key, item: &Item) -> String {
    let key = key.item();
    let attributes = item.iter().filter(|(name, _)| *name != TYPE && !key.contains_key(*name));
    let mut values: Vec<String> = attributes.map(|(name, value)| format!("{name} {}", text(value))).collect();
    values.sort();
    if values.is_empty() { "writes it".to_owned() } else { format!("writes it with {}", values.join(" and ")) }
}

/// `None` if the item has all attributes of `wanted`.
fn difference(item: &Item, wanted: &Item) -> Option<String> {
    let differing = wanted.iter().filter(|(name, value)| item.get(*name) != Some(*value));
    let mut differences: Vec<String> = differing
        .map(|(name, value)| format!("has {name} {}, not {}", item.get(name).map_or("missing".to_owned(), text), text(value)))
        .collect();
    differences.sort();
    (!differences.is_empty()).then(|| differences.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::TenantId;
    use crate::domain::values::time::Timestamp;
    use crate::store::keys::Keys;

    #[test]
    fn a_repair_names_what_it_writes() {
        let key = Keys::of(TenantId::new(Timestamp::from_millis(0), [1; 10])).sibling("SEQUENCE#AST-{N}");
        let mut counter = typed(&key, "counter");
        assert_eq!(writes(&key, &counter), "writes it");
        counter.insert("last_number".to_owned(), AttributeValue::N("8".to_owned()));
        assert_eq!(writes(&key, &counter), "writes it with last_number 8");
    }
}
