//! Waits for the next attempt: a message is sent again until it is due. Nothing is lost, and no step counts twice.

use crate::support::prelude::*;
use crate::support::webhooks::*;
use deliver::{Deliver, SignedDelivery, Transport};
use futures_util::future::BoxFuture;
use shared::domain::webhooks::{Attempt, Delivery, DeliveryRequest, DeliveryStatus, Message, TestEvent};
use shared::queue::{NewMessage, Queue};
use std::sync::Mutex;
use tokio::time::{sleep, timeout};

/// A delivery that has failed three times, and is due in half an hour.
pub struct Waiting {
    pub hook: TestWebhook,
    event: String,
    pub due: Timestamp,
}

impl Waiting {
    pub async fn of(api: &Api, client: &Client, pipeline: &mut Pipeline) -> Self {
        let hook = webhook(api, client.tenant, "https://example.com/hook", &["asset.created"]).await;
        pipeline.stream.skip(&api.dynamo, &api.table).await;
        let (_, event) = created(api, client, pipeline).await;
        pipeline.receivers.respond(|_| 500);
        while pipeline.receivers.len() < 3 {
            pipeline.run().await;
            advance_to(api, pipeline.queue.next_visible().unwrap());
        }
        let due = hook.delivery(&event).await.unwrap().next_attempt_at.unwrap();
        pipeline.receivers.respond(|_| 200);
        pipeline.receivers.take();
        Self { hook, event, due }
    }

    pub async fn record(&self) -> Delivery {
        self.hook.delivery(&self.event).await.unwrap()
    }
}

