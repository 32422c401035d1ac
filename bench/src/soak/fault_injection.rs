//! Injects faults into calls to the table, below the SDK's retries.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An HTTP client for the SDK that makes some calls fail.
#[derive(Debug, Clone)]
pub struct FaultInjector {
    inner: SharedHttpClient,
    /// How many of a thousand calls fail.
    per_mille: Arc<AtomicU64>,
    injected: Arc<AtomicU64>,
}

impl FaultInjector {
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, per_mille: Arc::default(), injected: Arc::default() }
    }

    /// Sets how many of a thousand calls fail from now on.
    pub fn set_rate(&self, per_mille: u64) {
        self.per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Returns how many faults were injected so far.
    pub fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }
}

/// Returns a random number below `limit`.
pub fn random_below(limit: u64) -> u64 {
    let mut bytes = [0; 8];
    // Without random bytes the traffic is less varied, which does no harm.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes) % limit.max(1)
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    injector: FaultInjector,
}

impl HttpClient for FaultInjector {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, injector: self.clone() })
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if random_below(1000) >= self.injector.per_mille.load(Ordering::Relaxed) {
            return self.inner.call(request);
        }
        self.injector.injected.fetch_add(1, Ordering::Relaxed);
        let is_transaction = request.headers().get("x-amz-target").is_some_and(|target| target.ends_with("TransactWriteItems"));
        match random_below(4) {
            0 if is_transaction => HttpConnectorFuture::ready(transaction_conflict()),
            0 | 1 => HttpConnectorFuture::ready(throttled()),
            2 => HttpConnectorFuture::ready(Err(ConnectorError::timeout("request lost".into()))),
            // The table handles the request, but its response is lost.
            _ => {
                let response = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    response.await?;
                    Err(ConnectorError::timeout("response lost".into()))
                })
            }
        }
    }
}

fn transaction_conflict() -> Result<HttpResponse, ConnectorError> {
    error_response(&json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "soak",
        "CancellationReasons": [{"Code": "TransactionConflict"}]
    }))
}

fn throttled() -> Result<HttpResponse, ConnectorError> {
    error_response(&json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "soak"}))
}

fn error_response(body: &serde_json::Value) -> Result<HttpResponse, ConnectorError> {
    let status = 400.try_into().map_err(|_| ConnectorError::other("invalid status".into(), None))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}
