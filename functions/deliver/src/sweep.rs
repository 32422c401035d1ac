//! Sweeps: a schedule starts them, and they send messages for the deliveries that are due soon.

use super::{Deliver, Failure, Place};
use futures_util::stream::{self, StreamExt};
use shared::domain::values::id::{TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{DueDelivery, DueRow, Message, Sweep, WebhookSweep, is_taken, swept_until};
use shared::log::error_chain;
use shared::queue::{MAX_DELAY, NewMessage, QueueError};
use std::time::Duration;

/// The tenants of one message, and those whose webhooks are read at the same time.
const TENANTS: usize = 100;
const TENANTS_AT_ONCE: usize = 16;
/// The rows that a sweep of all tenants looks at, and sends: one batch of the queue. A webhook with more gets a message of its own,
/// so that no part takes long.
const ROWS_LOOKED_AT: usize = 100;
const ROWS_SENT: usize = 10;
/// The rows of one message about a webhook.
const ROWS: usize = 1000;

impl Deliver {
    /// Sweeps some tenants, and sends a message for the rest. If this is interrupted before the end, the part is repeated. A
    /// tenant that can't be read is left to later sweeps, so that it keeps no other one waiting.
    pub(crate) async fn sweep(&self, sweep: &Sweep) -> Result<(), Failure> {
        let at = sweep.at.unwrap_or_else(|| self.store.now());
        let tenants = self.store.tenants_after(sweep.after, TENANTS).await?;
        let swept = stream::iter(tenants.iter().copied()).for_each_concurrent(TENANTS_AT_ONCE, |tenant_id| async move {
            if let Err(error) = self.sweep_tenant(tenant_id, at, sweep.overdue).await {
                tracing::error!(%tenant_id, cause = error_chain(&*error), "deliveries that are due can't be swept");
            }
        });
        swept.await;
        if tenants.len() == TENANTS {
            let rest = Sweep { at: Some(at), overdue: sweep.overdue, after: tenants.last().copied() };
            self.queue.send_retry(vec![Message::Sweep(rest).into()]).await?;
        }
        Ok(())
    }

    async fn sweep_tenant(&self, tenant_id: TenantId, at: Timestamp, overdue: bool) -> Result<(), Failure> {
        let store = self.store.tenant(tenant_id);
        for webhook_id in store.webhook_ids().await? {
            let rows = store.due_deliveries(webhook_id, None, swept_until(at), ROWS_LOOKED_AT).await?;
            let taken = taken(&rows, at, overdue);
            if rows.len() == ROWS_LOOKED_AT || taken.len() > ROWS_SENT {
                let all = WebhookSweep { tenant_id, webhook_id, at, overdue, after: None };
                self.queue.send_retry(vec![Message::SweepWebhook(all).into()]).await?;
            } else {
                self.send_due(tenant_id, webhook_id, taken).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn sweep_webhook(&self, sweep: &WebhookSweep) -> Result<(), Failure> {
        let WebhookSweep { tenant_id, webhook_id, at, overdue, after } = *sweep;
        let rows = self.store.tenant(tenant_id).due_deliveries(webhook_id, after, swept_until(at), ROWS).await?;
        self.send_due(tenant_id, webhook_id, taken(&rows, at, overdue)).await?;
        if rows.len() == ROWS {
            let rest = WebhookSweep { after: rows.last().copied(), ..sweep.clone() };
            self.queue.send_retry(vec![Message::SweepWebhook(rest).into()]).await?;
        }
        Ok(())
    }

    async fn send_due(&self, tenant_id: TenantId, webhook_id: WebhookId, rows: Vec<DueRow>) -> Result<(), QueueError> {
        if rows.is_empty() {
            return Ok(());
        }
        let now = self.store.now();
        let message = |DueRow { due, event_id }| NewMessage {
            message: Message::Due(DueDelivery { tenant_id, webhook_id, event_id }),
            delay: due.since(now).to_std().unwrap_or(Duration::ZERO).min(MAX_DELAY),
        };
        self.queue.send_retry(rows.into_iter().map(message).collect()).await
    }

    /// Makes the next attempt of a delivery that a sweep has found.
    pub(crate) async fn deliver_due(&self, place: Place<'_>, due: &DueDelivery) -> Result<(), Failure> {
        let record = self.store.tenant(due.tenant_id).delivery(due.webhook_id, due.event_id).await?;
        match record.and_then(|record| record.pending_request(due.tenant_id)) {
            Some(request) => self.deliver_or_wait(place, &request).await,
            None => Ok(()),
        }
    }
}

fn taken(rows: &[DueRow], at: Timestamp, overdue: bool) -> Vec<DueRow> {
    rows.iter().copied().filter(|row| is_taken(row.due, at, overdue)).collect()
}
