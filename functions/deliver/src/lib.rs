//! Delivers events to webhooks: each message of the queue is one delivery, or a replay or a sweep that sends such messages.

mod delivery;
mod disabling;
mod replay;
mod secrets;
mod sender;
mod sweep;
mod transport;

pub use sender::{Resolve, Resolver, Sender, SignedDelivery};
pub use transport::Transport;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use chrono::TimeDelta;
use futures_util::future::join_all;
use secrets::Secrets;
use shared::domain::webhooks::{Message, RETRY_DELAYS};
use shared::key_encryption::KeyEncryption;
use shared::lambda::BatchHandler;
use shared::log::error_chain;
use shared::queue::{MAX_DELAY, NewMessage, Queue, QueueError};
use shared::store::Store;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The message comes back.
type Failure = Box<dyn Error + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The next attempt is due after this time.
    Later(TimeDelta),
}

/// The state that the function keeps between invocations.
pub struct Deliver {
    store: Store,
    queue: Arc<dyn Queue>,
    secrets: Secrets,
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
        Self { store, queue, secrets, transport: Arc::new(sender), retry_delays: RETRY_DELAYS.to_vec() }
    }

    #[must_use]
    pub fn with_retry_delays(self, retry_delays: Vec<TimeDelta>) -> Self {
        Self { retry_delays, ..self }
    }

    /// Handles the messages at the same time. Returns the unfinished ones, which come back later.
    pub async fn handle(&self, event: SqsEvent) -> SqsBatchResponse {
        let finished = join_all(event.records.iter().map(|message| self.finish(message))).await;
        response(&event.records, &finished)
    }

    /// Returns whether the message is finished.
    async fn finish(&self, message: &SqsMessage) -> bool {
        let message_id = message.message_id.as_deref();
        match self.handle_message(message).await {
            Ok((_, Outcome::Done)) => true,
            Ok((content, Outcome::Later(left))) => {
                // If this fails, the message comes back and waits again.
                self.wait(content, left.to_std().unwrap_or(Duration::ZERO)).await.map_or_else(
                    |error| {
                        tracing::warn!(message_id, cause = error_chain(&error), "a message can't wait");
                        false
                    },
                    |()| true,
                )
            }
            Err(error) => {
                tracing::error!(message_id, cause = error_chain(&*error), "a message can't be handled");
                false
            }
        }
    }

    /// Sends a message that waits in the queue of retries, so that the present one is finished. If the function ends in between,
    /// both are there: one message too many is harmless. A longer wait needs none: a sweep finds the delivery by its record.
    async fn wait(&self, content: Message, left: Duration) -> Result<(), QueueError> {
        if left > MAX_DELAY {
            return Ok(());
        }
        self.queue.send_retry(vec![NewMessage { message: content, delay: left }]).await
    }

    async fn finish_until(&self, message: &SqsMessage, deadline: Instant) -> bool {
        timeout_at(deadline, self.finish(message)).await.unwrap_or_else(|_| {
            tracing::error!(message_id = message.message_id.as_deref(), "a message took too long");
            false
        })
    }

    async fn handle_message(&self, message: &SqsMessage) -> Result<(Message, Outcome), Failure> {
        // Without the cause, which may quote the message.
        let read = serde_json::from_str(message.body.as_deref().unwrap_or_default());
        let content: Message = read.map_err(|_| "the message can't be read")?;
        let outcome = match &content {
            Message::Delivery(request) => self.deliver(request).await?,
            Message::Replay(request) => self.replay(request).await?,
            Message::Sweep(sweep) => self.sweep(sweep).await?,
            Message::SweepWebhook(sweep) => self.sweep_webhook(sweep).await?,
            Message::Due(due) => self.deliver_due(due).await?,
        };
        Ok((content, outcome))
    }
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
        let finished = join_all(batch.records.iter().map(|message| self.finish_until(message, deadline))).await;
        response(&batch.records, &finished)
    }
}
