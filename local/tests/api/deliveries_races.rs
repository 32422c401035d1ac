//! At least once: whatever fails, stops or happens at the same time, every event reaches every active webhook that wants it.

use crate::support::dropping::dropped_after;
use crate::support::fault_injection::CallFailure;
use crate::support::pipeline::{Pipeline, TestWebhook, delivering, event_id, webhook};
use crate::support::receivers::{Received, Receivers};
use crate::support::stream::{self, batch};
use crate::support::webhook_queue::VISIBILITY;
use crate::support::{Api, Client, full_tests, paused_runtime};
use deliver::Deliver;
use futures_util::future::BoxFuture;
use local::weak::Weaknesses;
use serde_json::json;
use shared::domain::id::TenantId;
use shared::domain::webhook::{DeliveryStatus, DisabledReason};
use shared::key_encryption::{KeyEncryption, KeyEncryptionError, Purpose};
use shared::queue::Queue;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A tenant with two webhooks and an event that both want.
struct Case {
    client: Client,
    hooks: [TestWebhook; 2],
    event: String,
}

/// Creates a tenant with two webhooks and, once these are delivered, an event. The messages are in the queue.
async fn case(api: &Api, pipeline: &mut Pipeline) -> Case {
    let client = api.tenant().await;
    let hooks = [
        webhook(api, client.tenant, "https://example.com/one", &["asset.created"]).await,
        webhook(api, client.tenant, "https://example.com/two", &["asset.created"]).await,
    ];
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.asset(json!({"name": "a"})).await;
    let event = pipeline.fan_out(api).await.remove(0);
    Case { client, hooks, event }
}

/// Lets the first request to each webhook about each event fail.
fn fail_first(receivers: &Receivers) {
    let mut seen = HashSet::new();
    receivers.respond(move |sent: &Received| if seen.insert((sent.url.clone(), sent.id.clone())) { 500 } else { 200 });
}

