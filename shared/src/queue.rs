//! The queues between the functions `fanout` and `deliver`: one for first attempts, and one for retries, so that waiting retries
//! don't slow down first attempts. The crate `queue` implements them with SQS; the dev server has a separate implementation.

pub use crate::domain::webhooks::MAX_DELAY;
use crate::domain::webhooks::Message;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::time::Duration;

/// The queue didn't accept a message.
#[derive(Debug, thiserror::Error)]
#[error("the queue is unavailable")]
pub struct QueueError(#[source] pub Box<dyn Error + Send + Sync>);

/// The minimum delay before the first retry of a message.
pub const SOON: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    pub message: Message,
    /// Delay before the message is delivered, at most [`MAX_DELAY`].
    pub delay: Duration,
}

impl From<Message> for NewMessage {
    fn from(message: Message) -> Self {
        Self { message, delay: Duration::ZERO }
    }
}

/// Whether an ARN and a URL belong to the same queue: both end with its name.
#[must_use]
pub fn is_arn_of(arn: &str, url: &str) -> bool {
    let name = url.rsplit('/').next().filter(|name| !name.is_empty());
    name.is_some() && arn.rsplit(':').next() == name
}

/// Queues that deliver each message at least once, in no particular order. Each tenant's messages form a group, so that a busy
/// tenant doesn't delay others.
pub trait Queue: Send + Sync {
    /// Sends any number of messages for a first attempt. After an error, some may have been sent.
    ///
    /// # Errors
    ///
    /// Returns a [`QueueError`] if the queue didn't accept all messages.
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Sends messages to the retry queue: pending retries, and messages that would hold up others. After an error, some may have
    /// been sent.
    ///
    /// # Errors
    ///
    /// Returns a [`QueueError`] if the queue didn't accept all messages.
    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Whether `arn` is the ARN of the retry queue.
    fn is_of_retries(&self, arn: &str) -> bool;
}
