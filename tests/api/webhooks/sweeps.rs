//! Sweeps: a delivery that waits long has no message, and is made when it is due, whatever becomes of a sweep.

use crate::support::webhooks::pipeline::{Pipeline, TestWebhook, created, delivering, delivery, send, webhook, with_webhook};
use crate::support::{Api, Client, Disturbance, at_each_place};
use chrono::TimeDelta;
use dev_server::faulty_table::planned::CallFailure;
use shared::domain::actor::Actor;
use shared::domain::values::id::{EventId, Id, TenantId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{Delivery, DeliveryRequest, DeliveryStatus, Message, SWEEP_INTERVAL, Sweep, TestEvent};
use shared::queue::Queue;
use std::collections::HashSet;

/// A delivery that has failed three times, and is due half an hour later.
struct Waiting {
    hook: TestWebhook,
    event: String,
    due: Timestamp,
}

impl Waiting {
    async fn of(api: &Api, client: &Client, pipeline: &mut Pipeline) -> Self {
        let hook = webhook(api, client.tenant, "https://example.com/hook", &["asset.created"]).await;
        pipeline.stream.skip(&api.dynamo, &api.table).await;
        let (_, event) = created(api, client, pipeline).await;
        pipeline.receivers.respond(|_| 500);
        for _ in 0..3 {
            pipeline.run().await;
            let Some(next) = pipeline.queue.next_visible() else { break };
            api.advance_clock_millis(next.since(api.now()).num_milliseconds().max(0));
        }
        let due = hook.delivery(&event).await.unwrap().next_attempt_at.unwrap();
        assert!(due.since(api.now()) > TimeDelta::minutes(29), "{due}");
        assert_eq!(pipeline.queue.len(), 0, "a message waits");
        pipeline.receivers.respond(|_| 200);
        pipeline.receivers.take();
        Self { hook, event, due }
    }

    /// Moves the clock into the interval that is so many before the one in which the delivery is due.
    fn advance(&self, api: &Api, before: i64) {
        let interval = SWEEP_INTERVAL.num_milliseconds();
        let begin = Timestamp::from_millis((self.due.millis().div_euclid(interval) - before) * interval + 1000);
        api.advance_clock_millis(begin.since(api.now()).num_milliseconds());
    }

    async fn record(&self) -> Delivery {
        self.hook.delivery(&self.event).await.unwrap()
    }
}

#[tokio::test]
async fn a_long_wait_has_no_message_until_the_sweep_before_it_is_due() {
    let (api, client, mut pipeline) = delivering().await;
    api.stop_clock();
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    waiting.advance(&api, 2);
    pipeline.sweep().await;
    pipeline.run().await;
    assert_eq!(pipeline.queue.len(), 0, "an early sweep takes it");
    waiting.advance(&api, 1);
    pipeline.sweep().await;
    pipeline.run().await;
    assert_eq!((pipeline.queue.len(), pipeline.receivers.len()), (1, 0));
    pipeline.run_messages_to_end(&api).await;
    let received = pipeline.receivers.take();
    let late = received[0].at.since(waiting.due);
    assert!(received.len() == 1 && late > -TimeDelta::seconds(1) && late < TimeDelta::seconds(1), "{late}");
    assert_eq!(waiting.record().await.status, DeliveryStatus::Delivered);
}

/// As after the loss of its message, or of the function's permission to send.
#[tokio::test]
async fn a_lost_sweep_only_delays() {
    let (api, client, mut pipeline) = delivering().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    for (intervals, taken) in [(0, 0), (-1, 0), (-2, 1)] {
        waiting.advance(&api, intervals);
        pipeline.sweep().await;
        pipeline.run().await;
        assert_eq!(pipeline.receivers.len(), taken, "{intervals}");
    }
    // After a longer time, one that takes everything.
    let client = api.tenant().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    waiting.advance(&api, -1000);
    pipeline.sweep().await;
    pipeline.run().await;
    assert_eq!(pipeline.receivers.len(), 0);
    let all = Message::Sweep(Sweep { overdue: true, ..Sweep::default() });
    pipeline.queue.send_retry(vec![all.into()]).await.unwrap();
    pipeline.run().await;
    assert_eq!(waiting.record().await.status, DeliveryStatus::Delivered);
}

#[tokio::test]
async fn a_sweep_survives_any_disturbance() {
    let case = async |place, way: Disturbance| {
        // A table of its own: a sweep goes through all tenants, so with each one there would be more places.
        let (api, client, mut pipeline) = delivering().await;
        let waiting = Waiting::of(&api, &client, &mut pipeline).await;
        waiting.advance(&api, 1);
        pipeline.sweep().await;
        let is_disturbed = pipeline.run_disturbed(&api, place, way).await;
        assert_eq!(waiting.record().await.status, DeliveryStatus::Delivered, "{place} {way:?}");
        is_disturbed
    };
    let ways =
        [Disturbance::IsDropped, Disturbance::Fails(CallFailure::TimedOutBefore), Disturbance::Fails(CallFailure::TimedOutAfter)];
    at_each_place(&ways, 3, 3, case).await;
}

#[tokio::test]
async fn two_sweeps_at_once_lose_nothing() {
    let (api, client, mut pipeline) = delivering().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    waiting.advance(&api, 1);
    for _ in 0..2 {
        pipeline.sweep().await;
    }
    // Both messages are handled at the same time.
    pipeline.run().await;
    assert_eq!(pipeline.queue.len(), 2);
    pipeline.run_to_end(&api).await;
    let record = waiting.record().await;
    // Two messages that are due in the same moment may both lead to an attempt. Each is recorded, or found to be a double.
    assert!(record.status == DeliveryStatus::Delivered && (1..=2).contains(&pipeline.receivers.len()));
}

/// Every attempt sends the event itself, which no history has.
#[tokio::test]
async fn a_test_event_is_swept_as_well() {
    let (api, client, pipeline, hook) = with_webhook(&["asset.created"]).await;
    let event_id: EventId = api.store.tenant(client.tenant).new_id(api.now()).unwrap();
    let test = Some(TestEvent { actor: Actor::operator() });
    send(&pipeline, DeliveryRequest { test, ..delivery(&hook, &event_id.to_string(), api.now()) }).await;
    pipeline.receivers.respond(|_| 500);
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    assert!(received.len() == 10 && received.iter().all(|sent| sent.body == received[0].body), "{}", received.len());
}

#[tokio::test]
async fn a_sweep_goes_on_in_parts_and_costs_little() {
    let (api, client, mut pipeline) = delivering().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    let mut delivery = waiting.record().await;
    // More than one message sweeps for a webhook, and tenants for two messages.
    for _ in 0..1200 {
        delivery.event_id = api.store.tenant(client.tenant).new_id(api.now()).unwrap();
        api.store.tenant(client.tenant).write_delivery(None, &delivery).await.unwrap();
    }
    for tenant in 0..149u8 {
        let registration = shared::store::keys::registry(TenantId::new(Timestamp::from_millis(0), [tenant; 10])).item();
        api.dynamo.put_item().table_name(&api.table).set_item(Some(registration)).send().await.unwrap();
    }
    waiting.advance(&api, 1);
    pipeline.queue.take();
    pipeline.sweep().await;
    api.meter.take();
    pipeline.run().await;
    let cost = api.meter.take();
    let sent = pipeline.queue.take();
    let due: HashSet<EventId> = sent
        .iter()
        .filter_map(|message| match message {
            Message::Due(due) => Some(due.event_id),
            _ => None,
        })
        .collect();
    let sweeps = sent.iter().filter(|message| matches!(message, Message::Sweep(_))).count();
    let of_webhook = sent.iter().filter(|message| matches!(message, Message::SweepWebhook(_))).count();
    assert_eq!((due.len(), sent.len() - sweeps - of_webhook, sweeps, of_webhook), (1201, 1201, 2, 2));
    // A half unit for each tenant and each webhook, and one for each 8 KB of the registry and of 1,200 rows, which are read
    // once more for the webhook's own messages.
    assert!((75.0..110.0).contains(&cost.read_units) && cost.write_units == 0.0, "{cost:?}");
    assert!(cost.calls <= 156, "{cost:?}");
}
