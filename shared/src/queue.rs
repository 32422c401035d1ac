//! The queues between the functions `fanout` and `deliver`: one of first attempts, and one of retries. Waiting retries
//! hold up no first attempt. The crate `queue` has SQS; `apps/dev_server/src/queue.rs` has the queues of the dev server.

pub use crate::domain::webhooks::MAX_DELAY;
use crate::domain::webhooks::Message;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::time::Duration;

/// The queue did not take a message.
#[derive(Debug, thiserror::Error)]
#[error("the queue is unavailable")]
pub struct QueueError(#[source] pub Box<dyn Error + Send + Sync>);

/// The least time until a message that failed for the first time is tried again.
pub const SOON: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    pub message: Message,
    /// At most [`MAX_DELAY`].
    pub delay: Duration,
}

impl From<Message> for NewMessage {
    fn from(message: Message) -> Self {
        Self { message, delay: Duration::ZERO }
    }
}

/// Both end with the queue's name.
#[must_use]
pub fn is_arn_of(arn: &str, url: &str) -> bool {
    let name = url.rsplit('/').next().filter(|name| !name.is_empty());
    name.is_some() && arn.rsplit(':').next() == name
}

/// Queues that deliver each message at least once, in no order. The messages of one tenant are a group: many of them don't
/// delay other tenants' messages.
pub trait Queue: Send + Sync {
    /// Sends messages for a first attempt, however many. If it fails, some may have been sent.
    ///
    /// # Errors
    ///
    /// Returns a [`QueueError`] when the queue did not take all of them.
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Sends messages to the queue of retries: they wait for their next attempt, or would hold up others. If it fails, some may
    /// have been sent.
    ///
    /// # Errors
    ///
    /// Returns a [`QueueError`] when the queue did not take all of them.
    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>>;

    /// `arn` names the queue that a message came from.
    fn is_of_retries(&self, arn: &str) -> bool;
}
