//! From the queue to the receivers: requests, retries and records.

use crate::support::prelude::*;
use crate::support::queue::VISIBILITY;
use crate::support::webhooks::*;
use crate::table::requests::{is_guarded, partitions};
use shared::app::BatchHandler;
use shared::domain::webhooks::{
    AttemptFailure, DeliveryRequest, DeliveryStatus, Message, RETENTION, RETRY_DELAYS, ReplayRequest, TestEvent, Webhook,
    WebhookSecret,
};
use shared::queue::NewMessage;
use shared::services::system_clock;

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
    // The entry is byte for byte the same as in the feed.
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
    let batch = || stream_batch(&[records.clone(), records.clone()].concat());
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    let received = pipeline.receivers.take();
    let event = crate::support::webhooks::event_id(&records[0]);
    // Concurrent duplicates can both be sent, but with the same ID.
    assert!((1..=2).contains(&received.len()) && received.iter().all(|sent| sent.id == event));
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.tries), (DeliveryStatus::Delivered, 1));
    assert_eq!(pipeline.queue.len(), 0);
    // Later duplicates are never sent.
    pipeline.fanout.handle(batch()).await;
    pipeline.run().await;
    assert_eq!((pipeline.receivers.take().len(), pipeline.queue.len()), (0, 0));
}

/// `standardwebhooks` is the reference implementation of a receiver. It uses the machine's clock.
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
    let verifies = |secret: &WebhookSecret, sent: &crate::support::webhooks::Arrival| {
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
    let event_id: EventId = api.store.writer(client.tenant).new_id(api.now()).unwrap();
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
    // The test event has the members of all events.
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
    // A reactivated webhook gets new events. An event given up before is only sent on request.
    hook.activate(true).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    send(&pipeline, delivery(&hook, &event, api.now())).await;
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), hook.delivery(&event).await.unwrap().attempt_count), (1, 2));
    let (_, late) = created(&api, &client, &mut pipeline).await;
    hook.delete().await;
    // Deleting the webhook takes effect within a second.
    api.advance_clock(1);
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len(), hook.delivery(&late).await), (1, 0, None));
}

/// An attempt that is under way when its webhook is deleted still writes its record.
#[tokio::test(start_paused = true)]
async fn delivery_under_way_while_its_webhook_is_deleted_leaves_only_what_expires() {
    for status in [200, 500, 410] {
        let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
        pipeline.receivers.respond(move |_| status);
        let (_, event) = created(&api, &client, &mut pipeline).await;
        api.faults.overtake("PutItem", pipeline.run(), hook.delete()).await;
        assert!(hook.delivery(&event).await.is_some(), "{status}: the attempt was recorded");
        pipeline.run_to_end(&api).await;
        assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (1, 0), "{status}");
        let of_hook = |item: &Item| item["PK"].as_s().unwrap().contains("#HOOK#");
        let left: Vec<Item> = all_items(&api).await.into_iter().filter(of_hook).collect();
        assert!(!left.is_empty() && left.iter().all(|item| item.contains_key("expires")), "{status}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_messages_and_messages_of_missing_events_are_redelivered() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    for body in ["", "{}", "not JSON", r#"{"kind": "delivery", "tenant_id": "x"}"#] {
        pipeline.queue.add(body);
    }
    // The ID of an event that isn't in the table yet.
    let missing: EventId = api.store.writer(client.tenant).new_id(api.now()).unwrap();
    let missing = missing.to_string();
    send(&pipeline, delivery(&hook, &missing, api.now())).await;
    pipeline.run().await;
    // The other messages were handled. The remaining ones are redelivered until they reach the dead-letter queue.
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (1, 5));
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Delivered);
    assert_eq!(hook.delivery(&missing).await, None);
    // If the event is still missing on redelivery, it will never appear, so the message is dropped.
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!((pipeline.queue.len(), pipeline.queue.most_receives()), (4, 2));
    assert_eq!((pipeline.receivers.len(), hook.delivery(&missing).await), (1, None));
}

