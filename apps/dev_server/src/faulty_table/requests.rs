//! Keys, partitions and writes in a request's body. The HTTP client through which the SDK reaches a faulty table, and the ways
//! that requests and responses take.

use super::table::FaultyTable;
use super::weaknesses::MAX_DELAY_MILLIS;
use crate::engine;
use crate::in_process::{http_response, table_call};
use crate::table::TableResponse;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

const KEY: [&str; 2] = ["PK", "SK"];

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    pub partition: String,
    pub sort: String,
}

impl ItemKey {
    /// From an item, or from the `Key` of a request.
    pub fn of(item: &Value) -> Self {
        let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
        Self { partition: text(KEY[0]), sort: text(KEY[1]) }
    }

    pub fn to_json(&self) -> Value {
        json!({KEY[0]: {"S": self.partition}, KEY[1]: {"S": self.sort}})
    }
}

pub struct WriteAction {
    pub table: String,
    pub key: ItemKey,
    pub is_check: bool,
}

fn action(operation: &str, body: &Value) -> WriteAction {
    let item = if operation.starts_with("Put") { &body["Item"] } else { &body["Key"] };
    let table = body["TableName"].as_str().unwrap_or_default().to_owned();
    WriteAction { table, key: ItemKey::of(item), is_check: operation == "ConditionCheck" }
}

pub fn write_actions(operation: &str, body: &Value) -> Vec<WriteAction> {
    if operation != "TransactWriteItems" {
        return vec![action(operation, body)];
    }
    let members = body["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object);
    members.flat_map(Map::iter).map(|(kind, action_body)| action(kind, action_body)).collect()
}

/// Each once.
pub fn read_partitions(operation: &str, body: &Value) -> Vec<String> {
    let mut partitions: Vec<String> = match operation {
        "GetItem" => vec![ItemKey::of(&body["Key"]).partition],
        "BatchGetItem" => batch_keys(body).map(|key| ItemKey::of(key).partition).collect(),
        // Every query names its partition in a condition `#pk = :pk`.
        _ => body["ExpressionAttributeValues"][":pk"]["S"].as_str().map(str::to_owned).into_iter().collect(),
    };
    partitions.sort_unstable();
    partitions.dedup();
    partitions
}

fn batch_keys(body: &Value) -> impl Iterator<Item = &Value> {
    let tables = body["RequestItems"].as_object().into_iter().flat_map(Map::values);
    tables.flat_map(|table| table["Keys"].as_array().into_iter().flatten())
}

/// Takes the keys that `leave` chooses out of a batch and returns them as `UnprocessedKeys`. `leave` is asked in the order of the
/// keys. At least one key stays.
pub fn take_unprocessed(body: &mut Value, mut leave: impl FnMut() -> bool) -> Value {
    let mut unprocessed = Map::new();
    for (table, request) in body["RequestItems"].as_object_mut().into_iter().flatten() {
        let Some(keys) = request["Keys"].as_array_mut() else { continue };
        keys.sort_by_cached_key(ItemKey::of);
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        for key in keys.drain(..) {
            if leave() { taken.push(key) } else { kept.push(key) }
        }
        if kept.is_empty() {
            kept.extend(taken.pop());
        }
        *keys = kept;
        if !taken.is_empty() {
            let mut left = request.clone();
            left["Keys"] = Value::Array(taken);
            unprocessed.insert(table.clone(), left);
        }
    }
    Value::Object(unprocessed)
}

/// Units by index; those of the table have no name.
pub fn consumed(response: &Value) -> Vec<(Option<String>, f64)> {
    let reported = match &response["ConsumedCapacity"] {
        Value::Array(all) => all.iter().collect(),
        one @ Value::Object(_) => vec![one],
        _ => Vec::new(),
    };
    let mut units = Vec::new();
    for capacity in reported {
        units.extend(capacity["Table"]["CapacityUnits"].as_f64().map(|table| (None, table)));
        for (name, index) in capacity["GlobalSecondaryIndexes"].as_object().into_iter().flatten() {
            units.extend(index["CapacityUnits"].as_f64().map(|index| (Some(name.clone()), index)));
        }
    }
    units
}

impl FaultyTable {
    /// Each client has its own quota of retries, as in a process of its own.
    #[must_use]
    pub fn config(&self) -> Builder {
        engine::config("http://faulty.invalid")
            .http_client(self.clone())
            .retry_partition(RetryPartition::custom("faulty").build())
    }

    /// Carries a request to the table and its response back. `None` if one of them is lost.
    async fn carry(&self, operation: String, body: serde_json::Value) -> Option<TableResponse> {
        let weaknesses = self.weaknesses();
        let mut way = self.random().below(weaknesses.latency_millis + 1);
        if self.random().chance(weaknesses.slow_per_mille) {
            self.show("late requests");
            way += self.random().below(MAX_DELAY_MILLIS);
        }
        sleep(Duration::from_millis(way)).await;
        if self.random().chance(weaknesses.lost_before_per_mille) {
            self.show("lost requests");
            return None;
        }
        let response = self.call(&operation, body).await;
        sleep(Duration::from_millis(self.random().below(weaknesses.latency_millis + 1))).await;
        if self.random().chance(weaknesses.lost_after_per_mille) {
            self.show("lost responses");
            return None;
        }
        Some(response)
    }
}

impl HttpClient for FaultyTable {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for FaultyTable {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = table_call(&request);
        let (mut sender, receiver) = oneshot::channel();
        let table = self.clone();
        // A task of its own: what was sent takes effect even if the sender no longer waits.
        tokio::spawn(async move {
            let response = table.carry(operation, body).await;
            let is_reset = response.is_none() && table.random().below(2) == 0;
            match response {
                Some(response) => drop(sender.send(Ok(response))),
                None if is_reset => drop(sender.send(Err(ConnectorError::io("connection reset".into())))),
                // Without a word, so that the sender waits for its timeout.
                None => sender.closed().await,
            }
        });
        HttpConnectorFuture::new(async move {
            let response = receiver.await.map_err(|error| ConnectorError::other(error.into(), None))??;
            http_response(&response)
        })
    }
}
