//! One delivery: read, decide, send, record.

use super::{Deliver, Failure, Outcome, SignedDelivery};
use chrono::TimeDelta;
use futures_util::future::{join, try_join, try_join_all};
use shared::domain::values::id::Id;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    Attempt, Decision, Delivery, DeliveryRequest, DeliveryStatus, HealthChange, Race, Retries, TEST_EVENT, Webhook,
    WebhookSecret, after_race, decide, delivery_body, test_event,
};
use shared::event_view::{EventView, FeedEntry, feed_entries};

use shared::log::error_chain;
use shared::store::{DeliveryInputs, RecordNames, TenantStore, WriteError};

/// Attempts to write the record of a delivery while others write it.
const MAX_ROUNDS: u32 = 5;
/// After this time, a consistent read that does not find an event means that there is none: the table was restored to a time
/// before it.
const MAX_TIME_TO_APPEAR: TimeDelta = TimeDelta::minutes(1);

impl Deliver {
    /// Delivers an event once, or waits until that is due.
    pub(crate) async fn deliver(&self, request: &DeliveryRequest) -> Result<Outcome, Failure> {
        let store = self.store.tenant(request.tenant_id);
        for _ in 0..MAX_ROUNDS {
            let inputs = store.delivery_inputs(request.webhook_id, request.event_id).await?;
            let webhook = inputs.webhook.as_ref().map(|stored| &stored.value);
            let now = self.store.now();
            match decide(request, inputs.record.as_ref(), webhook, now) {
                Decision::Drop => return Ok(Outcome::Done),
                Decision::Wait(left) => return Ok(Outcome::Later(left)),
                Decision::GiveUp => match give_up(&store, request, &inputs, now).await {
                    Err(WriteError::Stale) => {}
                    written => return written.map(|()| Outcome::Done).map_err(Into::into),
                },
                Decision::Attempt => return self.attempt(&store, request, &inputs).await,
            }
        }
        Err(WriteError::Stale.into())
    }

    async fn attempt(&self, store: &TenantStore, request: &DeliveryRequest, inputs: &DeliveryInputs) -> Result<Outcome, Failure> {
        let Some(webhook) = &inputs.webhook else { return Ok(Outcome::Done) };
        let (entry, secrets) =
            try_join(self.entry(store, request, &webhook.value, inputs), self.secrets_of(store, &webhook.value)).await?;
        let Some(entry) = entry else { return Ok(Outcome::Done) };
        let EventView { at: time_of_event, event_type, .. } = entry.event();
        let body = delivery_body(event_type, *time_of_event, &entry)?;
        let at = self.store.now();
        let delivery = signed(&webhook.value, request, at, &secrets, body);
        let attempt = self.transport.send(delivery, at).await;
        log(request, &attempt);
        let change = match request.test {
            Some(_) => HealthChange::None,
            None => webhook.value.health_after(&attempt, inputs.failing_since),
        };
        // Before the attempt is recorded: once it is, nobody would do it any more.
        match (change, inputs.failing_since) {
            (HealthChange::Disable(reason), _) => self.disable(store, webhook, reason).await?,
            (HealthChange::End, Some(since)) => store.end_failing(request.webhook_id, since).await?,
            _ => {}
        }
        let recorded = self.record(store, request, event_type, inputs.record.clone(), attempt);
        match change {
            HealthChange::Begin(since) => join(recorded, begin_failing(store, request, inputs, since)).await.0,
            _ => recorded.await,
        }
    }