/// A table restored to an earlier time lacks events whose messages are still in the queue.
#[tokio::test(start_paused = true)]
async fn messages_about_events_that_the_table_lost_are_dropped() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let key = Keys::of(client.tenant).event(event.parse().unwrap()).item();
    api.dynamo.delete_item().table_name(&api.table).set_key(Some(key)).send().await.unwrap();
    // After a minute, the message is dropped.
    for (seconds, is_active, left) in [(0, true, 1), (VISIBILITY.num_seconds(), true, 0), (0, true, 0), (0, false, 0)] {
        api.advance_clock(seconds);
        if pipeline.queue.len() == 0 {
            hook.activate(is_active).await;
            send(&pipeline, delivery(&hook, &event, api.now())).await;
        }
        pipeline.run().await;
        assert_eq!((pipeline.queue.len(), pipeline.receivers.len(), hook.delivery(&event).await), (left, 0, None));
    }
    hook.activate(true).await;
    created(&api, &client, &mut pipeline).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
}

/// Messages that time out are redelivered, and the rest of the batch is handled.
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

#[tokio::test(start_paused = true)]
async fn unreadable_message_fails_without_the_rest_of_its_batch() {
    let (api, client, mut pipeline, _) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "a"})).await;
    pipeline.fan_out(&api).await;
    let mut event = pipeline.queue.receive().unwrap();
    let mut damaged = event.records[0].clone();
    (damaged.message_id, damaged.body) = (Some("damaged".into()), Some("{".into()));
    event.records.push(damaged);
    let failures = pipeline.deliver.handle(event).await.batch_item_failures;
    assert_eq!(failures.iter().map(|failure| &*failure.item_identifier).collect::<Vec<_>>(), ["damaged"]);
    assert_eq!(pipeline.receivers.got().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn log_of_a_failed_attempt_has_no_address_and_no_secret() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 500);
    log::begin();
    let mut event = pipeline.queue.receive().unwrap();
    let mut damaged = event.records[0].clone();
    damaged.body = Some(json!({"url": hook.url, "secret": hook.secret.expose()}).to_string());
    event.records.push(damaged);
    pipeline.deliver.handle(event).await;
    assert_eq!(pipeline.receivers.len(), 1);
    let log = log::text();
    assert!(log.contains("a message can't be read") && !log.contains("example.com"), "{log}");
    assert!(!log.contains(hook.secret.expose().trim_start_matches("whsec_")), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_delivery_costs_little() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, first) = created(&api, &client, &mut pipeline).await;
    let ((), success) = api.cost(pipeline.run()).await;
    // Reads: webhooks, event, record and health; then names of the asset; then the record.
    assert_eq!((success.round_trips, success.calls, success.read_units, success.write_units), (3, 6, 5.0, 1.0));
    // A duplicate causes the same reads, but no writes.
    send(&pipeline, delivery(&hook, &first, first.parse::<EventId>().unwrap().timestamp())).await;
    let ((), double) = api.cost(pipeline.run()).await;
    assert_eq!((double.round_trips, double.calls, double.read_units, double.write_units), (1, 4, 4.0, 0.0));
    created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 500);
    api.advance_clock(1);
    let ((), failure) = api.cost(pipeline.run()).await;
    // Writes the record with its list index row, and concurrently the webhook's health.
    assert_eq!((failure.calls, failure.read_units, failure.write_units), (7, 5.0, 3.0));
    assert!((3..=4).contains(&failure.round_trips), "{failure:?}");
    pipeline.receivers.respond(|_| 200);
    api.advance_clock(6);
    let ((), recovery) = api.cost(pipeline.run()).await;
    // Writes the health, then the record and its row.
    assert_eq!((recovery.round_trips, recovery.read_units, recovery.write_units), (4, 5.0, 3.0));
}

