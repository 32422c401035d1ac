//! In-memory queues with the tests' clock. Like SQS, they deliver a message at least once, and redeliver it until it is
//! deleted.

use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use shared::app::sqs::{SqsBatchResponse, SqsEvent};
use shared::domain::values::id::{EventId, Id, TenantId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Attempt, Delivery, DeliveryRequest, DeliveryStatus, Message, TEST_EVENT};
use shared::queue::{MAX_DELAY, NewMessage, Queue, QueueError, is_arn_of};
use shared::store::Store;
use std::sync::Mutex;
use std::time::Duration;
use tokio::task::yield_now;

pub const VISIBILITY: TimeDelta = TimeDelta::seconds(180);
/// Maximum number of messages per call, as in SQS.
const BATCH: usize = 10;
const RETRIES: &str = "retries";

#[derive(Debug, Clone)]
struct Queued {
    id: String,
    body: String,
    is_retry: bool,
    visible_at: Timestamp,
    receives: u32,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Queued>,
    next_id: usize,
    sent: Vec<NewMessage>,
    sent_retries: Vec<NewMessage>,
    /// Number of upcoming calls that fail without effect.
    refused: usize,
    /// Number of calls before the one that fails, and whether the failing call still takes effect.
    failing: Option<(usize, bool)>,
    has_failed: bool,
}

pub struct TestQueue {
    store: Store,
    /// Whether test events are recorded as delivered at once, so that each webhook can have a delivery.
    delivers_tests: bool,
    state: Mutex<State>,
}

impl TestQueue {
    pub fn new(store: Store) -> Self {
        Self { store, delivers_tests: false, state: Mutex::default() }
    }

    pub fn delivering_tests(store: Store) -> Self {
        Self { delivers_tests: true, ..Self::new(store) }
    }

    /// Replaces the stored record.
    pub async fn put(&self, tenant: TenantId, delivery: &Delivery) {
        let store = self.store.writer(tenant);
        let present = store.delivery(delivery.webhook_id, delivery.event_id).await.unwrap();
        store.write_delivery(present.as_ref(), delivery).await.unwrap();
    }

    pub fn fail(&self, calls: usize) {
        self.state.lock().unwrap().refused = calls;
    }

    /// Makes call number `place` fail; 0 is the next call. With `after`, the call still takes effect.
    pub fn fail_call(&self, place: usize, after: bool) {
        self.state.lock().unwrap().failing = Some((place, after));
    }

    pub fn stop_failing(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.failing = None;
        std::mem::take(&mut state.has_failed)
    }

    /// Returns the messages sent to both queues since the last call.
    pub fn take(&self) -> Vec<Message> {
        let sent = [self.take_sent(), self.take_sent_retries()].concat();
        sent.into_iter().map(|new| new.message).collect()
    }

    /// Returns the messages sent to the delivery queue since the last call.
    pub fn take_sent(&self) -> Vec<NewMessage> {
        std::mem::take(&mut self.state.lock().unwrap().sent)
    }

    /// Returns the messages sent to the retry queue since the last call.
    pub fn take_sent_retries(&self) -> Vec<NewMessage> {
        std::mem::take(&mut self.state.lock().unwrap().sent_retries)
    }

    pub fn first_attempts(&self) -> usize {
        self.state.lock().unwrap().messages.iter().filter(|message| !message.is_retry).count()
    }

    pub fn len(&self) -> usize {
        self.state.lock().unwrap().messages.len()
    }

    pub fn most_receives(&self) -> u32 {
        self.state.lock().unwrap().messages.iter().map(|message| message.receives).max().unwrap_or_default()
    }

    pub fn clear(&self) {
        self.state.lock().unwrap().messages.clear();
    }

    pub fn add(&self, body: &str) {
        let now = self.store.now();
        self.state.lock().unwrap().push(body.to_owned(), false, now);
    }

    pub fn next_visible(&self) -> Option<Timestamp> {
        self.state.lock().unwrap().messages.iter().map(|message| message.visible_at).min()
    }

    /// Receives up to ten visible messages from one queue and hides them. Returns the function's event (AWS Lambda guide,
    /// "Example standard queue message event").
    pub fn receive(&self) -> Option<SqsEvent> {
        // First attempts are received first.
        self.receive_from(false).or_else(|| self.receive_from(true))
    }