    /// The entry as the feed has it; `None` if there is no such event.
    async fn entry(
        &self,
        store: &TenantStore,
        request: &DeliveryRequest,
        webhook: &Webhook,
        inputs: &DeliveryInputs,
    ) -> Result<Option<FeedEntry>, Failure> {
        if let Some(test) = &request.test {
            let names = RecordNames { name: Some(webhook.url.as_str().to_owned()), tag: None };
            return Ok(Some(FeedEntry::new(EventView::new(test_event(request, test), String::new()), names)));
        }
        let Some(event) = inputs.event.clone() else {
            // It was committed before its message was sent. Should it not be visible yet, the message comes back.
            if self.store.now().since(request.event_id.timestamp()) < MAX_TIME_TO_APPEAR {
                return Err("there is no such event yet".into());
            }
            let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
            tracing::warn!(%tenant_id, %webhook_id, %event_id, "an event is not delivered, since the table does not have it");
            return Ok(None);
        };
        // Another version of the service may be able to read it.
        feed_entries(store, vec![event]).await?.pop().map(Some).ok_or_else(|| "the event can't be read".into())
    }

    async fn secrets_of(&self, store: &TenantStore, webhook: &Webhook) -> Result<Vec<WebhookSecret>, Failure> {
        let secrets = webhook.secrets(self.store.now());
        Ok(try_join_all(secrets.map(|secret| self.secrets.decrypt(store.id(), secret))).await?)
    }

    /// Records an attempt. `previous` is the record as it was read before it.
    async fn record(
        &self,
        store: &TenantStore,
        request: &DeliveryRequest,
        event_type: &str,
        mut previous: Option<Delivery>,
        attempt: Attempt,
    ) -> Result<Outcome, Failure> {
        for _ in 0..MAX_ROUNDS {
            // Without random bytes there is no jitter.
            let random = u16::from_le_bytes(self.store.random().unwrap_or_default());
            let retries = Retries { delays: &self.retry_delays, random };
            let next = Delivery::after_attempt(previous.as_ref(), request, event_type, attempt.clone(), &retries);
            match store.write_delivery(previous.as_ref(), &next).await {
                Ok(()) => return Ok(self.outcome(request, Some(&next))),
                Err(WriteError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
            let present = store.delivery(request.webhook_id, request.event_id).await?;
            match after_race(request, &attempt, present.as_ref()) {
                Race::Open => previous = present,
                Race::Recorded | Race::Settled => return Ok(self.outcome(request, present.as_ref())),
            }
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

/// Signed by each of the secrets.
fn signed<'a>(
    webhook: &'a Webhook,
    request: &DeliveryRequest,
    at: Timestamp,
    secrets: &[WebhookSecret],
    body: String,
) -> SignedDelivery<'a> {
    let (id, seconds) = (request.event_id.to_string(), at.millis().div_euclid(1000));
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(&id, seconds, &body)).collect();
    SignedDelivery { url: &webhook.url, id, seconds, signatures: signatures.join(" "), body }
}

/// The webhook is not active.
async fn give_up(
    store: &TenantStore,
    request: &DeliveryRequest,
    inputs: &DeliveryInputs,
    now: Timestamp,
) -> Result<(), WriteError> {
    let of_record = || inputs.record.as_ref().map(|record| record.event_type.clone());
    let of_event = || Some(EventView::read(inputs.event.clone()?)?.event_type);
    let of_test = || request.test.as_ref().map(|_| TEST_EVENT.to_owned());
    // Without any of them there is no such event.
    let Some(event_type) = of_record().or_else(of_event).or_else(of_test) else { return Ok(()) };
    let given_up = Delivery::given_up(inputs.record.as_ref(), request, &event_type, now);
    store.write_delivery(inputs.record.as_ref(), &given_up).await
}

/// Records the beginning of the failures. If that is not possible, the next failure does it.
async fn begin_failing(store: &TenantStore, request: &DeliveryRequest, inputs: &DeliveryInputs, since: Timestamp) {
    let webhook_id = request.webhook_id;
    if let Err(error) = store.begin_failing(webhook_id, inputs.failing_since, since).await {
        tracing::warn!(%webhook_id, cause = error_chain(&error), "it can't be recorded that a webhook fails");
    }
}

fn log(request: &DeliveryRequest, attempt: &Attempt) {
    let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
    let (status, error, duration_ms) = (attempt.status, attempt.error.map(|error| error.as_str()), attempt.duration_ms);
    tracing::info!(%tenant_id, %webhook_id, %event_id, status, error, duration_ms, "an attempt to deliver an event");
}