#[tokio::test(start_paused = true)]
async fn an_event_costs_its_tenants_partition_the_same_for_any_number_of_webhooks() {
    let (api, client, mut pipeline) = delivering().await;
    for n in 0..20 {
        webhook(&api, client.tenant, &format!("https://example.com/{n}"), &["asset.created"]).await;
    }
    pipeline.stream.skip(&api.dynamo, &api.table).await;
    client.assets(10).await;
    pipeline.fan_out(&api).await;
    api.faults.take_requests();
    let ((), cost) = api.cost(pipeline.run()).await;
    assert_eq!(pipeline.receivers.len(), 10 * 20);
    // Reads: the webhooks; each event and its names; each delivery's record; and each webhook's health.
    assert_eq!((cost.read_units, cost.write_units), (3.0 + 10.0 * 2.0 + 200.0 + 20.0, 200.0));
    let own = Keys::of(client.tenant).partition().as_s().unwrap().clone();
    let is_own = |request: &Value| {
        let mut found = Vec::new();
        partitions(request, &mut found);
        found.contains(&own)
    };
    let of_tenant = api.faults.take_requests().into_iter().filter(|(_, request)| is_own(request));
    assert_eq!(of_tenant.count(), 1 + 10 * 2, "the query of the webhooks, and two reads for each event");
}

#[tokio::test(start_paused = true)]
async fn a_retry_begins_anew_and_replaces_what_is_pending() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 500);
    pipeline.run_to_end(&api).await;
    assert_eq!(hook.delivery(&event).await.unwrap().status, DeliveryStatus::Failed);
    pipeline.receivers.take();
    let first = api.now();
    send(&pipeline, delivery(&hook, &event, first)).await;
    pipeline.run().await;
    let again = hook.delivery(&event).await.unwrap();
    assert_eq!((again.status, again.tries, again.attempt_count), (DeliveryStatus::Pending, 1, 11));
    assert_eq!((again.requested_at, again.attempts.len()), (first, 11));
    // While this retry is pending, a second retry succeeds, so the first retry's message is dropped on redelivery.
    pipeline.receivers.respond(|_| 200);
    api.advance_clock(1);
    let second = api.now();
    send(&pipeline, delivery(&hook, &event, second)).await;
    pipeline.run_to_end(&api).await;
    let done = hook.delivery(&event).await.unwrap();
    assert_eq!((done.status, done.tries, done.attempt_count), (DeliveryStatus::Delivered, 1, 12));
    assert_eq!((done.requested_at, pipeline.receivers.take().len()), (second, 2));
    // Retrying a delivered event sends it again, with the same ID.
    send(&pipeline, delivery(&hook, &event, api.now())).await;
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    assert_eq!((received.len(), &received[0].id), (1, &event));
    // The first request's message is older, so it is dropped.
    send(&pipeline, delivery(&hook, &event, first)).await;
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_replay_sends_all_events_of_a_time_again() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    client.asset(json!({"name": "before"})).await;
    let before = pipeline.finish(&api).await;
    api.advance_clock(1);
    let since = api.now();
    client.assets(102).await;
    client.user("Ada").await;
    let events = pipeline.fan_out(&api).await;
    pipeline.run_to_end(&api).await;
    let assets: Vec<String> = pipeline.receivers.take().iter().map(|sent| sent.id.clone()).collect();
    assert_eq!(assets.len(), 103);
    api.advance_clock(20);
    let until = api.now();
    api.advance_clock(20);
    client.asset(json!({"name": "after"})).await;
    let after = pipeline.finish(&api).await;
    settle(&api);
    pipeline.receivers.take();
    pipeline.queue.take_sent();
    let request = replay(&api, &hook, since, until, &["asset.created"]);
    send(&pipeline, Message::Replay(request.clone())).await;
    pipeline.run_to_end(&api).await;
    let replays = pipeline.queue.take_sent().into_iter().filter(|new| matches!(new.message, Message::Replay(_)));
    assert_eq!(replays.count(), 2, "the replay and one continuation");
    let mut got: Vec<String> = pipeline.receivers.take().iter().map(|sent| sent.id.clone()).collect();
    got.sort();
    let mut expected: Vec<String> = assets.into_iter().filter(|id| !before.contains(id)).collect();
    expected.sort();
    assert_eq!((got.len(), &got), (102, &expected));
    assert!(got.iter().all(|id| events.contains(id) && !after.contains(id)));
    assert_eq!(hook.delivery(&got[0]).await.unwrap().requested_at, request.requested_at);
    // A duplicate of the replay's message sends nothing.
    send(&pipeline, Message::Replay(request.clone())).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    // A different replay sends the events again, and can request all types, regardless of the webhook's types.
    let events = serde_json::from_value(json!(["*"])).unwrap();
    send(&pipeline, Message::Replay(ReplayRequest { requested_at: api.now(), events, ..request })).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 103);
}

