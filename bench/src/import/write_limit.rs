//! A table whose partitions each allow a limited number of write units per second, as DynamoDB's do.

use crate::lists::consumed_units;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The write units of a partition per second ("Burst and adaptive capacity" in the DynamoDB developer guide).
pub const UNITS_PER_SECOND: f64 = 1_000.0;

#[derive(Debug, Default)]
struct Partitions {
    is_limited: bool,
    /// What each partition has left, and since when.
    left: HashMap<String, (f64, Instant)>,
    consumed: f64,
    throttled: u64,
}

/// An HTTP client that throttles writes to a partition while it has no units left. A write that begins while there are some
/// is executed, and its units are taken afterwards.
#[derive(Debug, Clone)]
pub struct WriteLimit {
    inner: SharedHttpClient,
    partitions: Arc<Mutex<Partitions>>,
}

impl WriteLimit {
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, partitions: Arc::default() }
    }

    /// Limits writes from now on, and forgets what was counted.
    pub fn limit(&self) {
        *self.partitions.lock().unwrap_or_else(PoisonError::into_inner) =
            Partitions { is_limited: true, ..Partitions::default() };
    }

    /// Returns how many units were consumed, and how many calls were throttled.
    pub fn counts(&self) -> (f64, u64) {
        let partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        (partitions.consumed, partitions.throttled)
    }

    fn is_exhausted(&self, partition: &str) -> bool {
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        if !partitions.is_limited {
            return false;
        }
        let now = Instant::now();
        let (left, at) = partitions.left.entry(partition.to_owned()).or_insert((UNITS_PER_SECOND, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * UNITS_PER_SECOND).min(UNITS_PER_SECOND);
        *at = now;
        let is_exhausted = *left <= 0.0;
        partitions.throttled += u64::from(is_exhausted);
        is_exhausted
    }

    fn consume(&self, partition: &str, units: f64) {
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        partitions.consumed += units;
        if let Some((left, _)) = partitions.left.get_mut(partition) {
            *left -= units;
        }
    }
}

impl HttpClient for WriteLimit {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, limit: self.clone() })
    }
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    limit: WriteLimit,
}

/// Returns the partition that a write is about; `None` for reads.
fn partition_of(request: &HttpRequest) -> Option<String> {
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

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Some(partition) = partition_of(&request) else { return self.inner.call(request) };
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
