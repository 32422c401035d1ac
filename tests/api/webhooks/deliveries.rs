//! From the queue to the receivers: requests, repetitions and records.

use crate::support::queue::VISIBILITY;
use crate::support::webhooks::pipeline::{URL, created, delivering, delivery, encrypted, send, settle, webhook, with_webhook};
use serde_json::{Value, json};
use shared::app::system_clock;
use shared::domain::actor::Actor;
use shared::domain::values::id::{EventId, Id};
use shared::domain::webhooks::{AttemptFailure, DeliveryRequest, DeliveryStatus, TestEvent, Webhook, WebhookSecret};
use shared::lambda::BatchHandler;
use shared::store::keys::Keys;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_delivery_has_the_entry_of_the_feed_and_is_recorded() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (asset, event) = created(&api, &client, &mut pipeline).await;
    pipeline.run().await;
    settle(&api);
    let received = pipeline.receivers.take();
    assert_eq!(received.len(), 1);
    let sent = &received[0];
    assert_eq!((sent.url.as_str(), &sent.id), (URL, &event));
    assert_eq!(sent.seconds, sent.at.millis() / 1000);
    assert_eq!(sent.signatures, hook.secret.sign(&event, sent.seconds, &sent.body));
    // Byte for byte.
    let feed = client.get("/events?limit=100").await;
    assert!(feed.text().contains(sent.entry()), "{} {}", sent.body, feed.text());
    let (body, entry) = (sent.json(), feed.data().as_array().unwrap().iter().find(|it| it["id"] == *event).unwrap().clone());
    assert_eq!(body, json!({"type": "asset.created", "timestamp": entry["at"], "data": entry}));
    assert_eq!((&entry["entity_id"], &entry["entity_name"]), (&json!(asset), &json!("Laptop")));
    assert!(entry["entity_tag"].is_string());
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.attempt_count, record.next_attempt_at), (DeliveryStatus::Delivered, 1, None));
    let event: EventId = event.parse().unwrap();
    assert_eq!((record.requested_at, record.event_type.as_str()), (event.timestamp(), "asset.created"));
    assert_eq!((record.attempts[0].status, record.attempts[0].at), (Some(204), sent.at));
    assert_eq!(pipeline.queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_webhooks_get_the_same_event_each_with_its_signature() {
    let (api, client, mut pipeline, one) = with_webhook(&["*"]).await;
    let other = webhook(&api, client.tenant, "https://example.org/other", &["*"]).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    for hook in [&one, &other] {
        let of_hook: Vec<_> = received.iter().filter(|it| it.url == hook.url && it.id == event).collect();
        assert_eq!(of_hook.len(), 1);
        assert_eq!(of_hook[0].signatures, hook.secret.sign(&event, of_hook[0].seconds, &of_hook[0].body));
        assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_resource_keeps_its_name() {
    let (api, client, mut pipeline, _) = with_webhook(&["*"]).await;
    let asset = client.asset(json!({"name": "Laptop"})).await;
    let tag = client.get(&format!("/assets/{asset}")).await.data()["asset_tag"].clone();
    client.delete(&format!("/assets/{asset}")).await.data();
    assert!(tag.is_string());
    pipeline.finish(&api).await;
    settle(&api);
    let feed = client.get("/events?limit=100").await;
    let received = pipeline.receivers.take();
    assert!(received.len() >= 2);
    for sent in received {
        assert!(feed.text().contains(sent.entry()), "{}", sent.body);
        let data = sent.json()["data"].clone();
        assert_eq!((&data["entity_name"], &data["entity_tag"]), (&json!("Laptop"), &tag));
    }
}

#[tokio::test(start_paused = true)]
async fn doubles_of_records_and_messages_are_not_sent_again() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "a"})).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    let batch = || crate::support::webhooks::stream::batch(&[records.clone(), records.clone()].concat());
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    let received = pipeline.receivers.take();
    let event = crate::support::webhooks::pipeline::event_id(&records[0]);
    // Messages that are handled at the same time may both be sent; all have the same ID.
    assert!((1..=2).contains(&received.len()) && received.iter().all(|sent| sent.id == event));
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.tries), (DeliveryStatus::Delivered, 1));
    assert_eq!(pipeline.queue.len(), 0);
    // Later ones never are.
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    assert_eq!((pipeline.receivers.take().len(), pipeline.queue.len()), (0, 0));
}

