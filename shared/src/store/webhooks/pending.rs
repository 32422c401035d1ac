//! The deliveries whose next attempt is to come, and the messages for it. While these are in the queue, nobody needs to look.

use super::deliveries::read;
use crate::domain::values::id::WebhookId;
use crate::domain::webhooks::{Delivery, DeliveryRequest, DeliveryStatus, Webhook};
use crate::store::table::error::StoreError;
use crate::store::table::read::MAX_BATCH_KEYS;
use crate::store::{Store, TenantStore};

impl Store {
    /// Of all tenants.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::pending_requests`].
    pub async fn pending_requests(&self) -> Result<Vec<DeliveryRequest>, StoreError> {
        let mut requests = Vec::new();
        for tenant in self.tenant_ids().await? {
            requests.extend(self.tenant(tenant).pending_requests().await?);
        }
        Ok(requests)
    }
}

impl TenantStore {
    /// One for each pending delivery, those of each webhook in the order of their events. Reads the webhooks, a half unit for each
    /// 8 KB of rows in the list index, and each record.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when a record
    /// can't be read.
    pub async fn pending_requests(&self) -> Result<Vec<DeliveryRequest>, StoreError> {
        let mut requests = Vec::new();
        for webhook in self.all::<Webhook>().await? {
            let pending = self.pending_deliveries(webhook.value.id).await?;
            requests.extend(pending.iter().filter_map(|delivery| delivery.pending_request(self.id())));
        }
        Ok(requests)
    }

    /// With some that are not pending any more: the index may lag behind the table.
    async fn pending_deliveries(&self, webhook: WebhookId) -> Result<Vec<Delivery>, StoreError> {
        let rows = self.every(self.deliveries_by_status(webhook, DeliveryStatus::Pending)).await?;
        let mut deliveries = Vec::with_capacity(rows.len());
        for rows in rows.chunks(MAX_BATCH_KEYS) {
            for item in self.indexed(webhook, rows).await? {
                deliveries.push(read(item)?);
            }
        }
        Ok(deliveries)
    }
}