/// The feed holds back the latest events, so a replay up to now waits for them.
#[tokio::test(start_paused = true)]
async fn a_replay_waits_for_the_end_of_the_feed() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let since = api.now();
    client.asset(json!({"name": "a"})).await;
    pipeline.finish(&api).await;
    pipeline.receivers.take();
    pipeline.queue.take_sent();
    let now = api.now();
    let request = replay(&api, &hook, since, now.plus(TimeDelta::days(1000)), &["*"]);
    send(&pipeline, Message::Replay(request.clone())).await;
    pipeline.run().await;
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (0, 1));
    client.asset(json!({"name": "later"})).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
    assert!(api.now().since(now) < TimeDelta::seconds(60));
    for end in 0..2 {
        if end == 0 {
            hook.activate(false).await
        } else {
            hook.delete().await
        }
        send(&pipeline, Message::Replay(ReplayRequest { requested_at: api.now(), ..request.clone() })).await;
        pipeline.run_to_end(&api).await;
        assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_repeated_by_the_schedule() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 503);
    api.stop_clock();
    pipeline.run().await;
    // A waiting message is delayed in the retry queue, so it isn't in flight in the delivery queue.
    assert_eq!((pipeline.queue.first_attempts(), pipeline.queue.len()), (0, 1));
    let sent: Vec<Duration> = pipeline.queue.take_sent_retries().iter().map(|new| new.delay).collect();
    assert!(sent.len() == 1 && (5..=6).contains(&sent[0].as_secs()), "{sent:?}");
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    assert_eq!(received.len(), 1 + RETRY_DELAYS.len());
    assert!(received.iter().all(|sent| sent.id == event && sent.body == received[0].body));
    for (pair, delay) in received.windows(2).zip(RETRY_DELAYS) {
        let (waited, most) = (pair[1].at.since(pair[0].at), delay + delay / 10);
        // The queue uses whole seconds, so an attempt can be up to a second early.
        assert!(waited > delay - TimeDelta::seconds(1) && waited <= most, "{waited} instead of {delay} to {most}");
        assert_eq!(pair[1].seconds, pair[1].at.millis() / 1000);
        assert_eq!(pair[1].signatures, hook.secret.sign(&event, pair[1].seconds, &pair[1].body));
    }
    let waits: Vec<TimeDelta> = received.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
    assert!(
        waits.iter().zip(RETRY_DELAYS).any(|(waited, delay)| *waited > delay + TimeDelta::seconds(1)),
        "no jitter: {waits:?}"
    );
    // Each wait uses one message at a time. The message is resent until the rest of the wait fits in a delay of 15 minutes.
    let mut parts = HashMap::<u32, (Duration, u32)>::new();
    for new in sent.into_iter().map(|delay| (2, delay)).chain(pipeline.queue.take_sent_retries().iter().map(of_number)) {
        let (sum, count) = parts.entry(new.0).or_default();
        (*sum, *count) = (*sum + new.1, *count + 1);
    }
    assert_eq!(parts.len(), RETRY_DELAYS.len());
    for (number, delay) in (2..).zip(RETRY_DELAYS) {
        let (delay, (sum, count)) = (delay.to_std().unwrap(), parts[&number]);
        assert!(sum + Duration::from_secs(2) > delay && sum <= delay + delay / 10, "{sum:?} instead of {delay:?}");
        assert_eq!(count, u32::try_from(sum.as_secs().div_ceil(900)).unwrap(), "{number}");
    }
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.tries, record.next_attempt_at), (DeliveryStatus::Failed, 10, None));
    assert!(record.attempts.iter().zip(&received).all(|(attempt, sent)| attempt.at == sent.at && attempt.status == Some(503)));
    assert!(hook.read().await.value.is_active, "three days of failures");
    assert_eq!(pipeline.queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_success_after_failures_ends_the_delivery_and_no_attempt_is_made_before_it_is_due() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    let mut statuses = [0, 302, 500, 201].into_iter();
    pipeline.receivers.respond(move |_| statuses.next().unwrap());
    pipeline.run().await;
    let pending = hook.delivery(&event).await.unwrap();
    assert_eq!((pending.status, pending.attempts[0].error), (DeliveryStatus::Pending, Some(AttemptFailure::TimedOut)));
    let due = pending.next_attempt_at.unwrap().since(pending.attempts[0].at);
    assert!(due >= TimeDelta::seconds(5) && due <= TimeDelta::milliseconds(5500), "{due}");
    pipeline.run_to_end(&api).await;
    let record = hook.delivery(&event).await.unwrap();
    let statuses: Vec<Option<u16>> = record.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!((record.status, statuses), (DeliveryStatus::Delivered, vec![None, Some(302), Some(500), Some(201)]));
    assert_eq!(pipeline.receivers.len(), 4);

    // If the message for the next attempt can't be sent, the current message is redelivered in its place, and waits until that
    // attempt is due.
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.receivers.take();
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
    pipeline.queue.take_sent_retries();
    api.advance_clock(VISIBILITY.num_seconds());
    pipeline.run().await;
    assert_eq!(pipeline.receivers.len(), 2);
    let waits = pipeline.queue.take_sent_retries();
    assert!(waits.len() == 1 && (100..160).contains(&waits[0].delay.as_secs()), "{waits:?}");
    pipeline.run_to_end(&api).await;
    assert_eq!((pipeline.receivers.len(), hook.delivery(&event).await.unwrap().status), (3, DeliveryStatus::Delivered));
}