pub fn advance_to(api: &Api, time: Timestamp) {
    api.advance_clock_millis(time.since(api.now()).num_milliseconds().max(0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_a_day_ends_on_time_and_reads_nothing_until_then() {
    let (api, _, mut pipeline) = delivering().await;
    api.stop_clock();
    let client = api.tenant().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    // Simulates the wait before the last attempt.
    let due = api.now().plus(TimeDelta::hours(24));
    let record = Delivery { next_attempt_at: Some(due), ..waiting.record().await };
    pipeline.queue.put(client.tenant, &record).await;
    pipeline.queue.clear();
    let message = record.pending_request(client.tenant).unwrap();
    pipeline.queue.send_retry(vec![Message::Delivery(message).into()]).await.unwrap();
    pipeline.queue.take_sent_retries();
    api.faults.take_requests();
    while due.since(api.now()) > TimeDelta::seconds(1) {
        pipeline.run().await;
        assert_eq!((api.faults.take_requests().len(), pipeline.receivers.len(), pipeline.queue.len()), (0, 0, 1));
        advance_to(&api, pipeline.queue.next_visible().unwrap());
    }
    let delays: Vec<u64> = pipeline.queue.take_sent_retries().iter().map(|new| new.delay.as_secs()).collect();
    assert_eq!(delays, [900; 96]);
    pipeline.run().await;
    let received = pipeline.receivers.take();
    assert_eq!((received.len(), received[0].at.since(due).num_seconds()), (1, 0));
    assert_eq!((waiting.record().await.status, pipeline.queue.len()), (DeliveryStatus::Delivered, 0));
}

/// Each attempt, and one message of each wait, is handled twice.
#[tokio::test(start_paused = true)]
async fn redelivered_messages_send_nothing_again() {
    let (api, client, mut pipeline, hook) = with_webhook(&["asset.created"]).await;
    let (_, event) = created(&api, &client, &mut pipeline).await;
    pipeline.receivers.respond(|_| 500);
    api.stop_clock();
    let mut doubled = 0;
    while let Some(next) = pipeline.queue.next_visible() {
        advance_to(&api, next);
        while let Some(received) = pipeline.queue.receive() {
            let response = pipeline.deliver.handle(received.clone()).await;
            let body = received.records[0].body.clone().unwrap();
            let number = match serde_json::from_str(&body).unwrap() {
                Message::Delivery(DeliveryRequest { number, .. }) => number,
                _ => 1,
            };
            let attempts = u32::try_from(pipeline.receivers.len()).unwrap();
            if attempts >= number || doubled < number {
                doubled = number;
                assert_eq!(pipeline.deliver.handle(received.clone()).await.batch_item_failures, []);
            }
            pipeline.queue.delete(&received, &response);
        }
    }
    let record = hook.delivery(&event).await.unwrap();
    assert_eq!((record.status, record.attempt_count, pipeline.receivers.len()), (DeliveryStatus::Failed, 10, 10));
    assert_eq!(doubled, 10);
}

/// Each attempt sends the event in its message, because a test event is in no history.
#[tokio::test(start_paused = true)]
async fn test_event_is_retried_with_the_same_body() {
    let (api, client, pipeline, hook) = with_webhook(&["asset.created"]).await;
    let event_id: EventId = api.store.writer(client.tenant).new_id(api.now()).unwrap();
    let test = Some(TestEvent { actor: Actor::operator() });
    send(&pipeline, DeliveryRequest { test, ..delivery(&hook, &event_id.to_string(), api.now()) }).await;
    pipeline.receivers.respond(|_| 500);
    pipeline.run_to_end(&api).await;
    let received = pipeline.receivers.take();
    assert!(received.len() == 10 && received.iter().all(|sent| sent.body == received[0].body), "{}", received.len());
}

/// `admin check --repair` and the dev server resend the messages of pending deliveries whose messages are lost.
#[tokio::test(start_paused = true)]
async fn a_delivery_whose_message_is_lost_goes_on_from_its_record() {
    let (api, client, mut pipeline) = delivering().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    pipeline.queue.clear();
    api.advance_clock(24 * 3600);
    pipeline.run_to_end(&api).await;
    assert_eq!(pipeline.receivers.len(), 0);
    let pending = api.store.writer(client.tenant).pending_deliveries().await.unwrap().requests;
    assert_eq!(pending.len(), 1);
    assert_eq!(api.store.pending_requests().await.unwrap(), pending);
    let messages: Vec<NewMessage> = pending.into_iter().map(|request| Message::Delivery(request).into()).collect();
    // Sent twice, as if the first message was only late.
    for _ in 0..2 {
        pipeline.queue.send_retry(messages.clone()).await.unwrap();
    }
    pipeline.run_to_end(&api).await;
    assert_eq!((waiting.record().await.status, pipeline.receivers.len()), (DeliveryStatus::Delivered, 1));
    assert_eq!(api.store.pending_requests().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cant_be_read_holds_up_no_other() {
    let (api, client, mut pipeline) = delivering().await;
    let waiting = Waiting::of(&api, &client, &mut pipeline).await;
    let store = api.store.writer(client.tenant);
    let damaged = Delivery { event_id: store.new_id(api.now()).unwrap(), ..waiting.record().await };
    store.write_delivery(None, &damaged).await.unwrap();
    let key = Keys::of(client.tenant).delivery(damaged.webhook_id, damaged.event_id).item();
    set_text(&api, &key, "requested_at", "soon".to_owned()).await;
    let pending = store.pending_deliveries().await.unwrap();
    let requests: Vec<String> = pending.requests.iter().map(|request| request.event_id.to_string()).collect();
    assert_eq!((requests, pending.unreadable), (vec![waiting.event.clone()], vec![(damaged.webhook_id, damaged.event_id)]));
    assert_eq!(api.store.pending_requests().await.unwrap(), pending.requests);
}

/// Receivers, one of which hangs. Records when the others were reached.
#[derive(Clone, Default)]
struct Hanging(Arc<Mutex<Vec<(Instant, String)>>>);

const HANGING: &str = "https://example.com/hanging";

impl Transport for Hanging {
    fn send<'a>(&'a self, delivery: SignedDelivery<'a>, at: Timestamp) -> BoxFuture<'a, Attempt> {
        Box::pin(async move {
            let url = delivery.url.as_str().to_owned();
            let (status, duration) = if url == HANGING { (None, 15_000) } else { (Some(204), 20) };
            sleep(Duration::from_millis(duration)).await;
            self.0.lock().unwrap().push((Instant::now(), url));
            let error = status.is_none().then_some(shared::domain::webhooks::AttemptFailure::TimedOut);
            Attempt { at, status, error, duration_ms: duration }
        })
    }
}

/// Delivers with two instances per queue, as with a concurrency of 2.
async fn work(pipeline: &Pipeline, deliver: &Deliver) {
    let instance = async |is_retry: bool| {
        loop {
            match pipeline.queue.receive_from(is_retry) {
                Some(event) => {
                    let response = deliver.handle(event.clone()).await;
                    pipeline.queue.delete(&event, &response);
                }
                None => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    join_all([false, false, true, true].map(instance)).await;
}

/// Measures how long events take to the fast receivers, each of a different tenant, with or without the hanging one.
fn quick_times(with_hanging: bool) -> Vec<Duration> {
    paused_runtime().block_on(async {
        let api = Api::start().await;
        let mut clients = Vec::new();
        let mut hook = async |url: String| {
            let client = api.tenant().await;
            webhook(&api, client.tenant, &url, &["asset.created"]).await;
            clients.push(client);
        };
        if with_hanging {
            hook(HANGING.to_owned()).await;
        }
        for n in 0..20 {
            hook(format!("https://example.com/{n}")).await;
        }
        let mut pipeline = Pipeline::start(&api).await;
        let receivers = Hanging::default();
        let queue = Arc::clone(&pipeline.queue) as Arc<dyn Queue>;
        let deliver = Deliver::new(api.store.clone(), queue, Arc::clone(&api.key_encryption), receivers.clone());
        let (mut times, rounds) = (Vec::new(), if full_tests() { 5 } else { 3 });
        for round in 0..rounds {
            for client in &clients {
                client.asset(json!({"name": "a"})).await;
            }
            let begin = Instant::now();
            pipeline.fan_out(&api).await;
            // In the first round, the hanging receiver isn't known to be slow yet, so it takes longer.
            let _ = timeout(Duration::from_secs(if round == 0 { 20 } else { 2 }), work(&pipeline, &deliver)).await;
            let arrived = std::mem::take(&mut *receivers.0.lock().unwrap());
            let quick: Vec<_> = arrived.into_iter().filter(|(_, url)| url != HANGING).map(|(at, _)| at - begin).collect();
            assert_eq!(quick.len(), 20, "round {round}");
            times.extend(quick.into_iter().max().filter(|_| round > 0));
            api.advance_clock_millis(2_000);
        }
        times
    })
}

#[test]
fn a_receiver_that_hangs_makes_no_quick_one_wait() {
    let (alone, beside) = (quick_times(false), quick_times(true));
    for (alone, beside) in alone.iter().zip(&beside) {
        assert!(*beside <= *alone + Duration::from_millis(200), "{beside:?} instead of {alone:?}");
    }
}
