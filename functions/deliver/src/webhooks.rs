//! The webhooks of tenants, kept for a second, and their health, kept for a batch.

use chrono::TimeDelta;
use shared::domain::record::Stored;
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Health, Webhook};
use shared::store::{StoreError, TenantStore};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

const MAX_AGE: TimeDelta = TimeDelta::seconds(1);
/// The most that the clock of the function that made an event may be ahead.
const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::milliseconds(100);
const MAX_TENANTS: usize = 1000;

type Webhooks = HashMap<WebhookId, Stored<Webhook>>;

/// Every message needs a webhook. One query reads all those of a tenant, for as many units as two or three of them.
#[derive(Default)]
pub(crate) struct RecentWebhooks {
    webhooks: Mutex<HashMap<TenantId, CachedWebhooks>>,
    health: Mutex<HealthOfBatch>,
}

#[derive(Default)]
struct HealthOfBatch {
    batch: u64,
    health: HashMap<(TenantId, WebhookId), Arc<OnceCell<Health>>>,
}

struct CachedWebhooks {
    batch: u64,
    at: Timestamp,
    webhooks: Arc<OnceCell<Webhooks>>,
}

/// How old a webhook may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// Read after this event, so that each change of the webhook before it counts, and at most a second ago.
    After(EventId),
    /// Read for this batch or a later one, as for what was asked for, and for repeated attempts.
    Current,
}

impl RecentWebhooks {
    /// `None` if it is deleted.
    pub(crate) async fn get(
        &self,
        store: &TenantStore,
        webhook: WebhookId,
        age: Age,
        (batch, now): (u64, Timestamp),
    ) -> Result<Option<Stored<Webhook>>, StoreError> {
        let cell = self.cell(store.id(), age, batch, now);
        let read = async || {
            let webhooks = store.all::<Webhook>().await?;
            Ok::<_, StoreError>(webhooks.into_iter().map(|webhook| (webhook.value.id, webhook)).collect())
        };
        match cell.get_or_try_init(read).await?.get(&webhook) {
            Some(found) if found.value.is_active || age == Age::Current => Ok(Some(found.clone())),
            // Deleted, newer, one that can't be read, which is an error, or one that may just have been activated: its first events
            // must not be given up.
            _ => store.get(webhook).await,
        }
    }

    /// The messages of a batch are often for the same webhooks.
    pub(crate) async fn health(&self, store: &TenantStore, webhook: WebhookId, batch: u64) -> Result<Health, StoreError> {
        let cell = {
            let mut kept = self.health.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.batch != batch {
                *kept = HealthOfBatch { batch, ..HealthOfBatch::default() };
            }
            Arc::clone(kept.health.entry((store.id(), webhook)).or_default())
        };
        cell.get_or_try_init(|| store.webhook_health(webhook)).await.copied()
    }

    fn cell(&self, tenant: TenantId, age: Age, batch: u64, now: Timestamp) -> Arc<OnceCell<Webhooks>> {
        let mut kept = self.webhooks.lock().unwrap_or_else(PoisonError::into_inner);
        let is_after = |kept: &CachedWebhooks, event: EventId| {
            let is_young = (TimeDelta::zero()..MAX_AGE).contains(&now.since(kept.at));
            is_young && kept.at > event.timestamp().plus(MAX_CLOCK_DIFFERENCE)
        };
        // Each message of a batch was received before the batch's first read.
        let is_usable = |kept: &&CachedWebhooks| kept.batch >= batch || matches!(age, Age::After(event) if is_after(kept, event));
        if let Some(found) = kept.get(&tenant).filter(is_usable) {
            return Arc::clone(&found.webhooks);
        }
        if kept.len() >= MAX_TENANTS {
            kept.clear();
        }
        let webhooks = Arc::<OnceCell<Webhooks>>::default();
        kept.insert(tenant, CachedWebhooks { batch, at: now, webhooks: Arc::clone(&webhooks) });
        webhooks
    }
}