fn of_number(new: &NewMessage) -> (u32, Duration) {
    let Message::Delivery(request) = &new.message else { panic!("{new:?}") };
    (request.number, new.delay)
}

#[tokio::test(start_paused = true)]
async fn records_expire_and_those_that_were_not_delivered_can_be_found() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    pipeline.receivers.respond(|_| 500);
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.run().await;
    let key = Keys::of(client.tenant).delivery(hook.id, event.parse().unwrap());
    let item = async || item(&api, &key.item()).await.unwrap();
    let (pending, record) = (item().await, hook.delivery(&event).await.unwrap());
    let event: EventId = event.parse().unwrap();
    assert_eq!(pending["LS"], Keys::delivery_status(DeliveryStatus::Pending, event));
    assert_eq!(pending["type"].as_s().unwrap(), "delivery");
    let expires = record.attempts[0].at.plus(RETENTION).millis() / 1000;
    assert_eq!(pending["expires"].as_n().unwrap(), &expires.to_string());
    pipeline.run_to_end(&api).await;
    assert_eq!(item().await["LS"], Keys::delivery_status(DeliveryStatus::Failed, event));
    pipeline.receivers.respond(|_| 200);
    send(&pipeline, delivery(&hook, &event.to_string(), api.now())).await;
    pipeline.run().await;
    assert!(!item().await.contains_key("LS"));
}

