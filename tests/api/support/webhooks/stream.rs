//! The table's stream, made from the table: events as Lambda hands them over (AWS Lambda guide, "Example event").

use aws_lambda_events::event::dynamodb::Event;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use base64_simd::STANDARD;
use serde_json::{Value, json};
use shared::store::keys::Item;
use std::collections::HashSet;

/// Reads committed events, each once.
#[derive(Default)]
pub struct Stream {
    seen: HashSet<String>,
}

impl Stream {
    /// Of events since the last call, oldest first.
    pub async fn new_records(&mut self, dynamo: &Client, table: &str) -> Vec<Value> {
        let mut pages = dynamo.scan().table_name(table).consistent_read(true).into_paginator().send();
        let mut items = Vec::new();
        while let Some(page) = pages.next().await {
            items.extend(page.unwrap().items.unwrap_or_default());
        }
        items.retain(|item| sort_key(item).starts_with("EVENT#") && self.seen.insert(sort_key(item).to_owned()));
        items.sort_by(|a, b| sort_key(a).cmp(sort_key(b)));
        items.iter().map(|item| record("INSERT", item)).collect()
    }

    /// Regards all events so far as read.
    pub async fn skip(&mut self, dynamo: &Client, table: &str) {
        self.new_records(dynamo, table).await;
    }
}

fn sort_key(item: &Item) -> &str {
    item["SK"].as_s().unwrap()
}

fn attribute(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::B(bytes) => json!({"B": STANDARD.encode_to_string(bytes.as_ref())}),
        AttributeValue::M(values) => {
            json!({"M": values.iter().map(|(name, value)| (name.clone(), attribute(value))).collect::<serde_json::Map<_, _>>()})
        }
        other => panic!("an event has {other:?}"),
    }
}

pub fn record(event_name: &str, item: &Item) -> Value {
    let image: serde_json::Map<String, Value> = item.iter().map(|(name, value)| (name.clone(), attribute(value))).collect();
    json!({
        "eventID": "7de3041dd709b024af6f29e4fa13d34c", "eventName": event_name, "eventVersion": "1.1",
        "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_772_704_800, "Keys": {"PK": image["PK"], "SK": image["SK"]}, "NewImage": image,
            "SequenceNumber": format!("42{}", sort_key(item)), "SizeBytes": 112, "StreamViewType": "NEW_IMAGE"
        },
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/assets/stream/2026-01-01T00:00:00.000"
    })
}

pub fn batch(records: &[Value]) -> Event {
    serde_json::from_value(json!({"Records": records})).unwrap()
}
