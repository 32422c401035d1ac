//! The deliveries whose next attempt is to come, and the messages for it. While these are in the queue, nobody needs to look.

use super::deliveries::read;
use crate::domain::values::id::{EventId, WebhookId};
use crate::domain::webhooks::{DeliveryRequest, DeliveryStatus, Webhook};
use crate::store::keys::{Key, delivered_event};
use crate::store::table::error::StoreError;
use crate::store::table::read::MAX_BATCH_KEYS;
use crate::store::{Store, TenantStore};

/// The pending deliveries of a tenant.
#[derive(Debug, Default)]
pub struct PendingDeliveries {
    /// One for each, those of each webhook in the order of their events.
    pub requests: Vec<DeliveryRequest>,
    /// Those whose record can't be read. They must not hold up the others.
    pub unreadable: Vec<(WebhookId, EventId)>,
}

impl Store {
    /// Of all tenants, without those that can't be read.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::pending_deliveries`].
    pub async fn pending_requests(&self) -> Result<Vec<DeliveryRequest>, StoreError> {
        let mut requests = Vec::new();
        for tenant in self.tenant_ids().await? {
            requests.extend(self.tenant(tenant).pending_deliveries().await?.requests);
        }
        Ok(requests)
    }
}

impl TenantStore {
    /// Reads the webhooks, a half unit for each 8 KB of rows in the list index, and each record.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn pending_deliveries(&self) -> Result<PendingDeliveries, StoreError> {
        let mut pending = PendingDeliveries::default();
        for webhook in self.all::<Webhook>().await? {
            self.add_pending(webhook.value.id, &mut pending).await?;
        }
        Ok(pending)
    }

    /// The index may lag behind the table, so some are not pending any more.
    async fn add_pending(&self, webhook: WebhookId, pending: &mut PendingDeliveries) -> Result<(), StoreError> {
        let rows = self.every(self.deliveries_by_status(webhook, DeliveryStatus::Pending)).await?;
        for rows in rows.chunks(MAX_BATCH_KEYS) {
            for item in self.indexed(webhook, rows).await? {
                let event = Key::of(&item).as_ref().and_then(delivered_event);
                match read(item) {
                    Ok(delivery) => pending.requests.extend(delivery.pending_request(self.id())),
                    Err(_) => pending.unreadable.extend(event.map(|event| (webhook, event))),
                }
            }
        }
        Ok(())
    }
}
