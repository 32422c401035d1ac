//! A tenant of one's own behind the real router, and a client that speaks for a key.

pub mod fault_injection;
pub mod functions;
pub mod samples;

use aws_sdk_dynamodb::Client as Dynamo;
use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use fault_injection::{Faults, Faulty};
use http_body_util::BodyExt;
use local::engine::{self, Engine};
use local::meter::Meter;
use local::{server, table};
use serde_json::{Value, json};
use shared::app::App;
use shared::domain::api_key::MAX_RATE_LIMIT;
use shared::domain::id::TenantId;
use shared::domain::time::Timestamp;
use shared::key_encryption::KeyEncryption;
use shared::store::{Clock, Store};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tower::ServiceExt;

/// Where the tests' clock starts: 2026-03-05T10:00:00Z.
const START: i64 = 1_772_704_800_000;

/// The service with a table of its own.
pub struct Api {
    pub router: Router,
    pub store: Store,
    pub dynamo: Dynamo,
    pub table: String,
    pub meter: Meter,
    pub faults: Faults,
    pub key_encryption: Arc<dyn KeyEncryption>,
    clock: Arc<AtomicI64>,
    /// By how many milliseconds each reading of the clock moves it.
    tick: Arc<AtomicI64>,
    engine: Option<Engine>,
    endpoint: String,
}

impl Api {
    /// Starts an engine, or makes a table at `TEST_DYNAMODB_ENDPOINT`.
    pub async fn start() -> Self {
        let (engine, endpoint) = match std::env::var("TEST_DYNAMODB_ENDPOINT") {
            Ok(endpoint) => (None, endpoint),
            Err(_) => {
                let engine = Engine::start(None, ([127, 0, 0, 1], 0).into()).unwrap();
                let url = engine.url.clone();
                (Some(engine), url)
            }
        };
        let table = format!("test-{}", uuid::Uuid::from_u128(u128::from_ne_bytes(random())));
        let clock = Arc::new(AtomicI64::new(START));
        // Every look at the clock is a millisecond later, so that what follows sorts after what came before.
        let tick = Arc::new(AtomicI64::new(1));
        let now = ticking(&clock, &tick, 0);
        let meter = Meter::default();
        let faults = Faults::default();
        let http = Faulty::new(aws_smithy_http_client::Builder::new().build_http(), faults.clone());
        let config = engine::config(&endpoint).http_client(http).interceptor(meter.clone());
        let dynamo = Dynamo::from_conf(config.build());
        table::create(&dynamo, &table).await.unwrap();
        let store = Store::new(dynamo.clone(), &table, now);
        let key_encryption: Arc<dyn KeyEncryption> = Arc::new(key_encryption::FileKeyEncryption::in_memory().unwrap());
        let router = server::router(App::new(store.clone()).with_key_encryption(Some(Arc::clone(&key_encryption))));
        Self { router, store, dynamo, table, meter, faults, key_encryption, clock, tick, engine, endpoint }
    }

    /// A new tenant's client, whose key may do everything.
    pub async fn tenant(&self) -> Client {
        self.limited_tenant(MAX_RATE_LIMIT).await
    }

    /// A new tenant's client, whose key may send so many requests a minute.
    pub async fn limited_tenant(&self, limit: u32) -> Client {
        let made = self.store.create_tenant("Acme".parse().unwrap(), None, limit).await.unwrap();
        Client { router: self.router.clone(), key: made.api_key.expose(), tenant: made.tenant_id }
    }

    /// The service and one tenant.
    pub async fn with_tenant() -> (Self, Client) {
        let api = Self::start().await;
        let client = api.tenant().await;
        (api, client)
    }

    /// Another instance of every function on the same table: its clock is off by so many milliseconds, and its
    /// directories may take so many bytes.
    pub fn instance(&self, skew: i64, list_index_bytes: usize) -> Instance {
        let now = ticking(&self.clock, &self.tick, skew);
        let store = Store::new(self.dynamo.clone(), &self.table, now).with_list_index_bytes(list_index_bytes);
        let app = App::new(store.clone()).with_key_encryption(Some(Arc::clone(&self.key_encryption)));
        Instance { router: server::router(app), store }
    }

