//! A table whose partitions each allow a limited number of units per second, as DynamoDB's do.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use local::token_bucket::TokenBucket;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Returns the partition whose units a request needs; `None` if they are not limited.
type PartitionOf = fn(&HttpRequest) -> Option<String>;

#[derive(Debug, Default)]
struct Partitions {
    is_limited: bool,
    buckets: HashMap<String, TokenBucket>,
    consumed: f64,
    throttled: u64,
}

/// An HTTP client that throttles requests to a partition while it has no units left. A request that begins while there are
/// some is executed, and its units are taken afterwards: the consumed capacity in the response, which the meter requests.
#[derive(Debug, Clone)]
pub struct CapacityLimit {
    inner: SharedHttpClient,
    units_per_second: f64,
    partition_of: PartitionOf,
    partitions: Arc<Mutex<Partitions>>,
}

impl CapacityLimit {
    /// Creates a client that limits nothing yet.
    pub fn new(inner: impl HttpClient + 'static, units_per_second: f64, partition_of: PartitionOf) -> Self {
        Self { inner: SharedHttpClient::new(inner), units_per_second, partition_of, partitions: Arc::default() }
    }

    /// Limits requests from now on, or no longer, and forgets what was counted.
    pub fn set(&self, is_limited: bool) {
        *self.partitions() = Partitions { is_limited, ..Partitions::default() };
    }

    /// Returns how many units were consumed, and how many calls were throttled.
    pub fn counts(&self) -> (f64, u64) {
        let partitions = self.partitions();
        (partitions.consumed, partitions.throttled)
    }

    fn partitions(&self) -> MutexGuard<'_, Partitions> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the partition that a request needs, if requests are limited now.
    fn limited_partition(&self, request: &HttpRequest) -> Option<String> {
        if self.partitions().is_limited { (self.partition_of)(request) } else { None }
    }

    fn is_exhausted(&self, partition: &str) -> bool {
        let (mut partitions, now) = (self.partitions(), Instant::now());
        let bucket = partitions.buckets.entry(partition.to_owned());
        let bucket = bucket.or_insert_with(|| TokenBucket::full(self.units_per_second, now));
        let is_exhausted = !bucket.has_any(self.units_per_second, now);
        partitions.throttled += u64::from(is_exhausted);
        is_exhausted
    }

    fn consume(&self, partition: &str, units: f64) {
        let mut partitions = self.partitions();
        partitions.consumed += units;
        if let Some(bucket) = partitions.buckets.get_mut(partition) {
            bucket.take(units, self.units_per_second, Instant::now());
        }
    }
}

impl HttpClient for CapacityLimit {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, limit: self.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    limit: CapacityLimit,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Some(partition) = self.limit.limited_partition(&request) else { return self.inner.call(request) };
        if self.limit.is_exhausted(&partition) {
            let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"});
            let Ok(status) = 400.try_into() else { return self.inner.call(request) };
            return HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body.to_string()))));
        }
        let (response, limit) = (self.inner.call(request), self.limit.clone());
        HttpConnectorFuture::new(async move {
            let response = response.await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = BodyExt::collect(response.into_body()).await.map_err(|error| ConnectorError::other(error, None))?;
            let body = body.to_bytes();
            limit.consume(&partition, consumed_units(&body));
            let mut response = HttpResponse::new(status, SdkBody::from(body));
            *response.headers_mut() = headers;
            Ok(response)
        })
    }
}

/// Returns the consumed units that a response names.
fn consumed_units(body: &[u8]) -> f64 {
    let response: Value = serde_json::from_slice(body).unwrap_or_default();
    let capacity = &response["ConsumedCapacity"];
    let all = capacity.as_array().map_or(std::slice::from_ref(capacity), Vec::as_slice);
    all.iter().filter_map(|capacity| capacity["CapacityUnits"].as_f64()).sum()
}

/// Returns the one partition that all reads need; `None` for writes.
pub fn read_partition(request: &HttpRequest) -> Option<String> {
    let target = request.headers().get("x-amz-target")?;
    let is_read = ["Query", "GetItem"].iter().any(|operation| target.ends_with(operation));
    is_read.then(String::new)
}

/// Returns the partition that a write is about; `None` for reads.
pub fn written_partition(request: &HttpRequest) -> Option<String> {
    let target = request.headers().get("x-amz-target")?;
    let body: Value = serde_json::from_slice(request.body().bytes()?).ok()?;
    let key = match target.rsplit('.').next()? {
        "UpdateItem" => &body["Key"]["PK"]["S"],
        "TransactWriteItems" => {
            let write = body["TransactItems"][0].as_object()?.values().next()?;
            let key = if write["Item"].is_null() { &write["Key"] } else { &write["Item"] };
            &key["PK"]["S"]
        }
        _ => return None,
    };
    key.as_str().map(str::to_owned)
}
