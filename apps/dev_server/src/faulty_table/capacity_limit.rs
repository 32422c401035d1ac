//! Limits the units per second of each partition of a table, as DynamoDB does.

use super::Weaknesses;
use crate::in_process::{http_response, table_call};
use crate::table::TableResponse;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

#[derive(Debug, Default)]
struct State {
    is_limited: bool,
    capacity: Capacity,
    consumed: f64,
    throttled: u64,
}

/// An HTTP client that throttles reads once their units are used up, as if all were in one partition. A read that starts while
/// units are left is executed, and charged afterwards with the consumed capacity from its response, which the meter requests.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct CapacityLimit {
    inner: SharedHttpClient,
    units_per_second: f64,
    state: Arc<Mutex<State>>,
}

impl CapacityLimit {
    #[must_use]
    pub fn new(inner: impl HttpClient + 'static, units_per_second: f64) -> Self {
        Self { inner: SharedHttpClient::new(inner), units_per_second, state: Arc::default() }
    }

    /// Starts or stops limiting requests, and resets the counts.
    pub fn set(&self, is_limited: bool) {
        *self.state() = State { is_limited, ..State::default() };
    }

    #[must_use]
    pub fn counts(&self) -> (f64, u64) {
        let state = self.state();
        (state.consumed, state.throttled)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_limited(&self, request: &HttpRequest) -> bool {
        self.state().is_limited && matches!(&*table_call(request).0, "Query" | "GetItem" | "BatchGetItem")
    }

    fn is_exhausted(&self) -> bool {
        let mut state = self.state();
        let is_exhausted = !state.capacity.has_any(&Partition::default(), Usage::Read, self.units_per_second, Instant::now());
        state.throttled += u64::from(is_exhausted);
        is_exhausted
    }

    fn consume(&self, units: f64) {
        let mut state = self.state();
        state.consumed += units;
        state.capacity.take(&Partition::default(), Usage::Read, units, self.units_per_second, Instant::now());
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
        if !self.limit.is_limited(&request) {
            return self.inner.call(request);
        }
        if self.limit.is_exhausted() {
            let throttled = TableResponse::error(400, "ThrottlingException", "slow down");
            return HttpConnectorFuture::ready(http_response(&throttled));
        }
        let (response, limit) = (self.inner.call(request), self.limit.clone());
        HttpConnectorFuture::new(async move {
            let response = read(response.await?).await?;
            limit.consume(consumed_units(response.body().bytes().unwrap_or_default()));
            Ok(response)
        })
    }
}

/// Reads the whole body into memory.
pub(super) async fn read(mut response: HttpResponse) -> Result<HttpResponse, ConnectorError> {
    let body = ByteStream::new(response.take_body()).collect().await.map_err(|error| ConnectorError::io(error.into()))?;
    *response.body_mut() = SdkBody::from(body.into_bytes());
    Ok(response)
}

fn consumed_units(body: &[u8]) -> f64 {
    let response: Value = serde_json::from_slice(body).unwrap_or_default();
    let capacity = &response["ConsumedCapacity"];
    let all = capacity.as_array().map_or(std::slice::from_ref(capacity), Vec::as_slice);
    all.iter().filter_map(|capacity| capacity["CapacityUnits"].as_f64()).sum()
}

/// Each partition has a separate limit for reads and for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Usage {
    Read,
    Write,
}

impl Usage {
    /// Returns the units per second for a partition; `None` if unlimited.
    pub fn limit(self, weaknesses: &Weaknesses) -> Option<f64> {
        let limit = match self {
            Self::Read => weaknesses.read_units_per_second,
            Self::Write => weaknesses.write_units_per_second,
        };
        (limit > 0).then_some(f64::from(limit))
    }
}

/// An index's name, or `None` for the table, and the partition key.
pub type Partition = (Option<String>, String);

/// A token bucket per partition, with the units of one second. A call is executed if any units are left, and charged afterwards,
/// when its units are known: then the bucket can go into debt.
#[derive(Debug, Default)]
pub struct Capacity(HashMap<(Partition, Usage), (f64, Instant)>);

impl Capacity {
    /// Refills the bucket. Returns the units that are left.
    fn left(&mut self, partition: &Partition, usage: Usage, limit: f64, now: Instant) -> &mut f64 {
        let (left, at) = self.0.entry((partition.clone(), usage)).or_insert((limit, now));
        *left = (*left + (now - *at).as_secs_f64() * limit).min(limit);
        *at = now;
        left
    }

    pub fn has_any(&mut self, partition: &Partition, usage: Usage, limit: f64, now: Instant) -> bool {
        *self.left(partition, usage, limit, now) > 0.0
    }

    pub fn take(&mut self, partition: &Partition, usage: Usage, units: f64, limit: f64, now: Instant) {
        *self.left(partition, usage, limit, now) -= units;
    }
}
