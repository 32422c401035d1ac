//! Items that can be computed from the records: the tenant's registration, unique markers, reference counts, counters.

use super::tag_counters::{Counter, behind};
use super::{RecordKey, TenantCheck, named};
use crate::domain::assets::tag::{TagPrefix, TagRange, TagTemplate};
use crate::domain::processes::movement::NUMBER_TEMPLATE;
use crate::domain::record::Kind;
use crate::domain::tenants::tenant::Tenant;
use crate::domain::values::id::{AssetId, EventId, Id};
use crate::store::keys::{self, COUNTERS, Item, Key, MARKERS, TYPE};
use crate::store::table::counters::{LAST_NUMBER, WIDTH};
use crate::store::table::error::StoreError;
use crate::store::table::item::OWNER;
use crate::store::tenants::tenant_deletion::REGISTRATION;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;

impl TenantCheck<'_> {
    /// Compares everything that follows from the records with them, and repairs what differs.
    pub(super) async fn check_derived_items(&mut self) -> Result<(), StoreError> {
        self.check_registration().await?;
        self.check_unique_markers().await?;
        self.check_references().await?;
        self.check_tag_counters().await?;
        self.check_movement_counter().await
    }

    async fn check_registration(&mut self) -> Result<(), StoreError> {
        let id = self.store.id();
        let key = keys::registry(id);
        if self.item(&key).await?.is_some() {
            return Ok(());
        }
        let mut registration = key.item();
        registration.insert(TYPE.to_owned(), AttributeValue::S(REGISTRATION.to_owned()));
        let change = self.change().insert(registration)?;
        let subject = named((Kind::Tenant, id.uuid()));
        self.repair(subject, "the registry of tenants lacks it", "registers it", change).await.map(drop)
    }

    async fn check_unique_markers(&mut self) -> Result<(), StoreError> {
        let mut owners: BTreeMap<String, Vec<RecordKey>> = BTreeMap::new();
        for ((kind, id), facts) in &self.records {
            for unique in &facts.unique {
                owners.entry(self.store.keys.unique(*kind, unique).sort().to_owned()).or_default().push((*kind, *id));
            }
        }
        let mut pages = self.store.beginning(AttributeValue::S(MARKERS.to_owned())).into_paginator().send();
        while let Some(page) = pages.next().await {
            for marker in page?.items.unwrap_or_default() {
                let Some(key) = Key::of(&marker) else { continue };
                let owners = owners.remove(key.sort()).unwrap_or_default();
                self.check_unique_marker(&key, &marker, &owners).await?;
            }
        }
        for (sort_key, owners) in owners {
            let [owner] = owners.as_slice() else {
                self.report_duplicate(&sort_key, &owners);
                continue;
            };
            let key = self.store.keys.sibling(&sort_key);
            let mut marker = key.item();
            marker.insert(TYPE.to_owned(), AttributeValue::S("marker".to_owned()));
            marker.insert(OWNER.to_owned(), AttributeValue::S(self.store.keys.record(owner.0, owner.1).sort().to_owned()));
            let change = self.change().insert(marker)?;
            let problem = format!("its unique value is not reserved: {sort_key} is missing");
            self.repair(named(*owner), problem, "reserves it", change).await?;
        }
        Ok(())
    }

    async fn check_unique_marker(&mut self, key: &Key, marker: &Item, owners: &[RecordKey]) -> Result<(), StoreError> {
        let named_owner = marker.get(OWNER).and_then(|owner| owner.as_s().ok()).map(String::as_str).unwrap_or_default();
        let subject = format!("unique marker {}", key.sort());
        let [owner] = owners else {
            if owners.len() > 1 {
                self.report_duplicate(key.sort(), owners);
            } else if !self.is_still_reserved(key, named_owner) {
                let change = self.change().remove(marker)?;
                self.repair(subject, format!("{named_owner} does not have this value"), "frees the value", change).await?;
            }
            return Ok(());
        };
        let owner_key = self.store.keys.record(owner.0, owner.1);
        if owner_key.sort() != named_owner {
            let mut next = marker.clone();
            next.insert(OWNER.to_owned(), AttributeValue::S(owner_key.sort().to_owned()));
            let change = self.change().replace(marker, next)?;
            let problem = format!("it names {named_owner}, but {} has this value", named(*owner));
            self.repair(subject, problem, "names that record", change).await?;
        }
        Ok(())
    }

    /// Returns whether a value that no record has stays reserved: tags stay with the assets that had them.
    fn is_still_reserved(&self, marker: &Key, owner: &str) -> bool {
        let reserved = [(Kind::Asset, "asset_tag"), (Kind::Movement, "number")];
        let is_tag =
            reserved.iter().any(|(kind, field)| marker.sort().starts_with(&format!("{MARKERS}{}.{field}#", kind.noun())));
        let record = owner.split_once('#').and_then(|(_, id)| EventId::from_short(id)).map(Id::uuid);
        is_tag && record.is_some_and(|record| self.history_lengths.contains_key(&record))
    }

    fn report_duplicate(&mut self, marker: &str, owners: &[RecordKey]) {
        let names: Vec<String> = owners.iter().map(|owner| named(*owner)).collect();
        let problem = format!("{} have the same unique value", names.join(" and "));
        self.report(format!("unique marker {marker}"), problem, "change the value of one of them");
    }

    /// Compares the counters of asset tags with the tags that assets have.
    async fn check_tag_counters(&mut self) -> Result<(), StoreError> {
        let items = self.store.every(self.store.beginning(AttributeValue::S(COUNTERS.to_owned()))).await?;
        let items: BTreeMap<String, Item> = items
            .into_iter()
            .filter_map(|item| Some((Key::of(&item)?.sort().strip_prefix(COUNTERS)?.to_owned(), item)))
            .collect();
        let counters = items.iter().filter_map(|(pattern, item)| Some((pattern.clone(), counter(item)?))).collect();
        let mut needed: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        for (id, tag, code) in self.tags() {
            let raised = behind(&counters, &tag).map(|(pattern, number)| (pattern, number, 0));
            let missing = match raised {
                Some(_) => None,
                None => self.missing_counter(id, &tag, code.as_deref()).await?.filter(|(name, ..)| !counters.contains_key(name)),
            };
            if let Some((pattern, number, width)) = raised.or(missing) {
                let entry = needed.entry(pattern).or_default();
                *entry = (entry.0.max(number), width);
            }
        }
        for (pattern, (number, width)) in needed {
            let key = self.store.keys.counter(&pattern);
            self.raise_counter(&key, items.get(&pattern), number, width).await?;
        }
        Ok(())
    }

    /// Returns each asset with its tag and the code of its asset type.
    fn tags(&self) -> Vec<(AssetId, String, Option<String>)> {
        let assets = self.records.iter().filter(|((kind, _), _)| *kind == Kind::Asset);
        let tag = |((_, id), facts): (&RecordKey, &super::facts::RecordFacts)| {
            let asset_type = facts.references.iter().find(|(kind, _)| *kind == Kind::AssetType);
            let code = asset_type.and_then(|asset_type| Some(self.records.get(asset_type)?.unique.first()?.value.clone()));
            Some((AssetId::from_uuid(*id), facts.unique.first()?.value.clone(), code))
        };
        assets.filter_map(tag).collect()
    }

    /// Returns the counter of the tenant's present template that gave this tag, with its number and width.
    async fn missing_counter(
        &self,
        id: AssetId,
        tag: &str,
        code: Option<&str>,
    ) -> Result<Option<(String, u64, usize)>, StoreError> {
        let tenant: Option<super::record_repair::Present<Tenant>> = self.present(self.store.id().uuid()).await?;
        Ok(tenant.and_then(|present| {
            let Tenant { asset_tag_template, asset_tag_prefix, .. } = present.stored.value;
            let range = asset_tag_template.range(&asset_tag_prefix, code, id.timestamp());
            Some((range.counter(), range.number(tag)?, range.width()))
        }))
    }

    async fn check_movement_counter(&mut self) -> Result<(), StoreError> {
        let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
        let range: TagRange = template.range(&TagPrefix::default(), None, self.began);
        let movements = self.records.iter().filter(|((kind, _), _)| *kind == Kind::Movement);
        let numbers = movements.filter_map(|(_, facts)| range.number(&facts.unique.first()?.value));
        let Some(highest) = numbers.max() else { return Ok(()) };
        let key = self.store.keys.movement_counter();
        let item = self.item(&key).await?;
        if item.as_ref().and_then(counter).is_none_or(|counter| counter.last_number < highest) {
            self.raise_counter(&key, item.as_ref(), highest, range.width()).await?;
        }
        Ok(())
    }

    async fn raise_counter(&mut self, key: &Key, item: Option<&Item>, number: u64, width: usize) -> Result<(), StoreError> {
        let subject = format!("counter {}", key.sort());
        let repair = format!("sets it to {number}");
        let last_number = AttributeValue::N(number.to_string());
        let (problem, change) = match item {
            Some(item) => {
                let mut next = item.clone();
                next.insert(LAST_NUMBER.to_owned(), last_number);
                (format!("number {number} was given, but it has not reached it"), self.change().replace(item, next)?)
            }
            None => {
                let mut next = key.item();
                next.insert(TYPE.to_owned(), AttributeValue::S("counter".to_owned()));
                next.insert(LAST_NUMBER.to_owned(), last_number);
                next.insert(WIDTH.to_owned(), AttributeValue::N(width.to_string()));
                (format!("number {number} was given, but the counter is missing"), self.change().insert(next)?)
            }
        };
        self.repair(subject, problem, repair, change).await.map(drop)
    }
}

fn counter(item: &Item) -> Option<Counter> {
    let number = |name| item.get(name)?.as_n().ok();
    Some(Counter { last_number: number(LAST_NUMBER)?.parse().ok()?, width: number(WIDTH)?.parse().ok()? })
}
