//! Webhooks that nobody receives: the service disables them, with an event in their history.

use crate::support::webhooks::pipeline::{Pipeline, TestWebhook, delivering, webhook};
use crate::support::{Api, Client};
use chrono::TimeDelta;
use serde_json::{Value, json};
use shared::domain::actor::Actor;
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{AttemptFailure, DeliveryRequest, DeliveryStatus, DisabledReason, Message, TestEvent, Webhook};
use shared::queue::Queue;

async fn with_webhook() -> (Api, Client, Pipeline, TestWebhook) {
    let (api, client, mut pipeline) = delivering().await;
    let hook = webhook(&api, client.tenant, "https://example.com/hook", &["asset.created"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    (api, client, pipeline, hook)
}

/// Creates an asset and makes the first attempt to deliver the event. Returns the event's ID.
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
    api.store.tenant(hook.tenant).webhook_health(hook.id).await.unwrap().failing_since
}

async fn disablings(api: &Api, client: &Client, hook: &TestWebhook) -> Vec<Value> {
    api.advance_clock(11);
    let feed = client.get(&format!("/events?limit=100&entity_id={}", hook.id)).await.data();
    let of_service = |event: &&Value| event["changes"]["disabled_reason"]["new"].is_string();
    feed.as_array().unwrap().iter().filter(of_service).cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn status_410_disables_at_once() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
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
    // Nothing more is sent.
    attempted(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn five_days_of_failures_disable() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
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
    // Pending deliveries are given up.
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&last).await.unwrap();
    assert_eq!((record.status, record.attempt_count), (DeliveryStatus::Failed, 2));
    assert_eq!(record.attempts[1].error, Some(AttemptFailure::WebhookDisabled));
    assert_eq!(disablings(&api, &client, &hook).await.len(), 1);
    let found = dev_server::invariants::violations(&api.store.tenant(client.tenant), &api.dynamo, &api.table).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_success_begins_the_count_anew() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
    pipeline.receivers.respond(|_| 500);
    attempted(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    pipeline.receivers.respond(|_| 200);
    attempted(&api, &client, &mut pipeline).await;
    assert_eq!(failing_since(&api, &hook).await, None);
    pipeline.receivers.respond(|_| 500);
    api.advance_clock(days(3));
    let event = attempted(&api, &client, &mut pipeline).await;
    let since = hook.delivery(&event).await.unwrap().attempts[0].at;
    assert_eq!(failing_since(&api, &hook).await, Some(since));
    pipeline.run_to_end(&api).await;
    assert!(hook.read().await.value.is_active);
}

#[tokio::test(start_paused = true)]
async fn failures_before_it_was_activated_again_do_not_count() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
    pipeline.receivers.respond(|_| 500);
    attempted(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    api.advance_clock(days(5));
    hook.activate(false).await;
    hook.activate(true).await;
    let event = attempted(&api, &client, &mut pipeline).await;
    assert!(hook.read().await.value.is_active);
    let since = hook.delivery(&event).await.unwrap().attempts[0].at;
    assert_eq!(failing_since(&api, &hook).await, Some(since));
    api.advance_clock(days(5));
    attempted(&api, &client, &mut pipeline).await;
    assert_eq!(hook.read().await.value.disabled_reason, Some(DisabledReason::Failing));
}

/// Tests the webhook, whose receiver responds with this status. Returns the ID of the test's event.
async fn tested(api: &Api, pipeline: &Pipeline, hook: &TestWebhook, status: u16) -> String {
    pipeline.receivers.respond(move |_| status);
    let (event_id, requested_at) = (api.store.tenant(hook.tenant).new_id(api.now()).unwrap(), api.now());
    let test = Some(TestEvent { actor: Actor::operator() });
    let request = DeliveryRequest { test, ..DeliveryRequest::first(hook.tenant, hook.id, event_id, requested_at) };
    pipeline.queue.send(vec![Message::Delivery(request).into()]).await.unwrap();
    pipeline.run().await;
    event_id.to_string()
}

#[tokio::test(start_paused = true)]
async fn tests_neither_count_nor_disable() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
    let event = tested(&api, &pipeline, &hook, 410).await;
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Failed);
    let event = tested(&api, &pipeline, &hook, 500).await;
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Pending);
    assert!(hook.read().await.value.is_active);
    assert_eq!(failing_since(&api, &hook).await, None);
    // Nor does one that succeeds say that deliveries do.
    attempted(&api, &client, &mut pipeline).await;
    let since = failing_since(&api, &hook).await;
    assert!(since.is_some());
    tested(&api, &pipeline, &hook, 200).await;
    assert_eq!(failing_since(&api, &hook).await, since);
}

/// A change of the webhook between the read and the disabling: another address is not disabled for the failures of the old one.
#[tokio::test(start_paused = true)]
async fn what_has_changed_meanwhile_is_respected() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
    pipeline.receivers.respond(|_| 410);
    // Only the description changes: it is disabled all the same.
    client.asset(json!({"name": "a"})).await;
    pipeline.fan_out(&api).await;
    let change = hook.change(|webhook| Webhook { description: "new".parse().unwrap(), ..webhook });
    api.faults.overtake("TransactWriteItems", pipeline.run(), change).await;
    let disabled = hook.read().await.value;
    assert_eq!((disabled.disabled_reason, &*disabled.description), (Some(DisabledReason::Gone), "new"));
    // Another address becomes active.
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
    // Deleted.
    client.asset(json!({"name": "c"})).await;
    let event = pipeline.fan_out(&api).await.pop().unwrap();
    api.faults.overtake("TransactWriteItems", pipeline.run(), hook.delete()).await;
    assert_eq!((hook.delivery(&event).await.unwrap().status, pipeline.queue.len()), (DeliveryStatus::Failed, 0));
    let found = dev_server::invariants::violations(&api.store.tenant(client.tenant), &api.dynamo, &api.table).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
}

/// Many deliveries get 410 at the same time: the webhook is disabled once.
#[tokio::test(start_paused = true)]
async fn it_is_disabled_once() {
    let (api, client, mut pipeline, hook) = with_webhook().await;
    pipeline.receivers.respond(|_| 410);
    client.assets(10).await;
    let events = pipeline.fan_out(&api).await;
    pipeline.run().await;
    api.advance_clock(200);
    pipeline.run_to_end(&api).await;
    assert_eq!(disablings(&api, &client, &hook).await.len(), 1);
    for event in events {
        let record = hook.delivery(&event).await;
        assert!(record.is_none_or(|record| record.status == DeliveryStatus::Failed), "{event}");
    }
    assert_eq!(pipeline.queue.len(), 0);
}
