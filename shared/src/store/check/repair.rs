//! Repairs items derived from records: unique markers, reference items, the counter of movements and the tenant's registration. A
//! repair is a transaction that requires its items to be unchanged since they were read.

use super::{CheckMode, Finding, RecordKey, TenantCheck, named};
use crate::domain::processes::movement::NUMBER_TEMPLATE;
use crate::domain::record::Kind;
use crate::domain::tenants::tenant::{TagPrefix, TagRange, TagTemplate};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::assets::{LAST_NUMBER, WIDTH};
use crate::store::keys::{self, Item, Key, Keys, MARKERS, PK, REFERENCES, SK, TYPE};
use crate::store::table::read::{LAST_HASH, OWNER, USES, VERSION};
use crate::store::table::unit_of_work::Condition;
use crate::store::table::unit_of_work::{Purpose, TransactionError, TransactionItem, Write};
use crate::store::tenants::tenant_deletion::REGISTRATION;
use crate::store::{OPERATION_TIMEOUT, Reader, Store, StoreError, max_event_delay};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Attributes that every change to a record changes, except a change to only its `last_used_at`.
const RECORD_STATE: [&str; 2] = [VERSION, LAST_HASH];
/// Longer values are not compared. Items that differ in a long value also differ in a shorter one.
const MAX_COMPARED_BYTES: usize = 1024;

/// How long a check that repairs waits for other writers to stop. If the writers go on, the check repairs nothing.
const MAX_WAIT: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_millis(500);

/// Required items by sort key, with the record that requires each. Items can have additional attributes.
pub(super) type DerivedItems = BTreeMap<String, (RecordKey, Item)>;

/// An item that is missing, wrong or superfluous.
pub(super) struct Difference {
    pub(super) key: Key,
    pub(super) subject: String,
    pub(super) problem: String,
    repair: String,
    change: Change,
}

