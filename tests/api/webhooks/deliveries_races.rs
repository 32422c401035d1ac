//! At-least-once delivery: despite failures, crashes and concurrency, every event reaches every active webhook that
//! subscribes to it.

use crate::support::prelude::*;
use crate::support::webhooks::*;
use crate::webhooks::waits::{Waiting, advance_to};
use deliver::Deliver;
use shared::domain::webhooks::{Attempted, DeliveryRequest, DeliveryStatus, DisabledReason, Message};
use shared::queue::Queue;

/// A tenant with two webhooks, and an event for both.
struct Case {
    client: Client,
    hooks: [TestWebhook; 2],
    events: Vec<String>,
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
    let events = pipeline.fan_out(api).await;
    Case { client, hooks, events }
}

impl Case {
    /// Checks that both webhooks received the events, and have records of them.
    async fn check(&self, api: &Api, pipeline: &Pipeline, name: &str) {
        let received = pipeline.receivers.take();
        for hook in &self.hooks {
            let of_hook: Vec<_> = received.iter().filter(|sent| sent.url == hook.url).collect();
            for sent in &of_hook {
                assert_eq!(sent.signatures, hook.secret.sign(&sent.id, sent.seconds, &sent.body), "{name}");
            }
            let ids: BTreeSet<_> = of_hook.iter().map(|sent| &sent.id).collect();
            assert_eq!(ids, self.events.iter().collect(), "{name}");
            for event in &self.events {
                let record = hook.delivery(event).await.unwrap();
                assert_eq!((record.status, record.next_attempt_at), (DeliveryStatus::Delivered, None), "{name}");
                assert_eq!(record.attempt_count, record.attempts.len() as u64, "{name}");
            }
            let health = api.store.writer(hook.tenant).webhook_health(hook.id).await.unwrap();
            assert_eq!(health.failing_since, None, "{name}");
            assert!(hook.read().await.value.is_active, "{name}");
        }
        assert_eq!(pipeline.queue.len(), 0, "{name}");
        api.check_invariants(self.client.tenant, name).await;
    }
}

/// The step that meets the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Fanout,
    /// Fails, so that the next attempt is queued.
    FirstAttempt,
    SecondAttempt,
    /// The response is 410, which must not be lost.
    Gone,
    /// A waiting delivery is sent to the queue again.
    Wait,
    /// The last message of a wait: its attempt.
    EndOfWait,
    Replay,
}

impl Step {
    /// Runs everything before the step, injects the fault, and checks that nothing is lost in the end. Returns whether the fault
    /// was injected. Each case has a separate table, because the stream and the check read the whole table.
    async fn survives(self, place: usize, way: Disturbance) -> bool {
        let (api, client, mut pipeline) = delivering().await;
        let name = format!("{self:?}, {way:?} {place}");
        match self {
            Self::Replay => {
                let replayed = replayed(&api, &mut pipeline, 11).await;
                let requested_at = replayed.replay(&api, &pipeline).await;
                let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
                replayed.check(&pipeline, requested_at, &name).await;
                is_disturbed
            }
            Self::Wait | Self::EndOfWait => {
                let waiting = Waiting::of(&api, &client, &mut pipeline).await;
                while self == Self::EndOfWait && waiting.due.since(api.now()) > TimeDelta::seconds(1) {
                    pipeline.run().await;
                    advance_to(&api, pipeline.queue.next_visible().unwrap());
                }
                let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
                let received = pipeline.receivers.take();
                assert_eq!(waiting.record().await.status, DeliveryStatus::Delivered, "{name}");
                if self == Self::Wait {
                    let late = received[0].at.since(waiting.due).num_milliseconds();
                    assert!(received.len() == 1 && (-1_000..2_000).contains(&late), "{name}: {late} ms late");
                }
                is_disturbed
            }
            Self::Fanout => {
                let mut case = case(&api, &mut pipeline).await;
                client.asset(json!({"name": "of a tenant without webhooks"})).await;
                case.client.asset(json!({"name": "b"})).await;
                let (events, is_disturbed) = pipeline.fan_out_disturbed(&api, place, way).await;
                case.events.push(events[1].clone());
                pipeline.run_to_end(&api).await;
                case.check(&api, &pipeline, &name).await;
                is_disturbed
            }
            Self::FirstAttempt | Self::SecondAttempt | Self::Gone => {
                let case = case(&api, &mut pipeline).await;
                pipeline.receivers.fail_first();
                if self == Self::SecondAttempt {
                    pipeline.run().await;
                    api.advance_clock(6);
                } else if self == Self::Gone {
                    pipeline.receivers.respond(|_| 410);
                }
                let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
                if self != Self::Gone {
                    case.check(&api, &pipeline, &name).await;
                }
                for hook in case.hooks.iter().filter(|_| self == Self::Gone) {
                    assert_eq!(hook.read().await.value.disabled_reason, Some(DisabledReason::Gone), "{name}");
                }
                is_disturbed
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_event_arrives_whatever_fails() {
    // The least numbers of calls to the table, of messages to a queue, and of await points.
    for (step, calls, messages, places) in [
        (Step::Fanout, 1, 1, 3),
        (Step::FirstAttempt, 8, 2, 6),
        (Step::SecondAttempt, 8, 0, 6),
        (Step::Gone, 4, 0, 6),
        (Step::Wait, 0, 1, 1),
        (Step::EndOfWait, 3, 0, 3),
        (Step::Replay, 8, 2, 4),
    ] {
        let case = async |place, way| step.survives(place, way).await;
        at_each_place(&CallFailure::ALL.map(Disturbance::Fails), calls, 2, case).await;
        at_each_place(&[false, true].map(Disturbance::QueueFails), messages, 1, case).await;
        at_each_place(&[Disturbance::IsDropped], places, 1, case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_recorded_after_a_success_does_not_count_as_the_last_attempt() {
    let (api, _, mut pipeline) = delivering().await;
    let case = case(&api, &mut pipeline).await;
    pipeline.receivers.fail_first();
    pipeline.run_to_end(&api).await;
    for hook in &case.hooks {
        let record = hook.delivery(&case.events[0]).await.unwrap();
        let attempted = Attempted { event_type: "asset.created".to_owned(), attempt: record.attempts[0].clone() };
        assert!(!attempted.attempt.is_success());
        let request = DeliveryRequest { attempted: Some(attempted), ..delivery(hook, &case.events[0], record.requested_at) };
        send(&pipeline, request).await;
    }
    pipeline.run_to_end(&api).await;
    case.check(&api, &pipeline, "recorded late").await;
}

#[tokio::test(start_paused = true)]
async fn delivery_waits_for_a_secret_that_cannot_be_decrypted() {
    let (api, _) = Api::with_tenant().await;
    let key_encryption = Arc::new(ObservedKeyEncryption::new(&api));
    let mut pipeline = Pipeline::with_key_encryption(&api, Arc::clone(&key_encryption) as Arc<dyn KeyEncryption>).await;
    let case = case(&api, &mut pipeline).await;
    key_encryption.fail_to_decrypt();
    pipeline.run().await;
    assert_eq!((key_encryption.has_failed(), pipeline.queue.len()), (true, 1));
    pipeline.run_to_end(&api).await;
    case.check(&api, &pipeline, "key encryption").await;
}

/// Two functions handle the same message concurrently, and the slower one writes last. A success is never lost.
#[tokio::test(start_paused = true)]
async fn success_wins_over_a_simultaneous_failure() {
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
