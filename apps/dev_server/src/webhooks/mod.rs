//! Runs the functions `fanout` and `deliver` as AWS does: the table's stream, a queue, and their connections.

mod connector;
pub(crate) mod lambda_events;
#[cfg(test)]
mod tests;
mod worker;

pub use worker::Settings;

use crate::engine::{self, Engine};
use crate::queue::SqliteQueue;
use crate::stream;
use anyhow::Result;
use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use connector::Connector;
use deliver::Deliver;
use fanout::Fanout;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use worker::Worker;

/// A function that runs when records arrive in a stream.
pub trait StreamHandler: Send + Sync + 'static {
    /// Names the first record that could not be handled.
    fn handle(&self, event: Event) -> BoxFuture<'_, DynamoDbEventResponse>;
}

/// A function that runs when messages arrive in a queue.
pub trait MessageHandler: Send + Sync + 'static {
    /// Names the messages that are not done.
    fn handle(&self, event: SqsEvent) -> BoxFuture<'_, SqsBatchResponse>;
}

impl StreamHandler for Fanout {
    fn handle(&self, event: Event) -> BoxFuture<'_, DynamoDbEventResponse> {
        Box::pin(Self::handle(self, event))
    }
}

impl MessageHandler for Deliver {
    fn handle(&self, event: SqsEvent) -> BoxFuture<'_, SqsBatchResponse> {
        Box::pin(Self::handle(self, event))
    }
}

/// The running delivery of changes to webhooks. Dropping it stops it at once, and loses nothing: the next one with the same table
/// and queue repeats the work under way.
pub struct Pipeline {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Pipeline {
    /// Enables the table's stream, and starts to give its events to `fanout` and the queue's messages to `deliver`. No other
    /// worker must have messages of this queue.
    ///
    /// # Errors
    ///
    /// Returns an error when the stream can't be enabled, or the queue's database fails.
    pub async fn start(
        engine: &Engine,
        table: &str,
        queue: SqliteQueue,
        fanout: Arc<dyn StreamHandler>,
        deliver: Arc<dyn MessageHandler>,
        settings: Settings,
    ) -> Result<Self> {
        queue.release().await?;
        let client = aws_sdk_dynamodb::Client::from_conf(engine::config(&engine.url).build());
        let connector = Connector {
            streams: stream::client(&engine.url),
            stream: stream::enable(&client, table).await?,
            table: table.to_owned(),
            trimmer: engine.trimmer(),
            queue: queue.clone(),
            handler: fanout,
        };
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let worker = Worker { queue, handler: deliver, settings };
        tasks.spawn(connector.run(stopped.clone()));
        tasks.spawn(worker.run(stopped));
        Ok(Self { stop, tasks })
    }

    /// Sending `true` stops it: nothing is begun any more.
    #[must_use]
    pub fn stopper(&self) -> watch::Sender<bool> {
        self.stop.clone()
    }

    /// Work under way may finish until the deadline; the rest stays in the stream and in the queue.
    pub async fn stop(mut self, deadline: Instant) {
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout_at(deadline, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

/// Or until `stop`.
async fn wait(pause: Duration, stop: &mut watch::Receiver<bool>) {
    // The sender lives as long as the pipeline.
    let _ = tokio::time::timeout(pause, stop.wait_for(|is_stopped| *is_stopped)).await;
}