    /// What the index `list_index` has of a tenant now, by the first letter of its keys.
    pub async fn index(&self, tenant: TenantId) -> HashMap<char, Value> {
        let mut letters = HashMap::new();
        for letter in ['A', 'U', 'I', 'M'] {
            let query = self.dynamo.query().table_name(&self.table).index_name("list_index");
            let found = query
                .key_condition_expression("PK = :pk AND begins_with(LS, :letter)")
                .expression_attribute_values(":pk", shared::store::keys::Keys::of(tenant).partition())
                .expression_attribute_values(":letter", AttributeValue::S(letter.to_string()))
                .send()
                .await
                .unwrap();
            letters.insert(letter, found.items().iter().map(plain).collect());
        }
        letters
    }

    /// What the index `history` has of a tenant now.
    pub async fn history_index(&self, tenant: TenantId) -> Vec<Value> {
        let query = self.dynamo.query().table_name(&self.table).index_name("history").key_condition_expression("PK = :pk");
        let query = query.expression_attribute_values(":pk", shared::store::keys::Keys::of(tenant).partition());
        query.send().await.unwrap().items().iter().map(plain).collect()
    }

    /// Moves the clock.
    pub fn wait(&self, seconds: i64) {
        self.wait_millis(seconds * 1000);
    }

    /// Moves the clock.
    pub fn wait_millis(&self, millis: i64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    /// Stops the clock: from now on every reading gives the same moment.
    pub fn stop_clock(&self) {
        self.tick.store(0, Ordering::Relaxed);
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }

    /// Every item of the table, for comparing before and after. A scan, which only a test may do.
    pub async fn dump(&self) -> Dump {
        let mut items = Vec::new();
        let mut pages = self.dynamo.scan().table_name(&self.table).into_paginator().send();
        while let Some(page) = pages.next().await {
            // Requests are counted, whatever becomes of them.
            let found = page.unwrap().items.unwrap_or_default().into_iter().filter(|item| !is_count(item));
            items.extend(found.map(|item| render(&AttributeValue::M(item))));
        }
        items.sort();
        Dump(items)
    }
}

/// A clock that each reading moves by `tick`, and that is off by `skew` milliseconds.
fn ticking(clock: &Arc<AtomicI64>, tick: &Arc<AtomicI64>, skew: i64) -> Clock {
    let (clock, tick) = (Arc::clone(clock), Arc::clone(tick));
    Arc::new(move || Timestamp::from_millis(clock.fetch_add(tick.load(Ordering::Relaxed), Ordering::Relaxed) + skew))
}

/// One more instance of every function.
#[derive(Clone)]
pub struct Instance {
    pub router: Router,
    pub store: Store,
}

impl Instance {
    /// The same key, sent to this instance.
    pub fn client(&self, client: &Client) -> Client {
        Client { router: self.router.clone(), ..client.clone() }
    }
}

/// An item as DynamoDB's own JSON has it.
fn plain(item: &HashMap<String, AttributeValue>) -> Value {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        other => panic!("the index has {other:?}"),
    };
    item.iter().map(|(name, attribute)| (name.clone(), value(attribute))).collect()
}

/// Every item of a table, as text. Prints as little as it can: a table is long.
#[derive(PartialEq, Eq)]
pub struct Dump(pub Vec<String>);

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} items, {} bytes", self.0.len(), self.0.iter().map(String::len).sum::<usize>())
    }
}

fn is_count(item: &HashMap<String, AttributeValue>) -> bool {
    item.get("type").and_then(|kind| kind.as_s().ok()).is_some_and(|kind| kind == "rate")
}

/// One text for one value; `last_used_at` is left out, which even a refused request may write.
fn render(value: &AttributeValue) -> String {
    match value {
        AttributeValue::M(map) => {
            let shown = map.iter().filter(|(name, _)| *name != "last_used_at");
            let mut members: Vec<String> = shown.map(|(name, value)| format!("{name}: {}", render(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(", "))
        }
        other => format!("{other:?}"),
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        if self.engine.is_some() {
            return;
        }
        let (endpoint, table) = (self.endpoint.clone(), self.table.clone());
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let client = Dynamo::from_conf(engine::config(&endpoint).build());
            let _ = runtime.block_on(client.delete_table().table_name(table).send());
        });
        let _ = cleaning.join();
    }
}

