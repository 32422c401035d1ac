//! Failing and slow webhooks delay no others, and the service disables webhooks that keep failing.

use crate::support::prelude::*;
use crate::support::webhooks::*;
use shared::domain::webhooks::{
    AttemptFailure, DeliveryRequest, DeliveryStatus, DisabledReason, Health, Message, TestEvent, Webhook,
};
use shared::queue::{NewMessage, Queue};

/// Creates an asset and makes the first attempt to deliver its event. Returns the event's ID.
async fn attempted(api: &Api, client: &Client, pipeline: &mut Pipeline) -> String {
    client.asset(json!({"name": "a"})).await;
    let event = pipeline.fan_out(api).await.pop().unwrap();
    pipeline.run().await;
    event
}

fn days(days: i64) -> i64 {
    TimeDelta::days(days).num_seconds()
}

async fn failing_since(api: &Api, hook: &TestWebhook) -> Option<Timestamp> {
    api.store.writer(hook.tenant).webhook_health(hook.id).await.unwrap().failing_since
}

async fn disablings(api: &Api, client: &Client, hook: &TestWebhook) -> Vec<Value> {
    api.advance_clock(11);
    let feed = client.get(&format!("/events?limit=100&entity_id={}", hook.id)).await.data();
    let of_service = |event: &&Value| event["changes"]["disabled_reason"]["new"].is_string();
    feed.as_array().unwrap().iter().filter(of_service).cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn status_410_disables_at_once_and_once() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    pipeline.receivers.respond(|_| 410);
    let event = attempted(&api, &client, &mut pipeline).await;
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.attempts[0].status, record.attempt_count), (DeliveryStatus::Failed, Some(410), 1));
    assert_eq!(pipeline.queue.len(), 0);
    let disabled = hook.read().await.value;
    assert_eq!((disabled.is_active, disabled.disabled_reason), (false, Some(DisabledReason::Gone)));
    let events = disablings(&api, &client, &hook).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "webhook.updated");
    assert_eq!(events[0]["changes"]["is_active"], json!({"old": true, "new": false}));
    let nobody = json!({"key_id": null, "key_name": "webhook delivery", "user_id": null, "user_name": null});
    assert_eq!(events[0]["actor"], nobody);
    attempted(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);

    // Many deliveries get a 410 concurrently: the webhook is disabled once.
    hook.activate(true).await;
    client.assets(10).await;
    let events = pipeline.fan_out(&api).await;
    pipeline.run().await;
    api.advance_clock(200);
    pipeline.run_to_end(&api).await;
    assert_eq!(disablings(&api, &client, &hook).await.len(), 2);
    for event in events {
        let record = hook.delivery(&event).await;
        assert!(record.is_none_or(|record| record.status == DeliveryStatus::Failed), "{event}");
    }
    assert_eq!(pipeline.queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn five_days_of_failures_disable() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    pipeline.receivers.respond(|_| 500);
    let first = attempted(&api, &client, &mut pipeline).await;
    let since = hook.delivery(&first).await.unwrap().attempts[0].at;
    assert_eq!(failing_since(&api, &hook).await, Some(since));
    pipeline.run_to_end(&api).await;
    assert_eq!(hook.delivery(&first).await.unwrap().status, DeliveryStatus::Failed);
    assert!(api.now().since(since) < TimeDelta::days(4));
    api.advance_clock(days(5) - 60 - api.now().since(since).num_seconds());
    attempted(&api, &client, &mut pipeline).await;
    assert!(hook.read().await.value.is_active);
    assert_eq!(failing_since(&api, &hook).await, Some(since));
    api.advance_clock(60);
    let last = attempted(&api, &client, &mut pipeline).await;
    let disabled = hook.read().await.value;
    assert_eq!((disabled.is_active, disabled.disabled_reason), (false, Some(DisabledReason::Failing)));
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&last).await.unwrap();
    assert_eq!((record.status, record.attempt_count), (DeliveryStatus::Failed, 2));
    assert_eq!(record.attempts[1].error, Some(AttemptFailure::WebhookDisabled));
    assert_eq!(disablings(&api, &client, &hook).await.len(), 1);
    api.check_invariants(client.tenant, "failures").await;
}

/// Tests the webhook with a receiver that responds with this status. Returns the test event's ID.
async fn tested(api: &Api, pipeline: &Pipeline, hook: &TestWebhook, status: u16) -> String {
    pipeline.receivers.respond(move |_| status);
    let (event_id, requested_at) = (api.store.writer(hook.tenant).new_id(api.now()).unwrap(), api.now());
    let test = Some(TestEvent { actor: Actor::operator() });
    let request = DeliveryRequest { test, ..DeliveryRequest::first(hook.tenant, hook.id, event_id, requested_at) };
    pipeline.queue.send(vec![Message::Delivery(request).into()]).await.unwrap();
    pipeline.run().await;
    event_id.to_string()
}

