//! From the queue to the receivers: what is sent, how often, and what is recorded.

use crate::support::UNKNOWN_ID;
use crate::support::pipeline::{URL, created, delivering, delivery, encrypted, send, settle, webhook, with_webhook};
use crate::support::webhook_queue::VISIBILITY;
use chrono::TimeDelta;
use serde_json::{Value, json};
use shared::app::system_clock;
use shared::domain::event::Actor;
use shared::domain::id::{EventId, Id};
use shared::domain::webhook::{AttemptError, DeliveryRequest, DeliveryStatus, RETRY_DELAYS, TestEvent, Webhook, WebhookSecret};
use shared::lambda::BatchHandler;
use shared::queue::{MAX_DELAY, MAX_POSTPONEMENT};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
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
    assert_eq!(record.attempts[0].response.as_deref(), Some("ok"));
    assert_eq!(pipeline.queue.len(), 0);
}

#[tokio::test]
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

#[tokio::test]
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

#[tokio::test]
async fn doubles_of_records_and_messages_are_not_sent_again() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "a"})).await;
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    let batch = || crate::support::stream::batch(&[records.clone(), records.clone()].concat());
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    let received = pipeline.receivers.take();
    let event = crate::support::pipeline::event_id(&records[0]);
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

#[tokio::test]
async fn failures_are_repeated_by_the_schedule() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 503);
    api.stop_clock();
    pipeline.run().await;
    // What waits is not in flight in the queue of first attempts: it is held back in the other one.
    assert_eq!((pipeline.queue.first_attempts(), pipeline.queue.len()), (0, 1));
    let sent: Vec<Duration> = pipeline.queue.take_sent_retries().iter().map(|new| new.delay).collect();
    assert!(sent.len() == 1 && (5..=6).contains(&sent[0].as_secs()), "{sent:?}");
    assert!(pipeline.queue.take_postponements().is_empty());
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.queue.take_sent_retries(), [], "a message stays in the queue of retries");
    let received = pipeline.receivers.take();
    assert_eq!(received.len(), 1 + RETRY_DELAYS.len());
    assert!(received.iter().all(|sent| sent.id == event && sent.body == received[0].body));
    for (pair, delay) in received.windows(2).zip(RETRY_DELAYS) {
        let (waited, most) = (pair[1].at.since(pair[0].at), delay + delay / 10);
        // The queue counts whole seconds, so an attempt may be less than a second early.
        assert!(waited > delay - TimeDelta::seconds(1) && waited <= most, "{waited} instead of {delay} to {most}");
        assert_eq!(pair[1].seconds, pair[1].at.millis() / 1000);
        assert_eq!(pair[1].signatures, hook.secret.sign(&event, pair[1].seconds, &pair[1].body));
    }
    let waits: Vec<TimeDelta> = received.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    assert!(
        waits.iter().zip(RETRY_DELAYS).any(|(waited, delay)| *waited > delay + TimeDelta::seconds(1)),
        "no jitter: {waits:?}"
    );
    // What takes more than 12 hours is postponed in pieces: once for each wait, and four times more.
    let postponements = pipeline.queue.take_postponements();
    assert!(postponements.iter().filter(|delay| **delay == MAX_POSTPONEMENT).count() >= 3, "{postponements:?}");
    assert!(postponements.iter().any(|delay| *delay > MAX_DELAY && *delay < MAX_POSTPONEMENT), "{postponements:?}");
    assert!((12..=13).contains(&postponements.len()), "{postponements:?}");
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.tries, record.next_attempt_at), (DeliveryStatus::Failed, 10, None));
    assert!(record.attempts.iter().zip(&received).all(|(attempt, sent)| attempt.at == sent.at && attempt.status == Some(503)));
    assert_eq!(pipeline.queue.len(), 0);
}

#[tokio::test]
async fn a_success_after_failures_ends_the_delivery() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let mut statuses = [0, 302, 500, 201].into_iter();
    pipeline.receivers.respond(move |_| statuses.next().unwrap());
    pipeline.run().await;
    let pending = hook.delivery(&event).await.unwrap();
    assert_eq!((pending.status, pending.attempts[0].error), (DeliveryStatus::Pending, Some(AttemptError::TimedOut)));
    let due = pending.next_attempt_at.unwrap().since(pending.attempts[0].at);
    assert!(due >= TimeDelta::seconds(5) && due <= TimeDelta::milliseconds(5500), "{due}");
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&event).await.unwrap();
    let statuses: Vec<Option<u16>> = record.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!((record.status, statuses), (DeliveryStatus::Delivered, vec![None, Some(302), Some(500), Some(201)]));
    assert_eq!(pipeline.receivers.len(), 4);
}

