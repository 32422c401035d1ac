//! A table that allows a limited number of read units per second, as one DynamoDB partition does.

use super::generated_index::GeneratedIndex;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The read units of a partition per second.
const UNITS_PER_SECOND: f64 = 3_000.0;

/// What is left of the units, and since when.
#[derive(Debug)]
struct Bucket {
    units: f64,
    at: Instant,
}

/// An HTTP client that throttles reads while more units were consumed than are allowed. Units are counted by the
/// consumed capacity in the responses, which the meter requests.
#[derive(Debug, Clone)]
pub struct ReadLimit {
    inner: SharedHttpClient,
    /// `None` as long as nothing is limited.
    bucket: Arc<Mutex<Option<Bucket>>>,
    /// What answers queries of the index instead of the engine.
    pub generated: GeneratedIndex,
}

impl ReadLimit {
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, bucket: Arc::default(), generated: GeneratedIndex::default() }
    }

    /// Limits reads from now on, or no longer.
    pub fn set(&self, is_limited: bool) {
        let bucket = is_limited.then(|| Bucket { units: UNITS_PER_SECOND, at: Instant::now() });
        *self.bucket.lock().unwrap_or_else(PoisonError::into_inner) = bucket;
    }

    /// Whether a request would exceed the limit. Adds the units since the last request.
    fn is_exhausted(&self) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = bucket.as_mut() else { return false };
        let now = Instant::now();
        bucket.units = (bucket.units + now.duration_since(bucket.at).as_secs_f64() * UNITS_PER_SECOND).min(UNITS_PER_SECOND);
        bucket.at = now;
        bucket.units <= 0.0
    }

    fn consume(&self, units: f64) {
        if let Some(bucket) = self.bucket.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            bucket.units -= units;
        }
    }
}

impl HttpClient for ReadLimit {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, limit: self.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    limit: ReadLimit,
}

/// Returns the consumed units that a response names.
pub fn consumed_units(body: &[u8]) -> f64 {
    let response: Value = serde_json::from_slice(body).unwrap_or_default();
    let capacity = &response["ConsumedCapacity"];
    let all = capacity.as_array().map_or(std::slice::from_ref(capacity), Vec::as_slice);
    all.iter().filter_map(|capacity| capacity["CapacityUnits"].as_f64()).sum()
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let is_read = ["Query", "GetItem"].iter().any(|operation| target.ends_with(operation));
        if is_read && self.limit.is_exhausted() {
            let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "slow down"});
            let Ok(status) = 400.try_into() else { return self.inner.call(request) };
            return HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body.to_string()))));
        }
        if let Some(response) = self.limit.generated.response(&request) {
            return HttpConnectorFuture::ready(Ok(response));
        }
        let (response, limit) = (self.inner.call(request), self.limit.clone());
        HttpConnectorFuture::new(async move {
            let response = response.await?;
            if !is_read || limit.bucket.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
                return Ok(response);
            }
            let (status, headers) = (response.status(), response.headers().clone());
            let body = http_body_util::BodyExt::collect(response.into_body()).await;
            let body =
                body.map_err(|error| aws_smithy_runtime_api::client::result::ConnectorError::other(error, None))?.to_bytes();
            limit.consume(consumed_units(&body));
            let mut response = HttpResponse::new(status, SdkBody::from(body));
            *response.headers_mut() = headers;
            Ok(response)
        })
    }
}
