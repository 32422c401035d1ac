//! The queue between the functions `fanout` and `deliver`. The crate `queue` has SQS; the dev server has a queue of its own.

use crate::domain::webhook::Message;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::time::Duration;

/// The longest time for which SQS holds back a message that is sent: 15 minutes.
pub const MAX_DELAY: Duration = Duration::from_secs(900);
/// The longest time for which SQS hides a message that was received, less a minute for its processing. SQS counts 12 hours
/// from when it was received ("Amazon SQS visibility timeout", SQS developer guide).
pub const MAX_POSTPONEMENT: Duration = Duration::from_secs(12 * 3600 - 60);

/// Why the queue did not take a message.
#[derive(Debug, thiserror::Error)]
#[error("the queue is unavailable")]
pub struct QueueError(#[source] pub Box<dyn Error + Send + Sync>);

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// What it says.
    pub message: Message,
    /// For how long it is held back, at most [`MAX_DELAY`].
    pub delay: Duration,
}

impl From<Message> for NewMessage {
    fn from(message: Message) -> Self {
        Self { message, delay: Duration::ZERO }
    }
}

/// A queue that delivers each message at least once, in no order. The messages of one webhook are a group: many of them don't
/// delay those of others.
pub trait Queue: Send + Sync {
    /// Sends messages, however many. If it fails, some may have been sent.
    ///
    /// # Errors
    ///
    /// Returns a [`QueueError`] when the queue did not take all of them.
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Hides a message that was received for `delay` from now on, at most [`MAX_POSTPONEMENT`]. Then it is received again.
    ///
    /// # Errors
    ///
    /// Returns a [`QueueError`] when the queue did not take it: the message comes back at some other time.
    fn postpone<'a>(&'a self, receipt_handle: &'a str, delay: Duration) -> BoxFuture<'a, Result<(), QueueError>>;
}
