//! The counters of asset tags and movement numbers, compared with the given tags and numbers.

use super::TenantCheck;
use super::derived::{DerivedItems, typed};
use super::facts::RecordFacts;
use super::record_repair::Present;
use super::tag_counters::{Counter, behind};
use crate::domain::assets::tag::{TagPrefix, TagRange, TagTemplate};
use crate::domain::processes::movement::NUMBER_TEMPLATE;
use crate::domain::record::Kind;
use crate::domain::tenants::tenant::Tenant;
use crate::domain::values::id::{AssetId, Id};
use crate::store::keys::{COUNTERS, Item, Key};
use crate::store::table::counters::{LAST_NUMBER, WIDTH};
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Compares the counters of asset tags with the tags that assets have.
    pub(super) async fn check_tag_counters(&mut self) -> Result<(), StoreError> {
        let items = self.store.every(self.store.beginning(AttributeValue::S(COUNTERS.to_owned()))).await?;
        let pattern = |item: &Item| Some(Key::of(item)?.sort().strip_prefix(COUNTERS)?.to_owned());
        let counters = items.iter().filter_map(|item| Some((pattern(item)?, counter(item)?))).collect();
        let mut needed: BTreeMap<String, (u64, Option<usize>)> = BTreeMap::new();
        for (id, tag, code) in self.tags() {
            let raised = behind(&counters, &tag).map(|(pattern, number)| (pattern, number, None));
            let missing = match raised {
                Some(_) => None,
                None => self.missing_counter(id, &tag, code.as_deref()).await?.filter(|(name, ..)| !counters.contains_key(name)),
            };
            if let Some((pattern, number, width)) = raised.or(missing) {
                let entry = needed.entry(pattern).or_default();
                *entry = (entry.0.max(number), width);
            }
        }
        let needed = needed.into_iter().map(|(pattern, (number, width))| (self.store.keys.counter(&pattern), number, width));
        let expected = needed.map(|(key, number, width)| self.counter_item(&key, number, width)).collect();
        self.compare_items("counter", COUNTERS, expected, |_, _, _| true).await
    }

    /// Each asset with its tag and the code of its asset type.
    fn tags(&self) -> Vec<(AssetId, String, Option<String>)> {
        let tag = |(id, facts): (Uuid, &RecordFacts)| {
            let asset_type = facts.references.iter().find(|(kind, _)| *kind == Kind::AssetType);
            let code = asset_type.and_then(|asset_type| Some(self.records.get(asset_type)?.unique.first()?.value.clone()));
            Some((AssetId::from_uuid(id), facts.unique.first()?.value.clone(), code))
        };
        self.of_kind(Kind::Asset).filter_map(tag).collect()
    }

    /// The counter of the tenant's present template that gave this tag, with its number and width.
    async fn missing_counter(
        &self,
        id: AssetId,
        tag: &str,
        code: Option<&str>,
    ) -> Result<Option<(String, u64, Option<usize>)>, StoreError> {
        let tenant: Option<Present<Tenant>> = self.present(self.store.id().uuid()).await?;
        Ok(tenant.and_then(|present| {
            let Tenant { asset_tag_template, asset_tag_prefix, .. } = present.stored.value;
            let range = asset_tag_template.range(&asset_tag_prefix, code, id.timestamp());
            Some((range.counter(), range.number(tag)?, Some(range.width())))
        }))
    }

    pub(super) async fn check_movement_counter(&mut self) -> Result<(), StoreError> {
        let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
        let range: TagRange = template.range(&TagPrefix::default(), None, self.began);
        let numbers = self.of_kind(Kind::Movement).filter_map(|(_, facts)| range.number(&facts.unique.first()?.value));
        let Some(highest) = numbers.max() else { return Ok(()) };
        let key = self.store.keys.movement_counter();
        let present = self.item(&key).await?;
        if present.as_ref().and_then(counter).is_some_and(|counter| counter.last_number >= highest) {
            return Ok(());
        }
        let width = present.is_none().then(|| range.width());
        let expected = DerivedItems::from([self.counter_item(&key, highest, width)]);
        self.compare_items("counter", key.sort(), expected, |_, _, _| true).await
    }

    /// The number and, for a new counter, its width.
    fn counter_item(&self, key: &Key, number: u64, width: Option<usize>) -> (String, ((Kind, Uuid), Item)) {
        let mut item = typed(key, "counter");
        item.insert(LAST_NUMBER.to_owned(), AttributeValue::N(number.to_string()));
        item.extend(width.map(|width| (WIDTH.to_owned(), AttributeValue::N(width.to_string()))));
        (key.sort().to_owned(), ((Kind::Tenant, self.store.id().uuid()), item))
    }
}

fn counter(item: &Item) -> Option<Counter> {
    let number = |name| item.get(name)?.as_n().ok();
    Some(Counter { last_number: number(LAST_NUMBER)?.parse().ok()?, width: number(WIDTH)?.parse().ok()? })
}
