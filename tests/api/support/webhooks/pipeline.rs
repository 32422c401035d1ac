//! Webhooks, and the functions that deliver to them, with a queue and receivers under control.

use super::receivers::Receivers;
use super::stream::{self, Stream};
use crate::support::dropping::dropped_after;
use crate::support::queue::{TestQueue, VISIBILITY};
use crate::support::{Api, Client, Disturbance};
use chrono::TimeDelta;
use deliver::Deliver;
use fanout::Fanout;
use serde_json::json;
use shared::domain::record::Stored;
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Delivery, DeliveryRequest, EncryptedSecret, Message, ReplayRequest, Webhook, WebhookSecret};
use shared::key_encryption::{KeyEncryption, Purpose};
use shared::queue::Queue;
use shared::store::{ChangeContext, Store, StoreError, UnitOfWork};
use std::sync::Arc;

/// The address of most webhooks.
pub const URL: &str = "https://example.com/hook";

#[derive(Clone)]
pub struct TestWebhook {
    pub id: WebhookId,
    pub tenant: TenantId,
    pub url: String,
    pub secret: WebhookSecret,
    store: Store,
}

impl TestWebhook {
    pub async fn read(&self) -> Stored<Webhook> {
        self.store.tenant(self.tenant).get(self.id).await.unwrap().unwrap()
    }

    pub async fn change(&self, change: impl FnOnce(Webhook) -> Webhook) {
        let (store, context) = (self.store.tenant(self.tenant), ChangeContext::operator(self.store.now()));
        let old = self.read().await;
        let mut unit = UnitOfWork::new(&store, &context);
        unit.update(&old, change(old.value.clone())).unwrap();
        unit.commit().await.unwrap();
    }

    pub async fn activate(&self, is_active: bool) {
        let active_since = self.store.now();
        self.change(|webhook| Webhook { is_active, disabled_reason: None, active_since, ..webhook }).await;
    }

    pub async fn delete(&self) {
        let context = ChangeContext::operator(self.store.now());
        self.store.tenant(self.tenant).delete(&self.read().await, &context).await.unwrap();
    }

    pub async fn delivery(&self, event: &str) -> Option<Delivery> {
        let event: EventId = event.parse().unwrap();
        loop {
            match self.store.tenant(self.tenant).delivery(self.id, event).await {
                // A faulty table throttles the test as well.
                Err(StoreError::Unavailable(_)) => {}
                read => return read.unwrap(),
            }
        }
    }
}

pub async fn webhook(api: &Api, tenant: TenantId, url: &str, events: &[&str]) -> TestWebhook {
    let store = api.store.tenant(tenant);
    let secret = WebhookSecret::new(api.store.random().unwrap());
    let encrypted = encrypted(api.key_encryption.as_ref(), tenant, &secret).await;
    let at = api.store.now();
    let slot = store.count::<Webhook>().await.unwrap();
    let id: WebhookId = store.new_id(at).unwrap();
    let webhook = json!({
        "id": id, "url": url, "description": "", "events": events, "is_active": true, "active_since": at, "slot": slot, "secret": encrypted
    });
    let context = ChangeContext::operator(at);
    let mut unit = UnitOfWork::new(&store, &context);
    unit.create::<Webhook>(serde_json::from_value(webhook).unwrap()).unwrap();
    unit.commit().await.unwrap();
    TestWebhook { id, tenant, url: url.to_owned(), secret, store: api.store.clone() }
}

pub async fn encrypted(key_encryption: &dyn KeyEncryption, tenant: TenantId, secret: &WebhookSecret) -> EncryptedSecret {
    let bytes = key_encryption.encrypt_key(Purpose::WebhookSecret, tenant, secret.bytes()).await.unwrap();
    EncryptedSecret(bytes)
}

pub struct Pipeline {
    pub stream: Stream,
    pub fanout: Fanout,
    pub queue: Arc<TestQueue>,
    pub deliver: Deliver,
    pub receivers: Receivers,
}

impl Pipeline {
    /// On the tests' table. Earlier events are not delivered.
    pub async fn start(api: &Api) -> Self {
        Self::with_key_encryption(api, Arc::clone(&api.key_encryption)).await
    }

    /// [`Pipeline::start`] with another key encryption.
    pub async fn with_key_encryption(api: &Api, key_encryption: Arc<dyn KeyEncryption>) -> Self {
        let mut stream = Stream::default();
        stream.skip(&api.dynamo, &api.table).await;
        let queue = Arc::new(TestQueue::new(api.store.clone()));
        let as_queue = || Arc::clone(&queue) as Arc<dyn Queue>;
        let receivers = Receivers::default();
        let fanout = Fanout::new(api.store.clone(), as_queue());
        let deliver = Deliver::new(api.store.clone(), as_queue(), key_encryption, receivers.clone());
        Self { stream, fanout, queue, deliver, receivers }
    }

