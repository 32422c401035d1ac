//! The counter of movement numbers, compared with the given ones.

use super::TenantCheck;
use super::derived::{DerivedItems, typed};
use crate::domain::assets::tag::{TagPrefix, TagRange, TagTemplate};
use crate::domain::processes::movement::NUMBER_TEMPLATE;
use crate::domain::record::Kind;
use crate::domain::values::id::Id;
use crate::store::keys::Item;
use crate::store::table::counters::{LAST_NUMBER, WIDTH};
use crate::store::table::error::StoreError;
use aws_sdk_dynamodb::types::AttributeValue;

impl TenantCheck<'_> {
    pub(super) async fn check_movement_counter(&mut self) -> Result<(), StoreError> {
        let template: TagTemplate = NUMBER_TEMPLATE.parse().map_err(StoreError::broken)?;
        let range: TagRange = template.range(&TagPrefix::default(), None, self.began);
        let numbers = self.of_kind(Kind::Movement).filter_map(|(_, facts)| range.number(&facts.unique.first()?.value));
        let Some(highest) = numbers.max() else { return Ok(()) };
        let key = self.store.keys.movement_counter();
        let present = self.item(&key).await?;
        let number = |item: &Item| item.get(LAST_NUMBER)?.as_n().ok()?.parse::<u64>().ok();
        if present.as_ref().and_then(number).is_some_and(|last| last >= highest) {
            return Ok(());
        }
        let mut item = typed(&key, "counter");
        item.insert(LAST_NUMBER.to_owned(), AttributeValue::N(highest.to_string()));
        if present.is_none() {
            item.insert(WIDTH.to_owned(), AttributeValue::N(range.width().to_string()));
        }
        let expected = DerivedItems::from([(key.sort().to_owned(), ((Kind::Tenant, self.store.id().uuid()), item))]);
        self.compare_items("counter", key.sort(), expected, |_, _, _| true).await
    }
}
