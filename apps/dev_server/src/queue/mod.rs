//! The dev server's queues of deliveries and retries, which behave as SQS's standard queues with fair queues do, in a file of
//! SQLite. They are one table and have one worker: here, no number of messages in flight is too many.
//!
//! A message that is received is hidden until it is deleted, or its visibility time-out ends. Where SQS leaves
//! something open, this queue decides as follows:
//!
//! - A receipt handle of an earlier receive does not delete a message. In SQS, it may.
//! - There is one worker. When a new one begins, the messages that an earlier one had are visible again at once.
//! - Messages are kept until they are handled or have become dead letters. SQS deletes them after 14 days.
//!
//! SQLite runs with synchronous=NORMAL, as the embedded engine does: the end of the process loses nothing, a power failure can
//! lose the last messages.

mod database;
mod receipt;
mod receive;
mod shares;
#[cfg(test)]
pub(crate) mod tests;

pub use receive::{MAX_RECEIVES, ReceivedMessage};

use anyhow::{Context, Result};
use database::Database;
use futures_util::future::BoxFuture;
use shared::queue::{NewMessage, Queue, QueueError, is_arn_of};
use shared::store::Clock;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The name of the queue of first attempts, with which its ARN ends.
pub const DELIVERIES: &str = "deliveries";
pub const RETRIES: &str = "retries";

/// Both queues in a file or in memory, and the position in the table's stream. Cheap to clone.
#[derive(Clone)]
pub struct SqliteQueue {
    database: Arc<Mutex<Database>>,
    clock: Clock,
    sent: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub visible: u64,
    pub held: u64,
    /// Messages that can be received later, because they were sent with a delay or have failed.
    pub hidden: u64,
    pub dead: u64,
}

impl SqliteQueue {
    /// Opens a queue in this file, which is created if it doesn't exist, or one in memory.
    ///
    /// # Errors
    ///
    /// Returns an error when the file can't be opened or is no database of a queue.
    pub fn open(file: Option<&Path>, clock: Clock) -> Result<Self> {
        let location = file.map_or("memory".into(), |file| file.display().to_string());
        let database = Database::open(file);
        let database = database.with_context(|| format!("can't open the queue in {location}"))?;
        Ok(Self { database: Arc::new(Mutex::new(database)), clock, sent: Arc::default() })
    }

    /// Calls SQLite, which blocks, on a thread for that. `now` is the clock's time in milliseconds.
    async fn call<T: Send + 'static>(&self, call: impl FnOnce(&mut Database, i64) -> Result<T> + Send + 'static) -> Result<T> {
        let (database, now) = (Arc::clone(&self.database), (self.clock)().millis());
        let call = move || call(&mut database.lock().unwrap_or_else(PoisonError::into_inner), now);
        tokio::task::spawn_blocking(call).await.context("a call of the queue was interrupted")?
    }

    /// Makes the messages of an ended worker visible.
    ///
    /// # Errors
    ///
    /// Returns an error when the database fails.
    pub async fn release(&self) -> Result<()> {
        self.call(|database, now| database.release(now)).await
    }

    /// Receives visible messages and hides them for `visibility`. `capacity` limits the messages at the worker, including those
    /// that it has. No group takes all of it.
    ///
    /// # Errors
    ///
    /// Returns an error when the database fails.
    pub async fn receive(&self, capacity: usize, visibility: Duration) -> Result<Vec<ReceivedMessage>> {
        let visibility = millis(visibility);
        self.call(move |database, now| database.receive(capacity, now, visibility)).await
    }

    /// Ends the handling of messages, by their receipt handles: those that are `done` are deleted, and those that `failed` come
    /// back when they become visible.
    ///
    /// # Errors
    ///
    /// Returns an error when the database fails. Then all of them come back.
    pub async fn settle(&self, done: Vec<String>, failed: Vec<String>) -> Result<()> {
        self.call(move |database, _| database.settle(&done, &failed)).await
    }

    /// The stream has been read up to this sequence number.
    ///
    /// # Errors
    ///
    /// Returns an error when the database fails.
    pub async fn checkpoint(&self, stream: &str) -> Result<Option<String>> {
        let stream = stream.to_owned();
        self.call(move |database, _| database.checkpoint(&stream)).await
    }

    /// The stream has been read up to this sequence number.
    ///
    /// # Errors
    ///
    /// Returns an error when the database fails.
    pub async fn set_checkpoint(&self, stream: &str, sequence_number: &str) -> Result<()> {
        let (stream, sequence_number) = (stream.to_owned(), sequence_number.to_owned());
        self.call(move |database, _| database.set_checkpoint(&stream, &sequence_number)).await
    }

    /// # Errors
    ///
    /// Returns an error when the database fails.
    pub async fn counts(&self) -> Result<Counts> {
        self.call(|database, now| database.counts(now)).await
    }

    async fn send_to(&self, is_retry: bool, messages: Vec<NewMessage>) -> Result<(), QueueError> {
        let sent = self.call(move |database, now| database.send(&messages, is_retry, now)).await;
        self.sent.notify_one();
        sent.map_err(|error| QueueError(error.into()))
    }

    /// Waits until messages have been sent since the last call.
    pub fn sent(&self) -> Notified<'_> {
        self.sent.notified()
    }
}

impl Queue for SqliteQueue {
    fn send<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(self.send_to(false, messages))
    }

    fn send_retry<'a>(&'a self, messages: Vec<NewMessage>) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(self.send_to(true, messages))
    }

    fn is_of_retries(&self, arn: &str) -> bool {
        is_arn_of(arn, RETRIES)
    }
}

/// The messages of a tenant in one of the queues share the worker with those of others.
fn grouping(group: &str, is_retry: bool) -> String {
    format!("{group}#{}", if is_retry { RETRIES } else { DELIVERIES })
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2)
}
