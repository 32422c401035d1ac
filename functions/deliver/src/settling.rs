//! The end of an attempt: records the delivery and the webhook's health, and disables the webhook if necessary.

use super::{Deliver, Failure};
use futures_util::future::join;
use shared::domain::record::Stored;
use shared::domain::webhooks::{
    Attempted, Delivery, DeliveryRequest, DisabledReason, Health, Message, RETRY_DELAYS, Race, Retries, Webhook, after_race,
};
use shared::log::error_chain;
use shared::queue::{NewMessage, QueueError, SOON};
use shared::store::{WriteError, Writer};

/// Maximum number of attempts to write a record that others change concurrently. After that, the write fails.
const MAX_ROUNDS: u32 = 5;

/// Records as read before the attempt.
pub(crate) struct Before {
    pub(crate) webhook: Stored<Webhook>,
    pub(crate) health: Health,
    pub(crate) record: Option<Delivery>,
}

impl Deliver {
    /// Records an attempt. If that fails, queues a message to record the attempt later, so that nothing is sent again.
    pub(crate) async fn settle(
        &self,
        store: &Writer,
        request: &DeliveryRequest,
        before: Before,
        attempted: Attempted,
    ) -> Result<(), Failure> {
        let failure = match Box::pin(self.record(store, request, before, &attempted)).await {
            Ok(sent) => return Ok(sent?),
            Err(failure) if request.attempted.is_some() => return Err(failure),
            Err(failure) => failure,
        };
        let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
        tracing::error!(%tenant_id, %webhook_id, %event_id, cause = error_chain(&*failure), "an attempt can't be recorded yet");
        let to_record = DeliveryRequest { attempted: Some(attempted), due: None, ..request.clone() };
        let to_record = NewMessage { message: Message::Delivery(to_record), delay: self.store.jittered(SOON) };
        Ok(self.queue.send_retry(vec![to_record]).await?)
    }

    /// Records an attempt. Returns whether the message for the next attempt was sent.
    async fn record(
        &self,
        store: &Writer,
        request: &DeliveryRequest,
        before: Before,
        attempted: &Attempted,
    ) -> Result<Result<(), QueueError>, Failure> {
        let Before { webhook, health, record } = before;
        let Attempted { attempt, .. } = attempted;
        // A later attempt may have succeeded since.
        let is_late = request.attempted.is_some()
            && record.as_ref().is_some_and(|current| after_race(request, attempt, current) != Race::Open);
        let (next, disabled) = if request.test.is_some() || is_late && !attempt.is_gone() {
            (health, None)
        } else {
            webhook.value.health_after(attempt, &health)
        };
        let write_health = store.write_webhook_health(request.webhook_id, &health, &next, attempt.at);
        // Done first: after the attempt is recorded, a redelivered message would no longer disable the webhook.
        if let Some(reason) = disabled {
            self.disable(store, &webhook, reason).await?;
        } else if health.failing_since.is_some() && next.failing_since.is_none() {
            write_health.await?;
            return self.write_record(store, request, record, attempted).await;
        }
        let (recorded, noted) = join(self.write_record(store, request, record, attempted), write_health).await;
        if let Err(error) = noted {
            // The next failed or slow attempt records the health.
            tracing::warn!(webhook_id = %request.webhook_id, cause = error_chain(&error), "the health of a webhook can't be recorded");
        }
        recorded
    }

    /// Writes the record of a delivery. `previous` is the record before the attempt. The message for the next attempt is sent
    /// before the record expects it: a record without a message would wait forever, but a message without a record is dropped.
    async fn write_record(
        &self,
        store: &Writer,
        request: &DeliveryRequest,
        mut previous: Option<Delivery>,
        Attempted { event_type, attempt }: &Attempted,
    ) -> Result<Result<(), QueueError>, Failure> {
        // Without random bytes, there is no jitter.
        let random = u16::from_le_bytes(self.store.random().unwrap_or_default());
        let retries = Retries { delays: &RETRY_DELAYS, random };
        // If the message only records an attempt, the attempt can be older than the record.
        let mut is_raced = request.attempted.is_some();
        for _ in 0..MAX_ROUNDS {
            if let Some(current) = previous.as_ref().filter(|_| is_raced) {
                match after_race(request, attempt, current) {
                    Race::Open => {}
                    Race::Recorded if current.tries < request.number => return Ok(self.send_next(request, current).await),
                    Race::Recorded | Race::Settled => return Ok(Ok(())),
                }
            }
            let mut next = Delivery::after_attempt(previous.as_ref(), request, event_type, attempt.clone(), &retries);
            let sent = self.send_next(request, &next).await;
            if sent.is_err() {
                // The current message is redelivered, in place of the unsent message for the next attempt.
                next.tries -= 1;
            }
            match store.write_delivery(previous.as_ref(), &next).await {
                Ok(()) => return Ok(sent),
                Err(WriteError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
            previous = store.delivery(request.webhook_id, request.event_id).await?;
            is_raced = true;
        }
        Err(WriteError::Stale.into())
    }

    /// Sends the message for the next attempt, if there is one.
    async fn send_next(&self, request: &DeliveryRequest, record: &Delivery) -> Result<(), QueueError> {
        match record.pending_request(request.tenant_id) {
            Some(next) => self.send_again(next).await,
            None => Ok(()),
        }
    }

    /// Disables a webhook, unless it has been disabled or deleted, or got a different URL, since it was read.
    async fn disable(&self, store: &Writer, webhook: &Stored<Webhook>, reason: DisabledReason) -> Result<(), Failure> {
        let (webhook_id, tenant_id) = (webhook.value.id, store.id());
        let mut current = webhook.clone();
        for _ in 0..MAX_ROUNDS {
            match store.disable_webhook(&current, reason).await {
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
            current = read;
        }
        Err(WriteError::Stale.into())
    }
}
