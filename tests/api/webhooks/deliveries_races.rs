//! At-least-once delivery: despite failures, crashes and concurrency, every event reaches every active webhook that
//! subscribes to it.

use crate::support::prelude::*;
use crate::support::webhooks::*;
use deliver::Deliver;
use shared::domain::webhooks::{Attempted, DeliveryRequest, DeliveryStatus, DisabledReason, Message};
use shared::queue::Queue;

/// A tenant with two webhooks, and an event for both.
struct Case {
    client: Client,
    hooks: [TestWebhook; 2],
    event: String,
}

/// Creates a tenant with two webhooks, delivers the events so far, and creates an event with messages in the queue.
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

/// The attempt that meets the fault.
#[derive(Debug, Clone, Copy)]
enum Attempt {
    First,
    Second,
}

impl Attempt {
    /// Runs everything before the attempt. The receivers refuse all first attempts.
    async fn prepare(self, api: &Api, pipeline: &mut Pipeline) {
        pipeline.receivers.fail_first();
        if matches!(self, Self::Second) {
            pipeline.run().await;
            api.advance_clock(6);
        }
    }
}

impl Case {
    /// Checks that both webhooks received the event, and have records of it.
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
            let health = api.store.tenant(hook.tenant).webhook_health(hook.id).await.unwrap();
            assert_eq!(health.failing_since, None, "{name}");
            assert!(hook.read().await.value.is_active, "{name}");
        }
        assert_eq!(pipeline.queue.len(), 0, "{name}");
        api.check_invariants(self.client.tenant, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_survives_any_disturbance() {
    // Each case has a separate table, because the stream and the check read the whole table.
    let case = async |place, (attempt, way): (Attempt, Disturbance)| {
        let (api, _, mut pipeline) = delivering().await;
        let case = case(&api, &mut pipeline).await;
        attempt.prepare(&api, &mut pipeline).await;
        let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
        case.check(&api, &pipeline, &format!("{attempt:?} attempt, {way:?} {place}")).await;
        is_disturbed
    };
    let of_both = |way| [(Attempt::First, way), (Attempt::Second, way)];
    at_each_place(&of_both(Disturbance::IsDropped), 6, 2, &case).await;
    at_each_place(&CallFailure::ALL.map(|failure| of_both(Disturbance::Fails(failure))).concat(), 8, 3, &case).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_recorded_after_a_success_does_not_count_as_the_last_attempt() {
    let (api, _, mut pipeline) = delivering().await;
    let case = case(&api, &mut pipeline).await;
    pipeline.receivers.fail_first();
    pipeline.run_to_end(&api).await;
    for hook in &case.hooks {
        let record = hook.delivery(&case.event).await.unwrap();
        let attempted = Attempted { event_type: "asset.created".to_owned(), attempt: record.attempts[0].clone() };
        assert!(!attempted.attempt.is_success());
        let request = DeliveryRequest { attempted: Some(attempted), ..delivery(hook, &case.event, record.requested_at) };
        send(&pipeline, request).await;
    }
    pipeline.run_to_end(&api).await;
    case.check(&api, &pipeline, "recorded late").await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_survives_failures_of_the_queue_and_of_key_encryption() {
    let (api, _) = Api::with_tenant().await;
    let key_encryption = Arc::new(ObservedKeyEncryption::new(&api));
    let mut pipeline = Pipeline::with_key_encryption(&api, Arc::clone(&key_encryption) as Arc<dyn KeyEncryption>).await;
    let mut failures = 0;
    for (place, after) in [(0, false), (0, true), (1, false), (1, true)] {
        let case = case(&api, &mut pipeline).await;
        pipeline.receivers.fail_first();
        pipeline.queue.fail_call(place, after);
        pipeline.run().await;
        failures += usize::from(pipeline.queue.stop_failing());
        pipeline.run_to_end(&api).await;
        case.check(&api, &pipeline, &format!("{place} {after}")).await;
    }
    assert_eq!(failures, 4);
    let case = case(&api, &mut pipeline).await;
    pipeline.receivers.respond(|_| 200);
    key_encryption.fail_to_decrypt();
    pipeline.run().await;
    assert_eq!((key_encryption.has_failed(), pipeline.queue.len()), (true, 1));
    pipeline.run_to_end(&api).await;
    case.check(&api, &pipeline, "key encryption").await;
}

/// The webhook is disabled despite the failure: a 410 must not be lost.
#[tokio::test(start_paused = true)]
async fn status_410_disables_whatever_fails() {
    let (api, _, mut pipeline) = delivering().await;
    pipeline.receivers.respond(|_| 410);
    at_each_place(&CallFailure::ALL, 4, 3, async |place, failure| {
        let client = api.tenant().await;
        let hook = webhook(&api, client.tenant, "https://example.com/one", &["asset.created"]).await;
        pipeline.stream.skip(&api.dynamo, &api.table).await;
        client.asset(json!({"name": "a"})).await;
        pipeline.fan_out(&api).await;
        let has_failed = pipeline.run_disturbed(&api, place, Disturbance::Fails(failure)).await;
        assert_eq!(hook.read().await.value.disabled_reason, Some(DisabledReason::Gone), "{failure:?} {place}");
        has_failed
    })
    .await;
}

/// Two functions handle the same message concurrently, and the slower one writes last. A success is never lost.
#[tokio::test(start_paused = true)]
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
        // The message is moved to the retry queue, where failing webhooks are attempted.
        let received = pipeline.queue.receive().unwrap();
        pipeline.queue.delete(&received, &Default::default());
        let request = delivery(&hook, &event, event.parse::<EventId>().unwrap().timestamp());
        pipeline.queue.send_retry(vec![Message::from(request).into()]).await.unwrap();
        pipeline.queue.take_sent_retries();
        pipeline.receivers.respond(move |_| slow);
        receivers.respond(move |_| fast);
        let received = pipeline.queue.receive().unwrap();
        let (slow_one, fast_one) = (pipeline.deliver.handle(received.clone()), other.handle(received.clone()));
        let (slow_response, fast_response) = api.faults.overtake("PutItem", slow_one, fast_one).await;
        let record = hook.delivery(&event).await.unwrap();
        assert_eq!(record.status, expected, "{slow} {fast}");
        let is_done = expected == DeliveryStatus::Delivered;
        // Failed attempts continue as retries, so no message is redelivered.
        assert!(slow_response.batch_item_failures.is_empty() && fast_response.batch_item_failures.is_empty());
        let retries = usize::from(fast == 500) + usize::from(slow == 500);
        assert_eq!(pipeline.queue.take_sent_retries().len(), retries, "{slow} {fast}");
        // Two failures count as one scheduled attempt.
        assert_eq!(record.tries, if slow == 200 && fast == 500 { 2 } else { 1 }, "{slow} {fast}");
        pipeline.queue.delete(&received, &slow_response);
        pipeline.receivers.respond(|_| 200);
        pipeline.receivers.take();
        pipeline.run_to_end(&api).await;
        assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
        assert_eq!(pipeline.receivers.len(), usize::from(!is_done), "{slow} {fast}");
    }
}

/// A webhook with delivered events, the last one so recent that the feed holds it back.
struct Replayed {
    hook: TestWebhook,
    since: Timestamp,
    until: Timestamp,
    events: HashSet<String>,
}

/// Creates a tenant with a webhook, and delivers this many events and one more.
async fn replayed(api: &Api, pipeline: &mut Pipeline, count: usize) -> Replayed {
    let client = api.tenant().await;
    let hook = webhook(api, client.tenant, "https://example.com/one", &["asset.created"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    let since = api.now();
    client.assets(count).await;
    pipeline.finish(api).await;
    settle(api);
    client.asset(json!({"name": "late"})).await;
    pipeline.finish(api).await;
    let events: HashSet<String> = pipeline.receivers.take().into_iter().map(|sent| sent.id).collect();
    assert!(events.len() > count, "{}", events.len());
    pipeline.queue.take_sent();
    api.advance_clock(1);
    Replayed { hook, since, until: api.now(), events }
}

impl Replayed {
    /// Starts a replay of all events. Returns the time of the request.
    async fn replay(&self, api: &Api, pipeline: &Pipeline) -> Timestamp {
        let request = replay(api, &self.hook, self.since, self.until, &["asset.created"]);
        send(pipeline, Message::Replay(request.clone())).await;
        request.requested_at
    }

    /// Checks that all events were delivered again. Returns the number of the replay's messages.
    async fn check(&self, pipeline: &Pipeline, requested_at: Timestamp, name: &str) -> usize {
        let got: HashSet<String> = pipeline.receivers.take().into_iter().map(|sent| sent.id).collect();
        assert_eq!(got, self.events, "{name}");
        for event in &self.events {
            let record = self.hook.delivery(event).await.unwrap();
            assert_eq!((record.status, record.requested_at), (DeliveryStatus::Delivered, requested_at), "{name}");
        }
        assert_eq!(pipeline.queue.len(), 0, "{name}");
        pipeline.queue.take_sent().iter().filter(|new| matches!(new.message, Message::Replay(_))).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_survives_any_disturbance() {
    // Each case has a separate table, because the stream reads the whole table.
    let replayed = async |place, way| {
        let (api, _, mut pipeline) = delivering().await;
        let replayed = replayed(&api, &mut pipeline, if way == Disturbance::IsDropped { 11 } else { 2 }).await;
        let requested_at = replayed.replay(&api, &pipeline).await;
        let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
        replayed.check(&pipeline, requested_at, &format!("{way:?} {place}")).await;
        is_disturbed
    };
    at_each_place(&[Disturbance::IsDropped], 4, 1, &replayed).await;
    at_each_place(&CallFailure::ALL.map(Disturbance::Fails), 8, 3, &replayed).await;
}

/// The message for the rest of a replay is sent last, because otherwise two messages could continue the same replay.
#[tokio::test(start_paused = true)]
async fn a_replay_is_not_doubled_when_only_some_messages_are_sent() {
    let (api, _, mut pipeline) = delivering().await;
    let replayed = replayed(&api, &mut pipeline, 109).await;
    settle(&api);
    // A hundred deliveries take ten calls, the rest of the replay takes an eleventh, and the rest's own messages take a twelfth.
    let failures = [(0, false), (0, true), (9, false), (9, true), (10, false), (10, true), (11, false), (11, true)];
    for (place, after) in sample(failures, 1) {
        let requested_at = replayed.replay(&api, &pipeline).await;
        pipeline.queue.fail_call(place, after);
        pipeline.run().await;
        assert!(pipeline.queue.stop_failing(), "{place} {after}");
        pipeline.run_to_end(&api).await;
        let messages = replayed.check(&pipeline, requested_at, &format!("{place} {after}")).await;
        // Only a lost response to sending the rest can't be told from a failure.
        assert_eq!(messages, if (place, after) == (10, true) { 3 } else { 2 }, "{place} {after}");
        api.advance_clock(1);
    }
}

/// Delivers all events although the table delays, throttles and fails calls, tears reads and leaves keys of batches unread.
fn on_a_faulty_table(seed: u64) {
    paused_runtime().block_on(async {
        let faults = Weaknesses { failed_per_mille: 10, throttled_per_mille: 20, ..Weaknesses::ordinary() };
        let weaknesses = Weaknesses { unprocessed_per_mille: 100, conflict_per_mille: 40, ..faults };
        let api = Api::on_faulty_table(seed, weaknesses).await;
        let client = api.tenant().await;
        let mut hooks = Vec::new();
        for path in ["one", "two", "three"] {
            hooks.push(webhook(&api, client.tenant, &format!("https://example.com/{path}"), &["asset.created"]).await);
        }
        let mut pipeline = Pipeline::start(&api).await;
        pipeline.receivers.fail_first();
        let mut wanted = HashSet::new();
        for n in 0..8 {
            // The request can fail, but its event is in the stream if the transaction was committed.
            client.post("/assets", json!({"name": format!("a{n}")})).await;
            let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
            let is_asset = |record: &&Value| {
                record["dynamodb"]["NewImage"]["entry"]["S"].as_str().unwrap().contains(r#""type":"asset.created""#)
            };
            let ids = records.iter().filter(is_asset).map(event_id);
            wanted.extend(ids.flat_map(|id| hooks.iter().map(move |hook| (hook.url.clone(), id.clone()))));
            let mut from = 0;
            for _ in 0..50 {
                let response = pipeline.fanout.handle(stream_batch(&records[from..])).await;
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
fn everything_arrives_on_a_faulty_table() {
    for seed in sample(0..40, 2) {
        on_a_faulty_table(seed);
    }
}