/// Deliveries don't affect lists, statistics, the operator's check and the feed.
#[tokio::test(start_paused = true)]
async fn deliveries_do_not_affect_lists_statistics_check_and_feed() {
    let (api, client, mut pipeline, hook) = with_webhook(&["*"]).await;
    let other = webhook(&api, client.tenant, "https://example.org/other", &["*"]).await;
    let user = client.user("Ada").await;
    client.assigned_asset("Laptop", &user).await;
    let feed = async || client.get("/events?limit=100").await.text().to_owned();
    let lists = ["/assets", "/users", "/processes/instances", "/movements", "/stats"];
    settle(&api);
    let before = (feed().await, client.get("/stats").await.data());
    // Half of the deliveries fail permanently, and the others are pending.
    let url = other.url.clone();
    pipeline.receivers.respond(move |sent| if sent.url == url { 500 } else { 410 });
    pipeline.fan_out(&api).await;
    for _ in 0..3 {
        pipeline.run().await;
        api.advance_clock(180);
    }
    assert!(!hook.read().await.value.is_active);
    let replica = api.replica(0, 1 << 20).client(&client);
    for list in lists {
        assert_eq!(replica.get(list).await.data(), client.get(list).await.data(), "{list}");
    }
    assert!(feed().await.contains(before.0.split_once("],\"meta\"").unwrap().0), "the feed still has the earlier events");
    assert_eq!(client.get("/stats").await.data()["assets"], before.1["assets"]);
    let store = api.store.writer(client.tenant);
    let counts = store.count_items(|_| {}).await.unwrap();
    assert!(counts["delivery"] >= 4 && counts["webhook_health"] == 1, "{counts:?}");
    api.check_invariants(client.tenant, "deliveries").await;
    // Deleting the tenant deletes all deliveries, including those of a deleted webhook.
    hook.delete().await;
    assert_eq!(store.count_items(|_| {}).await.unwrap()["delivery"], counts["delivery"]);
    store.begin_deletion().await.unwrap();
    store.delete_items(Duration::ZERO, |_| {}).await.unwrap();
    store.finish_deletion().await.unwrap();
    let left = async || api.dump().await.0.into_iter().filter(|item| item.contains(&client.tenant.short())).collect::<Vec<_>>();
    assert_eq!(left().await, [""; 0]);
    pipeline.run_to_end(&api).await;
    assert_eq!(left().await, [""; 0], "a message of a deleted tenant has written something");
}

#[tokio::test(start_paused = true)]
async fn the_functions_read_consistently_and_write_conditionally_in_one_tenant() {
    let (api, client, mut pipeline, hook) = with_webhook(&["*"]).await;
    let mut statuses = [500, 500, 200, 410].into_iter();
    pipeline.receivers.respond(move |_| statuses.next().unwrap_or(200));
    client.assets(2).await;
    api.faults.take_requests();
    let records = pipeline.stream.new_records(&api.dynamo, &api.table).await;
    api.faults.take_requests();
    pipeline.fanout.handle(stream_batch(&records)).await;
    pipeline.run_to_end(&api).await;
    let keys = Keys::of(client.tenant);
    let own = [keys.partition(), keys.webhook_partition(hook.id)].map(|partition| partition.as_s().unwrap().clone());
    let mut operations: Vec<String> = Vec::new();
    for (operation, request) in api.faults.take_requests() {
        let mut found = Vec::new();
        partitions(&request, &mut found);
        assert!(!found.is_empty() && found.iter().all(|partition| own.contains(partition)), "{operation}: {request}");
        assert!(is_guarded(&operation, &request, &api.table), "{operation} is not guarded: {request}");
        operations.push(operation);
    }
    operations.sort();
    operations.dedup();
    // The operations that the roles must permit.
    assert_eq!(operations, ["BatchGetItem", "GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem"]);
}
