//! Deliveries that are asked for again: retries of one, and replays of all events of a time.

use crate::support::webhooks::pipeline::{created, delivery, send, settle, with_webhook};
use chrono::TimeDelta;
use serde_json::json;
use shared::domain::values::id::{EventId, Id};
use shared::domain::webhooks::{DeliveryStatus, Message, ReplayRequest};

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
    // While that is pending, another one succeeds; the message of the first is dropped when it comes back.
    pipeline.receivers.respond(|_| 200);
    api.advance_clock(1);
    let second = api.now();
    send(&pipeline, delivery(&hook, &event, second)).await;
    pipeline.run_to_end(&api).await;
    let done = hook.delivery(&event).await.unwrap();
    assert_eq!((done.status, done.tries, done.attempt_count), (DeliveryStatus::Delivered, 1, 12));
    assert_eq!((done.requested_at, pipeline.receivers.take().len()), (second, 2));
    // A retry of what was delivered sends it again, with the same ID.
    send(&pipeline, delivery(&hook, &event, api.now())).await;
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    assert_eq!((received.len(), &received[0].id), (1, &event));
    // The message of the first request is still older.
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
    client.assets(120).await;
    client.user("Ada").await;
    let events = pipeline.fan_out(&api).await;
    pipeline.run_to_end(&api).await;
    let assets: Vec<String> = pipeline.receivers.take().iter().map(|sent| sent.id.clone()).collect();
    assert_eq!(assets.len(), 121);
    api.advance_clock(20);
    let until = api.now();
    api.advance_clock(20);
    client.asset(json!({"name": "after"})).await;
    let after = pipeline.finish(&api).await;
    settle(&api);
    pipeline.receivers.take();
    pipeline.queue.take_sent();
    let request = ReplayRequest {
        tenant_id: client.tenant,
        webhook_id: hook.id,
        after: EventId::new(since.plus(TimeDelta::milliseconds(-1)), [u8::MAX; 10]),
        until,
        events: serde_json::from_value(json!(["asset.created"])).unwrap(),
        requested_at: api.now(),
    };
    send(&pipeline, Message::Replay(request.clone())).await;
    pipeline.run_to_end(&api).await;
    let replays = pipeline.queue.take_sent().into_iter().filter(|new| matches!(new.message, Message::Replay(_)));
    assert_eq!(replays.count(), 2, "the replay and one continuation");
    let mut got: Vec<String> = pipeline.receivers.take().iter().map(|sent| sent.id.clone()).collect();
    got.sort();
    let mut expected: Vec<String> = assets.into_iter().filter(|id| !before.contains(id)).collect();
    expected.sort();
    assert_eq!((got.len(), &got), (120, &expected));
    assert!(got.iter().all(|id| events.contains(id) && !after.contains(id)));
    assert_eq!(hook.delivery(&got[0]).await.unwrap().requested_at, request.requested_at);
    // A double of the replay's message sends nothing again.
    send(&pipeline, Message::Replay(request.clone())).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    // Another replay does. All types can be asked for, whatever the webhook wants.
    let events = serde_json::from_value(json!(["*"])).unwrap();
    send(&pipeline, Message::Replay(ReplayRequest { requested_at: api.now(), events, ..request })).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 121);
}

/// The feed holds back the events of the last seconds: a replay up to now waits for them.
#[tokio::test(start_paused = true)]
async fn a_replay_waits_for_the_end_of_the_feed() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let since = api.now();
    client.asset(json!({"name": "a"})).await;
    pipeline.finish(&api).await;
    pipeline.receivers.take();
    pipeline.queue.take_sent();
    let now = api.now();
    let request = ReplayRequest {
        tenant_id: client.tenant,
        webhook_id: hook.id,
        after: EventId::new(since.plus(TimeDelta::milliseconds(-1)), [u8::MAX; 10]),
        until: now.plus(TimeDelta::days(1000)),
        events: serde_json::from_value(json!(["*"])).unwrap(),
        requested_at: now,
    };
    send(&pipeline, Message::Replay(request.clone())).await;
    pipeline.run().await;
    assert_eq!((pipeline.receivers.len(), pipeline.queue.len()), (0, 1));
    client.asset(json!({"name": "later"})).await;
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 1);
    assert!(api.now().since(now) < TimeDelta::seconds(60));
    // Nobody needs one for a webhook that is inactive or deleted.
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
