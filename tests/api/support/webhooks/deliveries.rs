//! Webhooks, and records of deliveries as the function `deliver` writes them.

use crate::support::queue::delivery;
use crate::support::{Api, Client};
use serde_json::{Value, json};
use shared::domain::values::id::WebhookId;
use shared::domain::webhooks::{Delivery, DeliveryStatus};

/// A permitted address without a receiver.
pub const URL: &str = "https://hooks.example.com/assets";

impl Client {
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
