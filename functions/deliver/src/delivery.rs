//! One delivery: read, decide, send.

use super::settling::Before;
use super::webhooks::Age;
use super::{Deliver, Failure, SignedDelivery};
use chrono::TimeDelta;
use futures_util::future::{join_all, try_join, try_join_all, try_join4};
use shared::domain::history::chain::HistoryEntry;
use shared::domain::history::commitments::Commitments;
use shared::domain::values::id::{EventId, Id};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    Attempt, Attempted, Decision, Delivery, DeliveryRequest, EventRequest, TEST_EVENT, Webhook, WebhookSecret, decide,
    delivery_body, test_event,
};
use shared::event_view::{EventView, FeedEntry, feed_entries};
use shared::store::{RecordNames, StoreError, TenantStore, WriteError};
use tokio::sync::OnceCell;

/// After this time, a consistent read that does not find an event means that there is none: the table was restored to a time
/// before it.
const MAX_TIME_TO_APPEAR: TimeDelta = TimeDelta::minutes(1);

/// Where a delivery is attempted.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) batch: u64,
    /// Nothing that may take long is attempted in the queue of first attempts.
    pub(crate) is_retry: bool,
    pub(crate) age: Age,
}

/// The event of a message. It is read once, however many webhooks want it.
#[derive(Default)]
pub(crate) struct EventOfMessage {
    event: OnceCell<Option<HistoryEntry>>,
    entry: OnceCell<FeedEntry>,
}

impl EventOfMessage {
    async fn read(&self, store: &TenantStore, event: EventId) -> Result<Option<&HistoryEntry>, StoreError> {
        Ok(self.event.get_or_try_init(|| store.event_entry(event)).await?.as_ref())
    }

    /// As the feed has it.
    async fn entry(&self, store: &TenantStore, event: &HistoryEntry) -> Result<&FeedEntry, Failure> {
        let read = async || {
            let entry = feed_entries(store, vec![event.clone()]).await?.pop();
            // Another version of the service may be able to read it.
            Ok(entry.ok_or("the event can't be read")?)
        };
        self.entry.get_or_try_init(read).await
    }
}

impl Deliver {
    /// Makes the first attempts to deliver a new event, at the same time.
    ///
    /// # Errors
    ///
    /// Returns one of the failures. The message comes back then, and drops what is recorded.
    pub(crate) async fn deliver_event(&self, place: Place, request: &EventRequest) -> Result<(), Failure> {
        let (place, event) = (Place { age: Age::After(request.event_id), ..place }, EventOfMessage::default());
        let attempts = request.deliveries().map(async |delivery| self.deliver(place, &event, &delivery).await);
        join_all(attempts).await.into_iter().collect()
    }

    /// Attempts a delivery once, or lets it wait until that is due.
    pub(crate) async fn deliver(&self, place: Place, event: &EventOfMessage, request: &DeliveryRequest) -> Result<(), Failure> {
        let (store, now) = (self.store.tenant(request.tenant_id), self.store.now());
        let DeliveryRequest { webhook_id, event_id, .. } = *request;
        let is_of_history = request.test.is_none() && request.attempted.is_none();
        let read = try_join4(
            self.webhooks.get(&store, webhook_id, place.age, (place.batch, now)),
            store.delivery(webhook_id, event_id),
            self.webhooks.health(&store, webhook_id, place.batch),
            async { if is_of_history { event.read(&store, event_id).await } else { Ok(None) } },
        );
        let (webhook, record, health, found) = read.await?;
        let Some(webhook) = webhook else { return Ok(()) };
        let is_apart = webhook.value.is_apart(&health, now);
        let before = Before { webhook, health, record };
        if let Some(attempted) = &request.attempted {
            return self.settle(&store, request, before, attempted.clone()).await;
        }
        match decide(request, before.record.as_ref(), &before.webhook.value, now) {
            Decision::Drop => Ok(()),
            Decision::Wait(due) => Ok(self.send_again(DeliveryRequest { due: Some(due), ..request.clone() }).await?),
            Decision::GiveUp => give_up(&store, request, before.record.as_ref(), found, now).await,
            Decision::Attempt if is_apart && !place.is_retry => Ok(self.send_again(request.clone()).await?),
            Decision::Attempt if !claimed(&store, request, before.record.as_ref(), now).await? => Ok(()),
            Decision::Attempt => self.attempt(&store, request, before, event, found).await,
        }
    }

