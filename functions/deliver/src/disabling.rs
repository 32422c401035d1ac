//! Disables webhooks.

use super::{Deliver, Failure};
use shared::domain::record::Stored;
use shared::domain::webhooks::{DisabledReason, Webhook};
use shared::store::{TenantStore, WriteError};

/// Attempts to disable a webhook while others change it.
const MAX_ROUNDS: u32 = 5;

impl Deliver {
    /// Disables a webhook, unless it has been disabled, deleted or given another address since it was read.
    pub(crate) async fn disable(
        &self,
        store: &TenantStore,
        webhook: &Stored<Webhook>,
        reason: DisabledReason,
    ) -> Result<(), Failure> {
        let (webhook_id, tenant_id) = (webhook.value.id, store.id());
        let mut present = webhook.clone();
        for _ in 0..MAX_ROUNDS {
            match store.disable_webhook(&present, reason).await {
                Ok(()) => {
                    tracing::info!(%tenant_id, %webhook_id, %reason, "a webhook is disabled");
                    return Ok(());
                }
                Err(WriteError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
            let Some(read) = store.get::<Webhook>(webhook_id).await? else { return Ok(()) };
            if !read.value.is_active || read.value.active_since != webhook.value.active_since {
                return Ok(());
            }
            present = read;
        }
        Err(WriteError::Stale.into())
    }
}
