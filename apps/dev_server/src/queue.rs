//! The dev server's delivery and retry queues: a channel of new messages, and a map of waiting messages by due time. Both are in
//! memory: the next process resumes from the delivery records, and from the table's stream, which keeps its events until they are
//! handled. Only a test, a retry or a replay that was just requested is lost.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use shared::domain::webhooks::{DeliveryRequest, Message};
use shared::queue::{NewMessage, Queue, QueueError, is_arn_of};
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Maximum number of messages handled concurrently per tenant and queue. Further messages wait, but don't delay other tenants.
const AT_ONCE: usize = 64;
/// Time until a failed message is retried. In AWS, this is the visibility timeout.
const RETURN: Duration = Duration::from_secs(60);
/// Number of receives after which a message is dropped, as in template.yaml.
const MAX_RECEIVES: u32 = 30;

/// Handles a message. The second argument is whether the message is from the retry queue. Returns whether it is finished.
pub type Handler = dyn Fn(Message, bool) -> BoxFuture<'static, bool> + Send + Sync;

/// Sends messages. Cheap to clone.
#[derive(Clone)]
pub struct MemoryQueue {
    sent: mpsc::UnboundedSender<Queued>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    all: AtomicUsize,
    /// Number of messages that are in no delivery record.
    only_here: AtomicUsize,
}

struct Queued {
    due: Instant,
    message: Message,
    is_retry: bool,
    receives: u32,
}

/// The receiving end of a [`MemoryQueue`].
pub struct Worker {
    queue: MemoryQueue,
    received: mpsc::UnboundedReceiver<Queued>,
    /// By due time, then by number.
    waiting: BTreeMap<(Instant, u64), Queued>,
    places: HashMap<(String, bool), Arc<Semaphore>>,
}

#[must_use]
pub fn in_memory() -> (MemoryQueue, Worker) {
    let (sent, received) = mpsc::unbounded_channel();
    let queue = MemoryQueue { sent, counts: Arc::default() };
    (queue.clone(), Worker { queue, received, waiting: BTreeMap::new(), places: HashMap::new() })
}

impl MemoryQueue {
    /// Returns the number of unfinished messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.all.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the delivery records contain all messages, so that losing the process loses none.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.counts.only_here.load(Ordering::Acquire) == 0
    }

    fn push(&self, is_retry: bool, messages: Vec<NewMessage>) -> Result<(), QueueError> {
        for NewMessage { message, delay } in messages {
            // A new message is counted before the message that caused it is finished.
            self.count(&message, AtomicUsize::fetch_add);
            let queued = Queued { due: Instant::now() + delay, message, is_retry, receives: 0 };
            self.sent.send(queued).map_err(|_| QueueError("the server is stopping".into()))?;
        }
        Ok(())
    }

    fn count(&self, message: &Message, change: fn(&AtomicUsize, usize, Ordering) -> usize) {
        change(&self.counts.all, 1, Ordering::AcqRel);
        if !matches!(message, Message::Delivery(DeliveryRequest { number: 2.., attempted: None, .. })) {
            change(&self.counts.only_here, 1, Ordering::AcqRel);
        }
    }
}

impl Queue for MemoryQueue {
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async { self.push(false, messages) })
    }

    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async { self.push(true, messages) })
    }

    fn is_of_retries(&self, arn: &str) -> bool {
        is_arn_of(arn, "retries")
    }
}

impl Worker {
    /// Handles messages until `stop` is true, and finishes messages in flight.
    pub async fn run(mut self, handler: Arc<Handler>, mut stop: watch::Receiver<bool>) {
        let (mut handled, mut number) = (JoinSet::<Option<Queued>>::new(), 0);
        while !*stop.borrow() {
            let now = Instant::now();
            while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
                let queued = first.remove();
                let places = self.places.entry((queued.message.group(), queued.is_retry));
                let places = Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))));
                handled.spawn(handle(self.queue.clone(), Arc::clone(&handler), places, stop.clone(), queued));
            }
            let next = self.waiting.first_key_value().map(|((due, _), _)| *due);
            let again = tokio::select! {
                sent = self.received.recv() => sent,
                Some(done) = handled.join_next() => done.ok().flatten(),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => None,
                _ = stop.wait_for(|is_stopped| *is_stopped) => None,
            };
            if let Some(queued) = again {
                number += 1;
                self.waiting.insert((queued.due, number), queued);
            }
        }
        while handled.join_next().await.is_some() {}
    }
}

