//! The end of an attempt: health of the webhook, record of the delivery.

use super::{Deliver, Failure, Outcome};
use futures_util::future::join;
use shared::domain::record::Stored;
use shared::domain::webhooks::{
    Attempted, Delivery, DeliveryRequest, DeliveryStatus, Health, Message, Race, Retries, Webhook, after_race,
};
use shared::log::error_chain;
use shared::queue::{NewMessage, SOON};
use shared::store::{TenantStore, WriteError};

/// Attempts to write the record of a delivery while others write it.
pub(crate) const MAX_ROUNDS: u32 = 5;

/// What was read before the attempt.
pub(crate) struct Before {
    pub(crate) webhook: Stored<Webhook>,
    pub(crate) health: Health,
    pub(crate) record: Option<Delivery>,
}

impl Deliver {
    /// Records an attempt. If that is not possible, another message does it, so that nothing is sent again.
    pub(crate) async fn settle(
        &self,
        store: &TenantStore,
        request: &DeliveryRequest,
        before: Before,
        attempted: Attempted,
    ) -> Result<Outcome, Failure> {
        let failure = match self.record(store, request, before, &attempted).await {
            Err(failure) if request.attempted.is_none() => failure,
            result => return result,
        };
        let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
        tracing::error!(%tenant_id, %webhook_id, %event_id, cause = error_chain(&*failure), "an attempt can't be recorded yet");
        let to_record = DeliveryRequest { attempted: Some(attempted), ..request.clone() };
        let to_record = NewMessage { message: Message::Delivery(to_record), delay: self.store.jittered(SOON) };
        self.queue.send_retry(vec![to_record]).await?;
        Ok(Outcome::Done)
    }

    async fn record(
        &self,
        store: &TenantStore,
        request: &DeliveryRequest,
        before: Before,
        attempted: &Attempted,
    ) -> Result<Outcome, Failure> {
        let Before { webhook, health, record } = before;
        let (next, disabled) = match request.test {
            Some(_) => (health, None),
            None => webhook.value.health_after(&attempted.attempt, &health),
        };
        let write_health = store.write_webhook_health(request.webhook_id, &health, &next, attempted.attempt.at);
        // Before the attempt is recorded: once it is, nobody would do it any more.
        if let Some(reason) = disabled {
            self.disable(store, &webhook, reason).await?;
        } else if health.failing_since.is_some() && next.failing_since.is_none() {
            write_health.await?;
            return self.write_record(store, request, record, attempted).await;
        }
        let (recorded, noted) = join(self.write_record(store, request, record, attempted), write_health).await;
        if let Err(error) = noted {
            // The next failure, or the next slow attempt, does it.
            tracing::warn!(webhook_id = %request.webhook_id, cause = error_chain(&error), "the health of a webhook can't be recorded");
        }
        recorded
    }

    /// `previous` is the record as it was read before the attempt.
    async fn write_record(
        &self,
        store: &TenantStore,
        request: &DeliveryRequest,
        mut previous: Option<Delivery>,
        Attempted { event_type, attempt }: &Attempted,
    ) -> Result<Outcome, Failure> {
        // An attempt that is only to be recorded may be older than the record.
        let mut is_raced = request.attempted.is_some();
        for _ in 0..MAX_ROUNDS {
            if is_raced && after_race(request, attempt, previous.as_ref()) != Race::Open {
                return Ok(self.outcome(request, previous.as_ref()));
            }
            // Without random bytes there is no jitter.
            let random = u16::from_le_bytes(self.store.random().unwrap_or_default());
            let retries = Retries { delays: &self.retry_delays, random };
            let next = Delivery::after_attempt(previous.as_ref(), request, event_type, attempt.clone(), &retries);
            match store.write_delivery(previous.as_ref(), &next).await {
                Ok(()) => return Ok(self.outcome(request, Some(&next))),
                Err(WriteError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
            previous = store.delivery(request.webhook_id, request.event_id).await?;
            is_raced = true;
        }
        Err(WriteError::Stale.into())
    }

    fn outcome(&self, request: &DeliveryRequest, record: Option<&Delivery>) -> Outcome {
        let is_pending =
            |record: &&Delivery| record.requested_at == request.requested_at && record.status == DeliveryStatus::Pending;
        let due = record.filter(is_pending).and_then(|record| record.next_attempt_at);
        due.map_or(Outcome::Done, |due| Outcome::Later(due.since(self.store.now())))
    }
}
