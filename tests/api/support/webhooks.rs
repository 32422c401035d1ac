//! Webhooks, and the functions that deliver events to them ([`Pipeline`]), with a stream, queues, receivers and key encryption
//! that tests control.

use super::disturbance::{Disturbance, dropped_after, end};
use super::queue::{self, TestQueue, VISIBILITY};
use super::table::wire_json;
use super::{Api, Client};
use aws_sdk_dynamodb::Client as Dynamo;
use chrono::TimeDelta;
use deliver::{Deliver, SignedDelivery, Transport};
use fanout::Fanout;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use shared::app::dynamodb::Event;
use shared::domain::record::Stored;
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{
    Attempt, AttemptFailure, Delivery, DeliveryRequest, DeliveryStatus, EncryptedSecret, Message, ReplayRequest, Webhook,
    WebhookSecret,
};
use shared::key_encryption::{KeyBytes, KeyEncryption, KeyEncryptionError, Purpose};
use shared::queue::Queue;
use shared::store::keys::Item;
use shared::store::{ChangeContext, Store, StoreError, UnitOfWork};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::yield_now;

pub const URL: &str = "https://example.com/hook";
/// A permitted URL without a receiver.
pub const PUBLIC_URL: &str = "https://hooks.example.com/assets";

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
        self.store.writer(self.tenant).get(self.id).await.unwrap().unwrap()
    }

    pub async fn change(&self, change: impl FnOnce(Webhook) -> Webhook) {
        let (store, context) = (self.store.writer(self.tenant), ChangeContext::operator(self.store.now()));
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
        self.store.writer(self.tenant).delete(&self.read().await, &context).await.unwrap();
    }

    pub async fn delivery(&self, event: &str) -> Option<Delivery> {
        let event: EventId = event.parse().unwrap();
        loop {
            match self.store.writer(self.tenant).delivery(self.id, event).await {
                // The faulty table also throttles the test's own reads.
                Err(StoreError::Unavailable(_)) => {}
                read => return read.unwrap(),
            }
        }
    }
}

pub async fn webhook(api: &Api, tenant: TenantId, url: &str, events: &[&str]) -> TestWebhook {
    let store = api.store.writer(tenant);
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
    /// Starts the functions. Earlier events are not delivered.
    pub async fn start(api: &Api) -> Self {
        Self::with_key_encryption(api, Arc::clone(&api.key_encryption)).await
    }

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

    /// Fans out the events since the last call. Returns their IDs, oldest first.
    pub async fn fan_out(&mut self, api: &Api) -> Vec<String> {
        let records = self.stream.new_records(&api.dynamo, &api.table).await;
        let response = self.fanout.handle(stream_batch(&records)).await;
        assert_eq!(response.batch_item_failures, []);
        records.iter().map(event_id).collect()
    }

    pub async fn run(&self) {
        while let Some(event) = self.queue.receive() {
            let response = self.deliver.handle(event.clone()).await;
            self.queue.delete(&event, &response);
        }
    }

    /// Handles the next messages, but drops the handler after this many polls. Then advances the clock until unfinished messages
    /// are visible again. Returns whether the handler was dropped.
    async fn run_dropped_after(&self, api: &Api, polls: usize) -> bool {
        let event = self.queue.receive().unwrap();
        let response = dropped_after(polls, self.deliver.handle(event.clone())).await;
        if let Some(response) = &response {
            self.queue.delete(&event, response);
        }
        for _ in 0..20 {
            yield_now().await;
        }
        api.advance_clock(VISIBILITY.num_seconds());
        response.is_none()
    }

    /// Handles due messages and injects a fault, then handles everything else. Returns whether the fault was injected.
    pub async fn run_disturbed(&self, api: &Api, place: usize, way: Disturbance) -> bool {
        let is_disturbed = if way == Disturbance::IsDropped {
            self.run_dropped_after(api, place + 1).await
        } else {
            way.begin(api, &self.queue, place);
            self.run().await;
            end(api, &self.queue)
        };
        self.run_to_end(api).await;
        is_disturbed
    }

    /// Fans out the events since the last call and injects a fault, then repeats what wasn't fanned out. Returns the events' IDs,
    /// oldest first, and whether the fault was injected.
    pub async fn fan_out_disturbed(&mut self, api: &Api, place: usize, way: Disturbance) -> (Vec<String>, bool) {
        let records = self.stream.new_records(&api.dynamo, &api.table).await;
        way.begin(api, &self.queue, place);
        let polls = if way == Disturbance::IsDropped { place + 1 } else { usize::MAX };
        let response = dropped_after(polls, self.fanout.handle(stream_batch(&records))).await;
        let has_failed = end(api, &self.queue) || response.is_none();
        let failures = response.map(|response| response.batch_item_failures);
        let is_first = |record: &Value| {
            let number = record["dynamodb"]["SequenceNumber"].as_str();
            failures.as_ref().is_none_or(|failures| failures.iter().any(|it| it.item_identifier.as_deref() == number))
        };
        if let Some(from) = records.iter().position(is_first) {
            assert_eq!(self.fanout.handle(stream_batch(&records[from..])).await.batch_item_failures, []);
        }
        (records.iter().map(event_id).collect(), has_failed)
    }

    /// Delivers until the queue is empty, advancing the clock to the time at which the next message becomes visible.
    pub async fn run_to_end(&self, api: &Api) {
        // A delivery that waits for 24 hours is requeued 96 times.
        for _ in 0..10_000 {
            self.run().await;
            let Some(next) = self.queue.next_visible() else { return };
            api.advance_clock_millis(next.since(api.now()).num_milliseconds().max(0));
        }
        panic!("the queue never becomes empty");
    }

    /// Fans out and delivers everything, including retries. Returns the event IDs, oldest first.
    pub async fn finish(&mut self, api: &Api) -> Vec<String> {
        let events = self.fan_out(api).await;
        self.run_to_end(api).await;
        events
    }
}

