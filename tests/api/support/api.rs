//! Runs the service, with a separate table for each test.

use super::client::Client;
use super::queue::TestQueue;
use super::samples::Samples;
use super::table::{all_items, put_all};
use aws_sdk_dynamodb::Client as Dynamo;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use axum::Router;
use dev_server::faulty_table::planned::{Faults, FaultyClient};
use dev_server::faulty_table::{FaultyTable, SeededRandom, Weaknesses};
use dev_server::in_process::InProcessEngine;
use dev_server::invariants::violations;
use dev_server::meter::{Cost, Meter};
use dev_server::test_data::random_for;
use dev_server::{engine, server, table};
use key_encryption::FileKeyEncryption;
use shared::aws::object_store::ObjectStore;
use shared::domain::keys::api_key::MAX_RATE_LIMIT;
use shared::domain::values::id::TenantId;
use shared::domain::values::time::Timestamp;
use shared::key_encryption::KeyEncryption;
use shared::services::App;
use shared::store::keys::Item;
use shared::store::{Clock, Random, Store};
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;

/// 2026-03-05T10:00:00Z.
const START: i64 = 1_772_704_800_000;

pub struct Api {
    pub router: Router,
    pub store: Store,
    pub dynamo: Dynamo,
    pub table: String,
    pub meter: Meter,
    pub faults: Faults,
    pub key_encryption: Arc<dyn KeyEncryption>,
    pub queue: Arc<TestQueue>,
    /// For new replicas: the number of applied events from which list indexes count events instead of reading them. `None` for
    /// the default, which only a burst of writes reaches.
    pub counted_events: Option<usize>,
    random: Random,
    clock: Arc<AtomicI64>,
    /// Each reading of the clock advances the time by this many milliseconds.
    tick: Arc<AtomicI64>,
    /// `TEST_DYNAMODB_ENDPOINT`, if set: the test's table there must be deleted at the end.
    shared_endpoint: Option<String>,
}

/// A tenant with sample resources for many tests. The first test creates the tenant; the others copy its table, which is much
/// faster.
pub struct Template<T> {
    items: Vec<Item>,
    key: String,
    tenant: TenantId,
    resources: T,
    key_encryption: Arc<dyn KeyEncryption>,
    /// The clock's time in milliseconds.
    now: i64,
}

impl<T: Clone> Template<T> {
    pub async fn new(make: impl AsyncFnOnce(&Client) -> T) -> Self {
        let (api, client) = Api::with_tenant().await;
        let resources = make(&client).await;
        let (key_encryption, now) = (Arc::clone(&api.key_encryption), api.now().millis());
        Self { items: all_items(&api).await, key: client.key, tenant: client.tenant, resources, key_encryption, now }
    }

    pub async fn copied(&self) -> (Api, Client, T) {
        let api = Api::start_with(Arc::clone(&self.key_encryption)).await;
        put_all(&api, self.items.iter().cloned()).await;
        api.clock.store(self.now, Ordering::Relaxed);
        let client = api.client(self.key.clone(), self.tenant);
        client.use_key_once().await;
        (api, client, self.resources.clone())
    }
}

/// Resumes tokio's clock, for tests that wait for a socket: a paused clock would advance to the next timeout.
pub fn resume_clock() {
    let now = tokio::time::Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    if now == tokio::time::Instant::now() {
        tokio::time::resume();
    }
}

impl Api {
    /// Starts an engine, or creates a table at `TEST_DYNAMODB_ENDPOINT`.
    pub async fn start() -> Self {
        Self::start_with(Arc::new(FileKeyEncryption::in_memory().unwrap())).await
    }

    async fn start_with(key_encryption: Arc<dyn KeyEncryption>) -> Self {
        let Ok(endpoint) = std::env::var("TEST_DYNAMODB_ENDPOINT") else {
            let engine = SharedHttpClient::new(InProcessEngine::new().unwrap());
            return Self::on(engine, "http://engine.invalid", key_encryption).await;
        };
        resume_clock();
        let mut api = Self::on(aws_smithy_http_client::Builder::new().build_http(), &endpoint, key_encryption).await;
        api.shared_endpoint = Some(endpoint);
        api
    }

    /// Starts the service on a faulty table. Needs a runtime with a paused clock.
    pub async fn on_faulty_table(seed: u64, weaknesses: Weaknesses) -> Self {
        let table = FaultyTable::new(seed).unwrap();
        let key_encryption = Arc::new(FileKeyEncryption::in_memory().unwrap());
        let api = Self::on(SharedHttpClient::new(table.clone()), "http://faulty.invalid", key_encryption).await;
        table.set(weaknesses);
        api
    }

