//! Reads the table's stream like Lambda's event source, and passes matching records to the function `fanout`, in the JSON form
//! that AWS documents ("Using AWS Lambda with Amazon DynamoDB", Lambda developer guide).

use super::wait;
use crate::engine::{Engine, Trimmer};
use crate::queue::MemoryQueue;
use crate::table;
use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};
use fanout::Fanout;
use serde_json::{Map, Value, json};
use shared::app::dynamodb::Event;
use shared::store::keys::{EVENTS, SK};
use std::collections::HashMap;
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

/// Records stay in the stream until losing the process would lose none of their messages. Otherwise, the next process reads them
/// again.
pub(super) struct StreamReader {
    streams: Client,
    stream: String,
    table: String,
    trimmer: Trimmer,
    queue: MemoryQueue,
    fanout: Fanout,
    /// Position of the next read.
    iterator: Option<String>,
    /// Sequence number of the last record that was fanned out.
    after: Option<String>,
    is_trimmed: bool,
}

impl StreamReader {
    pub fn new(engine: &Engine, table: &str, stream: String, queue: MemoryQueue, fanout: Fanout) -> Self {
        let (streams, table, trimmer) = (table::stream_client(&engine.url), table.to_owned(), engine.trimmer());
        Self { streams, stream, table, trimmer, queue, fanout, iterator: None, after: None, is_trimmed: true }
    }

    /// Reads until it is told to stop.
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
            wait(pause, &mut stop).await;
        }
    }

    /// Reads once, and fans out the records. Returns whether there were any.
    async fn step(&mut self) -> Result<bool> {
        self.trim().await?;
        let current = match self.iterator.take() {
            Some(current) => current,
            None => self.first_iterator().await?,
        };
        let read = self.streams.get_records().shard_iterator(current).send().await.context("can't read the table's stream")?;
        if let Some(last) = read.records().last() {
            let new: Vec<&Record> = read.records().iter().filter(|record| is_new_event(record)).collect();
            for batch in new.chunks(BATCH_SIZE) {
                let response = self.fanout.handle(of_stream(batch.iter().copied(), &self.stream)?).await;
                // After a failure, reading resumes after the last complete batch.
                ensure!(response.batch_item_failures.is_empty(), "events can't be fanned out");
            }
            self.after = Some(sequence_number(last).context("a stream record has no sequence number")?.to_owned());
            self.is_trimmed = false;
        }
        self.iterator = read.next_shard_iterator().map(ToOwned::to_owned);
        Ok(!read.records().is_empty())
    }

    /// Deletes records that were fanned out, unless some messages are only in memory.
    async fn trim(&mut self) -> Result<()> {
        if let Some(after) = self.after.as_deref().filter(|_| !self.is_trimmed && self.queue.is_recorded()) {
            self.trimmer.trim(&self.table, after).await?;
            self.is_trimmed = true;
        }
        Ok(())
    }

    /// Starts after the last record that was fanned out, or at the oldest one.
    async fn first_iterator(&self) -> Result<String> {
        let described = self.streams.describe_stream().stream_arn(&self.stream).send().await;
        let described = described.context("can't describe the stream")?;
        // The engine's streams have one shard, which never ends.
        let shards = described.stream_description().map(|stream| stream.shards()).unwrap_or_default();
        let shard = shards.first().and_then(|shard| shard.shard_id()).context("the stream has no shard")?;
        let request = self.streams.get_shard_iterator().stream_arn(&self.stream).shard_id(shard);
        let request = match &self.after {
            Some(after) => request.shard_iterator_type(ShardIteratorType::AfterSequenceNumber).sequence_number(after),
            None => request.shard_iterator_type(ShardIteratorType::TrimHorizon),
        };
        let iterator = request.send().await.context("can't find the position in the stream")?;
        Ok(iterator.shard_iterator().context("the stream has no iterator")?.to_owned())
    }
}

fn sequence_number(record: &Record) -> Option<&str> {
    record.dynamodb()?.sequence_number()
}

/// Same filter as the event source in template.yaml: only new events.
pub fn is_new_event(record: &Record) -> bool {
    let sort_key = record.dynamodb().and_then(|change| change.keys()?.get(SK)?.as_s().ok());
    record.event_name().is_some_and(|name| name.as_str() == "INSERT") && sort_key.is_some_and(|key| key.starts_with(EVENTS))
}

/// # Errors
///
/// Returns an error if a record doesn't have the form that AWS documents.
pub fn of_stream<'a>(records: impl IntoIterator<Item = &'a Record>, stream: &str) -> Result<Event> {
    let records = records.into_iter().map(|record| stream_record(record, stream)).collect::<Result<Vec<_>>>()?;
    serde_json::from_value(json!({"Records": records})).context("a stream record is not as expected")
}

fn stream_record(record: &Record, stream: &str) -> Result<Value> {
    let change = record.dynamodb().context("a stream record has no change")?;
    let mut dynamodb = json!({
        "ApproximateCreationDateTime": change.approximate_creation_date_time().map(|at| at.secs()),
        "Keys": change.keys().map(item),
        "SequenceNumber": change.sequence_number(),
        "SizeBytes": change.size_bytes(),
        "StreamViewType": change.stream_view_type().map(|view| view.as_str()),
    });
    if let Some(image) = change.new_image() {
        dynamodb["NewImage"] = item(image);
    }
    Ok(json!({
        "eventID": record.event_id(),
        "eventName": record.event_name().map(|name| name.as_str()),
        "eventVersion": record.event_version(),
        "eventSource": record.event_source(),
        "awsRegion": record.aws_region(),
        "dynamodb": dynamodb,
        "eventSourceARN": stream,
    }))
}

fn item(attributes: &HashMap<String, AttributeValue>) -> Value {
    attributes.iter().map(|(name, value)| (name.clone(), attribute(value))).collect::<Map<_, _>>().into()
}

/// In DynamoDB's JSON.
fn attribute(value: &AttributeValue) -> Value {
    let base64 = |bytes: &aws_sdk_dynamodbstreams::primitives::Blob| aws_smithy_types::base64::encode(bytes);
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(is_true) => json!({"BOOL": is_true}),
        AttributeValue::Null(is_null) => json!({"NULL": is_null}),
        AttributeValue::B(bytes) => json!({"B": base64(bytes)}),
        AttributeValue::M(attributes) => json!({"M": item(attributes)}),
        AttributeValue::L(values) => json!({"L": values.iter().map(attribute).collect::<Vec<_>>()}),
        AttributeValue::Ss(texts) => json!({"SS": texts}),
        AttributeValue::Ns(numbers) => json!({"NS": numbers}),
        AttributeValue::Bs(values) => json!({"BS": values.iter().map(base64).collect::<Vec<_>>()}),
        // A type that DynamoDB has added since then. `of_stream` fails for it.
        _ => json!({}),
    }
}
