//! One delivery: read, decide, send.

use super::settling::{Before, MAX_ROUNDS};
use super::shared_reads::SharedReads;
use super::webhooks::Age;
use super::{Deliver, Failure, Outcome, SignedDelivery};
use chrono::TimeDelta;
use futures_util::future::{try_join, try_join_all, try_join4};
use shared::domain::history::chain::HistoryEntry;
use shared::domain::history::commitments::Commitments;
use shared::domain::values::id::Id;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    Attempt, Attempted, Decision, Delivery, DeliveryRequest, Health, TEST_EVENT, Webhook, WebhookSecret, decide, delivery_body,
    test_event,
};
use shared::event_view::{EventView, FeedEntry};
use shared::store::{RecordNames, TenantStore, WriteError};
use std::sync::Arc;

/// After this time, a consistent read that does not find an event means that there is none: the table was restored to a time
/// before it.
const MAX_TIME_TO_APPEAR: TimeDelta = TimeDelta::minutes(1);

/// Where a delivery is attempted.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) reads: &'a SharedReads,
    /// Nothing that may take long is attempted in the queue of first attempts.
    pub(crate) is_retry: bool,
    pub(crate) age: Age,
}

impl Deliver {
    /// Delivers an event once, or waits until that is due. If an attempt was made, no failure is returned unless the queue of
    /// retries takes no message either.
    pub(crate) async fn deliver(&self, place: Place<'_>, request: &DeliveryRequest) -> Result<Outcome, Failure> {
        let store = self.store.tenant(request.tenant_id);
        for _ in 0..MAX_ROUNDS {
            let now = self.store.now();
            let DeliveryRequest { webhook_id, event_id, .. } = *request;
            let event = async {
                let is_needed = request.test.is_none() && request.attempted.is_none();
                if is_needed { place.reads.event(&store, event_id).await } else { Ok(None) }
            };
            let read = try_join4(
                self.webhooks.get(&store, webhook_id, place.age, (place.reads.batch, now)),
                store.delivery(webhook_id, event_id),
                place.reads.health(&store, webhook_id),
                event,
            );
            let (webhook, record, health, event): (_, _, Health, _) = read.await?;
            let Some(webhook) = webhook else { return Ok(Outcome::Done) };
            let is_apart = webhook.value.is_apart(&health, now);
            let before = Before { webhook, health, record };
            if let Some(attempted) = &request.attempted {
                return self.settle(&store, request, before, attempted.clone()).await;
            }
            match decide(request, before.record.as_ref(), Some(&before.webhook.value), now) {
                Decision::Drop => return Ok(Outcome::Done),
                Decision::Wait(left) => return Ok(Outcome::Later(left)),
                Decision::GiveUp => match give_up(&store, request, before.record.as_ref(), event, now).await {
                    Err(WriteError::Stale) => {}
                    written => return written.map(|()| Outcome::Done).map_err(Into::into),
                },
                Decision::Attempt if is_apart && !place.is_retry => return Ok(Outcome::Later(TimeDelta::zero())),
                Decision::Attempt => return self.attempt(place, &store, request, before, event).await,
            }
        }
        Err(WriteError::Stale.into())
    }

    async fn attempt(
        &self,
        place: Place<'_>,
        store: &TenantStore,
        request: &DeliveryRequest,
        before: Before,
        event: Option<HistoryEntry>,
    ) -> Result<Outcome, Failure> {
        let webhook = &before.webhook.value;
        let entry = self.entry(place, store, request, webhook, event);
        let (entry, secrets) = try_join(entry, self.secrets_of(store, webhook)).await?;
        let Some(entry) = entry else { return Ok(Outcome::Done) };
        let EventView { at: time_of_event, event_type, .. } = entry.event();
        let body = delivery_body(event_type, *time_of_event, &*entry)?;
        let at = self.store.now();
        let delivery = signed(webhook, request, at, &secrets, body);
        let attempt = self.transport.send(delivery, at).await;
        log(request, &attempt);
        self.settle(store, request, before, Attempted { event_type: event_type.clone(), attempt }).await
    }

    /// The entry as the feed has it; `None` if there is no such event.
    async fn entry(
        &self,
        place: Place<'_>,
        store: &TenantStore,
        request: &DeliveryRequest,
        webhook: &Webhook,
        event: Option<HistoryEntry>,
    ) -> Result<Option<Arc<FeedEntry>>, Failure> {
        if let Some(test) = &request.test {
            let names = RecordNames { name: Some(webhook.url.as_str().to_owned()), tag: None };
            return Ok(Some(Arc::new(FeedEntry::new(
                EventView::new(test_event(request, test), String::new(), Commitments::default()),
                names,
            ))));
        }
        let Some(event) = event else {
            // It was committed before its message was sent. Should it not be visible yet, the message comes back.
            if self.store.now().since(request.event_id.timestamp()) < MAX_TIME_TO_APPEAR {
                return Err("there is no such event yet".into());
            }
            let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
            tracing::warn!(%tenant_id, %webhook_id, %event_id, "an event is not delivered, since the table does not have it");
            return Ok(None);
        };
        place.reads.entry(store, event).await.map(Some)
    }

    async fn secrets_of(&self, store: &TenantStore, webhook: &Webhook) -> Result<Vec<WebhookSecret>, Failure> {
        let secrets = webhook.secrets(self.store.now());
        Ok(try_join_all(secrets.map(|secret| self.secrets.decrypt(store.id(), secret))).await?)
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
    record: Option<&Delivery>,
    event: Option<HistoryEntry>,
    now: Timestamp,
) -> Result<(), WriteError> {
    let of_record = record.map(|record| record.event_type.clone());
    let of_event = || Some(EventView::read(event?)?.event_type);
    let of_test = || request.test.as_ref().map(|_| TEST_EVENT.to_owned());
    // Without any of them there is no such event.
    let Some(event_type) = of_record.or_else(of_event).or_else(of_test) else { return Ok(()) };
    store.write_delivery(record, &Delivery::given_up(record, request, &event_type, now)).await
}

fn log(request: &DeliveryRequest, attempt: &Attempt) {
    let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
    let (status, error, duration_ms) = (attempt.status, attempt.error.map(|error| error.as_str()), attempt.duration_ms);
    tracing::info!(%tenant_id, %webhook_id, %event_id, status, error, duration_ms, "an attempt to deliver an event");
}
