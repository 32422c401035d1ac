//! The queue, with a clock that the tests move.

use super::*;
use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
use shared::domain::values::time::Timestamp;
use shared::domain::webhooks::{DeliveryRequest, Message};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

const VISIBILITY: Duration = Duration::from_secs(180);

/// A clock that stands still until it is moved.
#[derive(Clone)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(1_772_704_800_000)))
    }

    fn clock(&self) -> Clock {
        let Self(millis) = self.clone();
        Arc::new(move || Timestamp::from_millis(millis.load(Ordering::Relaxed)))
    }

    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::Relaxed);
    }
}

fn in_memory() -> (SqliteQueue, Time) {
    let time = Time::new();
    (SqliteQueue::open(None, time.clock()).unwrap(), time)
}

/// Tenant and event are given as numbers.
pub(crate) fn message(tenant: u8, event: u32) -> Message {
    let at = Timestamp::from_millis(1_772_704_800_000);
    let mut random = [0; 10];
    random[..4].copy_from_slice(&event.to_be_bytes());
    Message::Delivery(DeliveryRequest {
        tenant_id: TenantId::new(at, [tenant; 10]),
        webhook_id: WebhookId::new(at, [1; 10]),
        event_id: EventId::new(at, random),
        requested_at: at,
        test: None,
        attempted: None,
        number: 1,
        due: None,
    })
}

async fn send(queue: &SqliteQueue, tenant: u8, events: std::ops::Range<u32>) {
    queue.send(events.map(|event| message(tenant, event).into()).collect()).await.unwrap();
}

async fn send_retry(queue: &SqliteQueue, tenant: u8, events: std::ops::Range<u32>) {
    queue.send_retry(events.map(|event| message(tenant, event).into()).collect()).await.unwrap();
}

async fn receive(queue: &SqliteQueue, capacity: usize) -> Vec<ReceivedMessage> {
    queue.receive(capacity, VISIBILITY).await.unwrap()
}

fn receipts(received: &[ReceivedMessage]) -> Vec<String> {
    received.iter().map(|message| message.receipt_handle.clone()).collect()
}

