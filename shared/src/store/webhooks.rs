//! A tenant's webhooks.

use super::TenantStore;
use super::error::StoreError;
use super::filters::{Page, PageRequest};
use crate::domain::record::Stored;
use crate::domain::webhook::Webhook;

impl TenantStore {
    /// Returns a page of the tenant's webhooks, newest first.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn list_webhooks(&self, request: PageRequest) -> Result<Page<Stored<Webhook>>, StoreError> {
        self.list_all(request, |_: &Webhook| true).await
    }
}
