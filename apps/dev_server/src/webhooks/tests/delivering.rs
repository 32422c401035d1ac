//! From the queue to the function `deliver`.

use super::*;
use crate::queue::Counts;
use crate::queue::tests::message;
use shared::queue::Queue;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

type Fake = Function<SqsEvent, SqsBatchResponse>;

async fn send(local: &Local, tenant: u8, count: u32) {
    local.queue.send((0..count).map(|event| message(tenant, event).into()).collect()).await.unwrap();
}

async fn deliver(local: &Local, function: Arc<Fake>) -> Pipeline {
    local.pipeline(succeeding::<Event, DynamoDbEventResponse>(), function).await
}

fn bodies(function: &Fake) -> Vec<String> {
    function.events().into_iter().flat_map(|event| event.records).map(|message| message.body.unwrap()).collect()
}

fn tenants(event: &SqsEvent) -> HashSet<String> {
    event.records.iter().map(|message| message.attributes["MessageGroupId"].clone()).collect()
}

#[tokio::test]
async fn every_message_is_handled_once_if_all_goes_well() {
    let local = Local::start(None).await;
    for tenant in 0..3 {
        send(&local, tenant, 50).await;
    }
    let function = succeeding();
    let _pipeline = deliver(&local, function.clone()).await;
    until(async || local.queue.counts().await.unwrap() == Counts::default()).await;
    let bodies = bodies(&function);
    assert_eq!((bodies.len(), bodies.iter().collect::<HashSet<_>>().len()), (150, 150));
    for event in function.events() {
        assert!(event.records.len() <= 10 && tenants(&event).len() == 1, "{event:?}");
    }
    // Also one that is sent while the worker waits.
    send(&local, 9, 1).await;
    until(async || local.queue.counts().await.unwrap() == Counts::default()).await;
    let last = &function.events().pop().unwrap().records[0];
    assert_eq!(last.body.as_deref().unwrap(), serde_json::to_string(&message(9, 0)).unwrap());
    assert_eq!((last.event_source.as_deref(), &*last.attributes["ApproximateReceiveCount"]), (Some("aws:sqs"), "1"));
    assert!(last.message_id.is_some() && last.receipt_handle.is_some());
}

#[tokio::test]
async fn only_messages_that_are_reported_come_back() {
    let local = Local::start(None).await;
    send(&local, 1, 10).await;
    let function = Function::new(|event: SqsEvent| {
        let mut response = SqsBatchResponse::default();
        for message in &event.records {
            let body = message.body.as_deref().unwrap();
            if body == serde_json::to_string(&self::message(1, 4)).unwrap() {
                response.add_failure(message.message_id.clone().unwrap());
            }
        }
        Box::pin(async { response }) as BoxFuture<'static, _>
    });
    let _pipeline = deliver(&local, function).await;
    let one_left = Counts { hidden: 1, ..Counts::default() };
    until(async || local.queue.counts().await.unwrap() == one_left).await;
}

#[tokio::test]
async fn a_batch_that_fails_as_a_whole_comes_back_as_a_whole() {
    for failure in ["panic", "unknown"] {
        let local = Local::start(None).await;
        send(&local, 1, 10).await;
        let function = Function::new(move |_| {
            Box::pin(async move {
                assert!(failure != "panic", "this is a test");
                let mut response = SqsBatchResponse::default();
                response.add_failure("unknown");
                response
            }) as BoxFuture<'static, _>
        });
        let _pipeline = deliver(&local, function).await;
        let all = Counts { hidden: 10, ..Counts::default() };
        until(async || local.queue.counts().await.unwrap() == all).await;
    }
}

#[tokio::test]
async fn receivers_that_hang_delay_nobody_else() {
    let local = Local::start(None).await;
    for tenant in 0..20 {
        send(&local, tenant, 500).await;
    }
    let hanging: HashSet<String> = (0..20).map(|tenant| message(tenant, 0).group()).collect();
    let function = Function::new(move |event: SqsEvent| {
        let hangs = !tenants(&event).is_disjoint(&hanging);
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            SqsBatchResponse::default()
        }) as BoxFuture<'static, _>
    });
    let _pipeline = deliver(&local, function.clone()).await;
    // All that they can get, they have.
    until(async || function.events().len() >= 20).await;
    send(&local, 99, 200).await;
    until(async || local.queue.counts().await.unwrap().visible + local.queue.counts().await.unwrap().held == 10_000).await;
    let good = message(99, 0).group();
    let handled: usize =
        function.events().iter().filter(|event| tenants(event).contains(&good)).map(|event| event.records.len()).sum();
    assert_eq!(handled, 200);
}

#[tokio::test]
async fn what_is_under_way_may_finish_and_the_rest_stays() {
    let local = Local::start(None).await;
    send(&local, 1, 100).await;
    let finished = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&finished);
    let function = Function::new(move |event: SqsEvent| {
        let finished = Arc::clone(&counted);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            finished.fetch_add(event.records.len(), Ordering::Relaxed);
            SqsBatchResponse::default()
        }) as BoxFuture<'static, _>
    });
    let pipeline = deliver(&local, function.clone()).await;
    until(async || !function.events().is_empty()).await;
    pipeline.stop(Instant::now() + LONG).await;
    let (handled, counts) = (finished.load(Ordering::Relaxed), local.queue.counts().await.unwrap());
    assert_eq!((handled, counts), (bodies(&function).len(), Counts { visible: 100 - handled as u64, ..Counts::default() }));
    assert!((1..=16).contains(&handled), "{handled}");
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_repeated_by_the_next_worker() {
    let local = Local::start(None).await;
    send(&local, 1, 3).await;
    let hanging: Arc<Fake> = Function::new(|_| Box::pin(std::future::pending()));
    let pipeline = deliver(&local, hanging.clone()).await;
    until(async || !hanging.events().is_empty()).await;
    let begin = Instant::now();
    pipeline.stop(begin + Duration::from_millis(100)).await;
    assert!((Duration::from_millis(100)..LONG).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    let function = succeeding();
    let _pipeline = deliver(&local, function.clone()).await;
    until(async || local.queue.counts().await.unwrap() == Counts::default()).await;
    assert_eq!(bodies(&function).into_iter().collect::<HashSet<_>>().len(), 3);
}