    /// Fans out the events since the last call. Returns the IDs of the events, oldest first.
    pub async fn fan_out(&mut self, api: &Api) -> Vec<String> {
        let records = self.stream.new_records(&api.dynamo, &api.table).await;
        let response = self.fanout.handle(stream::batch(&records)).await;
        assert_eq!(response.batch_item_failures, []);
        records.iter().map(event_id).collect()
    }

    pub async fn run(&self) {
        while let Some(event) = self.queue.receive() {
            let response = self.deliver.handle(event.clone()).await;
            self.queue.delete(&event, &response);
        }
    }

    /// Handles the next message with at most so many polls, and waits until unfinished messages are visible again. Returns
    /// whether that is the message.
    async fn run_dropped_after(&self, api: &Api, polls: usize) -> bool {
        let event = self.queue.receive().unwrap();
        let response = dropped_after(polls, self.deliver.handle(event.clone())).await;
        if let Some(response) = &response {
            self.queue.delete(&event, response);
        }
        settle_calls().await;
        api.advance_clock(VISIBILITY.num_seconds());
        response.is_none()
    }

    /// Handles what is due while that is disturbed, and then everything else. Returns whether it was disturbed.
    pub async fn run_disturbed(&self, api: &Api, place: usize, way: Disturbance) -> bool {
        let is_disturbed = match way {
            Disturbance::IsDropped => self.run_dropped_after(api, place + 1).await,
            Disturbance::Fails(failure) => {
                api.faults.fail_call(place, failure);
                self.run().await;
                api.faults.stop_failing()
            }
        };
        self.run_to_end(api).await;
        is_disturbed
    }

    /// Delivers until the queue is empty: moves the clock to the time when the next message is visible.
    pub async fn run_to_end(&self, api: &Api) {
        // A delivery that waits for 24 hours is a message that is sent 96 times.
        for _ in 0..10_000 {
            self.run().await;
            let Some(next) = self.queue.next_visible() else { return };
            api.advance_clock_millis(next.since(api.now()).num_milliseconds().max(0));
        }
        panic!("the queue never becomes empty");
    }

    /// Fans out and delivers everything, with all repetitions. Returns the IDs of the events, oldest first.
    pub async fn finish(&mut self, api: &Api) -> Vec<String> {
        let events = self.fan_out(api).await;
        self.run_to_end(api).await;
        events
    }
}

pub fn event_id(record: &serde_json::Value) -> String {
    let entry: serde_json::Value = serde_json::from_str(record["dynamodb"]["NewImage"]["entry"]["S"].as_str().unwrap()).unwrap();
    entry["id"].as_str().unwrap().to_owned()
}

/// Moves the clock so far that the feed has everything.
pub fn settle(api: &Api) {
    api.advance_clock_millis(TimeDelta::seconds(11).num_milliseconds());
}

/// An API with a tenant, and the functions that deliver its events.
pub async fn delivering() -> (Api, Client, Pipeline) {
    let (api, client) = Api::with_tenant().await;
    let pipeline = Pipeline::start(&api).await;
    (api, client, pipeline)
}

/// A tenant with a webhook for these events, and the functions, which have delivered all earlier ones.
pub async fn with_webhook(events: &[&str]) -> (Api, Client, Pipeline, TestWebhook) {
    let (api, client, mut pipeline) = delivering().await;
    let hook = webhook(&api, client.tenant, URL, events).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    (api, client, pipeline, hook)
}

/// Creates an asset. Returns its ID and the event's.
pub async fn created(api: &Api, client: &Client, pipeline: &mut Pipeline) -> (String, String) {
    let asset = client.asset(json!({"name": "Laptop"})).await;
    (asset, pipeline.fan_out(api).await.remove(0))
}

pub fn delivery(hook: &TestWebhook, event: &str, requested_at: Timestamp) -> DeliveryRequest {
    DeliveryRequest::first(hook.tenant, hook.id, event.parse().unwrap(), requested_at)
}

/// A replay of these types, asked for now.
pub fn replay(api: &Api, hook: &TestWebhook, since: Timestamp, until: Timestamp, types: &[&str]) -> ReplayRequest {
    ReplayRequest {
        tenant_id: hook.tenant,
        webhook_id: hook.id,
        after: EventId::new(since.plus(TimeDelta::milliseconds(-1)), [u8::MAX; 10]),
        until,
        events: serde_json::from_value(json!(types)).unwrap(),
        requested_at: api.now(),
    }
}

/// As the API, when it repeats a delivery.
pub async fn send(pipeline: &Pipeline, message: impl Into<Message>) {
    pipeline.queue.send(vec![message.into().into()]).await.unwrap();
}

/// Lets the calls that a dropped future sent take effect, as they do long before a message is visible again.
async fn settle_calls() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