pub fn event_id(record: &Value) -> String {
    let entry: Value = serde_json::from_str(record["dynamodb"]["NewImage"]["entry"]["S"].as_str().unwrap()).unwrap();
    entry["id"].as_str().unwrap().to_owned()
}

/// Moves the clock until the feed has all events.
pub fn settle(api: &Api) {
    api.advance_clock_millis(TimeDelta::seconds(11).num_milliseconds());
}

/// Creates a tenant, and the functions that deliver its events.
pub async fn delivering() -> (Api, Client, Pipeline) {
    let (api, client) = Api::with_tenant().await;
    let pipeline = Pipeline::start(&api).await;
    (api, client, pipeline)
}

/// Creates a tenant with a webhook for these events, and functions that have delivered all earlier events.
pub async fn with_webhook(events: &[&str]) -> (Api, Client, Pipeline, TestWebhook) {
    let (api, client, mut pipeline) = delivering().await;
    let hook = webhook(&api, client.tenant, URL, events).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    (api, client, pipeline, hook)
}

/// Creates an asset, and fans out its event. Returns both IDs.
pub async fn created(api: &Api, client: &Client, pipeline: &mut Pipeline) -> (String, String) {
    let asset = client.asset(json!({"name": "Laptop"})).await;
    (asset, pipeline.fan_out(api).await.remove(0))
}

pub fn delivery(hook: &TestWebhook, event: &str, requested_at: Timestamp) -> DeliveryRequest {
    DeliveryRequest::first(hook.tenant, hook.id, event.parse().unwrap(), requested_at)
}

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

/// Sends a message to the delivery queue, as the API does for a retry.
pub async fn send(pipeline: &Pipeline, message: impl Into<Message>) {
    pipeline.queue.send(vec![message.into().into()]).await.unwrap();
}

#[derive(Debug, Clone)]
pub struct Arrival {
    pub url: String,
    pub id: String,
    pub seconds: i64,
    pub signatures: String,
    pub body: String,
    pub at: Timestamp,
}

impl Arrival {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn entry(&self) -> &str {
        let (_, entry) = self.body.split_once("\"data\":").unwrap();
        entry.strip_suffix('}').unwrap()
    }
}

/// Returns the status of the response to a request, or 0 for no response.
type Script = Box<dyn FnMut(&Arrival) -> u16 + Send>;

/// Receivers for all URLs.
#[derive(Clone)]
pub struct Receivers {
    received: Arc<Mutex<Vec<Arrival>>>,
    script: Arc<Mutex<Script>>,
    /// URLs whose receivers take two seconds to respond.
    slow: Arc<Mutex<HashSet<String>>>,
}

impl Default for Receivers {
    fn default() -> Self {
        Self { received: Arc::default(), script: Arc::new(Mutex::new(Box::new(|_| 204))), slow: Arc::default() }
    }
}

