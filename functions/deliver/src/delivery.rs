//! A single delivery: reads its records, decides whether to send, signs and sends. Caches decrypted secrets, each tenant's
//! webhooks for a second, and the health of webhooks for a batch.

use super::settling::Before;
use super::{Deliver, Failure, SignedDelivery};
use chrono::TimeDelta;
use futures_util::future::{join_all, try_join, try_join_all, try_join4};
use shared::domain::history::chain::HistoryEntry;
use shared::domain::history::event::Commitments;
use shared::domain::record::Stored;
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    Attempt, Attempted, Decision, Delivery, DeliveryRequest, EncryptedSecret, EventRequest, Health, TEST_EVENT, Webhook,
    WebhookSecret, decide, delivery_body, test_event,
};
use shared::event_view::{EventView, FeedEntry, feed_entries};
use shared::key_encryption::{KeyEncryption, KeyEncryptionError, Purpose};
use shared::store::{RecordNames, StoreError, WriteError, Writer};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// If a consistent read doesn't find an event this long after its creation, the table was restored to an earlier time.
const MAX_TIME_TO_APPEAR: TimeDelta = TimeDelta::minutes(1);
/// Maximum age of a tenant's cached webhooks.
const MAX_AGE: TimeDelta = TimeDelta::seconds(1);
/// Maximum difference between this function's clock and the clock of the function that created an event.
const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::milliseconds(100);
const MAX_TENANTS: usize = 1000;
const MAX_SECRETS: usize = 1000;

/// The batch and the queue of a message.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) batch: u64,
    /// Whether the message is from the retry queue. The delivery queue is only for deliveries that are likely to be
    /// fast.
    pub(crate) is_retry: bool,
    pub(crate) age: Age,
}

/// The event of a message. Read once for all webhooks that want it.
#[derive(Default)]
pub(crate) struct EventOfMessage {
    event: OnceCell<Option<HistoryEntry>>,
    entry: OnceCell<FeedEntry>,
}

impl EventOfMessage {
    async fn read(&self, store: &Writer, event: EventId) -> Result<Option<&HistoryEntry>, StoreError> {
        Ok(self.event.get_or_try_init(|| store.event_entry(event)).await?.as_ref())
    }

    /// Returns the event as the feed shows it.
    async fn entry(&self, store: &Writer, event: &HistoryEntry) -> Result<&FeedEntry, Failure> {
        let read = async || {
            let entry = feed_entries(store, vec![event.clone()]).await?.pop();
            // A different version of the service might be able to read the event.
            Ok(entry.ok_or("the event can't be read")?)
        };
        self.entry.get_or_try_init(read).await
    }
}

impl Deliver {
    /// Makes the first attempts to deliver a new event, concurrently. Returns one of the failures: the message is then
    /// redelivered, and attempts that are already recorded are skipped.
    pub(crate) async fn deliver_event(&self, place: Place, request: &EventRequest) -> Result<(), Failure> {
        let (place, event) = (Place { age: Age::After(request.event_id), ..place }, EventOfMessage::default());
        let attempts = request.deliveries().map(async |delivery| self.deliver(place, &event, &delivery).await);
        join_all(attempts).await.into_iter().collect()
    }