/// Returns the message if it must be retried.
async fn handle(
    queue: MemoryQueue,
    handler: Arc<Handler>,
    places: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
    queued: Queued,
) -> Option<Queued> {
    // The semaphore is never closed.
    let _place = places.acquire().await;
    if *stop.borrow() {
        return None;
    }
    // A panic fails a message, not the server.
    let is_done = AssertUnwindSafe(handler(queued.message.clone(), queued.is_retry)).catch_unwind().await.unwrap_or_default();
    let receives = queued.receives + 1;
    if !is_done && receives < MAX_RECEIVES {
        return Some(Queued { due: Instant::now() + RETURN, receives, ..queued });
    }
    if !is_done {
        tracing::error!("a message failed too often and is dropped");
    }
    queue.count(&queued.message, AtomicUsize::fetch_sub);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::domain::values::id::{EventId, Id, TenantId, WebhookId};
    use shared::domain::values::time::Timestamp;
    use std::sync::Mutex;
    use tokio::time::{advance, sleep};

    fn message(tenant: u8, number: u32) -> Message {
        let at = Timestamp::from_millis(0);
        let (tenant, webhook, event) = (TenantId::new(at, [tenant; 10]), WebhookId::new(at, [1; 10]), EventId::new(at, [2; 10]));
        Message::Delivery(DeliveryRequest { number, ..DeliveryRequest::first(tenant, webhook, event, at) })
    }

    fn delayed(message: Message, seconds: u64) -> NewMessage {
        NewMessage { message, delay: Duration::from_secs(seconds) }
    }

    type Handled = Arc<Mutex<Vec<(Duration, Message, bool)>>>;

    /// Starts a worker, and records the messages that it handles. The receivers of tenant 9 hang.
    fn start(worker: Worker, is_done: fn(usize) -> bool) -> (Handled, watch::Sender<bool>) {
        let (handled, (stop, stopped)) = (Handled::default(), watch::channel(false));
        let (log, begin) = (Arc::clone(&handled), Instant::now());
        let hanging = message(9, 1).group();
        let handler = move |message: Message, is_retry| -> BoxFuture<'static, bool> {
            let (log, hangs) = (Arc::clone(&log), message.group() == hanging);
            Box::pin(async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let times = {
                    let mut handled = log.lock().unwrap();
                    handled.push((begin.elapsed(), message, is_retry));
                    handled.len()
                };
                is_done(times)
            })
        };
        tokio::spawn(worker.run(Arc::new(handler), stopped));
        (handled, stop)
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_handled_when_they_are_due() {
        let (queue, worker) = in_memory();
        let (handled, _stop) = start(worker, |_| true);
        queue.send_retry([900, 5, 30].map(|seconds| delayed(message(1, 2), seconds)).to_vec()).await.unwrap();
        queue.send(vec![message(1, 1).into()]).await.unwrap();
        assert_eq!((queue.len(), queue.is_recorded()), (4, false));
        sleep(Duration::from_secs(1)).await;
        assert_eq!((queue.len(), queue.is_recorded()), (3, true), "a first attempt has no record");
        advance(Duration::from_secs(3)).await;
        // A message with a shorter delay overtakes waiting messages.
        queue.send_retry(vec![delayed(message(2, 3), 6)]).await.unwrap();
        sleep(Duration::from_secs(1_000)).await;
        let times: Vec<_> = handled.lock().unwrap().iter().map(|(at, _, is_retry)| (at.as_secs(), *is_retry)).collect();
        assert_eq!(times, [(0, false), (5, true), (10, true), (30, true), (900, true)]);
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_fails_comes_back_and_is_given_up_in_the_end() {
        let (queue, worker) = in_memory();
        let (handled, _stop) = start(worker, |times| {
            assert!(times != 2, "this is a test");
            times > 3
        });
        queue.send(vec![message(1, 1).into()]).await.unwrap();
        sleep(Duration::from_secs(1_000)).await;
        let times: Vec<_> = handled.lock().unwrap().iter().map(|(at, ..)| at.as_secs()).collect();
        assert_eq!((times, queue.len()), (vec![0, 60, 120, 180], 0));
        let (queue, worker) = in_memory();
        let (handled, _stop) = start(worker, |_| false);
        queue.send(vec![message(1, 1).into()]).await.unwrap();
        sleep(RETURN * 100).await;
        assert_eq!((handled.lock().unwrap().len(), queue.len()), (30, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn receivers_that_hang_delay_no_other_tenant() {
        let (queue, worker) = in_memory();
        let (handled, stop) = start(worker, |_| true);
        queue.send((0..500).map(|_| message(9, 1).into()).collect()).await.unwrap();
        queue.send((0..200).map(|_| message(1, 1).into()).collect()).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        assert_eq!((handled.lock().unwrap().len(), queue.len()), (200, 500));
        // No further messages are started, and the remaining messages don't count as finished.
        stop.send(true).unwrap();
        sleep(Duration::from_millis(1)).await;
        assert!(queue.send(vec![message(1, 1).into()]).await.is_ok());
        sleep(Duration::from_secs(1)).await;
        assert_eq!((handled.lock().unwrap().len(), queue.len(), queue.is_recorded()), (200, 501, false));
    }
}
