//! The service with an engine, a table and a tenant of its own.

use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use local::engine::{self, Engine};
use local::meter::Meter;
use local::server::{self, TABLE};
use local::table;
use serde_json::Value;
use shared::app::{App, system_clock};
use shared::domain::api_key::MAX_RATE_LIMIT;
use shared::domain::id::TenantId;
use shared::domain::time::Timestamp;
use shared::store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tower::ServiceExt;

/// How long a call to the engine may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// The service, and a client of one tenant that may do everything.
pub struct Service {
    pub store: Store,
    pub dynamo: Client,
    pub meter: Meter,
    pub tenant: TenantId,
    /// By how many milliseconds its clock is off.
    skew: Arc<AtomicI64>,
    client: Caller,
    _engine: Engine,
}

impl Service {
    /// Starts it in memory.
    pub async fn start() -> Result<Self> {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
        let meter = Meter::default();
        // The engine reads a megabyte a second when it is busy: what would be a time-out in AWS is none here.
        let patient = TimeoutConfig::builder().operation_timeout(PATIENCE).operation_attempt_timeout(PATIENCE).build();
        let config = engine::config(&engine.url).timeout_config(patient).interceptor(meter.clone());
        let dynamo = Client::from_conf(config.build());
        table::create(&dynamo, TABLE).await?;
        let skew = Arc::new(AtomicI64::new(0));
        let (clock, added) = (system_clock(), Arc::clone(&skew));
        let now = Arc::new(move || Timestamp::from_millis(clock().millis() + added.load(Ordering::Relaxed)));
        let store = Store::new(dynamo.clone(), TABLE, now).with_list_index_bytes(usize::MAX);
        let router = server::router(App::new(store.clone()));
        let made = store.create_tenant("Bench".parse()?, None, MAX_RATE_LIMIT).await?;
        let client = Caller { router, api_key: made.api_key.expose() };
        Ok(Self { store, dynamo, meter, tenant: made.tenant_id, skew, client, _engine: engine })
    }

    /// Puts its clock forward: what was done before is so long ago.
    pub fn wait(&self, millis: i64) {
        self.skew.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sends a request, which must succeed, and gives the answer.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let (status, answer) = self.client.send(method, path, body, None).await?;
        if !status.is_success() {
            bail!("{method} {path} answered {status}: {answer}");
        }
        Ok(answer)
    }

    /// Makes something, and gives its id.
    pub async fn create(&self, path: &str, body: &Value) -> Result<String> {
        let answer = self.send("POST", path, &body.to_string()).await?;
        Ok(answer["data"]["id"].as_str().context("an id")?.to_owned())
    }
}

/// Somebody with a key.
#[derive(Clone)]
pub struct Caller {
    pub router: Router,
    pub api_key: String,
}

impl Caller {
    /// Sends a request, perhaps under an idempotency key; gives status and body.
    pub async fn send(&self, method: &str, path: &str, body: &str, key: Option<&str>) -> Result<(StatusCode, Value)> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/v1{path}"))
            .header("authorization", format!("Bearer {}", self.api_key))
            .header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body.to_owned()))?).await?;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await?;
        Ok((status, serde_json::from_slice(&bytes)?))
    }
}