    /// Attempts a delivery once, or requeues it if it is not due yet.
    pub(crate) async fn deliver(&self, place: Place, event: &EventOfMessage, request: &DeliveryRequest) -> Result<(), Failure> {
        let (store, now) = (self.store.writer(request.tenant_id), self.store.now());
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
        store: &Writer,
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

    /// Handles an event that is missing from the table, although events are committed before their messages are sent. If the
    /// event might not be visible yet, the message is redelivered.
    fn missing(&self, request: &DeliveryRequest) -> Result<(), Failure> {
        let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
        if self.store.now().since(event_id.timestamp()) < MAX_TIME_TO_APPEAR {
            return Err("the event is not visible yet".into());
        }
        tracing::warn!(%tenant_id, %webhook_id, %event_id, "an event is not delivered, because it is not in the table");
        Ok(())
    }

    async fn secrets_of(&self, store: &Writer, webhook: &Webhook) -> Result<Vec<WebhookSecret>, Failure> {
        let secrets = webhook.secrets(self.store.now());
        Ok(try_join_all(secrets.map(|secret| self.secrets.decrypt(store.id(), secret))).await?)
    }
}

/// Returns whether to attempt the delivery: false for a duplicate message.
async fn claimed(
    store: &Writer,
    request: &DeliveryRequest,
    record: Option<&Delivery>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    match record.filter(|record| record.requested_at == request.requested_at && record.waits_in_parts()) {
        Some(record) => store.claim_attempt(record, now).await,
        None => Ok(true),
    }
}

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

/// Records that the service has given up the delivery, because its webhook is not active.
async fn give_up(
    store: &Writer,
    request: &DeliveryRequest,
    record: Option<&Delivery>,
    event: Option<&HistoryEntry>,
    now: Timestamp,
) -> Result<(), Failure> {
    let of_record = record.map(|record| record.event_type.clone());
    let of_event = || Some(EventView::read(event?.clone())?.event_type);
    let of_test = || request.test.as_ref().map(|_| TEST_EVENT.to_owned());
    // The type is unknown only if the event doesn't exist.
    let Some(event_type) = of_record.or_else(of_event).or_else(of_test) else { return Ok(()) };
    match store.write_delivery(record, &Delivery::given_up(record, request, &event_type, now)).await {
        // Another message has just recorded the outcome.
        Ok(()) | Err(WriteError::Stale) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn log(request: &DeliveryRequest, attempt: &Attempt) {
    let DeliveryRequest { tenant_id, webhook_id, event_id, .. } = request;
    let (status, error, duration_ms) = (attempt.status, attempt.error.map(|error| error.as_str()), attempt.duration_ms);
    tracing::info!(%tenant_id, %webhook_id, %event_id, status, error, duration_ms, "an attempt to deliver an event");
}

/// Caches decrypted secrets: each delivery needs one, and decrypting takes a request to the provider.
pub(crate) struct Secrets {
    key_encryption: Arc<dyn KeyEncryption>,
    decrypted: Mutex<HashMap<(TenantId, EncryptedSecret), WebhookSecret>>,
}

impl Secrets {
    pub(crate) fn new(key_encryption: Arc<dyn KeyEncryption>) -> Self {
        Self { key_encryption, decrypted: Mutex::default() }
    }

    pub(crate) async fn decrypt(&self, tenant: TenantId, secret: &EncryptedSecret) -> Result<WebhookSecret, KeyEncryptionError> {
        let name = (tenant, secret.clone());
        let known = self.decrypted.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let bytes = self.key_encryption.decrypt_key(Purpose::WebhookSecret, tenant, &secret.0).await?;
        let decrypted = WebhookSecret::from_bytes(bytes);
        let mut kept = self.decrypted.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_SECRETS {
            kept.clear();
        }
        kept.insert(name, decrypted.clone());
        Ok(decrypted)
    }
}

type Webhooks = HashMap<WebhookId, Stored<Webhook>>;

/// Caches webhooks, because every message needs one. One query reads all webhooks of a tenant, for as many read units as two or
/// three single reads.
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

/// How old a cached webhook can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// Read after this event and at most a second ago, so that all changes before the event are included.
    After(EventId),
    /// Read for this batch or a later one. Used for requested and retried deliveries.
    Current,
}

impl RecentWebhooks {
    /// Returns `None` for a deleted webhook.
    pub(crate) async fn get(
        &self,
        store: &Writer,
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
            // The webhook isn't in the cache, or is inactive there. It may be deleted, damaged (an error) or newer than the
            // cache; or it was just activated, and then its first events must not be given up.
            _ => store.get(webhook).await,
        }
    }

    /// Reads a webhook's health. Caches it for one batch, whose messages are often for the same webhooks.
    pub(crate) async fn health(&self, store: &Writer, webhook: WebhookId, batch: u64) -> Result<Health, StoreError> {
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
        // All messages of a batch were received before its first read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use shared::key_encryption::KeyBytes;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns ciphertexts unchanged, and counts the calls.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl KeyEncryption for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn encrypt_key<'a>(&'a self, _: Purpose, _: TenantId, secret: &'a [u8]) -> KeyBytes<'a> {
            Box::pin(async { Ok(secret.to_vec()) })
        }

        fn decrypt_key<'a>(&'a self, purpose: Purpose, _: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a> {
            assert_eq!(purpose, Purpose::WebhookSecret);
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(ciphertext.to_vec()) })
        }
    }

    #[tokio::test]
    async fn a_secret_is_decrypted_once_for_each_tenant_and_few_are_kept() {
        let provider = Arc::new(Counting::default());
        let secrets = Secrets::new(Arc::clone(&provider) as Arc<dyn KeyEncryption>);
        let tenants = [1, 2].map(|n| TenantId::new(Timestamp::from_millis(0), [n; 10]));
        let secret = EncryptedSecret(vec![1; 32]);
        for tenant in [tenants[0], tenants[0], tenants[1]] {
            assert_eq!(secrets.decrypt(tenant, &secret).await.unwrap().bytes(), [1; 32]);
        }
        assert_eq!(provider.0.load(Ordering::Relaxed), 2);
        for n in 0..MAX_SECRETS {
            secrets.decrypt(tenants[0], &EncryptedSecret(n.to_le_bytes().to_vec())).await.unwrap();
        }
        assert!(secrets.decrypted.lock().unwrap().len() < MAX_SECRETS);
    }
}
