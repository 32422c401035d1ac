//! One message for all webhooks of an event: whatever fails or takes long for one of them delays no other.

use crate::support::webhooks::pipeline::{Pipeline, TestWebhook, delivering, webhook};
use crate::support::{Api, Client};
use dev_server::faulty_table::planned::CallFailure;
use serde_json::json;
use shared::domain::webhooks::{DeliveryRequest, DeliveryStatus, Health, Message};
use shared::queue::{NewMessage, Queue};
use shared::store::keys::Keys;

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
async fn a_failing_webhook_is_attempted_apart_until_it_succeeds() {
    let (api, client, mut pipeline, hooks) = with_webhooks().await;
    pipeline.receivers.respond(|sent| if sent.url == URLS[0] { 500 } else { 204 });
    first_attempts(&api, &client, &mut pipeline).await;
    assert_eq!(arrived(&pipeline).len(), 3);
    // The next event waits for nobody: the delivery goes to the queue of retries at once.
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
}

#[tokio::test(start_paused = true)]
async fn a_slow_webhook_is_attempted_apart_until_it_is_quick() {
    let (api, client, mut pipeline, hooks) = with_webhooks().await;
    let health = async || api.store.tenant(client.tenant).webhook_health(hooks[1].id).await.unwrap();
    pipeline.receivers.set_slow(&[URLS[1]]);
    for expected in [3, 2] {
        first_attempts(&api, &client, &mut pipeline).await;
        assert_eq!(arrived(&pipeline).len(), expected);
        assert_eq!(health().await, Health { is_slow: true, failing_since: None });
    }
    // Nothing changes, so nothing is written.
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
async fn what_can_not_be_read_for_some_comes_back_and_delays_no_other() {
    let (api, client, mut pipeline, hooks) = with_webhooks().await;
    // The webhooks, the event, three records and health items, and the names.
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
    for (status, expected) in [(204, DeliveryStatus::Delivered), (500, DeliveryStatus::Pending)] {
        pipeline.receivers.respond(move |sent| if sent.url == URLS[0] { status } else { 204 });
        let partition = Keys::of(client.tenant).webhook_partition(hooks[0].id);
        api.faults.throttle_writes_to(&[partition.as_s().unwrap().clone()]);
        let event = first_attempts(&api, &client, &mut pipeline).await;
        api.faults.throttle_writes_to(&[]);
        assert_eq!((arrived(&pipeline).len(), hooks[0].delivery(&event).await), (3, None));
        let sent = pipeline.queue.take_sent_retries();
        // The message of the next attempt was sent before, and ends without a record.
        let [next @ .., to_record] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!(next.len(), usize::from(expected == DeliveryStatus::Pending));
        let attempted = only_delivery(std::slice::from_ref(to_record)).attempted.clone().expect("an attempt to record");
        assert_eq!(attempted.attempt.status, Some(status));
        assert!((5..=10).contains(&to_record.delay.as_secs()));
        api.advance_clock(10);
        pipeline.run().await;
        let record = hooks[0].delivery(&event).await.unwrap();
        // The second attempt of the schedule is due meanwhile.
        let again = usize::from(expected == DeliveryStatus::Pending);
        assert_eq!((record.status, record.attempts[0].at), (expected, attempted.attempt.at));
        assert_eq!((record.attempts.len(), pipeline.receivers.len()), (1 + again, again));
        // A double of the message changes nothing.
        pipeline.queue.send_retry(sent).await.unwrap();
        pipeline.receivers.respond(|_| 204);
        pipeline.run_to_end(&api).await;
        let record = hooks[0].delivery(&event).await.unwrap();
        assert_eq!((record.status, record.attempts.len()), (DeliveryStatus::Delivered, 1 + 2 * again));
        pipeline.receivers.take();
    }
}
