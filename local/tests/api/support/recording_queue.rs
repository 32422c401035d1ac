//! Webhooks: a queue that keeps what is sent to it, and records of deliveries as the function `deliver` writes them.

use super::api::Api;
use super::client::Client;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhook::{Attempt, Delivery, DeliveryStatus, Message, TEST_EVENT};
use shared::queue::{NewMessage, Queue, QueueError};
use shared::store::Store;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// An address that webhooks may have, and that nobody has.
pub const URL: &str = "https://hooks.example.com/assets";

/// Where the records of deliveries are.
pub struct DeliveryRecords {
    store: Store,
}

impl DeliveryRecords {
    /// Returns the records in this table.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Writes a record, in place of the one that there may be.
    pub async fn put(&self, tenant: TenantId, delivery: &Delivery) {
        let store = self.store.tenant(tenant);
        let present = store.delivery(delivery.webhook_id, delivery.event_id).await.unwrap();
        store.write_delivery(present.as_ref(), delivery).await.unwrap();
    }
}

/// Returns a delivery with one attempt, as it is with this status.
pub fn delivery(webhook: &str, at: Timestamp, status: DeliveryStatus) -> Delivery {
    let response = (status == DeliveryStatus::Delivered).then_some(204).or(Some(500));
    let attempt = Attempt { at, status: response, error: None, duration_ms: 12, response: Some("a response".to_owned()) };
    Delivery {
        webhook_id: webhook.parse().unwrap(),
        event_id: EventId::new(at, std::array::from_fn(|_| fastrand::u8(..))),
        event_type: "asset.created".to_owned(),
        status,
        requested_at: at,
        tries: 1,
        attempt_count: 1,
        attempts: vec![attempt],
        next_attempt_at: (status == DeliveryStatus::Pending).then(|| at.plus_seconds(5)),
    }
}

/// A queue that keeps its messages.
#[derive(Default)]
pub struct RecordingQueue {
    messages: Mutex<Vec<Message>>,
    /// How many calls are to fail.
    failing: AtomicUsize,
    /// Where tests of webhooks are recorded as delivered at once, so that each webhook can have a delivery.
    records: Option<DeliveryRecords>,
}

impl RecordingQueue {
    /// Returns an empty queue that delivers tests of webhooks at once.
    pub fn delivering(records: DeliveryRecords) -> Self {
        Self { records: Some(records), ..Self::default() }
    }

    fn messages(&self) -> MutexGuard<'_, Vec<Message>> {
        self.messages.lock().unwrap()
    }

    /// Takes the messages that were sent since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.messages())
    }

    /// Makes the next `count` calls fail.
    pub fn fail(&self, count: usize) {
        self.failing.store(count, Ordering::Relaxed);
    }

    /// Returns the records of deliveries.
    pub fn records(&self) -> &DeliveryRecords {
        self.records.as_ref().unwrap()
    }
}

impl Queue for RecordingQueue {
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async move {
            let fails = |left: usize| left.checked_sub(1);
            if self.failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fails).is_ok() {
                return Err(QueueError("no queue".into()));
            }
            for NewMessage { message, .. } in messages {
                self.messages().push(message.clone());
                if let (Message::Delivery(request), Some(records)) = (message, &self.records)
                    && request.test.is_some()
                {
                    let delivered = delivery(&request.webhook_id.to_string(), request.requested_at, DeliveryStatus::Delivered);
                    let delivered = Delivery { event_id: request.event_id, event_type: TEST_EVENT.to_owned(), ..delivered };
                    records.put(request.tenant_id, &delivered).await;
                }
            }
            Ok(())
        })
    }

    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        self.send(messages)
    }

    fn is_of_retries(&self, _: &str) -> bool {
        false
    }

    fn postpone<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Client {
    /// Creates a webhook for these types of events, and returns it with its secret.
    pub async fn webhook(&self, events: Value) -> Value {
        self.post("/webhooks", json!({"url": URL, "events": events})).await.data()
    }
}

/// Returns the path of a webhook.
pub fn path(webhook: &Value) -> String {
    format!("/webhooks/{}", webhook["id"].as_str().unwrap())
}

/// Returns the ID of a webhook.
pub fn id(webhook: &Value) -> WebhookId {
    webhook["id"].as_str().unwrap().parse().unwrap()
}

/// Creates a webhook, and a delivery to it with this status; returns the paths of the webhook and of the retry, and the
/// delivery.
pub async fn with_delivery(api: &Api, client: &Client, status: DeliveryStatus) -> (String, String, Delivery) {
    let webhook = client.webhook(json!(["*"])).await;
    let delivery = delivery(webhook["id"].as_str().unwrap(), api.now(), status);
    api.queue.records().put(client.tenant, &delivery).await;
    (path(&webhook), format!("{}/deliveries/{}/retry", path(&webhook), delivery.event_id), delivery)
}