/// `standardwebhooks` is the reference implementation of a receiver. It compares with the machine's clock.
#[tokio::test(start_paused = true)]
async fn both_secrets_sign_while_the_grace_of_a_rotation_lasts() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    api.advance_clock_millis(system_clock()().since(api.now()).num_milliseconds());
    let new_secret = WebhookSecret::new([7; 32]);
    let stored = encrypted(api.key_encryption.as_ref(), client.tenant, &new_secret).await;
    let now = api.now();
    hook.change(|webhook: Webhook| webhook.rotated(stored, now, now.plus_seconds(60))).await;
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    created(&api, &client, &mut pipeline).await;
    pipeline.run().await;
    api.advance_clock(61);
    created(&api, &client, &mut pipeline).await;
    pipeline.run().await;
    let received = pipeline.receivers.take();
    assert_eq!(received.len(), 2);
    let verifies = |secret: &WebhookSecret, sent: &crate::support::webhooks::receivers::Arrival| {
        let mut headers = axum::http::HeaderMap::new();
        let fields = [("webhook-id", &sent.id), ("webhook-timestamp", &sent.seconds.to_string())];
        for (name, value) in fields.into_iter().chain([("webhook-signature", &sent.signatures)]) {
            headers.insert(axum::http::HeaderName::from_static(name), value.parse().unwrap());
        }
        standardwebhooks::Webhook::new(&secret.expose()).unwrap().verify(sent.body.as_bytes(), &headers).is_ok()
    };
    assert_eq!([&received[0], &received[1]].map(|sent| verifies(&new_secret, sent)), [true, true]);
    assert_eq!([&received[0], &received[1]].map(|sent| verifies(&hook.secret, sent)), [true, false]);
    assert_eq!([&received[0], &received[1]].map(|sent| sent.signatures.split(' ').count()), [2, 1]);
    assert!(!verifies(&WebhookSecret::new([8; 32]), &received[0]));
}

#[tokio::test(start_paused = true)]
async fn a_test_is_delivered_to_an_inactive_webhook_too() {
    let (api, client, pipeline, hook) = with_webhook(&["asset.created"]).await;
    hook.activate(false).await;
    let event_id: EventId = api.store.tenant(client.tenant).new_id(api.now()).unwrap();
    let test = Some(TestEvent { actor: Actor::operator() });
    let request = DeliveryRequest { test, ..delivery(&hook, &event_id.to_string(), api.now()) };
    send(&pipeline, request).await;
    pipeline.run().await;
    let received = pipeline.receivers.take();
    assert_eq!((received.len(), &received[0].id), (1, &event_id.to_string()));
    let data = received[0].json()["data"].clone();
    assert_eq!(received[0].json(), json!({"type": "webhook.test", "timestamp": event_id.timestamp(), "data": data}));
    let expected = json!({
        "id": event_id, "at": event_id.timestamp(), "type": "webhook.test", "entity_id": hook.id, "version": 0,
        "actor": Actor::operator(), "changes": {}, "previous_hash": null, "hash": "", "entity_name": URL, "entity_tag": null
    });
    assert_eq!(data, expected);
    // It has the members that every event has.
    client.asset(json!({"name": "a"})).await;
    settle(&api);
    let feed = client.get("/events").await.data();
    let members = |entry: &Value| entry.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&feed[0]), members(&data));
    let record = hook.delivery(&event_id.to_string()).await.unwrap();
    assert_eq!((record.status, record.event_type.as_str()), (DeliveryStatus::Delivered, "webhook.test"));
}

#[tokio::test(start_paused = true)]
async fn an_inactive_webhook_gets_nothing_and_a_deleted_one_leaves_nothing() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    hook.activate(false).await;
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.attempts[0].error), (DeliveryStatus::Failed, Some(AttemptFailure::WebhookDisabled)));
    assert_eq!((record.attempt_count, record.event_type.as_str()), (1, "asset.created"));
    // One that is active again gets what comes from then on, and what was given up when it is asked for.
    hook.activate(true).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    send(&pipeline, delivery(&hook, &event, api.now())).await;
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), hook.delivery(&event).await.unwrap().attempt_count), (1, 2));
    let (_, late) = created(&api, &client, &mut pipeline).await;
    hook.delete().await;
    // A change takes effect within a second.
    api.advance_clock(1);
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len(), hook.delivery(&late).await), (1, 0, None));
}