impl TenantCheck<'_> {
    pub(super) fn change(&self) -> Change {
        Change::new(self.store.store())
    }

    /// Records a finding and, with [`CheckMode::Repair`], writes its repair.
    pub(super) async fn repair(
        &mut self,
        subject: impl Into<String>,
        problem: impl Into<String>,
        repair: impl Into<String>,
        change: Change,
    ) -> Result<(), StoreError> {
        let (subject, problem, mut repair, mut is_repaired) = (subject.into(), problem.into(), Ok(repair.into()), false);
        if self.mode == CheckMode::Repair {
            if self.is_written_by_others().await? {
                repair = Err("others are writing to the tenant; stop the writers and check again".to_owned());
            } else if change.commit().await? {
                is_repaired = true;
            } else {
                repair = Err("it has changed since it was read; check again".to_owned());
            }
        }
        self.findings.push(Finding { subject, problem, repair, is_repaired });
        Ok(())
    }

    /// Whether others have written an event since the check began. The check itself writes none.
    pub(super) async fn is_written_by_others(&self) -> Result<bool, StoreError> {
        self.store.has_events_since(self.began).await
    }

    /// Compares all derived items, and repairs them if the state of every record is known.
    pub(super) async fn check_derived_items(&mut self) -> Result<(), StoreError> {
        let mut differences = self.registration().await?;
        differences.extend(self.unique_markers().await?);
        let expected = self.reference_items();
        let is_unsettled = |key: &Key, _: &Item| self.is_unsettled(key.sort());
        differences.extend(self.differences("reference item", REFERENCES, expected, is_unsettled).await?);
        differences.extend(self.movement_counter().await?);
        for Difference { subject, problem, repair, change, .. } in differences {
            if self.unsettled.is_empty() {
                self.repair(subject, problem, repair, change).await?;
            } else {
                self.report(subject, problem, "first fix the records in the other findings");
            }
        }
        Ok(())
    }

    /// Compares the items whose sort key starts with `prefix` with `expected`. Returns missing and different items, and
    /// superfluous items unless they `may_stay`.
    pub(super) async fn differences(
        &self,
        noun: &str,
        prefix: &str,
        mut expected: DerivedItems,
        may_stay: impl Fn(&Key, &Item) -> bool,
    ) -> Result<Vec<Difference>, StoreError> {
        let mut differences = Vec::new();
        let mut pages = self.store.beginning(AttributeValue::S(prefix.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for item in page?.items.unwrap_or_default() {
                let Some(key) = Key::of(&item) else { continue };
                if let Some((record, wanted)) = expected.remove(key.sort()) {
                    let Some(difference) = difference(&item, &wanted) else { continue };
                    let problem = format!("its {noun} {} {difference}", key.sort());
                    let change = self.change().replace(&item, item.clone().into_iter().chain(wanted).collect());
                    let (subject, repair) = (named(record), "corrects it".to_owned());
                    differences.push(Difference { key, subject, problem, repair, change });
                } else if !may_stay(&key, &item) {
                    let (subject, problem) = (format!("{noun} {}", key.sort()), "no record requires it".to_owned());
                    let (repair, change) = ("removes it".to_owned(), self.change().remove(&item)?);
                    differences.push(Difference { key, subject, problem, repair, change });
                }
            }
        }
        for (sort_key, (record, item)) in expected {
            let key = self.store.keys.sibling(&sort_key);
            let (subject, problem) = (named(record), format!("its {noun} {sort_key} is missing"));
            let (repair, change) = (writes(&key, &item), self.change().insert(item));
            differences.push(Difference { key, subject, problem, repair, change });
        }
        Ok(differences)
    }

    async fn registration(&self) -> Result<Vec<Difference>, StoreError> {
        let id = self.store.id();
        let key = keys::registry(id);
        if self.store.item(&key).await?.is_some() {
            return Ok(Vec::new());
        }
        let (subject, problem) = (named((Kind::Tenant, id.uuid())), "it is missing from the tenant registry".to_owned());
        let (repair, change) = ("registers it".to_owned(), self.change().insert(typed(&key, REGISTRATION)));
        Ok(vec![Difference { key, subject, problem, repair, change }])
    }

    /// Compares unique markers, and reports duplicate values.
    async fn unique_markers(&mut self) -> Result<Vec<Difference>, StoreError> {
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
        let may_stay = |key: &Key, marker: &Item| {
            let owner = marker.get(OWNER).and_then(|owner| owner.as_s().ok()).map_or("", String::as_str);
            duplicates.contains(key.sort()) || self.is_still_reserved(key, owner) || self.is_unsettled(owner)
        };
        self.differences("unique marker", MARKERS, expected, may_stay).await
    }

    /// Whether a value is reserved although no record has it: asset tags and movement numbers are never reused.
    fn is_still_reserved(&self, key: &Key, owner: &str) -> bool {
        let reserved = [(Kind::Asset, "asset_tag"), (Kind::Movement, "number")];
        let is_tag = reserved.iter().any(|(kind, field)| key.sort().starts_with(&format!("{MARKERS}{}.{field}#", kind.as_str())));
        is_tag && id_in(owner).is_some_and(|record| self.history_lengths.contains_key(&record))
    }

    /// Whether `name` ends with the ID of a record whose state is unknown.
    fn is_unsettled(&self, name: &str) -> bool {
        id_in(name).is_some_and(|record| self.unsettled.contains(&record))
    }

    /// Returns the required reference items, and reports references to missing records. A missing record with references also
    /// needs a reference item, without which the references could not be removed. This item lacks the attributes that new
    /// references require.
    fn reference_items(&mut self) -> DerivedItems {
        let mut counts: HashMap<RecordKey, u64> = HashMap::new();
        let mut dangling = Vec::new();
        for (record, facts) in &self.records {
            for reference in &facts.references {
                *counts.entry(*reference).or_default() += 1;
                // Lost and unreadable records already have a finding.
                if !self.records.contains_key(reference) && !self.unsettled.contains(&reference.1) {
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

    /// Requires that the counter of movements is at least the highest movement number.
    async fn movement_counter(&self) -> Result<Vec<Difference>, StoreError> {
        let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
        let range: TagRange = template.range(&TagPrefix::default(), None, self.began);
        let numbers = self.of_kind(Kind::Movement).filter_map(|(_, facts)| range.number(&facts.unique.first()?.value));
        let Some(highest) = numbers.max() else { return Ok(Vec::new()) };
        let key = self.store.keys.movement_counter();
        let current = self.store.item(&key).await?;
        let number = |item: &Item| item.get(LAST_NUMBER)?.as_n().ok()?.parse::<u64>().ok();
        if current.as_ref().and_then(number).is_some_and(|last| last >= highest) {
            return Ok(Vec::new());
        }
        let mut item = typed(&key, "counter");
        item.insert(LAST_NUMBER.to_owned(), AttributeValue::N(highest.to_string()));
        if current.is_none() {
            item.insert(WIDTH.to_owned(), AttributeValue::N(range.width().to_string()));
        }
        let expected = DerivedItems::from([(key.sort().to_owned(), ((Kind::Tenant, self.store.id().uuid()), item))]);
        self.differences("counter", key.sort(), expected, |_, _| true).await
    }
}

pub(super) struct Change {
    store: Store,
    items: Vec<TransactionItem>,
}

impl Change {
    pub(super) fn new(store: &Store) -> Self {
        Self { store: store.clone(), items: Vec::new() }
    }

    pub(super) fn insert(self, item: Item) -> Self {
        self.with(Condition::MISSING, Write::Put(item))
    }

    pub(super) fn replace(self, before: &Item, after: Item) -> Self {
        self.with(unchanged(before), Write::Put(after))
    }

    pub(super) fn remove(self, before: &Item) -> Result<Self, StoreError> {
        let key = Key::of(before).ok_or_else(|| StoreError::broken("an item without a key"))?;
        Ok(self.with(unchanged(before), Write::Delete(key)))
    }

    fn with(mut self, condition: Condition, write: Write) -> Self {
        self.items.push(TransactionItem { purpose: Purpose::RecordState, condition, write });
        self
    }

    /// Commits the repair. Returns `false` if an item has changed since it was read.
    pub(super) async fn commit(self) -> Result<bool, StoreError> {
        match self.store.transact(self.items, Instant::now() + OPERATION_TIMEOUT).await {
            Ok(()) => Ok(true),
            Err(TransactionError::ConditionFailed(..) | TransactionError::ConcurrentRequest) => Ok(false),
            Err(TransactionError::Store(error)) => Err(error),
        }
    }
}

fn unchanged(before: &Item) -> Condition {
    let is_compared = |name: &str, value: &AttributeValue| {
        let is_short = value.as_s().map_or(true, |text| text.len() <= MAX_COMPARED_BYTES) && !value.is_b();
        name != PK && name != SK && is_short
    };
    let is_same = |name: &str, value: &AttributeValue| Condition::is(name, value.clone());
    let mut conditions = vec![Condition::EXISTS];
    if before.contains_key(VERSION) {
        let of_record = |name| before.get(name).map_or(Condition::Lacks(name), |value| is_same(name, value));
        conditions.extend(RECORD_STATE.map(of_record));
    } else {
        let compared = before.iter().filter(|(name, value)| is_compared(name, value));
        conditions.extend(compared.map(|(name, value)| is_same(name, value)));
    }
    Condition::All(conditions)
}

impl Reader {
    /// Waits until there are no recent events, so that no other event can be in flight. Returns `false` after [`MAX_WAIT`].
    pub(super) async fn wait_for_quiet(&self) -> Result<bool, StoreError> {
        let end = Instant::now() + MAX_WAIT;
        while self.has_events_since(self.store.now().plus(-max_event_delay())).await? {
            if Instant::now() >= end {
                return Ok(false);
            }
            tokio::time::sleep(WAIT).await;
        }
        Ok(true)
    }

    async fn has_events_since(&self, since: Timestamp) -> Result<bool, StoreError> {
        let (from, to) = Keys::events_since(since);
        let query = self.events_query(from, to).projection_expression("#pk, #sk").limit(1);
        Ok(!query.send().await?.items.unwrap_or_default().is_empty())
    }
}

/// Returns the record ID that a sort key ends with.
fn id_in(name: &str) -> Option<Uuid> {
    name.rsplit('#').next().and_then(EventId::from_short).map(Id::uuid)
}

fn typed(key: &Key, noun: &str) -> Item {
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

/// Describes a write, such as "writes it with value 8".
fn writes(key: &Key, item: &Item) -> String {
    let key = key.item();
    let attributes = item.iter().filter(|(name, _)| *name != TYPE && !key.contains_key(*name));
    let mut values: Vec<String> = attributes.map(|(name, value)| format!("{name} {}", text(value))).collect();
    values.sort();
    if values.is_empty() { "writes it".to_owned() } else { format!("writes it with {}", values.join(" and ")) }
}

/// Describes how an item differs from `wanted`; `None` if the item has all attributes of `wanted`.
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

    #[test]
    fn a_repair_names_what_it_writes() {
        let key = Keys::of(TenantId::new(Timestamp::from_millis(0), [1; 10])).sibling("SEQUENCE#AST-{N}");
        let mut counter = typed(&key, "counter");
        assert_eq!(writes(&key, &counter), "writes it");
        counter.insert("last_number".to_owned(), AttributeValue::N("8".to_owned()));
        assert_eq!(writes(&key, &counter), "writes it with last_number 8");
    }
}