    async fn on(http: SharedHttpClient, endpoint: &str, key_encryption: Arc<dyn KeyEncryption>) -> Self {
        let table = format!("test-{:016x}", RandomState::new().hash_one(0u8));
        let (clock, tick) = (Arc::new(AtomicI64::new(START)), Arc::new(AtomicI64::new(1)));
        let meter = Meter::default();
        let faults = Faults::default();
        // Planned faults don't affect the queue.
        let records = engine::config(endpoint).http_client(http.clone()).timeout_config(TimeoutConfig::disabled());
        let records = Store::new(Dynamo::from_conf(records.build()), &table, ticking(&clock, &Arc::default(), 0));
        let queue = Arc::new(TestQueue::delivering_tests(records));
        let http = FaultyClient::new(http, faults.clone());
        // A held request must not time out, even on a busy machine.
        let no_timeouts = TimeoutConfig::disabled();
        let config = engine::config(endpoint).http_client(http).interceptor(meter.clone()).timeout_config(no_timeouts);
        let dynamo = Dynamo::from_conf(config.build());
        table::create(&dynamo, &table).await.unwrap();
        let random = seeded_random();
        let store = Store::new(dynamo.clone(), &table, ticking(&clock, &tick, 0)).with_random(Arc::clone(&random));
        let app = App::new(store.clone()).with_key_encryption(Some(Arc::clone(&key_encryption)));
        let router = server::router(app.with_queue(Some(queue.clone())));
        Self {
            router,
            store,
            dynamo,
            table,
            meter,
            faults,
            key_encryption,
            queue,
            counted_events: None,
            random,
            clock,
            tick,
            shared_endpoint: None,
        }
    }

    pub async fn with_tenant() -> (Self, Client) {
        let api = Self::start().await;
        let client = api.tenant().await;
        (api, client)
    }

    pub async fn with_samples() -> (Self, Client, Samples) {
        static TEMPLATE: OnceCell<Template<Samples>> = OnceCell::const_new();
        TEMPLATE.get_or_init(|| Template::new(Samples::create)).await.copied().await
    }

    /// Creates a tenant. The client's key has all scopes.
    pub async fn tenant(&self) -> Client {
        self.limited_tenant(MAX_RATE_LIMIT).await
    }

    /// Creates a tenant. The client's key can send `limit` requests per minute.
    pub async fn limited_tenant(&self, limit: u32) -> Client {
        let created = self.store.create_tenant("Acme".parse().unwrap(), None, limit).await.unwrap();
        self.client(created.api_key.expose(), created.tenant_id)
    }

    pub fn client(&self, key: String, tenant: TenantId) -> Client {
        Client { router: self.router.clone(), key, tenant, table: None, clock: Arc::clone(&self.clock) }
    }

    /// Starts a second instance of all functions on the same table. `skew` is the clock's offset in milliseconds;
    /// `list_index_bytes` limits the memory for list indexes.
    pub fn replica(&self, skew: i64, list_index_bytes: usize) -> Replica {
        self.replica_with(skew, list_index_bytes, None)
    }

    pub fn replica_with(&self, skew: i64, list_index_bytes: usize, snapshots: Option<Arc<dyn ObjectStore>>) -> Replica {
        let clock = ticking(&self.clock, &self.tick, skew);
        let store = Store::new(self.dynamo.clone(), &self.table, clock).with_random(Arc::clone(&self.random));
        let store = store.with_list_index_bytes(list_index_bytes);
        let store = self.counted_events.into_iter().fold(store, Store::with_counted_events).with_snapshots(snapshots);
        let app = App::new(store.clone()).with_key_encryption(Some(Arc::clone(&self.key_encryption)));
        Replica { router: server::router(app.with_queue(Some(self.queue.clone()))), store }
    }

    /// Checks the invariants of a tenant's items. The failure message starts with `what`.
    pub async fn check_invariants(&self, tenant: TenantId, what: &str) {
        let found = violations(&self.store.writer(tenant), &self.dynamo, &self.table).await.unwrap();
        assert!(found.is_empty(), "{what}: {found:?}");
    }

    pub async fn cost<T>(&self, requests: impl Future<Output = T>) -> (T, Cost) {
        self.meter.take();
        (requests.await, self.meter.take())
    }

    pub fn advance_clock(&self, seconds: i64) {
        self.advance_clock_millis(seconds * 1000);
    }

    pub fn advance_clock_millis(&self, millis: i64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    /// Stops the clock: further readings return the same time.
    pub fn stop_clock(&self) {
        self.tick.store(0, Ordering::Relaxed);
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }
}

/// Returns random numbers. `TEST_SEED` and the test's name determine these numbers and the SDK's pauses.
fn seeded_random() -> Random {
    thread_local! {
        static SEEDS: RefCell<fastrand::Rng> = RefCell::new(random_for(std::thread::current().name()));
    }
    let next = || SEEDS.with_borrow_mut(|seeds| seeds.u64(..));
    fastrand::seed(next());
    SeededRandom::new(next()).into_store_random()
}

/// Returns a clock. Each reading advances the time by `tick` milliseconds, so that later events sort after earlier events.
fn ticking(clock: &Arc<AtomicI64>, tick: &Arc<AtomicI64>, skew: i64) -> Clock {
    let (clock, tick) = (Arc::clone(clock), Arc::clone(tick));
    Arc::new(move || Timestamp::from_millis(clock.fetch_add(tick.load(Ordering::Relaxed), Ordering::Relaxed) + skew))
}

impl Drop for Api {
    /// Deletes the table at `TEST_DYNAMODB_ENDPOINT`. Other tables are dropped with their engine.
    fn drop(&mut self) {
        let Some(endpoint) = self.shared_endpoint.clone() else { return };
        let table = self.table.clone();
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let client = Dynamo::from_conf(engine::config(&endpoint).build());
            let _ = runtime.block_on(client.delete_table().table_name(table).send());
        });
        let _ = cleaning.join();
    }
}

/// A second instance of all functions on the same table, with separate caches.
#[derive(Clone)]
pub struct Replica {
    pub router: Router,
    pub store: Store,
}

impl Replica {
    pub fn client(&self, client: &Client) -> Client {
        Client { router: self.router.clone(), ..client.clone() }
    }
}