fn by_group(received: &[ReceivedMessage]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for message in received {
        *counts.entry(message.grouping.as_str()).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn a_message_is_hidden_while_a_worker_has_it_and_comes_back_until_it_is_deleted() {
    let (queue, time) = in_memory();
    send(&queue, 1, 0..1).await;
    let first = receive(&queue, 100).await;
    assert_eq!(serde_json::from_str::<Message>(&first[0].body).unwrap(), message(1, 0));
    assert_eq!((first[0].receives, receive(&queue, 100).await.len()), (1, 0));
    time.pass(179);
    assert!(receive(&queue, 100).await.is_empty());
    time.pass(1);
    let second = receive(&queue, 100).await;
    assert_eq!((&second[0].id, second[0].receives), (&first[0].id, 2));
    assert_eq!((second[0].sent_at, second[0].first_received_at), (first[0].sent_at, first[0].first_received_at));
    queue.settle(receipts(&second), Vec::new()).await.unwrap();
    time.pass(1000);
    assert!(receive(&queue, 100).await.is_empty());
    assert_eq!(queue.counts().await.unwrap(), Counts::default());
}

#[tokio::test]
async fn a_receipt_handle_of_an_earlier_receive_does_nothing() {
    let (queue, time) = in_memory();
    send(&queue, 1, 0..1).await;
    let first = receive(&queue, 100).await;
    time.pass(180);
    // Later received by somebody else.
    let second = receive(&queue, 100).await;
    queue.settle(receipts(&first), Vec::new()).await.unwrap();
    assert_eq!(queue.counts().await.unwrap(), Counts { held: 1, ..Counts::default() });
    queue.settle(receipts(&second), Vec::new()).await.unwrap();
    assert_eq!(queue.counts().await.unwrap(), Counts::default());
    for invented in ["", "1", "x-1", "1-x"] {
        assert!(queue.settle(vec![invented.to_owned()], Vec::new()).await.is_err(), "{invented}");
    }
}

#[tokio::test]
async fn messages_say_which_queue_they_are_in() {
    let (queue, _) = in_memory();
    send(&queue, 1, 0..1).await;
    send_retry(&queue, 1, 1..2).await;
    let received = receive(&queue, 100).await;
    assert_eq!(received.iter().map(ReceivedMessage::queue).collect::<Vec<_>>(), [DELIVERIES, RETRIES]);
    let event = crate::webhooks::lambda_events::of_queue(&received).unwrap();
    let arns: Vec<_> = event.records.iter().map(|message| message.event_source_arn.as_deref().unwrap()).collect();
    assert!(arns[0].ends_with(":deliveries") && arns[1].ends_with(":retries"), "{arns:?}");
}

#[tokio::test]
async fn a_delayed_message_is_held_back() {
    let (queue, time) = in_memory();
    queue.send(vec![NewMessage { message: message(1, 0), delay: Duration::from_secs(15) }]).await.unwrap();
    time.pass(14);
    assert!(receive(&queue, 100).await.is_empty());
    time.pass(1);
    assert_eq!(receive(&queue, 100).await.len(), 1);
    let too_late = NewMessage { message: message(1, 1), delay: Duration::from_secs(901) };
    assert!(queue.send(vec![message(1, 2).into(), too_late]).await.is_err());
    assert_eq!(queue.counts().await.unwrap(), Counts { held: 1, ..Counts::default() }, "all or none are sent");
}

#[tokio::test]
async fn no_tenant_takes_all_of_the_capacity() {
    let (queue, _) = in_memory();
    send(&queue, 1, 0..1000).await;
    let mut received = receive(&queue, 64).await;
    received.extend(receive(&queue, 64).await);
    assert_eq!(received.len(), 16);
    // Another one gets its message at once, and so does the next of many that all hang.
    for tenant in 2..12 {
        send(&queue, tenant, 0..1000).await;
        let next = receive(&queue, 64).await;
        assert!(next.iter().any(|message| message.tenant() == self::message(tenant, 0).group()), "{tenant}");
        received.extend(next);
    }
    assert!(received.len() <= 64, "{}", received.len());
    // Finished messages make room.
    queue.settle(receipts(&received[..16]), Vec::new()).await.unwrap();
    assert_eq!(by_group(&receive(&queue, 64).await).keys().next().unwrap(), &received[0].grouping);
}

#[tokio::test]
async fn messages_are_shared_out_evenly() {
    let (queue, _) = in_memory();
    send(&queue, 1, 0..1000).await;
    send(&queue, 2, 0..3).await;
    send(&queue, 3, 0..1000).await;
    let received = receive(&queue, 60).await;
    let counts: Vec<usize> = by_group(&received).into_values().collect();
    assert_eq!(counts[1], 3, "{counts:?}");
    assert!(counts[0].abs_diff(counts[2]) <= 1 && counts[0] > 9, "{counts:?}");
}

#[tokio::test]
async fn a_message_that_nobody_can_handle_becomes_a_dead_letter() {
    let (queue, time) = in_memory();
    send(&queue, 1, 0..1).await;
    for receives in 1..=MAX_RECEIVES {
        let received = receive(&queue, 100).await;
        assert_eq!(received[0].receives, receives);
        queue.settle(Vec::new(), receipts(&received)).await.unwrap();
        time.pass(180);
    }
    // Those behind it are received nevertheless.
    send(&queue, 1, 1..2).await;
    let received = receive(&queue, 100).await;
    assert_eq!(received.iter().map(|message| message.receives).collect::<Vec<_>>(), [1]);
    assert_eq!(queue.counts().await.unwrap(), Counts { held: 1, dead: 1, ..Counts::default() });
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (file, time) = (folder.path().join("queue.db"), Time::new());
    let open = || SqliteQueue::open(Some(&file), time.clock()).unwrap();
    let queue = open();
    send_retry(&queue, 1, 0..3).await;
    queue.set_checkpoint("a", "17").await.unwrap();
    queue.set_checkpoint("a", "18").await.unwrap();
    queue.set_checkpoint("b", "4").await.unwrap();
    let received = receive(&queue, 100).await;
    queue.settle(vec![received[0].receipt_handle.clone()], Vec::new()).await.unwrap();
    queue.settle(Vec::new(), vec![received[1].receipt_handle.clone()]).await.unwrap();
    drop(queue);
    let queue = open();
    assert_eq!(queue.counts().await.unwrap(), Counts { held: 1, hidden: 1, ..Counts::default() });
    // One was done, one has failed, and a worker had one that doesn't exist any more.
    queue.release().await.unwrap();
    assert_eq!(queue.counts().await.unwrap(), Counts { visible: 1, hidden: 1, ..Counts::default() });
    let again = receive(&queue, 100).await;
    assert_eq!((again.len(), &again[0].id, again[0].receives), (1, &received[2].id, 2));
    time.pass(180);
    assert!(receive(&queue, 100).await.iter().any(|message| message.id == received[1].id));
    let checkpoints = [queue.checkpoint("a").await.unwrap(), queue.checkpoint("b").await.unwrap()];
    assert_eq!(checkpoints, [Some("18".to_owned()), Some("4".to_owned())]);
    assert_eq!(queue.checkpoint("c").await.unwrap(), None);
}

#[tokio::test]
async fn who_waits_for_messages_is_woken() {
    let (queue, _) = in_memory();
    send(&queue, 1, 0..1).await;
    tokio::time::timeout(Duration::from_secs(5), queue.sent()).await.unwrap();
    let nothing = tokio::time::timeout(Duration::from_millis(20), queue.sent()).await;
    assert!(nothing.is_err());
}