    async fn attempt(
        &self,
        store: &TenantStore,
        request: &DeliveryRequest,
        before: Before,
        event: &EventOfMessage,
        found: Option<&HistoryEntry>,
    ) -> Result<(), Failure> {
        let webhook = &before.webhook.value;
        let of_test = request.test.as_ref().map(|test| {
            let names = RecordNames { name: Some(webhook.url.as_str().to_owned()), tag: None };
            FeedEntry::new(EventView::new(test_event(request, test), String::new(), Commitments::default()), names)
        });
        let entry = async {
            match (&of_test, found) {
                (Some(test), _) => Ok(Some(test)),
                (None, Some(found)) => event.entry(store, found).await.map(Some),
                (None, None) => self.missing(request).map(|()| None),
            }
        };
        let (entry, secrets) = try_join(entry, self.secrets_of(store, webhook)).await?;
        let Some(entry) = entry else { return Ok(()) };
        let EventView { at: time_of_event, event_type, .. } = entry.event();
        let body = delivery_body(event_type, *time_of_event, entry)?;
        let at = self.store.now();
        let attempt = self.transport.send(signed(webhook, request, at, &secrets, body), at).await;
        log(request, &attempt);
        self.settle(store, request, before, Attempted { event_type: event_type.clone(), attempt }).await
    }

    /// There is no such event. It was committed before its message was sent. Should it not be visible yet, the message comes back.
    fn missing(&self, request: &DeliveryRequest) -> Result<(), Failure> {
        let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
        if self.store.now().since(event_id.timestamp()) < MAX_TIME_TO_APPEAR {
            return Err("there is no such event yet".into());
        }
        tracing::warn!(%tenant_id, %webhook_id, %event_id, "an event is not delivered, since the table does not have it");
        Ok(())
    }

    async fn secrets_of(&self, store: &TenantStore, webhook: &Webhook) -> Result<Vec<WebhookSecret>, Failure> {
        let secrets = webhook.secrets(self.store.now());
        Ok(try_join_all(secrets.map(|secret| self.secrets.decrypt(store.id(), secret))).await?)
    }
}

/// Whether this message makes the attempt, and no double of it.
async fn claimed(
    store: &TenantStore,
    request: &DeliveryRequest,
    record: Option<&Delivery>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    match record.filter(|record| record.requested_at == request.requested_at && record.waits_in_parts()) {
        Some(record) => store.claim_attempt(record, now).await,
        None => Ok(true),
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
    event: Option<&HistoryEntry>,
    now: Timestamp,
) -> Result<(), Failure> {
    let of_record = record.map(|record| record.event_type.clone());
    let of_event = || Some(EventView::read(event?.clone())?.event_type);
    let of_test = || request.test.as_ref().map(|_| TEST_EVENT.to_owned());
    // Without any of them there is no such event.
    let Some(event_type) = of_record.or_else(of_event).or_else(of_test) else { return Ok(()) };
    match store.write_delivery(record, &Delivery::given_up(record, request, &event_type, now)).await {
        // Another message has just settled it.
        Ok(()) | Err(WriteError::Stale) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn log(request: &DeliveryRequest, attempt: &Attempt) {
    let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
    let (status, error, duration_ms) = (attempt.status, attempt.error.map(|error| error.as_str()), attempt.duration_ms);
    tracing::info!(%tenant_id, %webhook_id, %event_id, status, error, duration_ms, "an attempt to deliver an event");
}