impl Case {
    /// Checks that both webhooks have got the event, and that their records say so.
    async fn check(&self, api: &Api, pipeline: &Pipeline, name: &str) {
        let received = pipeline.receivers.take();
        for hook in &self.hooks {
            let of_hook: Vec<_> = received.iter().filter(|sent| sent.url == hook.url).collect();
            assert!(!of_hook.is_empty() && of_hook.iter().all(|sent| sent.id == self.event), "{name}");
            for sent in of_hook {
                assert_eq!(sent.signatures, hook.secret.sign(&sent.id, sent.seconds, &sent.body), "{name}");
            }
            let record = hook.delivery(&self.event).await.unwrap();
            assert_eq!((record.status, record.next_attempt_at), (DeliveryStatus::Delivered, None), "{name}");
            assert_eq!(record.attempt_count, record.attempts.len() as u64, "{name}");
            let inputs = api.store.tenant(hook.tenant).delivery_inputs(hook.id, self.event.parse().unwrap()).await.unwrap();
            assert_eq!(inputs.failing_since, None, "{name}");
            assert!(hook.read().await.value.is_active, "{name}");
        }
        assert_eq!(pipeline.queue.len(), 0, "{name}");
        let store = api.store.tenant(self.client.tenant);
        let found = local::invariants::violations(&store, &api.dynamo, &api.table).await.unwrap();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[tokio::test]
async fn a_delivery_that_is_dropped_at_any_point_arrives_all_the_same() {
    let (api, _, mut pipeline) = delivering().await;
    let mut dropped = 0;
    for attempt in 0..2 {
        for polls in 1..200 {
            let case = case(&api, &mut pipeline).await;
            fail_first(&pipeline.receivers);
            if attempt == 1 {
                // The second attempt is the one that is dropped.
                pipeline.run().await;
                api.advance_clock(6);
            }
            let event = pipeline.queue.receive().unwrap();
            let response = dropped_after(polls, pipeline.deliver.handle(event.clone())).await;
            match &response {
                Some(response) => pipeline.queue.delete(&event, response),
                None => dropped += 1,
            }
            api.advance_clock(VISIBILITY.num_seconds());
            pipeline.run_to_end(&api).await;
            case.check(&api, &pipeline, &format!("attempt {attempt}, {polls} polls")).await;
            if response.is_some() {
                break;
            }
        }
    }
    assert!((8..398).contains(&dropped), "{dropped}");
}

/// Key encryption that fails once when it is told to.
struct Failing {
    inner: Arc<dyn KeyEncryption>,
    fails: AtomicBool,
}

impl KeyEncryption for Failing {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn encrypt_key<'a>(
        &'a self,
        purpose: Purpose,
        tenant: TenantId,
        secret: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>> {
        self.inner.encrypt_key(purpose, tenant, secret)
    }

    fn decrypt_key<'a>(
        &'a self,
        purpose: Purpose,
        tenant: TenantId,
        ciphertext: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, KeyEncryptionError>> {
        if self.fails.swap(false, Ordering::Relaxed) {
            return Box::pin(async { Err(KeyEncryptionError::Unavailable("injected".into())) });
        }
        self.inner.decrypt_key(purpose, tenant, ciphertext)
    }
}

#[tokio::test]
async fn a_delivery_survives_the_failure_of_any_call() {
    let (api, _, mut pipeline) = delivering().await;
    let mut failures = 0;
    // A conflict is a throttled call here: nothing of this is a transaction.
    let some = [CallFailure::Throttled, CallFailure::TimedOutAfter];
    for failure in if full_tests() { CallFailure::ALL.to_vec() } else { some.to_vec() } {
        for attempt in 0..2 {
            for place in 0..20 {
                let name = format!("attempt {attempt}, {failure:?} {place}");
                let case = case(&api, &mut pipeline).await;
                fail_first(&pipeline.receivers);
                if attempt == 1 {
                    pipeline.run().await;
                    api.advance_clock(6);
                }
                api.faults.fail_call(place, failure);
                pipeline.run().await;
                let has_failed = api.faults.stop_failing();
                pipeline.run_to_end(&api).await;
                case.check(&api, &pipeline, &name).await;
                failures += usize::from(has_failed);
                if !has_failed {
                    break;
                }
            }
        }
    }
    assert!(failures >= 15, "only {failures} failures");
}

#[tokio::test]
async fn a_delivery_survives_failures_of_the_queue_and_of_key_encryption() {
    let (api, _) = Api::with_tenant().await;
    let inner = Arc::clone(&api.key_encryption);
    let key_encryption = Arc::new(Failing { inner, fails: AtomicBool::new(false) });
    let mut pipeline = Pipeline::with_key_encryption(&api, Arc::clone(&key_encryption) as Arc<dyn KeyEncryption>).await;
    let mut failures = 0;
    for (place, after) in [(0, false), (0, true), (1, false), (1, true)] {
        let case = case(&api, &mut pipeline).await;
        fail_first(&pipeline.receivers);
        pipeline.queue.fail_call(place, after);
        pipeline.run().await;
        failures += usize::from(pipeline.queue.stop_failing());
        pipeline.run_to_end(&api).await;
        case.check(&api, &pipeline, &format!("{place} {after}")).await;
    }
    assert_eq!(failures, 4);
    let case = case(&api, &mut pipeline).await;
    pipeline.receivers.respond(|_| 200);
    key_encryption.fails.store(true, Ordering::Relaxed);
    pipeline.run().await;
    assert_eq!((key_encryption.fails.load(Ordering::Relaxed), pipeline.queue.len()), (false, 1));
    pipeline.run_to_end(&api).await;
    case.check(&api, &pipeline, "key encryption").await;
}

/// Disabling survives as well: the service must not forget a 410.
#[tokio::test]
async fn status_410_disables_whatever_fails() {
    let (api, _, mut pipeline) = delivering().await;
    pipeline.receivers.respond(|_| 410);
    let mut failures = 0;
    for failure in CallFailure::ALL {
        for place in 0..20 {
            let client = api.tenant().await;
            let hook = webhook(&api, client.tenant, "https://example.com/one", &["asset.created"]).await;
            pipeline.stream.skip(&api.dynamo, &api.table).await;
            client.asset(json!({"name": "a"})).await;
            pipeline.fan_out(&api).await;
            api.faults.fail_call(place, failure);
            pipeline.run().await;
            let has_failed = api.faults.stop_failing();
            pipeline.run_to_end(&api).await;
            assert_eq!(hook.read().await.value.disabled_reason, Some(DisabledReason::Gone), "{failure:?} {place}");
            if !has_failed {
                break;
            }
            failures += 1;
        }
    }
    assert!(failures >= 12, "only {failures} failures");
}

/// Two functions handle the same message at the same time, and the slower one writes last. A success is never lost.
#[tokio::test]
async fn of_two_attempts_at_the_same_time_a_success_counts() {
    let (api, client, mut pipeline) = delivering().await;
    let hook = webhook(&api, client.tenant, "https://example.com/one", &["asset.created"]).await;
    let queue = Arc::clone(&pipeline.queue) as Arc<dyn Queue>;
    let receivers = Receivers::default();
    let other = Deliver::new(api.store.clone(), queue, Arc::clone(&api.key_encryption), receivers.clone());
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    for (slow, fast, expected) in [
        (200, 200, DeliveryStatus::Delivered),
        (200, 500, DeliveryStatus::Delivered),
        (500, 200, DeliveryStatus::Delivered),
        (500, 500, DeliveryStatus::Pending),
    ] {
        client.asset(json!({"name": "a"})).await;
        let event = pipeline.fan_out(&api).await.remove(0);
        pipeline.receivers.respond(move |_| slow);
        receivers.respond(move |_| fast);
        let received = pipeline.queue.receive().unwrap();
        let mut held = api.faults.hold("PutItem");
        let fast_one = async {
            held.arrived().await;
            let response = other.handle(received.clone()).await;
            held.release();
            response
        };
        let (slow_response, fast_response) = tokio::join!(pipeline.deliver.handle(received.clone()), fast_one);
        let record = hook.delivery(&event).await.unwrap();
        assert_eq!(record.status, expected, "{slow} {fast}");
        let is_done = expected == DeliveryStatus::Delivered;
        // What fails goes on as a retry, so no message comes back.
        assert!(slow_response.batch_item_failures.is_empty() && fast_response.batch_item_failures.is_empty());
        let retries = usize::from(fast == 500) + usize::from(slow == 500 && fast == 500);
        assert_eq!(pipeline.queue.take_sent_retries().len(), retries, "{slow} {fast}");
        // Two failures are one attempt of the schedule.
        assert_eq!(record.tries, if slow == 200 && fast == 500 { 2 } else { 1 }, "{slow} {fast}");
        pipeline.queue.delete(&received, &slow_response);
        pipeline.receivers.respond(|_| 200);
        pipeline.receivers.take();
        pipeline.run_to_end(&api).await;
        assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
        assert_eq!(pipeline.receivers.len(), usize::from(!is_done), "{slow} {fast}");
    }
}

/// A table that delays, throttles and fails calls, tears reads and leaves keys of batches unread, as DynamoDB may: everything
/// arrives.
fn on_a_weak_table(seed: u64) {
    paused_runtime().block_on(async {
        let faults = Weaknesses { failed_per_mille: 10, throttled_per_mille: 20, ..Weaknesses::ordinary() };
        let weaknesses = Weaknesses { unprocessed_per_mille: 100, conflict_per_mille: 40, ..faults };
        let api = Api::on_weak_table(seed, weaknesses).await;
        let client = api.tenant().await;
        let mut hooks = Vec::new();
        for path in ["one", "two", "three"] {
            hooks.push(webhook(&api, client.tenant, &format!("https://example.com/{path}"), &["asset.created"]).await);
        }
        let mut pipeline = Pipeline::start(&api).await;
        fail_first(&pipeline.receivers);
        let mut wanted = HashSet::new();
        for n in 0..8 {
            // The creation may fail; what is in the stream was committed.
            client.post("/assets", json!({"name": format!("a{n}")})).await;
            let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
            let is_asset = |record: &&serde_json::Value| {
                record["dynamodb"]["NewImage"]["entry"]["S"].as_str().unwrap().contains(r#""type":"asset.created""#)
            };
            let ids = records.iter().filter(is_asset).map(event_id);
            wanted.extend(ids.flat_map(|id| hooks.iter().map(move |hook| (hook.url.clone(), id.clone()))));
            let mut from = 0;
            for _ in 0..50 {
                let response = pipeline.fanout.handle(batch(&records[from..])).await;
                let Some(failure) = response.batch_item_failures.first() else { break };
                let number = failure.item_identifier.clone().unwrap();
                from = records.iter().position(|record| record["dynamodb"]["SequenceNumber"] == number.as_str()).unwrap();
            }
        }
        pipeline.run_to_end(&api).await;
        assert!(!wanted.is_empty(), "seed {seed}");
        let mut statuses: HashMap<(String, String), DeliveryStatus> = HashMap::new();
        for (url, event) in &wanted {
            let hook = hooks.iter().find(|hook| hook.url == *url).unwrap();
            let record = hook.delivery(event).await;
            statuses.insert((url.clone(), event.clone()), record.unwrap().status);
        }
        assert!(statuses.values().all(|status| *status == DeliveryStatus::Delivered), "seed {seed}: {statuses:?}");
        assert_eq!(pipeline.receivers.got(), wanted, "seed {seed}");
    });
}

#[test]
fn everything_arrives_on_a_weak_table() {
    for seed in 0..if full_tests() { 40 } else { 6 } {
        on_a_weak_table(seed);
    }
}

/// Records that come in batches of any size, and come again from any place, lead to the same deliveries.
#[tokio::test]
async fn the_stream_may_repeat_itself() {
    let (api, client, mut pipeline) = delivering().await;
    let hook = webhook(&api, client.tenant, "https://example.com/one", &["*"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.assets(6).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    for (from, to) in [(0, 3), (1, 6), (5, 6), (0, 6)] {
        assert_eq!(pipeline.fanout.handle(stream::batch(&records[from..to.min(records.len())])).await.batch_item_failures, []);
        pipeline.run_to_end(&api).await;
    }
    let received = pipeline.receivers.take();
    let expected: HashSet<String> = records.iter().take(6).map(event_id).collect();
    assert_eq!(received.iter().map(|sent| sent.id.clone()).collect::<HashSet<_>>(), expected);
    for event in expected {
        assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
    }
}
