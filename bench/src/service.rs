//! Runs the service in this process, with a separate engine, table and tenant, or the dev server as a separate process, with an
//! empty tenant.

use crate::generated_index::GeneratedIndex;
use anyhow::{Context, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use axum::Router;
use dev_server::api::{ApiClient, JSON};
use dev_server::engine::{self, Engine};
use dev_server::faulty_table::CapacityLimit;
use dev_server::meter::Meter;
use dev_server::server::{self, TABLE};
use dev_server::table;
use serde_json::Value;
use shared::aws::object_store::ObjectStore;
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::domain::values::id::TenantId;
use shared::domain::values::time::Timestamp;
use shared::services::{App, system_clock};
use shared::store::Store;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// DynamoDB's read limit per partition, in read units per second.
const READ_UNITS_PER_SECOND: f64 = 3_000.0;
const ENGINE_TIMEOUT: Duration = Duration::from_secs(600);

/// The service, with one tenant and a client whose key has every scope.
pub struct Service {
    pub store: Store,
    pub dynamo: Client,
    pub meter: Meter,
    pub tenant: TenantId,
    pub read_limit: CapacityLimit,
    /// Answers requests for generated assets instead of the engine.
    pub generated_index: GeneratedIndex,
    /// Milliseconds by which the service's clock is ahead.
    clock_offset: Arc<AtomicI64>,
    client: ApiClient,
    _engine: Engine,
}

impl Service {
    /// Starts the service with its data in memory and its snapshots in `snapshots`.
    pub async fn start(snapshots: Option<Arc<dyn ObjectStore>>) -> Result<Self> {
        let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
        let meter = Meter::default();
        // Under load, the engine reads only a megabyte per second, so the usual timeouts for DynamoDB would be too short.
        let timeouts =
            TimeoutConfig::builder().operation_timeout(ENGINE_TIMEOUT).operation_attempt_timeout(ENGINE_TIMEOUT).build();
        let config = engine::config(&engine.url).timeout_config(timeouts).interceptor(meter.clone());
        let generated_index = GeneratedIndex::new(aws_smithy_http_client::Builder::new().build_http());
        let read_limit = CapacityLimit::new(generated_index.clone(), READ_UNITS_PER_SECOND);
        let config = config.http_client(read_limit.clone());
        let dynamo = Client::from_conf(config.build());
        table::create(&dynamo, TABLE).await?;
        let clock_offset = Arc::new(AtomicI64::new(0));
        let (clock, offset) = (system_clock(), Arc::clone(&clock_offset));
        let now = Arc::new(move || Timestamp::from_millis(clock().millis() + offset.load(Ordering::Relaxed)));
        let store = Store::new(dynamo.clone(), TABLE, now).with_list_index_bytes(usize::MAX).with_snapshots(snapshots);
        let router = server::router(App::new(store.clone()));
        let created = store.create_tenant("Bench".parse()?, None, MAX_RATE_LIMIT).await?;
        let client = ApiClient { router, api_key: created.api_key.expose() };
        let tenant = created.tenant_id;
        Ok(Self { store, dynamo, meter, tenant, read_limit, generated_index, clock_offset, client, _engine: engine })
    }

    /// Returns another instance of the service, without list indexes.
    pub fn instance(&self) -> Router {
        server::router(App::new(self.store.clone().with_list_index_bytes(usize::MAX)))
    }

    pub fn api_key(&self) -> &str {
        &self.client.api_key
    }

    pub fn advance_clock(&self, millis: i64) {
        self.clock_offset.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sends a request, which must succeed. Returns the body of the response.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        successful(&self.client, method, path, body).await
    }

    pub async fn create(&self, path: &str, body: &Value) -> Result<String> {
        let response = self.send("POST", path, &body.to_string()).await?;
        Ok(response["data"]["id"].as_str().with_context(|| format!("no id in the response to POST {path}"))?.to_owned())
    }
}

/// Sends a request, which must succeed. Returns the body of the response.
async fn successful(client: &ApiClient, method: &str, path: &str, body: &str) -> Result<Value> {
    let (status, response) = client.send(method, path, &[JSON], body).await?;
    ensure!(status.is_success(), "{method} {path} returned {status}: {response}");
    Ok(response)
}

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Polling interval for the ready file.
const INTERVAL: Duration = Duration::from_millis(5);

/// A process that is killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running dev server. Dropping the value kills the process and deletes the data.
pub struct ServerProcess {
    pub base_url: String,
    pub api_key: String,
    /// Time from the start of the process until it was ready.
    pub start: Duration,
    process: Process,
    _data: tempfile::TempDir,
}

impl ServerProcess {
    pub fn start(binary: &Path) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let ready = data.path().join("ready.json");
        let mut command = Command::new(binary);
        command
            .args(["--empty", "--addr", "127.0.0.1:0", "--data"])
            .arg(data.path().join("data"))
            .arg("--ready-file")
            .arg(&ready);
        let began = Instant::now();
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = Process(spawned.with_context(|| format!("can't start {}; build it first", binary.display()))?);
        let ready = wait_for(&ready)?;
        let text = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();
        Ok(Self { base_url: text("base_url"), api_key: text("api_key"), start: began.elapsed(), process, _data: data })
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

fn wait_for(ready: &Path) -> Result<Value> {
    let began = Instant::now();
    while began.elapsed() < START_TIMEOUT {
        if let Ok(text) = fs::read(ready) {
            return Ok(serde_json::from_slice(&text)?);
        }
        std::thread::sleep(INTERVAL);
    }
    bail!("the server is not ready after {} s", START_TIMEOUT.as_secs())
}
