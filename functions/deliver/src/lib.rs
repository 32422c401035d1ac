//! Delivers events to webhooks: each message of the queue is an event for the webhooks that want it, one delivery, or something
//! that leads to such messages.

mod delivery;
mod disabling;
mod first_attempts;
mod replay;
mod secrets;
mod sender;
mod settling;
mod shared_reads;
mod sweep;
mod transport;
mod webhooks;

pub use sender::{Sender, SignedDelivery};
pub use transport::Transport;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::TimeDelta;
use delivery::Place;
use futures_util::future::join_all;
use secrets::Secrets;
use shared::domain::webhooks::{DeliveryRequest, Message, RETRY_DELAYS};
use shared::key_encryption::KeyEncryption;
use shared::lambda::BatchHandler;
use shared::log::error_chain;
use shared::queue::{MAX_DELAY, NewMessage, Queue, QueueError, SOON};
use shared::store::{Store, StoreError, WriteError};
use shared_reads::SharedReads;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use webhooks::{Age, RecentWebhooks};

/// The least time until a message of the queue of retries that failed is tried again.
const LATER: Duration = Duration::from_secs(60);

/// The message is tried again.
type Failure = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The delivery is attempted after this time, in the queue of retries.
    Later(TimeDelta),
}

/// The state that the function keeps between invocations.
pub struct Deliver {
    store: Store,
    queue: Arc<dyn Queue>,
    secrets: Secrets,
    webhooks: RecentWebhooks,
    batches: AtomicU64,
    transport: Arc<dyn Transport>,
    retry_delays: Vec<TimeDelta>,
}

impl Deliver {
    #[must_use]
    pub fn new(
        store: Store,
        queue: Arc<dyn Queue>,
        key_encryption: Arc<dyn KeyEncryption>,
        sender: impl Transport + 'static,
    ) -> Self {
        let secrets = Secrets::new(key_encryption);
        let (webhooks, batches) = (RecentWebhooks::default(), AtomicU64::default());
        Self { store, queue, secrets, webhooks, batches, transport: Arc::new(sender), retry_delays: RETRY_DELAYS.to_vec() }
    }

    #[must_use]
    pub fn with_retry_delays(self, retry_delays: Vec<TimeDelta>) -> Self {
        Self { retry_delays, ..self }
    }

    /// Handles the messages at the same time. Returns the unfinished ones, which come back later.
    pub async fn handle(&self, event: SqsEvent) -> SqsBatchResponse {
        let reads = self.shared_reads();
        let finished = join_all(event.records.iter().map(|message| self.finish(&reads, message))).await;
        response(&event.records, &finished)
    }

    fn shared_reads(&self) -> SharedReads {
        SharedReads::new(self.batches.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns whether the message is finished.
    async fn finish(&self, reads: &SharedReads, message: &SqsMessage) -> bool {
        let message_id = message.message_id.as_deref();
        // Without the cause, which may quote the message.
        let Ok(content) = serde_json::from_str::<Message>(message.body.as_deref().unwrap_or_default()) else {
            tracing::error!(message_id, "a message can't be read");
            return false;
        };
        let is_retry = self.queue.is_of_retries(message.event_source_arn.as_deref().unwrap_or_default());
        let place = Place { reads, is_retry, age: Age::Current };
        let whole = |failure| (content.clone(), failure);
        let handled = match &content {
            Message::Event(request) => self.deliver_event(reads, is_retry, request).await,
            Message::Delivery(request) => self.deliver_or_wait(place, request).await.map_err(whole),
            Message::Due(due) => self.deliver_due(place, due).await.map_err(whole),
            Message::Sweep(sweep) => self.sweep(sweep).await.map_err(whole),
            Message::SweepWebhook(sweep) => self.sweep_webhook(sweep).await.map_err(whole),
            Message::Replay(request) => self.replay(request).await.map_err(whole),
            Message::Fanout(request) => self.fan_out(request).await.map_err(whole),
        };
        match handled {
            Ok(()) => true,
            Err((rest, failure)) => self.set_aside(message_id, is_retry, rest, failure).await,
        }
    }

    /// Has what failed tried again by a message of its own, so that the failed one is not in flight until then. In the queue of
    /// retries, only failures of the table that pass: others are counted by the queue, which gives them up in the end.
    async fn set_aside(&self, message_id: Option<&str>, is_retry: bool, rest: Message, failure: Failure) -> bool {
        tracing::error!(message_id, cause = error_chain(&*failure), "a message can't be handled");
        if is_retry && !passes(&*failure) {
            return false;
        }
        let rest = NewMessage { message: rest, delay: self.store.jittered(if is_retry { LATER } else { SOON }) };
        let sent = self.queue.send_retry(vec![rest]).await;
        if let Err(error) = &sent {
            tracing::error!(message_id, cause = error_chain(error), "a message can't be set aside, and comes back");
        }
        sent.is_ok()
    }

    /// Attempts a delivery once, or lets it wait. If its message can't be sent, the present one comes back and waits again.
    async fn deliver_or_wait(&self, place: Place<'_>, request: &DeliveryRequest) -> Result<(), Failure> {
        match self.deliver(place, request).await? {
            Outcome::Done => Ok(()),
            Outcome::Later(left) => Ok(self.wait(request, left).await?),
        }
    }

    /// Sends a message that waits in the queue of retries, so that the present one is finished. If the function ends in between,
    /// both are there: one message too many is harmless. A longer wait needs none: a sweep finds the delivery by its record.
    async fn wait(&self, request: &DeliveryRequest, left: TimeDelta) -> Result<(), QueueError> {
        let left = left.to_std().unwrap_or(Duration::ZERO);
        if left > MAX_DELAY {
            return Ok(());
        }
        let next = Message::Delivery(DeliveryRequest { attempted: None, ..request.clone() });
        self.queue.send_retry(vec![NewMessage { message: next, delay: left }]).await
    }

    async fn finish_until(&self, reads: &SharedReads, message: &SqsMessage, deadline: Instant) -> bool {
        timeout_at(deadline, self.finish(reads, message)).await.unwrap_or_else(|_| {
            tracing::error!(message_id = message.message_id.as_deref(), "a message took too long");
            false
        })
    }
}

/// The table was too busy, or did not respond.
fn passes(failure: &(dyn Error + Send + Sync + 'static)) -> bool {
    let of_write = failure.downcast_ref::<WriteError>().and_then(|error| match error {
        WriteError::Store(error) => Some(error),
        _ => None,
    });
    matches!(failure.downcast_ref::<StoreError>().or(of_write), Some(StoreError::Unavailable(_)))
}

fn response(messages: &[SqsMessage], finished: &[bool]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for (message, is_finished) in messages.iter().zip(finished) {
        if !is_finished {
            // Without an ID, all messages of the batch come back.
            response.add_failure(message.message_id.clone().unwrap_or_default());
        }
    }
    response
}

impl BatchHandler for Deliver {
    type Batch = SqsEvent;
    type Response = SqsBatchResponse;

    async fn handle_until(&self, batch: SqsEvent, deadline: Instant) -> SqsBatchResponse {
        let reads = self.shared_reads();
        let finished = join_all(batch.records.iter().map(|message| self.finish_until(&reads, message, deadline))).await;
        response(&batch.records, &finished)
    }
}