#[tokio::test(start_paused = true)]
async fn deliveries_of_test_events_do_not_disable_a_webhook() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let event = tested(&api, &pipeline, &hook, 410).await;
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Failed);
    let event = tested(&api, &pipeline, &hook, 500).await;
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Pending);
    assert!(hook.read().await.value.is_active);
    assert_eq!(failing_since(&api, &hook).await, None);
    // A successful test doesn't end a series of failures.
    attempted(&api, &client, &mut pipeline).await;
    let since = failing_since(&api, &hook).await;
    assert!(since.is_some());
    tested(&api, &pipeline, &hook, 200).await;
    assert_eq!(failing_since(&api, &hook).await, since);
}

/// The webhook changes between the read and the disabling: a new URL is not disabled because of the old one's failures.
#[tokio::test(start_paused = true)]
async fn webhook_whose_url_changed_during_an_attempt_is_not_disabled() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    pipeline.receivers.respond(|_| 410);
    // If only the description changes, the webhook is still disabled.
    client.asset(json!({"name": "a"})).await;
    pipeline.fan_out(&api).await;
    let change = hook.change(|webhook| Webhook { description: "new".parse().unwrap(), ..webhook });
    api.faults.overtake("TransactWriteItems", pipeline.run(), change).await;
    let disabled = hook.read().await.value;
    assert_eq!((disabled.disabled_reason, &*disabled.description), (Some(DisabledReason::Gone), "new"));
    // If the URL changes, the webhook stays active.
    hook.activate(true).await;
    client.asset(json!({"name": "b"})).await;
    let event = pipeline.fan_out(&api).await.pop().unwrap();
    let change = async {
        let active_since = api.store.now();
        hook.change(|webhook| Webhook { url: "https://example.org/new".parse().unwrap(), active_since, ..webhook }).await;
    };
    api.faults.overtake("TransactWriteItems", pipeline.run(), change).await;
    assert!(hook.read().await.value.is_active);
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Failed);
    // If the webhook is deleted, nothing is disabled.
    client.asset(json!({"name": "c"})).await;
    let event = pipeline.fan_out(&api).await.pop().unwrap();
    api.faults.overtake("TransactWriteItems", pipeline.run(), hook.delete()).await;
    assert_eq!((hook.delivery(&event).await.unwrap().status, pipeline.queue.len()), (DeliveryStatus::Failed, 0));
    api.check_invariants(client.tenant, "failures").await;
}

const URLS: [&str; 3] = ["https://example.com/one", "https://example.com/two", "https://example.com/three"];

async fn with_webhooks() -> (Api, Client, Pipeline, Vec<TestWebhook>) {
    let (api, client, mut pipeline) = delivering().await;
    let mut hooks = Vec::new();
    for url in URLS {
        hooks.push(webhook(&api, client.tenant, url, &["asset.created"]).await);
    }
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    (api, client, pipeline, hooks)
}

/// Creates an asset, and handles the message of its event. Returns the event.
async fn first_attempts(api: &Api, client: &Client, pipeline: &mut Pipeline) -> String {
    client.asset(json!({"name": "a"})).await;
    let event = pipeline.fan_out(api).await.remove(0);
    let received = pipeline.queue.receive().unwrap();
    assert_eq!(received.records.len(), 1);
    pipeline.queue.take_sent_retries();
    let response = pipeline.deliver.handle(received.clone()).await;
    assert_eq!(response.batch_item_failures, [], "nothing stays in flight");
    pipeline.queue.delete(&received, &response);
    event
}

fn arrived(pipeline: &Pipeline) -> Vec<String> {
    let mut urls: Vec<String> = pipeline.receivers.take().into_iter().map(|sent| sent.url).collect();
    urls.sort();
    urls
}

fn only_delivery(sent: &[NewMessage]) -> &DeliveryRequest {
    let [NewMessage { message: Message::Delivery(request), .. }] = sent else { panic!("{sent:?}") };
    request
}

