//! Runs the functions `fanout` and `deliver` as AWS does, with the table's stream, a queue, and the connections between them.

mod reader;
#[cfg(test)]
mod tests;

use crate::engine::{self, Engine};
use crate::queue::{Handler, MemoryQueue, Worker};
use crate::table;
use anyhow::Result;
use deliver::Deliver;
use fanout::Fanout;
use reader::StreamReader;
use shared::domain::webhooks::Message;
use shared::log::error_chain;
use shared::queue::Queue;
use shared::store::Store;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Delivers changes to webhooks. Dropping the pipeline stops it at once, without losing due deliveries: the next pipeline on the
/// same table resumes from the stream and the delivery records.
pub struct Pipeline {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Pipeline {
    /// Enables the table's stream, and starts passing its events to `fanout` and the queue's messages to `handler`. Requeues
    /// deliveries that earlier pipelines left pending.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream can't be enabled.
    pub async fn start(
        engine: &Engine,
        store: Store,
        table: &str,
        (queue, worker): (MemoryQueue, Worker),
        handler: Arc<Handler>,
    ) -> Result<Self> {
        let client = aws_sdk_dynamodb::Client::from_conf(engine::config(&engine.url).build());
        let stream = table::enable_stream(&client, table).await?;
        let fanout = Fanout::new(store.clone(), Arc::new(queue.clone()));
        let reader = StreamReader::new(engine, table, stream, queue.clone(), fanout);
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(go_on(store, queue));
        tasks.spawn(reader.run(stopped.clone()));
        tasks.spawn(worker.run(handler, stopped));
        Ok(Self { stop, tasks })
    }

    /// Stops the pipeline from starting new work.
    pub fn begin_stop(&self) {
        let _ = self.stop.send(true);
    }

    /// Waits for work in flight until the deadline. The rest stays in the stream and in the delivery records.
    pub async fn stop(mut self, deadline: Instant) {
        self.begin_stop();
        let _ = tokio::time::timeout_at(deadline, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

/// Returns a handler that runs the function `deliver` in this process.
#[must_use]
pub fn handler(deliver: Deliver) -> Arc<Handler> {
    let deliver = Arc::new(deliver);
    Arc::new(move |message: Message, is_retry| {
        let deliver = Arc::clone(&deliver);
        Box::pin(async move {
            let handled = deliver.handle_message(&message, is_retry).await;
            if let Err(failure) = &handled {
                tracing::error!(cause = error_chain(&**failure), "a message can't be handled, and will be redelivered");
            }
            handled.is_ok()
        })
    })
}

/// Requeues the deliveries that were pending when the dev server was last stopped.
async fn go_on(store: Store, queue: MemoryQueue) {
    let sent = async {
        let pending = store.pending_requests().await?;
        queue.send_retry(pending.into_iter().map(|request| Message::Delivery(request).into()).collect()).await?;
        anyhow::Ok(())
    };
    if let Err(error) = sent.await {
        tracing::error!(error = %format!("{error:#}"), "pending deliveries can't be read; they resume after the next start");
    }
}
