//! Erasing values from entries of histories. Nothing else ever changes an entry.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::canonical;
use crate::domain::people::replacement;
use crate::domain::values::id::UserId;
use crate::domain::values::json;
use crate::store::TenantStore;
use crate::store::keys::{COMMITMENTS, ENTRY, commitments_attribute};
use crate::store::table::backoff::{MAX_ROUNDS, pause};
use crate::store::table::error::{StoreError, unless_condition_failed};
use aws_sdk_dynamodb::types::AttributeValue;

impl TenantStore {
    /// Erases the values at these pointers, if the entry has them still. Returns whether it had any.
    pub(super) async fn erase_in_entry(
        &self,
        person: UserId,
        mut entry: HistoryEntry,
        pointers: &[String],
    ) -> Result<bool, StoreError> {
        for round in 0..MAX_ROUNDS {
            let mut next = entry.commitments.clone();
            let mut value = json::parse(&entry.text).map_err(StoreError::broken)?;
            let about = |pointer: &str| pointers.iter().any(|about| about == pointer).then(|| replacement(person, pointer));
            if next.erase(&mut value, about) == 0 {
                return Ok(false);
            }
            let text = canonical(&value).map_err(StoreError::broken)?;
            let attributes = [&entry.commitments, &next].map(commitments_attribute);
            let [Some(present), Some(next)] = attributes else { return Ok(false) };
            if self.is_dry_run() {
                return Ok(true);
            }
            let update = self.store.client.update_item().table_name(&self.store.table);
            let updated = update
                .set_key(Some(self.keys.event(entry.id).item()))
                .update_expression("SET #entry = :entry, #commitments = :next")
                .condition_expression("#commitments = :present")
                .expression_attribute_names("#entry", ENTRY)
                .expression_attribute_names("#commitments", COMMITMENTS)
                .expression_attribute_values(":entry", AttributeValue::S(text))
                .expression_attribute_values(":present", present)
                .expression_attribute_values(":next", next)
                .send()
                .await;
            if unless_condition_failed(updated)?.is_some() {
                return Ok(true);
            }
            // Two erasures of different people can meet at an entry.
            pause(&self.store, round).await;
            let Some(again) = self.event_entry(entry.id).await? else { return Ok(false) };
            entry = again;
        }
        Err(StoreError::Unavailable("an entry changes too often".into()))
    }
}
