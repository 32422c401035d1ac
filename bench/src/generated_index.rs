//! Generates assets when a query of the index `list_index` or a batch of keys reads them. Filling the embedded engine with a
//! million assets would take too long.

use crate::lists::Generator;
use anyhow::{Context, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use dev_server::meter::cpu_time;
use dev_server::table;
use serde_json::{Map, Value, json};
use shared::store::keys::{BUCKETS, Item, LIST_INDEX, LS, PK, SK, Section};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of rows that take about 1 MB, the maximum for a page of a query.
const PAGE_ROWS: usize = 2_000;

/// An HTTP client that answers requests for generated assets, and passes on all other requests.
#[derive(Clone)]
pub struct GeneratedIndex {
    inner: SharedHttpClient,
    generated: Arc<Mutex<Option<Generated>>>,
    /// CPU time spent on responses since [`GeneratedIndex::take_cpu_time`] was last called.
    cpu_time: Arc<Mutex<Duration>>,
}

struct Generated {
    assets: Generator,
    count: usize,
    /// Key attributes of the index.
    attributes: Vec<String>,
}

impl std::fmt::Debug for GeneratedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GeneratedIndex")
    }
}

impl GeneratedIndex {
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, generated: Arc::default(), cpu_time: Arc::default() }
    }

    /// Starts answering requests for `count` assets.
    pub fn set(&self, assets: Generator, count: usize) -> Result<()> {
        let index = table::declared()?.global_secondary_indexes.iter().find(|index| index.index_name == LIST_INDEX);
        let projected = index
            .and_then(|index| index.projection.non_key_attributes.as_deref())
            .context("template.yaml has no index of lists")?;
        let attributes = projected.iter().cloned().chain([PK, SK, LS].map(str::to_owned)).collect();
        let generated = Generated { assets, count, attributes };
        *self.generated.lock().unwrap_or_else(PoisonError::into_inner) = Some(generated);
        Ok(())
    }

    /// Returns the CPU time spent on responses since the previous call.
    pub fn take_cpu_time(&self) -> Duration {
        std::mem::take(&mut *self.cpu_time.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the response to a request that reads only generated assets; `None` for any other request.
    fn response(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        let generated = generated.as_ref()?;
        let read: Value = serde_json::from_slice(request.body().bytes()?).ok()?;
        let body = match read["RequestItems"].as_object() {
            Some(tables) => generated.records(tables),
            None => generated.page(&read),
        };
        Some(HttpResponse::new(200.try_into().ok()?, SdkBody::from(body?.to_string())))
    }
}

impl Generated {
    /// Returns a page of the index; `None` for any other query.
    fn page(&self, query: &Value) -> Option<Value> {
        let bound = |name: &str| query["ExpressionAttributeValues"][name]["S"].as_str().map(str::to_owned);
        let (from, to) = (bound(":from")?, bound(":to")?);
        if query["IndexName"] != LIST_INDEX || !from.starts_with('A') {
            return None;
        }
        // The rows are sorted by bucket.
        let bucket = |key: String| Section::Assets.bucket_number(&AttributeValue::S(key));
        let first_of = |bucket: usize| (bucket * self.count).div_ceil(BUCKETS);
        let start = match query["ExclusiveStartKey"]["SK"]["S"].as_str() {
            Some(last) => last.parse::<usize>().ok()? + 1,
            None => first_of(bucket(from)?),
        };
        let end = first_of(bucket(to)? + 1).min(self.count);
        let next = end.min(start + PAGE_ROWS);
        let items: Vec<Value> = (start..next).map(|n| self.row(n)).collect::<Option<_>>()?;
        let mut body = json!({"Count": items.len(), "ScannedCount": items.len(), "Items": items});
        if next < end {
            let last = next - 1;
            let key = Section::Assets.bucket(last * BUCKETS / self.count);
            body["LastEvaluatedKey"] = json!({"PK": {"S": "-"}, "SK": {"S": last.to_string()}, "LS": {"S": key.as_s().ok()?}});
        }
        Some(body)
    }

    fn row(&self, number: usize) -> Option<Value> {
        let mut item = self.assets.asset(number);
        item.retain(|name, _| self.attributes.contains(name));
        json_item(item)
    }

    /// Returns complete items, at one read unit each; `None` if one of them isn't a generated asset.
    fn records(&self, tables: &Map<String, Value>) -> Option<Value> {
        let mut responses = Map::new();
        let mut capacity = Vec::new();
        for (table, read) in tables {
            let keys = read["Keys"].as_array()?;
            let item = |key: &Value| json_item(self.assets.find(key["SK"]["S"].as_str()?)?);
            let items = keys.iter().map(item).collect::<Option<Vec<_>>>()?;
            capacity.push(json!({"TableName": table, "CapacityUnits": items.len()}));
            responses.insert(table.clone(), items.into());
        }
        Some(json!({"Responses": responses, "UnprocessedKeys": {}, "ConsumedCapacity": capacity}))
    }
}

/// Converts an item to DynamoDB's JSON.
fn json_item(item: Item) -> Option<Value> {
    serde_json::to_value(serde_dynamo::Item::from(item)).ok()
}

impl HttpClient for GeneratedIndex {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, index: self.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    index: GeneratedIndex,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let before = cpu_time();
        let response = self.index.response(&request);
        *self.index.cpu_time.lock().unwrap_or_else(PoisonError::into_inner) += cpu_time() - before;
        match response {
            Some(response) => HttpConnectorFuture::ready(Ok(response)),
            None => self.inner.call(request),
        }
    }
}