pub fn random() -> [u8; 16] {
    uuid::Uuid::new_v4_like().into_bytes()
}

/// Sixteen random bytes without another dependency.
trait NewV4Like {
    fn new_v4_like() -> Self;
}

impl NewV4Like for uuid::Uuid {
    fn new_v4_like() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let half = || RandomState::new().hash_one(0u8);
        Self::from_u64_pair(half(), half())
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("not JSON: {:?}", self.text()))
    }

    /// The header's text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The answer's `data`, which it must have.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text());
        self.json()["data"].clone()
    }

    /// The id of the thing in the answer.
    #[track_caller]
    pub fn id(&self) -> String {
        self.data()["id"].as_str().expect("an id").to_owned()
    }

    /// Checks that this is a problem of the contract's form with this status and code; gives it.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["error"], problem["title"]);
        assert_eq!(problem["type"], format!("urn:problem:{}", code.to_lowercase().replace('_', "-")));
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        problem
    }

    /// Checks that this is a 422; gives where its faults are, sorted.
    #[track_caller]
    pub fn field_errors(&self) -> Vec<String> {
        let problem = self.problem(422, "VALIDATION_ERROR");
        let place = |fault: &Value| {
            fault["pointer"].as_str().or(fault["parameter"].as_str()).or(fault["header"].as_str()).unwrap().to_owned()
        };
        let mut places: Vec<String> = problem["errors"].as_array().unwrap().iter().map(place).collect();
        places.sort();
        places
    }
}

/// Somebody with a key.
#[derive(Clone)]
pub struct Client {
    pub router: Router,
    pub key: String,
    pub tenant: TenantId,
}

impl Client {
    pub async fn send(&self, method: &str, path: &str, content_type: Option<&str>, body: impl Into<Body>) -> Reply {
        self.send_with(method, path, content_type, body, &[]).await
    }

    /// [`Client::send`] with more headers.
    pub async fn send_with(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<Body>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(format!("/v1{path}"));
        if !self.key.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        call(&self.router, request.body(body.into()).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, None, Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_text(path, &body.to_string()).await
    }

    pub async fn post_text(&self, path: &str, body: &str) -> Reply {
        self.send("POST", path, Some("application/json"), body.to_owned()).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Reply {
        self.send("PATCH", path, Some("application/json"), body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, None, Body::empty()).await
    }

    /// Uses the key once, so that its `last_used_at` is not written in the middle of something else.
    pub async fn settle(&self) {
        self.get("/settings").await.data();
    }

    /// The same tenant through another key's text.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// A new key of the tenant with these scopes.
    pub async fn scoped(&self, scopes: &[&str]) -> Self {
        let made = self.post("/keys", json!({"name": "scoped", "scopes": scopes})).await;
        self.with_key(made.data()["api_key"].as_str().unwrap())
    }

    /// A new active user; gives the id.
    pub async fn user(&self, name: &str) -> String {
        let email = format!("{}@example.com", name.to_lowercase().replace(' ', "."));
        self.post("/users", json!({"email": email, "display_name": name})).await.id()
    }

    /// A new asset type; gives the id.
    pub async fn asset_type(&self, name: &str, code: &str, kind: &str) -> String {
        self.post("/catalog/asset-types", json!({"name": name, "code": code, "kind": kind})).await.id()
    }

    /// A new model with a manufacturer of its own; gives the id.
    pub async fn model(&self, maker: &str, name: &str, asset_type: &str) -> String {
        let maker = self.post("/catalog/manufacturers", json!({"name": maker})).await.id();
        let body = json!({"name": name, "manufacturer_id": maker, "asset_type_id": asset_type});
        self.post("/catalog/models", body).await.id()
    }

    /// A new asset; gives the id.
    pub async fn asset(&self, body: Value) -> String {
        self.post("/assets", body).await.id()
    }
}

pub async fn call(router: &Router, request: Request<Body>) -> Reply {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Reply { status: parts.status, headers: parts.headers, bytes }
}