impl Receivers {
    pub fn respond(&self, script: impl FnMut(&Arrival) -> u16 + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// Makes each webhook's first request for each event fail.
    pub fn fail_first(&self) {
        let mut seen = HashSet::new();
        self.respond(move |sent| if seen.insert((sent.url.clone(), sent.id.clone())) { 500 } else { 200 });
    }

    pub fn set_slow(&self, urls: &[&str]) {
        *self.slow.lock().unwrap() = urls.iter().map(|url| (*url).to_owned()).collect();
    }

    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    pub fn got(&self) -> HashSet<(String, String)> {
        self.received.lock().unwrap().iter().map(|received| (received.url.clone(), received.id.clone())).collect()
    }

    pub fn len(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

impl Transport for Receivers {
    /// Yields twice, so that the future can be dropped before or after the request arrives.
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt> {
        Box::pin(async move {
            yield_now().await;
            let SignedDelivery { url, id, seconds, signatures, body } = delivery;
            let received = Arrival { url: url.as_str().to_owned(), id, seconds, signatures, body, at };
            let duration_ms = if self.slow.lock().unwrap().contains(&received.url) { 2_000 } else { 0 };
            let status = (self.script.lock().unwrap())(&received);
            self.received.lock().unwrap().push(received);
            yield_now().await;
            let (status, error) = if status == 0 { (None, Some(AttemptFailure::TimedOut)) } else { (Some(status), None) };
            Attempt { at, status, error, duration_ms }
        })
    }
}

/// The table's stream, built from the table in the format of Lambda's events (AWS Lambda guide, "Example event"). Reads each
/// committed event once.
#[derive(Default)]
pub struct Stream {
    seen: HashSet<String>,
}

impl Stream {
    /// Returns records of the events since the last call, oldest first.
    pub async fn new_records(&mut self, dynamo: &Dynamo, table: &str) -> Vec<Value> {
        let scan = dynamo.scan().table_name(table).consistent_read(true).into_paginator();
        let mut items: Vec<Item> = scan.items().send().try_collect().await.unwrap();
        items.retain(|item| sort_key(item).starts_with("EVENT#") && self.seen.insert(sort_key(item).to_owned()));
        items.sort_by(|a, b| sort_key(a).cmp(sort_key(b)));
        items.iter().map(|item| stream_record("INSERT", item)).collect()
    }

    pub async fn skip(&mut self, dynamo: &Dynamo, table: &str) {
        self.new_records(dynamo, table).await;
    }
}

fn sort_key(item: &Item) -> &str {
    item["SK"].as_s().unwrap()
}

pub fn stream_record(event_name: &str, item: &Item) -> Value {
    let image = wire_json(item);
    json!({
        "eventID": "7de3041dd709b024af6f29e4fa13d34c", "eventName": event_name, "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_772_704_800, "Keys": {"PK": image["PK"], "SK": image["SK"]}, "NewImage": image,
            "SequenceNumber": format!("42{}", sort_key(item)), "SizeBytes": 112, "StreamViewType": "NEW_IMAGE"
        },
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/assets/stream/2026-01-01T00:00:00.000"
    })
}

pub fn stream_batch(records: &[Value]) -> Event {
    serde_json::from_value(json!({"Records": records})).unwrap()
}

impl Client {
    pub async fn webhook(&self, events: Value) -> Value {
        self.post("/webhooks", json!({"url": PUBLIC_URL, "events": events})).await.data()
    }
}

pub fn webhook_path(webhook: &Value) -> String {
    format!("/webhooks/{}", webhook["id"].as_str().unwrap())
}

pub fn webhook_id(webhook: &Value) -> WebhookId {
    webhook["id"].as_str().unwrap().parse().unwrap()
}

/// Creates a webhook and a delivery to it. Returns the paths of the webhook and of the retry, and the delivery.
pub async fn with_delivery(api: &Api, client: &Client, status: DeliveryStatus) -> (String, String, Delivery) {
    let webhook = client.webhook(json!(["*"])).await;
    let delivery = queue::delivery(webhook["id"].as_str().unwrap(), api.now(), status);
    api.queue.put(client.tenant, &delivery).await;
    (webhook_path(&webhook), format!("{}/deliveries/{}/retry", webhook_path(&webhook), delivery.event_id), delivery)
}

/// A key encryption that counts its calls, and fails on demand.
pub struct ObservedKeyEncryption {
    inner: Arc<dyn KeyEncryption>,
    encryptions: AtomicUsize,
    fails: AtomicBool,
    has_failed: AtomicBool,
}

impl ObservedKeyEncryption {
    pub fn new(api: &Api) -> Self {
        let inner = Arc::clone(&api.key_encryption);
        Self { inner, encryptions: AtomicUsize::new(0), fails: AtomicBool::new(false), has_failed: AtomicBool::new(false) }
    }

    pub fn encryptions(&self) -> usize {
        self.encryptions.load(Ordering::Relaxed)
    }

    pub fn fail_to_decrypt(&self) {
        self.fails.store(true, Ordering::Relaxed);
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

impl KeyEncryption for ObservedKeyEncryption {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn encrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, secret: &'a [u8]) -> KeyBytes<'a> {
        self.encryptions.fetch_add(1, Ordering::Relaxed);
        self.inner.encrypt_key(purpose, tenant, secret)
    }

    fn decrypt_key<'a>(&'a self, purpose: Purpose, tenant: TenantId, ciphertext: &'a [u8]) -> KeyBytes<'a> {
        if self.fails.swap(false, Ordering::Relaxed) {
            self.has_failed.store(true, Ordering::Relaxed);
            return Box::pin(async { Err(KeyEncryptionError::Unavailable("injected".into())) });
        }
        self.inner.decrypt_key(purpose, tenant, ciphertext)
    }
}
