//! An HTTP client below the SDK's retries through which some calls fail.

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

/// What happens to calls.
#[derive(Debug, Clone)]
pub struct Chaos {
    inner: SharedHttpClient,
    /// How many of a thousand calls fail.
    per_mille: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl Chaos {
    pub fn new(inner: SharedHttpClient) -> Self {
        Self { inner, per_mille: Arc::default(), failed: Arc::default() }
    }

    /// From now on so many of a thousand calls fail.
    pub fn fail(&self, per_mille: u64) {
        self.per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// How many have failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// A random number below `limit`.
pub fn below(limit: u64) -> u64 {
    let mut bytes = [0; 8];
    // Without random bytes nothing is random, which a soak can bear.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes) % limit.max(1)
}

#[derive(Debug)]
struct Connector {
    inner: SharedHttpConnector,
    chaos: Chaos,
}

impl HttpClient for Chaos {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { inner, chaos: self.clone() })
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if below(1000) >= self.chaos.per_mille.load(Ordering::Relaxed) {
            return self.inner.call(request);
        }
        self.chaos.failed.fetch_add(1, Ordering::Relaxed);
        let writes = request.headers().get("x-amz-target").is_some_and(|target| target.ends_with("TransactWriteItems"));
        match below(4) {
            0 => HttpConnectorFuture::ready(refusal(writes)),
            1 => HttpConnectorFuture::ready(refusal(false)),
            2 => HttpConnectorFuture::ready(Err(ConnectorError::timeout("on its way".into()))),
            _ => {
                let done = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    done.await?;
                    Err(ConnectorError::timeout("on its way back".into()))
                })
            }
        }
    }
}

/// The table refuses: a transaction for a conflict, anything for too many requests.
fn refusal(conflict: bool) -> Result<HttpResponse, ConnectorError> {
    let body = if conflict {
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "soak",
            "CancellationReasons": [{"Code": "TransactionConflict"}]
        })
    } else {
        json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "soak"})
    };
    let status = 400.try_into().map_err(|_| ConnectorError::other("no status".into(), None))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}
