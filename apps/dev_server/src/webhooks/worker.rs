//! Receives messages and gives them to the function `deliver`, as Lambda does with those of SQS.

use super::lambda_events::of_queue;
use super::{MessageHandler, wait};
use crate::queue::{ReceivedMessage, SqliteQueue};
use futures_util::FutureExt;
use std::collections::{BTreeMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// As in template.yaml.
const BATCH_SIZE: usize = 10;
/// The pause until messages may become visible. Sent messages wake the worker.
const IDLE: Duration = Duration::from_millis(200);
const BACKOFF: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub capacity: usize,
    /// The time that a message is hidden while it is handled.
    pub visibility: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { capacity: 256, visibility: Duration::from_secs(180) }
    }
}

pub(super) struct Worker {
    pub queue: SqliteQueue,
    pub handler: Arc<dyn MessageHandler>,
    pub settings: Settings,
}

impl Worker {
    /// Receives messages until it is told to stop. Messages that it has then are handled to their end.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let Self { queue, handler, settings } = self;
        let mut batches = JoinSet::new();
        while !*stop.borrow() {
            while batches.try_join_next().is_some() {}
            match queue.receive(settings.capacity, settings.visibility).await {
                Ok(messages) if messages.is_empty() => {}
                Ok(messages) => {
                    for batch in in_batches(messages) {
                        batches.spawn(handle(queue.clone(), Arc::clone(&handler), batch));
                    }
                    continue;
                }
                Err(error) => {
                    tracing::error!(error = %format!("{error:#}"), "messages of the queue can't be received");
                    wait(BACKOFF, &mut stop).await;
                }
            }
            tokio::select! {
                () = queue.sent() => {}
                Some(_) = batches.join_next() => {}
                () = wait(IDLE, &mut stop) => {}
            }
        }
        while batches.join_next().await.is_some() {}
    }
}

/// Batches of one group each: neither another tenant's messages nor retries hold up first attempts.
pub(super) fn in_batches(messages: Vec<ReceivedMessage>) -> Vec<Vec<ReceivedMessage>> {
    let mut groups = BTreeMap::<String, Vec<ReceivedMessage>>::new();
    for message in messages {
        groups.entry(message.grouping.clone()).or_default().push(message);
    }
    groups.into_values().flat_map(|messages| messages.chunks(BATCH_SIZE).map(<[_]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Has a batch handled, and deletes the messages that are done.
pub(super) async fn handle(queue: SqliteQueue, handler: Arc<dyn MessageHandler>, batch: Vec<ReceivedMessage>) {
    let failed = failures(&*handler, &batch).await;
    let (failed, done): (Vec<_>, Vec<_>) = batch.into_iter().partition(|message| failed.contains(&message.id));
    let receipts = |messages: Vec<ReceivedMessage>| messages.into_iter().map(|message| message.receipt_handle).collect();
    if let Err(error) = queue.settle(receipts(done), receipts(failed)).await {
        tracing::error!(error = %format!("{error:#}"), "messages that are handled can't be deleted; they are received again");
    }
}

/// Returns the IDs of messages that are not done.
async fn failures(handler: &dyn MessageHandler, batch: &[ReceivedMessage]) -> HashSet<String> {
    let all = || batch.iter().map(|message| message.id.clone()).collect::<HashSet<_>>();
    let Ok(event) = of_queue(batch) else { return all() };
    // A panic fails an invocation, not the function's next ones.
    let Ok(response) = AssertUnwindSafe(handler.handle(event)).catch_unwind().await else {
        tracing::error!("a batch of deliveries panicked; its messages are received again");
        return all();
    };
    let failed: HashSet<_> = response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect();
    // As in Lambda, an ID that is not in the batch stands for the whole batch.
    let all = all();
    if failed.is_subset(&all) { failed } else { all }
}
