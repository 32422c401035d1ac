//! The embedded engine without a port: an HTTP client for the SDK that executes calls in this process.
//!
//! Calls of several tasks overlap as they do over a network. No sockets are involved, so that tokio's paused clock skips the
//! service's pauses.

use crate::table::{TableEngine, TableResponse};
use crate::test_data;
use anyhow::Result;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use fastrand::Rng;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::yield_now;

/// Maximum number of times that a call yields to other tasks before its execution, and again after it.
const MAX_YIELDS: u8 = 3;

/// An engine in memory that executes calls in the task that sends them. Cheap to clone.
#[derive(Clone)]
pub struct InProcessEngine {
    engine: TableEngine,
    /// Decides how the calls of several tasks interleave.
    random: Arc<Mutex<Rng>>,
}

impl std::fmt::Debug for InProcessEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcessEngine").finish_non_exhaustive()
    }
}

impl InProcessEngine {
    /// # Errors
    ///
    /// Returns an error if SQLite can't open a database in memory.
    pub fn new() -> Result<Self> {
        Ok(Self { engine: TableEngine::in_memory()?, random: Arc::new(Mutex::new(test_data::random())) })
    }

    async fn pass(&self) {
        let times = self.random.lock().unwrap_or_else(PoisonError::into_inner).u8(0..=MAX_YIELDS);
        for _ in 0..times {
            yield_now().await;
        }
    }
}

impl HttpClient for InProcessEngine {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for InProcessEngine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (operation, body) = table_call(&request);
        let engine = self.clone();
        // A separate task, so that a sent call takes effect even if the sender stops waiting.
        let executed = tokio::spawn(async move {
            engine.pass().await;
            let response = engine.engine.execute(&operation, body);
            engine.pass().await;
            response
        });
        HttpConnectorFuture::new(async move {
            let response = executed.await.map_err(|error| ConnectorError::other(error.into(), None))?;
            http_response(&response)
        })
    }
}

pub(crate) fn operation(request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target").and_then(|target| target.split('.').nth(1));
    target.unwrap_or_default().to_owned()
}

pub(crate) fn table_call(request: &HttpRequest) -> (String, Value) {
    let body = request.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    (operation(request), body)
}

pub(crate) fn http_response(response: &TableResponse) -> Result<HttpResponse, ConnectorError> {
    let status = response.status.try_into().map_err(|_| ConnectorError::other("no status".into(), None))?;
    let mut http = HttpResponse::new(status, SdkBody::from(response.body.to_string()));
    http.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(http)
}
