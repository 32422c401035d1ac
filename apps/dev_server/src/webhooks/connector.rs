//! Reads the table's stream, as Lambda's event source does, and gives the records that pass its filter to the function `fanout`.

use super::lambda_events::{is_new_event, of_stream};
use super::{StreamHandler, wait};
use crate::engine::Trimmer;
use crate::queue::SqliteQueue;
use anyhow::{Context, Result};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::types::{Record, ShardIteratorType};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// As in template.yaml.
const BATCH_SIZE: usize = 100;
/// The pause after an empty read.
const IDLE: Duration = Duration::from_millis(200);
/// The pause after a read of records, so that a busy engine is not read all the time.
const BUSY: Duration = Duration::from_millis(10);
/// The first and the longest pause after failures.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

pub(super) struct Connector {
    pub streams: Client,
    pub stream: String,
    pub table: String,
    pub trimmer: Trimmer,
    pub queue: SqliteQueue,
    pub handler: Arc<dyn StreamHandler>,
}

pub(super) enum Step {
    /// No records.
    Idle,
    /// All read records have been handled. There may be more.
    Read,
    Failed,
}

impl Connector {
    /// Reads until it is told to stop. A batch that the function has then is handled to its end.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut iterator = None;
        let mut backoff = BACKOFF.0;
        while !*stop.borrow() {
            let pause = match self.step(&mut iterator).await {
                Ok(Step::Idle) => Some(IDLE),
                Ok(Step::Read) => Some(BUSY),
                Ok(Step::Failed) => {
                    tracing::warn!("changes can't be given to webhooks yet; the stream repeats them");
                    None
                }
                Err(error) => {
                    tracing::error!(error = %format!("{error:#}"), "the table's stream can't be read");
                    None
                }
            };
            wait(pause.unwrap_or(backoff), &mut stop).await;
            if pause.is_some() {
                backoff = BACKOFF.0;
            } else {
                backoff = (backoff * 2).min(BACKOFF.1);
                // The stream is read from the checkpoint again.
                iterator = None;
            }
        }
    }

    /// Reads once, has the records handled, and stores the position.
    pub async fn step(&self, iterator: &mut Option<String>) -> Result<Step> {
        let current = match iterator.take() {
            Some(current) => current,
            None => self.iterator().await?,
        };
        let read = self.streams.get_records().shard_iterator(current).send().await.context("can't read records")?;
        *iterator = read.next_shard_iterator().map(ToOwned::to_owned);
        let Some(last) = read.records().last() else { return Ok(Step::Idle) };
        let new: Vec<&Record> = read.records().iter().filter(|record| is_new_event(record)).collect();
        for batch in new.chunks(BATCH_SIZE) {
            if let Some(failed) = self.handle(batch).await {
                if let Some(before) = failed.checked_sub(1) {
                    self.advance(batch[before]).await?;
                }
                return Ok(Step::Failed);
            }
            if let Some(last) = batch.last() {
                self.advance(last).await?;
            }
        }
        let last = self.advance(last).await?;
        // Only what the checkpoint says is read can be deleted.
        self.trimmer.trim(&self.table, last).await?;
        Ok(Step::Read)
    }

    /// After the checkpoint, or from the oldest record.
    async fn iterator(&self) -> Result<String> {
        let described = self.streams.describe_stream().stream_arn(&self.stream).send().await;
        let described = described.context("can't describe the stream")?;
        // The engine's streams have one shard, which never ends.
        let shards = described.stream_description().map(|stream| stream.shards()).unwrap_or_default();
        let shard = shards.first().and_then(|shard| shard.shard_id()).context("the stream has no shard")?;
        let request = self.streams.get_shard_iterator().stream_arn(&self.stream).shard_id(shard);
        let request = match self.queue.checkpoint(&self.stream).await? {
            Some(sequence_number) => {
                request.shard_iterator_type(ShardIteratorType::AfterSequenceNumber).sequence_number(sequence_number)
            }
            None => request.shard_iterator_type(ShardIteratorType::TrimHorizon),
        };
        let iterator = request.send().await.context("can't find the place in the stream")?;
        Ok(iterator.shard_iterator().context("the stream has no iterator")?.to_owned())
    }

    /// Returns the place of the first record that the function could not handle.
    async fn handle(&self, records: &[&Record]) -> Option<usize> {
        let event = match of_stream(records.iter().copied(), &self.stream) {
            Ok(event) => event,
            Err(error) => {
                tracing::error!(error = %format!("{error:#}"), "records of the stream can't be understood");
                return Some(0);
            }
        };
        // A panic fails an invocation, not the function's next ones.
        let response = AssertUnwindSafe(self.handler.handle(event)).catch_unwind().await;
        response.map_or(Some(0), |response| first_failure(&response, records))
    }

    /// All records up to this one have been handled. Returns its sequence number.
    async fn advance<'a>(&self, record: &'a Record) -> Result<&'a str> {
        let sequence_number = sequence_number(record).context("a stream record has no sequence number")?;
        self.queue.set_checkpoint(&self.stream, sequence_number).await?;
        Ok(sequence_number)
    }
}

fn sequence_number(record: &Record) -> Option<&str> {
    record.dynamodb()?.sequence_number()
}

/// The place of the first record that a response reports as failed. As in Lambda, it stands for all that follow, and a sequence
/// number that is not in the batch for the whole batch.
fn first_failure(response: &DynamoDbEventResponse, records: &[&Record]) -> Option<usize> {
    let failures = response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_deref());
    let place = |failed: Option<&str>| records.iter().position(|record| failed.is_some() && sequence_number(record) == failed);
    failures.map(|failed| place(failed).unwrap_or_default()).min()
}
