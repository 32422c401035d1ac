//! Counters of asset tags and movement numbers: one per tag pattern.

use crate::domain::assets::tag::{TagPrefix, TagRange, TagTemplate};
use crate::domain::tenants::tenant::NumberRange;
use crate::store::keys::{COUNTERS, Item, Key, TYPE};
use crate::store::table::read::UNREADABLE;
use crate::store::{StoreError, TenantStore};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

pub(in crate::store) const LAST_NUMBER: &str = "last_number";
pub(in crate::store) const WIDTH: &str = "width";

/// Maximum number of ranges to read. A template with the month has twelve per year and asset type.
const MAX_RANGES: usize = 10_000;

impl TenantStore {
    /// Reserves the number that is `step` above the last one; 1 reserves the next number.
    ///
    /// A number is reserved only once. If its asset is not created, a gap remains. A dry run reserves nothing, and gets a number
    /// that no asset has.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the counter can't be updated.
    pub async fn next_number(&self, range: &TagRange, step: u64) -> Result<u64, StoreError> {
        self.increment(self.keys.counter(&range.counter()), range, step).await
    }

    /// Reserves the next movement number. Gaps are possible, as with asset tags.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the counter can't be updated.
    pub async fn next_movement_number(&self, template: &TagTemplate) -> Result<String, StoreError> {
        let range = template.range(&TagPrefix::default(), None, self.store.now());
        Ok(range.tag(self.increment(self.keys.movement_counter(), &range, 1).await?))
    }

    async fn increment(&self, counter: Key, range: &TagRange, step: u64) -> Result<u64, StoreError> {
        if let Some(dry_run) = &self.dry_run {
            return dry_run.reserve_numbers(step, self.store.random()?);
        }
        let response = self
            .store
            .client
            .update_item()
            .table_name(&self.store.table)
            .set_key(Some(counter.item()))
            // A new counter starts at zero. The second condition fails if the attribute is not a number.
            .condition_expression("attribute_not_exists(#last) OR #last >= :zero")
            .update_expression("ADD #last :step SET #width = :width, #type = :type")
            .expression_attribute_names("#last", LAST_NUMBER)
            .expression_attribute_names("#width", WIDTH)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":zero", AttributeValue::N("0".into()))
            .expression_attribute_values(":step", AttributeValue::N(step.to_string()))
            .expression_attribute_values(":width", AttributeValue::N(range.width().to_string()))
            .expression_attribute_values(":type", AttributeValue::S("counter".into()))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await?;
        let number = response.attributes.as_ref().and_then(|item| item.get(LAST_NUMBER)?.as_n().ok()?.parse().ok());
        number.ok_or_else(|| StoreError::broken("a counter without a number"))
    }

    /// The used ranges of asset tags, ordered by pattern, at most 10,000. Omits unreadable counters, and logs them.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the counters can't be read from the table.
    pub async fn number_ranges(&self) -> Result<Vec<NumberRange>, StoreError> {
        let mut pages = self.beginning(AttributeValue::S(COUNTERS.to_owned())).into_paginator().send();
        let mut ranges = Vec::new();
        while ranges.len() < MAX_RANGES
            && let Some(page) = pages.next().await
        {
            for item in page?.items.unwrap_or_default() {
                match number_range(&item) {
                    Some(range) => ranges.push(range),
                    // The same metric as for records.
                    None => {
                        tracing::error!(metric = UNREADABLE, kind = "counter", tenant_id = %self.id, "a counter of asset tags can't be read")
                    }
                }
            }
        }
        ranges.truncate(MAX_RANGES);
        Ok(ranges)
    }
}

fn number_range(item: &Item) -> Option<NumberRange> {
    let number = |name| item.get(name)?.as_n().ok()?.parse().ok();
    let pattern = Key::of(item)?.sort().strip_prefix(COUNTERS)?.to_owned();
    Some(NumberRange { pattern, last_number: number(LAST_NUMBER)?, width: number(WIDTH)? })
}
