//! A tenant's webhooks.

use crate::domain::record::{Stored, Unique};
use crate::domain::webhooks::{MAX_WEBHOOKS, Webhook};
use crate::store::TenantStore;
use crate::store::lists::page::{Page, PageRequest};
use crate::store::table::error::StoreError;

impl TenantStore {
    /// Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn free_webhook_slots(&self) -> Result<Vec<u8>, StoreError> {
        let slots: Vec<Unique> = (0..MAX_WEBHOOKS).map(Webhook::unique_slot).collect();
        let owners = self.owners::<Webhook>(&slots).await?;
        Ok((0..MAX_WEBHOOKS)
            .zip(&slots)
            .filter(|(_, unique)| !owners.contains_key(&unique.value))
            .map(|(slot, _)| slot)
            .collect())
    }

    /// Newest first.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn list_webhooks(&self, request: PageRequest) -> Result<Page<Stored<Webhook>>, StoreError> {
        self.list_all(request, |_: &Webhook| true).await
    }
}
