//! The deliveries that wait for a sweep, and the way to them: tenants, their webhooks, the rows of each.

use crate::domain::record::Kind;
use crate::domain::values::id::{Id, TenantId, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::DueRow;
use crate::store::keys::{self, HISTORY, HS, Key, Keys, PK, SK, due_row, record_id};
use crate::store::table::error::StoreError;
use crate::store::{Store, TenantStore};
use aws_sdk_dynamodb::types::AttributeValue;

impl Store {
    /// At most `limit` tenants in the order of their keys, after this one. Reads a half unit for each 8 KB.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn tenants_after(&self, after: Option<TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        let first = after.map(|tenant| format!("{}~", keys::registry(tenant).sort()));
        let query = self.client.query().table_name(&self.table).limit(i32::try_from(limit).unwrap_or(i32::MAX));
        let query = query
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :first AND :last")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", keys::registry_partition())
            .expression_attribute_values(":first", first.map_or_else(keys::registry_prefix, AttributeValue::S))
            .expression_attribute_values(":last", keys::registry_end());
        let items = query.send().await?.items.unwrap_or_default();
        Ok(items.iter().filter_map(|item| keys::registered_tenant(&Key::of(item)?)).collect())
    }
}

impl TenantStore {
    /// Without those of the last second, which have no delivery that waits.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn webhook_ids(&self) -> Result<Vec<WebhookId>, StoreError> {
        let query = self.beginning(Keys::prefix(Kind::Webhook)).consistent_read(false).projection_expression("#pk, #sk");
        let items = self.every(query).await?;
        Ok(items.iter().filter_map(|item| record_id(Kind::Webhook, &Key::of(item)?).map(WebhookId::from_uuid)).collect())
    }

    /// At most `limit` deliveries that wait for a sweep, after this row and due before `until`, the first one first.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn due_deliveries(
        &self,
        webhook: WebhookId,
        after: Option<DueRow>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        let (first, last) = Keys::due_between(after, until);
        let query = self.store.client.query().table_name(&self.store.table).index_name(HISTORY);
        let query = query
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .key_condition_expression("#pk = :pk AND #hs BETWEEN :first AND :last")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#hs", HS)
            .expression_attribute_values(":pk", self.keys.webhook_partition(webhook))
            .expression_attribute_values(":first", first)
            .expression_attribute_values(":last", last);
        Ok(query.send().await?.items.unwrap_or_default().iter().filter_map(due_row).collect())
    }
}
