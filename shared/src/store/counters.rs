//! The counters of tags: one for each distinct rest of a tag (contract 5).

use super::TenantStore;
use super::error::StoreError;
use super::keys::{COUNTERS, Key, SK, TYPE};
use crate::domain::asset_tag::{TagPrefix, TagRange, TagTemplate};
use crate::domain::tenant::NumberRange;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

const LAST: &str = "last_number";
const WIDTH: &str = "width";

impl TenantStore {
    /// Takes the number of a range that is `step` further, which for the next one is 1. It is taken for good: if what it
    /// was for fails, there is a gap.
    ///
    /// # Errors
    ///
    /// The table does not answer.
    pub async fn next_number(&self, range: &TagRange, step: u64) -> Result<u64, StoreError> {
        self.count_up(self.keys.counter(&range.counter()), range, step).await
    }

    /// The number of the next movement, by the same rules.
    ///
    /// # Errors
    ///
    /// The table does not answer.
    pub async fn next_movement_number(&self, template: &TagTemplate) -> Result<String, StoreError> {
        let range = template.range(&TagPrefix::default(), None, self.store.now());
        Ok(range.tag(self.count_up(self.keys.movement_counter(), &range, 1).await?))
    }

    async fn count_up(&self, counter: Key, range: &TagRange, step: u64) -> Result<u64, StoreError> {
        let answer = self
            .store
            .client
            .update_item()
            .table_name(&self.store.table)
            .set_key(Some(counter.item()))
            // A counter that is not there begins at zero; one that is must be a counter.
            .condition_expression("attribute_not_exists(#last) OR #last >= :zero")
            .update_expression("ADD #last :step SET #width = :width, #type = :type")
            .expression_attribute_names("#last", LAST)
            .expression_attribute_names("#width", WIDTH)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":zero", AttributeValue::N("0".into()))
            .expression_attribute_values(":step", AttributeValue::N(step.to_string()))
            .expression_attribute_values(":width", AttributeValue::N(range.width().to_string()))
            .expression_attribute_values(":type", AttributeValue::S("counter".into()))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await?;
        let number = answer.attributes.as_ref().and_then(|item| item.get(LAST)?.as_n().ok()?.parse().ok());
        number.ok_or_else(|| StoreError::broken("a counter without number"))
    }

    /// Every range that has given a number, by its pattern.
    ///
    /// # Errors
    ///
    /// The table does not answer.
    pub async fn number_ranges(&self) -> Result<Vec<NumberRange>, StoreError> {
        let items = self.every(self.beginning(AttributeValue::S(COUNTERS.to_owned()))).await?;
        let range = |item: &super::keys::Item| {
            let number = |name| item.get(name)?.as_n().ok()?.parse().ok();
            let pattern = Key::of(item)?.sort().strip_prefix(COUNTERS)?.to_owned();
            Some(NumberRange { pattern, last_number: number(LAST)?, width: number(WIDTH)? })
        };
        items.iter().map(|item| range(item).ok_or_else(|| StoreError::broken(format!("a counter without {SK}")))).collect()
    }
}