/// A message that comes back although it was postponed, since the postponement was lost, waits again.
#[tokio::test]
async fn an_attempt_is_not_made_before_it_is_due() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let mut attempts = 0;
    pipeline.receivers.respond(move |_| {
        attempts += 1;
        if attempts < 3 { 500 } else { 200 }
    });
    pipeline.run().await;
    api.advance_clock(6);
    pipeline.queue.fail_call(0, false);
    pipeline.run().await;
    assert!(pipeline.queue.stop_failing());
    assert_eq!(pipeline.receivers.len(), 2);
    pipeline.queue.take_postponements();
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!(pipeline.receivers.len(), 2);
    let waits = pipeline.queue.take_postponements();
    assert!(waits.len() == 1 && (100..160).contains(&waits[0].as_secs()), "{waits:?}");
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), hook.delivery(&event).await.unwrap().status), (3, DeliveryStatus::Delivered));
}

/// `standardwebhooks` is the reference implementation of a receiver. It compares with the machine's clock.
#[tokio::test]
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
    let verifies = |secret: &WebhookSecret, sent: &crate::support::receivers::Received| {
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

#[tokio::test]
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

#[tokio::test]
async fn an_inactive_webhook_gets_nothing_and_a_deleted_one_leaves_nothing() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    hook.activate(false).await;
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.attempts[0].error), (DeliveryStatus::Failed, Some(AttemptError::WebhookDisabled)));
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
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len(), hook.delivery(&late).await), (1, 0, None));
}

#[tokio::test]
async fn messages_that_lead_nowhere_come_back_or_end() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    for body in ["", "{}", "not JSON", r#"{"kind": "delivery", "tenant_id": "x"}"#] {
        pipeline.queue.add(body);
    }
    // An event that doesn't exist.
    send(&pipeline, delivery(&hook, UNKNOWN_ID, api.now())).await;
    pipeline.run().await;
    // The others were handled all the same; these come back until the queue gives them up.
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (1, 5));
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
    assert_eq!(hook.delivery(UNKNOWN_ID).await, None);
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!((pipeline.queue.len(), pipeline.queue.most_receives()), (5, 2));
    hook.activate(false).await;
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!((pipeline.queue.len(), hook.delivery(UNKNOWN_ID).await), (4, None));
}

/// Messages that are not finished in time come back; the others of the batch are done.
#[tokio::test]
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

/// Whoever runs the functions in tasks of a runtime needs futures that can change threads.
#[tokio::test]
async fn batches_can_be_handled_by_other_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (_, _, pipeline) = delivering().await;
    is_send(pipeline.fanout.handle(crate::support::stream::batch(&[]))).await;
    is_send(pipeline.deliver.handle(Default::default())).await;
}

#[tokio::test]
async fn a_delivery_costs_little() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, first) = created(&api, &client, &mut pipeline).await;
    api.meter.take();
    pipeline.run().await;
    let success = api.meter.take();
    // Webhook, event, record and health of the webhook; the name of the asset; the record.
    assert_eq!((success.round_trips, success.calls, success.read_units, success.write_units), (3, 3, 5.0, 1.0));
    // A double: the same reads, and no more.
    send(&pipeline, delivery(&hook, &first, first.parse::<EventId>().unwrap().timestamp())).await;
    api.meter.take();
    pipeline.run().await;
    let double = api.meter.take();
    assert_eq!((double.calls, double.read_units, double.write_units), (1, 4.0, 0.0));
    created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 500);
    api.meter.take();
    pipeline.run().await;
    let failure = api.meter.take();
    // The record with its row in the index of lists, and the health of the webhook at the same time.
    assert_eq!((failure.calls, failure.read_units, failure.write_units), (4, 5.0, 3.0));
    assert!((3..=4).contains(&failure.round_trips), "{failure:?}");
    pipeline.receivers.respond(|_| 200);
    api.advance_clock(6);
    api.meter.take();
    pipeline.run().await;
    let recovery = api.meter.take();
    // The health, then the record and its row.
    assert_eq!((recovery.round_trips, recovery.read_units, recovery.write_units), (4, 5.0, 3.0));
}