#[tokio::test(start_paused = true)]
async fn messages_that_lead_nowhere_come_back_or_end() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    for body in ["", "{}", "not JSON", r#"{"kind": "delivery", "tenant_id": "x"}"#] {
        pipeline.queue.add(body);
    }
    // An event that is not in the table yet.
    let missing: EventId = api.store.tenant(client.tenant).new_id(api.now()).unwrap();
    let missing = missing.to_string();
    send(&pipeline, delivery(&hook, &missing, api.now())).await;
    pipeline.run().await;
    // The others were handled all the same; these come back until the queue gives them up.
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (1, 5));
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
    assert_eq!(hook.delivery(&missing).await, None);
    // One that is still missing when it comes back never will be there.
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!((pipeline.queue.len(), pipeline.queue.most_receives()), (4, 2));
    assert_eq!((pipeline.receivers.len(), hook.delivery(&missing).await), (1, None));
}

/// A table that was restored to an earlier time lacks events whose messages are still in the queue.
#[tokio::test(start_paused = true)]
async fn messages_about_events_that_the_table_lost_are_dropped() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let key = Keys::of(client.tenant).event(event.parse().unwrap()).item();
    api.dynamo.delete_item().table_name(&api.table).set_key(Some(key)).send().await.unwrap();
    // It is a minute old soon, and then dropped.
    for (seconds, is_active, left) in [(0, true, 1), (VISIBILITY.num_seconds(), true, 0), (0, true, 0), (0, false, 0)] {
        api.advance_clock(seconds);
        if pipeline.queue.len() == 0 {
            hook.activate(is_active).await;
            send(&pipeline, delivery(&hook, &event, api.now())).await;
        }
        pipeline.run().await;
        assert_eq!((pipeline.queue.len(), pipeline.receivers.len(), hook.delivery(&event).await), (left, 0, None));
    }
    // Later events are delivered.
    hook.activate(true).await;
    created(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
}

/// Messages that are not finished in time come back; the others of the batch are done.
#[tokio::test(start_paused = true)]
async fn a_batch_ends_in_time() {
    let (api, client, mut pipeline, _) = with_webhook(&["asset.created"]).await;
    client.assets(3).await;
    pipeline.fan_out(&api).await;
    let event = pipeline.queue.receive().unwrap();
    let response = pipeline.deliver.handle_until(event.clone(), Instant::now()).await;
    assert_eq!(response.batch_item_failures.len(), 3);
    pipeline.queue.delete(&event, &response);
    assert_eq!(pipeline.queue.len(), 3);
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.got().len(), 3);
    let later = Instant::now() + Duration::from_secs(60);
    assert_eq!(pipeline.deliver.handle_until(event, later).await.batch_item_failures, []);
}

/// Tasks of a runtime need futures that can change threads.
#[tokio::test(start_paused = true)]
async fn batches_can_be_handled_by_other_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (_, _, pipeline) = delivering().await;
    is_send(pipeline.fanout.handle(crate::support::webhooks::stream::batch(&[]))).await;
    is_send(pipeline.deliver.handle(Default::default())).await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_costs_little() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, first) = created(&api, &client, &mut pipeline).await;
    api.meter.take();
    pipeline.run().await;
    let success = api.meter.take();
    // Webhooks, event, record and health of the webhook; the name of the asset; the record.
    assert_eq!((success.round_trips, success.calls, success.read_units, success.write_units), (3, 6, 5.0, 1.0));
    // A double: the same reads, and no more.
    send(&pipeline, delivery(&hook, &first, first.parse::<EventId>().unwrap().timestamp())).await;
    api.meter.take();
    pipeline.run().await;
    let double = api.meter.take();
    assert_eq!((double.round_trips, double.calls, double.read_units, double.write_units), (1, 4, 4.0, 0.0));
    created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 500);
    api.advance_clock(1);
    api.meter.take();
    pipeline.run().await;
    let failure = api.meter.take();
    // The record with its row in the index of lists, and the health of the webhook at the same time.
    assert_eq!((failure.calls, failure.read_units, failure.write_units), (7, 5.0, 3.0));
    assert!((3..=4).contains(&failure.round_trips), "{failure:?}");
    pipeline.receivers.respond(|_| 200);
    api.advance_clock(6);
    api.meter.take();
    pipeline.run().await;
    let recovery = api.meter.take();
    // The health, then the record and its row.
    assert_eq!((recovery.round_trips, recovery.read_units, recovery.write_units), (4, 5.0, 3.0));
}
