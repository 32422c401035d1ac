//! Replays: despite failures and stops, every event of the time is delivered again, and a replay stays one replay.

use crate::support::webhooks::pipeline::{Pipeline, TestWebhook, delivering, send, settle, webhook};
use crate::support::{Api, Disturbance, at_each_place, sample};
use chrono::TimeDelta;
use dev_server::faulty_table::planned::CallFailure;
use serde_json::json;
use shared::domain::values::id::{EventId, Id};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{DeliveryStatus, Message, ReplayRequest};
use std::collections::HashSet;

/// A webhook to which events were delivered, the last of them so late that the feed still holds it back.
struct Case {
    hook: TestWebhook,
    since: Timestamp,
    until: Timestamp,
    events: HashSet<String>,
}

/// Creates a tenant with a webhook, and delivers so many events and one more.
async fn case(api: &Api, pipeline: &mut Pipeline, count: usize) -> Case {
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
    Case { hook, since, until: api.now(), events }
}

impl Case {
    /// All events. Returns the time of the request.
    async fn replay(&self, api: &Api, pipeline: &Pipeline) -> Timestamp {
        let requested_at = api.now();
        let request = ReplayRequest {
            tenant_id: self.hook.tenant,
            webhook_id: self.hook.id,
            after: EventId::new(self.since.plus(TimeDelta::milliseconds(-1)), [u8::MAX; 10]),
            until: self.until,
            events: serde_json::from_value(json!(["asset.created"])).unwrap(),
            requested_at,
        };
        send(pipeline, Message::Replay(request)).await;
        requested_at
    }

    /// Checks that every event was delivered again. Returns the number of the replay's messages.
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
    // Each with a table of its own: the stream is read from all that the table has.
    let case = async |place, way| {
        let (api, _, mut pipeline) = delivering().await;
        let case = case(&api, &mut pipeline, if way == Disturbance::IsDropped { 11 } else { 2 }).await;
        let requested_at = case.replay(&api, &pipeline).await;
        let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
        case.check(&pipeline, requested_at, &format!("{way:?} {place}")).await;
        is_disturbed
    };
    at_each_place(&[Disturbance::IsDropped], 4, 3, &case).await;
    at_each_place(&CallFailure::ALL.map(Disturbance::Fails), 8, 6, &case).await;
}

/// The rest of a replay is sent when all before it was: else two messages would go on with the same replay.
#[tokio::test(start_paused = true)]
async fn a_replay_is_not_doubled_when_only_some_messages_are_sent() {
    let (api, _, mut pipeline) = delivering().await;
    let case = case(&api, &mut pipeline, 109).await;
    settle(&api);
    // A hundred deliveries in ten calls, the rest of the replay in the next one, and what that sends in another.
    let failures = [(0, false), (0, true), (9, false), (9, true), (10, false), (10, true), (11, false), (11, true)];
    for (place, after) in sample(failures, 1) {
        let requested_at = case.replay(&api, &pipeline).await;
        pipeline.queue.fail_call(place, after);
        pipeline.run().await;
        assert!(pipeline.queue.stop_failing(), "{place} {after}");
        pipeline.run_to_end(&api).await;
        let messages = case.check(&pipeline, requested_at, &format!("{place} {after}")).await;
        // Only the lost response about the message itself can't be told from a failure.
        assert_eq!(messages, if (place, after) == (10, true) { 3 } else { 2 }, "{place} {after}");
        api.advance_clock(1);
    }
}