#[tokio::test(start_paused = true)]
async fn a_failing_or_slow_webhook_is_attempted_apart_until_it_succeeds_or_is_quick() {
    let (api, client, mut pipeline, hooks) = with_webhooks().await;
    pipeline.receivers.respond(|sent| if sent.url == URLS[0] { 500 } else { 204 });
    first_attempts(&api, &client, &mut pipeline).await;
    assert_eq!(arrived(&pipeline).len(), 3);
    // The next event isn't delayed: the slow webhook's delivery goes straight to the retry queue.
    let event = first_attempts(&api, &client, &mut pipeline).await;
    assert_eq!(arrived(&pipeline), [URLS[2], URLS[1]]);
    let sent = pipeline.queue.take_sent_retries();
    let apart = only_delivery(&sent);
    assert_eq!((apart.webhook_id, apart.event_id.to_string(), sent[0].delay.as_secs()), (hooks[0].id, event, 0));
    pipeline.receivers.respond(|_| 204);
    pipeline.run_to_end(&api).await;
    assert_eq!(arrived(&pipeline), [URLS[0], URLS[0]]);
    first_attempts(&api, &client, &mut pipeline).await;
    assert_eq!((arrived(&pipeline).len(), pipeline.queue.take_sent_retries()), (3, vec![]));

    let health = async || api.store.writer(client.tenant).webhook_health(hooks[1].id).await.unwrap();
    pipeline.receivers.set_slow(&[URLS[1]]);
    for expected in [3, 2] {
        first_attempts(&api, &client, &mut pipeline).await;
        assert_eq!(arrived(&pipeline).len(), expected);
        assert_eq!(health().await, Health { is_slow: true, failing_since: None });
    }
    // The webhook's health doesn't change, so it isn't written.
    api.meter.take();
    pipeline.run_to_end(&api).await;
    assert_eq!((arrived(&pipeline).len(), api.meter.take().write_units), (1, 1.0));
    pipeline.receivers.set_slow(&[]);
    first_attempts(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    assert_eq!((arrived(&pipeline).len(), health().await), (3, Health::default()));
    first_attempts(&api, &client, &mut pipeline).await;
    assert_eq!((arrived(&pipeline).len(), pipeline.queue.take_sent_retries()), (3, vec![]));
}

#[tokio::test(start_paused = true)]
async fn failed_reads_redeliver_the_message_without_delaying_other_webhooks() {
    let (api, client, mut pipeline, hooks) = with_webhooks().await;
    // Calls: webhooks, event, three records and health items, and names.
    for place in 0..9 {
        api.advance_clock(2);
        client.asset(json!({"name": "a"})).await;
        let event = pipeline.fan_out(&api).await.remove(0);
        let received = pipeline.queue.receive().unwrap();
        api.faults.fail_call(place, CallFailure::Throttled);
        let response = pipeline.deliver.handle(received.clone()).await;
        assert!(api.faults.stop_failing(), "{place}");
        assert_eq!((response.batch_item_failures.len(), arrived(&pipeline).len()), (1, 2), "{place}");
        pipeline.queue.delete(&received, &response);
        pipeline.run_to_end(&api).await;
        assert_eq!(arrived(&pipeline).len(), 1, "{place}");
        for hook in &hooks {
            assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered, "{place}");
        }
        assert_eq!(pipeline.queue.take_sent_retries(), [], "{place}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_record_can_not_be_written_is_recorded_later_and_not_made_again() {
    let (api, client, mut pipeline, hooks) = with_webhooks().await;
    let partition = [Keys::of(client.tenant).webhook_partition(hooks[0].id).as_s().unwrap().clone()];
    for (status, expected) in [(204, DeliveryStatus::Delivered), (500, DeliveryStatus::Pending)] {
        pipeline.receivers.respond(move |sent| if sent.url == URLS[0] { status } else { 204 });
        api.faults.throttle_writes_to(&partition);
        let event = first_attempts(&api, &client, &mut pipeline).await;
        api.faults.throttle_writes_to(&[]);
        assert_eq!((arrived(&pipeline).len(), hooks[0].delivery(&event).await), (3, None));
        let sent = pipeline.queue.take_sent_retries();
        // The next attempt's message was sent before, and ends without effect, because there is no record.
        let [next @ .., to_record] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!(next.len(), usize::from(expected == DeliveryStatus::Pending));
        let attempted = only_delivery(std::slice::from_ref(to_record)).attempted.clone().expect("an attempt to record");
        assert_eq!(attempted.attempt.status, Some(status));
        assert!((5..=10).contains(&to_record.delay.as_secs()));
        api.advance_clock(10);
        pipeline.run().await;
        let record = hooks[0].delivery(&event).await.unwrap();
        // The second scheduled attempt is due.
        let again = usize::from(expected == DeliveryStatus::Pending);
        assert_eq!((record.status, record.attempts[0].at), (expected, attempted.attempt.at));
        assert_eq!((record.attempts.len(), pipeline.receivers.len()), (1 + again, again));
        pipeline.queue.send_retry(sent).await.unwrap();
        pipeline.receivers.respond(|_| 204);
        pipeline.run_to_end(&api).await;
        let record = hooks[0].delivery(&event).await.unwrap();
        assert_eq!((record.status, record.attempts.len()), (DeliveryStatus::Delivered, 1 + 2 * again));
        pipeline.receivers.take();
    }
    // A second failure whose record can't be written doesn't end the attempts.
    pipeline.receivers.respond(|sent| if sent.url == URLS[0] { 500 } else { 204 });
    let event = first_attempts(&api, &client, &mut pipeline).await;
    api.faults.throttle_writes_to(&partition);
    api.advance_clock(6);
    pipeline.run().await;
    api.faults.throttle_writes_to(&[]);
    assert_eq!(hooks[0].delivery(&event).await.unwrap().attempts.len(), 1);
    pipeline.receivers.respond(|_| 204);
    pipeline.run_to_end(&api).await;
    let record = hooks[0].delivery(&event).await.unwrap();
    let statuses: Vec<_> = record.attempts.iter().map(|attempt| attempt.status.unwrap()).collect();
    assert_eq!((record.status, statuses), (DeliveryStatus::Delivered, vec![500, 500, 204]));
}
