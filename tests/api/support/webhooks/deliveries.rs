//! Webhooks, and records of deliveries as the function `deliver` writes them.

use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::domain::values::id::{EventId, Id, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Attempt, Delivery, DeliveryStatus};

/// A permitted address without a receiver.
pub const URL: &str = "https://hooks.example.com/assets";

/// With one attempt.
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

impl Client {
    /// Returns the webhook with its secret.
    pub async fn webhook(&self, events: Value) -> Value {
        self.post("/webhooks", json!({"url": URL, "events": events})).await.data()
    }
}

pub fn path(webhook: &Value) -> String {
    format!("/webhooks/{}", webhook["id"].as_str().unwrap())
}

pub fn id(webhook: &Value) -> WebhookId {
    webhook["id"].as_str().unwrap().parse().unwrap()
}

/// Creates a webhook, and a delivery to it. Returns the paths of the webhook and of the retry, and the delivery.
pub async fn with_delivery(api: &Api, client: &Client, status: DeliveryStatus) -> (String, String, Delivery) {
    let webhook = client.webhook(json!(["*"])).await;
    let delivery = delivery(webhook["id"].as_str().unwrap(), api.now(), status);
    api.queue.put(client.tenant, &delivery).await;
    (path(&webhook), format!("{}/deliveries/{}/retry", path(&webhook), delivery.event_id), delivery)
}
