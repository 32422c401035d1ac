//! Delivers events to webhooks. Each message of the queue is a new event with the webhooks that want it, a single delivery, or a
//! request that creates such messages.

mod delivery;
mod replay;
mod sender;
mod settling;

pub use sender::{Sender, SignedDelivery, Transport};

use chrono::TimeDelta;
use delivery::{Age, EventOfMessage, Place, RecentWebhooks, Secrets};
use futures_util::future::join_all;
use shared::app::BatchHandler;
use shared::app::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use shared::domain::webhooks::{DeliveryRequest, FanoutRequest, Message};
use shared::key_encryption::KeyEncryption;
use shared::log::error_chain;
use shared::queue::{MAX_DELAY, NewMessage, Queue, QueueError};
use shared::store::{Store, max_event_delay};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Makes SQS redeliver the message.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The state that the function keeps between invocations.
pub struct Deliver {
    store: Store,
    queue: Arc<dyn Queue>,
    secrets: Secrets,
    webhooks: RecentWebhooks,
    batches: AtomicU64,
    transport: Arc<dyn Transport>,
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
        Self { store, queue, secrets, webhooks, batches, transport: Arc::new(sender) }
    }

    /// Handles the messages concurrently. Returns the unfinished messages, which SQS redelivers later.
    pub async fn handle(&self, event: SqsEvent) -> SqsBatchResponse {
        let batch = self.next_batch();
        let finished = join_all(event.records.iter().map(|message| self.finish(batch, message))).await;
        response(&event.records, &finished)
    }

    /// Handles a message. `is_retry` is true for messages from the retry queue.
    ///
    /// # Errors
    ///
    /// Returns a [`Failure`] if the table, the queue or the key encryption fails. The message must then be redelivered.
    pub async fn handle_message(&self, message: &Message, is_retry: bool) -> Result<(), Failure> {
        self.handle_of_batch(self.next_batch(), message, is_retry).await
    }

    fn next_batch(&self) -> u64 {
        self.batches.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether the message is finished.
    async fn finish(&self, batch: u64, message: &SqsMessage) -> bool {
        let message_id = message.message_id.as_deref();
        // Doesn't log the cause, which can quote the message.
        let Ok(content) = serde_json::from_str::<Message>(message.body.as_deref().unwrap_or_default()) else {
            tracing::error!(message_id, "a message can't be read");
            return false;
        };
        let is_retry = self.queue.is_of_retries(message.event_source_arn.as_deref().unwrap_or_default());
        let handled = self.handle_of_batch(batch, &content, is_retry).await;
        if let Err(failure) = &handled {
            tracing::error!(message_id, cause = error_chain(&**failure), "a message can't be handled, and will be redelivered");
        }
        handled.is_ok()
    }

    async fn handle_of_batch(&self, batch: u64, message: &Message, is_retry: bool) -> Result<(), Failure> {
        let place = Place { batch, is_retry, age: Age::Current };
        match message {
            Message::Event(request) => self.deliver_event(place, request).await,
            Message::Delivery(request) if request.is_waiting(self.store.now()) => Ok(self.send_again(request.clone()).await?),
            Message::Delivery(request) => self.deliver(place, &EventOfMessage::default(), request).await,
            Message::Replay(request) => self.replay(request).await,
            Message::Fanout(request) => self.fan_out(request).await,
        }
    }

    /// Sends a delivery to the retry queue, delayed until it is due, but at most for [`MAX_DELAY`]. A delivery that is not due
    /// then is sent to the queue again.
    async fn send_again(&self, request: DeliveryRequest) -> Result<(), QueueError> {
        let left = request.due.map_or(TimeDelta::zero(), |due| due.since(self.store.now()));
        let delay = left.to_std().unwrap_or(Duration::ZERO).min(MAX_DELAY);
        self.queue.send_retry(vec![NewMessage { message: Message::Delivery(request), delay }]).await
    }

    /// Fans out events that the function `fanout` couldn't.
    async fn fan_out(&self, request: &FanoutRequest) -> Result<(), Failure> {
        let webhooks = self.store.reader(request.tenant_id).all().await?;
        let webhooks: Vec<_> = webhooks.into_iter().map(|stored| stored.value).collect();
        let messages: Vec<NewMessage> =
            request.requests(&webhooks, max_event_delay()).map(|request| Message::Event(request).into()).collect();
        if !messages.is_empty() {
            self.queue.send(messages).await?;
        }
        Ok(())
    }

    async fn finish_until(&self, batch: u64, message: &SqsMessage, deadline: Instant) -> bool {
        timeout_at(deadline, self.finish(batch, message)).await.unwrap_or_else(|_| {
            tracing::error!(message_id = message.message_id.as_deref(), "a message took too long");
            false
        })
    }
}

fn response(messages: &[SqsMessage], finished: &[bool]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for (message, is_finished) in messages.iter().zip(finished) {
        if !is_finished {
            // Without an ID, the whole batch is redelivered.
            response.add_failure(message.message_id.clone().unwrap_or_default());
        }
    }
    response
}

impl BatchHandler for Deliver {
    type Batch = SqsEvent;
    type Response = SqsBatchResponse;

    async fn handle_until(&self, batch: SqsEvent, deadline: Instant) -> SqsBatchResponse {
        let number = self.next_batch();
        let finished = join_all(batch.records.iter().map(|message| self.finish_until(number, message, deadline))).await;
        response(&batch.records, &finished)
    }
}