    pub fn receive_from(&self, is_retry: bool) -> Option<SqsEvent> {
        let now = self.store.now();
        let mut state = self.state.lock().unwrap();
        let is_visible = |message: &&mut Queued| message.visible_at <= now && message.is_retry == is_retry;
        let visible = state.messages.iter_mut().filter(is_visible).take(BATCH);
        let records: Vec<Value> = visible
            .map(|message| {
                message.visible_at = now.plus(VISIBILITY);
                message.receives += 1;
                json!({
                    "messageId": message.id, "receiptHandle": format!("{}/{}", message.id, message.receives),
                    "body": message.body,
                    "attributes": {
                        "ApproximateReceiveCount": message.receives.to_string(), "SentTimestamp": "1545082649183",
                        "SenderId": "AIDAIENQZJOLO23YVJ4VO", "ApproximateFirstReceiveTimestamp": "1545082649185"
                    },
                    "messageAttributes": {}, "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3", "eventSource": "aws:sqs",
                    "eventSourceARN": format!("arn:aws:sqs:us-east-1:123456789012:{}", if is_retry { RETRIES } else { "deliveries" }),
                    "awsRegion": "us-east-1"
                })
            })
            .collect();
        (!records.is_empty()).then(|| serde_json::from_value(json!({"Records": records})).unwrap())
    }

    pub fn delete(&self, event: &SqsEvent, response: &SqsBatchResponse) {
        let failed: Vec<&str> = response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
        let done = event.records.iter().filter_map(|message| message.message_id.as_deref()).filter(|id| !failed.contains(id));
        let done: Vec<&str> = done.collect();
        self.state.lock().unwrap().messages.retain(|message| !done.contains(&message.id.as_str()));
    }

    /// Sends messages in batches of ten. If one batch fails, the others are still sent.
    async fn send_to(&self, is_retry: bool, messages: Vec<NewMessage>) -> Result<(), QueueError> {
        let mut sent = Ok(());
        for chunk in messages.chunks(BATCH) {
            let now = self.store.now();
            let call = self.call(|state| {
                for new in chunk {
                    assert!(new.delay <= MAX_DELAY);
                    let sent = if is_retry { &mut state.sent_retries } else { &mut state.sent };
                    sent.push(new.clone());
                    state.push(serde_json::to_string(&new.message).unwrap(), is_retry, now.plus(delta(new.delay)));
                }
            });
            sent = call.await.and(sent);
            if self.delivers_tests && sent.is_ok() {
                self.deliver_tests(chunk).await;
            }
        }
        sent
    }

    async fn deliver_tests(&self, messages: &[NewMessage]) {
        for new in messages {
            if let Message::Delivery(DeliveryRequest { tenant_id, webhook_id, event_id, requested_at, test: Some(_), .. }) =
                &new.message
            {
                let delivered = delivery(&webhook_id.to_string(), *requested_at, DeliveryStatus::Delivered);
                let delivered = Delivery { event_id: *event_id, event_type: TEST_EVENT.to_owned(), ..delivered };
                self.put(*tenant_id, &delivered).await;
            }
        }
    }

    async fn call(&self, mut effect: impl FnMut(&mut State)) -> Result<(), QueueError> {
        yield_now().await;
        let failure = self.state.lock().unwrap().next_failure();
        if failure != Some(false) {
            effect(&mut self.state.lock().unwrap());
        }
        yield_now().await;
        failure.map_or(Ok(()), |_| Err(QueueError("injected".into())))
    }
}

impl State {
    fn push(&mut self, body: String, is_retry: bool, visible_at: Timestamp) {
        self.next_id += 1;
        self.messages.push(Queued { id: format!("m{}", self.next_id), body, is_retry, visible_at, receives: 0 });
    }

    /// Returns `None` if the call doesn't fail; otherwise, whether the call still takes effect.
    fn next_failure(&mut self) -> Option<bool> {
        if self.refused > 0 {
            self.refused -= 1;
            return Some(false);
        }
        let (left, after) = self.failing.take()?;
        if left > 0 {
            self.failing = Some((left - 1, after));
            return None;
        }
        self.has_failed = true;
        Some(after)
    }
}

fn delta(delay: Duration) -> TimeDelta {
    // SQS delays have whole seconds.
    TimeDelta::seconds(i64::try_from(delay.as_secs()).unwrap())
}

impl Queue for TestQueue {
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(self.send_to(false, messages))
    }

    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(self.send_to(true, messages))
    }

    fn is_of_retries(&self, arn: &str) -> bool {
        is_arn_of(arn, RETRIES)
    }
}

/// Returns the webhook ID and event ID of each delivery that the messages request.
pub fn deliveries(messages: &[NewMessage]) -> Vec<(String, String)> {
    let deliveries = messages.iter().flat_map(|new| match &new.message {
        Message::Event(request) => request.deliveries().collect(),
        Message::Delivery(request) => vec![request.clone()],
        _ => Vec::new(),
    });
    deliveries.map(|request| (request.webhook_id.to_string(), request.event_id.to_string())).collect()
}

pub fn delivery(webhook: &str, at: Timestamp, status: DeliveryStatus) -> Delivery {
    let response = (status == DeliveryStatus::Delivered).then_some(204).or(Some(500));
    let attempt = Attempt { at, status: response, error: None, duration_ms: 12 };
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
        test: None,
    }
}
