//! The events that Lambda's event source makes of stream records, in the JSON form that AWS documents ("Using AWS Lambda with
//! Amazon DynamoDB", Lambda developer guide).

use anyhow::{Context, Result};
use aws_lambda_events::event::dynamodb::Event;
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use serde_json::{Map, Value, json};
use shared::store::keys::{EVENTS, SK};
use std::collections::HashMap;

/// As the event source's filter in template.yaml: only new events.
pub fn is_new_event(record: &Record) -> bool {
    let sort_key = record.dynamodb().and_then(|change| change.keys()?.get(SK)?.as_s().ok());
    record.event_name().is_some_and(|name| name.as_str() == "INSERT") && sort_key.is_some_and(|key| key.starts_with(EVENTS))
}

/// # Errors
///
/// Returns an error when a record is not as AWS documents it.
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
        // A type that DynamoDB has added since. `of_stream` fails then.
        _ => json!({}),
    }
}
