//! Reads the table's stream like Lambda's event source, and passes matching records to the function `fanout`, in the JSON form
//! that AWS documents ("Using AWS Lambda with Amazon DynamoDB", Lambda developer guide): the stream's own form, plus its ARN.

use crate::engine::{Engine, Streams};
use crate::queue::MemoryQueue;
use anyhow::{Context, Result, ensure};
use fanout::Fanout;
use serde_json::{Value, json};
use shared::app::dynamodb::Event;
use shared::store::keys::{EVENTS, SK};
use std::time::Duration;
use tokio::sync::watch;

/// Same as in template.yaml.
const BATCH_SIZE: usize = 100;
/// Pause after an empty read.
const IDLE: Duration = Duration::from_millis(200);
/// Pause after reading records, to limit the load on a busy engine.
const BUSY: Duration = Duration::from_millis(10);
/// First and maximum backoff after failures.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Keeps records in the stream until losing the process would lose none of their messages. If the process is lost earlier, the
/// next one reads the records again.
pub(super) struct StreamReader {
    streams: Streams,
    stream: String,
    table: String,
    queue: MemoryQueue,
    fanout: Fanout,
    iterator: Option<String>,
    /// Sequence number of the last record that was fanned out.
    after: Option<String>,
    is_trimmed: bool,
}

impl StreamReader {
    pub fn new(engine: &Engine, table: &str, stream: String, queue: MemoryQueue, fanout: Fanout) -> Self {
        let (streams, table) = (engine.streams(), table.to_owned());
        Self { streams, stream, table, queue, fanout, iterator: None, after: None, is_trimmed: true }
    }

    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut backoff = BACKOFF.0;
        while !*stop.borrow() {
            let pause = match self.step().await {
                Ok(has_read) => {
                    backoff = BACKOFF.0;
                    if has_read { BUSY } else { IDLE }
                }
                Err(error) => {
                    tracing::error!(error = %format!("{error:#}"), "changes can't be delivered to webhooks yet");
                    backoff = (backoff * 2).min(BACKOFF.1);
                    backoff
                }
            };
            // The sender lives as long as the pipeline.
            let _ = tokio::time::timeout(pause, stop.wait_for(|is_stopped| *is_stopped)).await;
        }
    }

    /// Reads once, and fans out the records. Returns whether there were any.
    async fn step(&mut self) -> Result<bool> {
        self.trim().await?;
        let current = match self.iterator.take() {
            Some(current) => current,
            None => self.first_iterator().await?,
        };
        let read = self.streams.call("GetRecords", json!({"ShardIterator": current})).await;
        let read = read.context("can't read the table's stream")?;
        let records = read["Records"].as_array().context("the stream returned no records")?;
        if let Some(last) = records.last() {
            let new: Vec<&Value> = records.iter().filter(|record| is_new_event(record)).collect();
            for batch in new.chunks(BATCH_SIZE) {
                let response = self.fanout.handle(of_stream(batch.iter().copied(), &self.stream)?).await;
                // After a failure, reading resumes after the last complete batch.
                ensure!(response.batch_item_failures.is_empty(), "events can't be fanned out");
            }
            let number = last["dynamodb"]["SequenceNumber"].as_str();
            self.after = Some(number.context("a stream record has no sequence number")?.to_owned());
            self.is_trimmed = false;
        }
        self.iterator = read["NextShardIterator"].as_str().map(str::to_owned);
        Ok(!records.is_empty())
    }

    /// Deletes records that were fanned out, unless some messages are only in memory.
    async fn trim(&mut self) -> Result<()> {
        if let Some(after) = self.after.as_deref().filter(|_| !self.is_trimmed && self.queue.is_recorded()) {
            self.streams.trim(&self.table, after).await?;
            self.is_trimmed = true;
        }
        Ok(())
    }

    /// Returns an iterator that starts after the last record that was fanned out, or at the oldest record.
    async fn first_iterator(&self) -> Result<String> {
        let described = self.streams.call("DescribeStream", json!({"StreamArn": self.stream})).await;
        let described = described.context("can't describe the stream")?;
        // The engine's streams have one shard, which never ends.
        let shard = described["StreamDescription"]["Shards"][0]["ShardId"].as_str().context("the stream has no shard")?;
        let mut request = json!({"StreamArn": self.stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
        if let Some(after) = &self.after {
            request["ShardIteratorType"] = "AFTER_SEQUENCE_NUMBER".into();
            request["SequenceNumber"] = after.as_str().into();
        }
        let found = self.streams.call("GetShardIterator", request).await.context("can't find the position in the stream")?;
        Ok(found["ShardIterator"].as_str().context("the stream has no iterator")?.to_owned())
    }
}

/// Whether a record passes the filter of the event source in template.yaml: only new events do.
pub fn is_new_event(record: &Value) -> bool {
    let sort_key = record["dynamodb"]["Keys"][SK]["S"].as_str();
    record["eventName"] == "INSERT" && sort_key.is_some_and(|key| key.starts_with(EVENTS))
}

/// # Errors
///
/// Returns an error if a record doesn't have the form that AWS documents.
pub fn of_stream<'a>(records: impl IntoIterator<Item = &'a Value>, stream: &str) -> Result<Event> {
    let with_source = |record: &Value| {
        let mut record = record.clone();
        record["eventSourceARN"] = stream.into();
        record
    };
    let records: Vec<Value> = records.into_iter().map(with_source).collect();
    serde_json::from_value(json!({"Records": records})).context("a stream record is not as expected")
}
