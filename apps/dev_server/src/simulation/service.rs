//! The instances of the service, the requests that clients send to them, and a client: one random action after another.

use super::tenant::Tenant;
use super::{Report, check, processes, records};
use crate::faulty_table::{FaultyObjects, FaultyTable, SeededRandom};
use crate::server::{self, TABLE};
use anyhow::Result;
use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use key_encryption::FileKeyEncryption;
use lambda_http::{Context, RequestExt};
use serde_json::Value;
use shared::domain::values::time::Timestamp;
use shared::http::routes::BASE;
use shared::key_encryption::KeyEncryption;
use shared::services::App;
use shared::store::Store;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;

/// 2026-03-05T10:00:00Z.
const START: i64 = 1_772_704_800_000;
/// Maximum offset of an instance's clock, in either direction: two clocks differ by at most a second.
const MAX_CLOCK_OFFSET_MILLIS: u64 = 500;
/// As in template.yaml.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(15);
/// Time until earlier faults no longer have an effect: a write's 5 s, its 3 s in transit, and a margin.
const RECOVERY: Duration = Duration::from_secs(10);
/// With more instances, the oldest one is dropped.
const MAX_INSTANCES: usize = 6;
/// Requests per thousand after which their instance is frozen for minutes.
const FREEZES_PER_MILLE: u64 = 40;

#[derive(Debug, Clone, Default)]
pub struct ApiRequest {
    pub method: &'static str,
    pub path: String,
    pub body: Value,
    pub api_key: String,
    pub headers: Vec<(&'static str, String)>,
    pub may_be_unauthorized: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ApiResponse {
    pub status: u16,
    pub body: Value,
    pub etag: Option<String>,
    pub retry_after: Option<u64>,
    /// Values of all headers, which must not contain data of other tenants.
    pub headers: Vec<String>,
}

/// One instance of all functions, with its own memory and clock.
struct ServiceInstance {
    number: u64,
    router: Router,
    clock_offset: i64,
    is_busy: bool,
    frozen_until: Instant,
}

#[derive(Default)]
struct State {
    instances: Vec<ServiceInstance>,
    started: u64,
    kills_per_mille: u64,
    /// Time when the latest faults ended.
    calm_since: Option<Instant>,
    is_over: bool,
    /// No client sends anything until this time.
    idle_until: Option<Instant>,
    report: Report,
}

pub struct Service {
    pub table: FaultyTable,
    pub objects: FaultyObjects,
    key_encryption: Arc<dyn KeyEncryption>,
    random: SeededRandom,
    began: Instant,
    state: Mutex<State>,
}

impl Service {
    pub fn new(table: FaultyTable, random: SeededRandom) -> Result<Self> {
        let objects = FaultyObjects::new(table.clone());
        let key_encryption = Arc::new(FileKeyEncryption::in_memory()?);
        Ok(Self { table, objects, key_encryption, random, began: Instant::now(), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a phase with faults, or starts one in which `kills_per_mille` of a thousand requests kill their instance.
    pub fn set_kills(&self, kills_per_mille: u64) {
        let mut state = self.state();
        state.kills_per_mille = kills_per_mille;
        state.calm_since = (kills_per_mille == 0).then(Instant::now);
    }

    /// Makes all clients idle for this long, and waits until they resume.
    pub async fn idle(&self, time: Duration) {
        let until = Instant::now() + time;
        self.state().idle_until = Some(until);
        sleep_until(until).await;
    }

    pub async fn wait_while_idle(&self) {
        let until = self.state().idle_until;
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    pub fn end(&self) {
        self.state().is_over = true;
    }

    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    pub fn add_violation(&self, violation: String) {
        let at = self.began.elapsed().as_millis();
        self.state().report.violations.push(format!("at {at} ms: {violation}"));
    }

    /// Counts a hostile request, if it was accepted.
    pub fn count_attack(&self, response: &ApiResponse) {
        self.state().report.accepted_attacks += u64::from(response.status < 300);
    }

    pub fn report(&self) -> Report {
        let mut report = std::mem::take(&mut self.state().report);
        (report.weaknesses, report.snapshots) = (self.table.shown(), self.objects.reads());
        report
    }

    /// Returns the store of another instance, with the true time.
    pub fn store(&self) -> Store {
        self.store_with_clock(0)
    }

    fn store_with_clock(&self, offset: i64) -> Store {
        let began = self.began;
        let clock = move || {
            let elapsed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(START + elapsed + offset)
        };
        let client = Client::from_conf(self.table.config().build());
        let store = Store::new(client, TABLE, Arc::new(clock)).with_snapshots(self.objects.store());
        store.with_random(self.random.fork().into_store_random())
    }

    fn random_clock_offset(&self) -> i64 {
        self.random.below(2 * MAX_CLOCK_OFFSET_MILLIS + 1) as i64 - MAX_CLOCK_OFFSET_MILLIS as i64
    }

    pub fn store_with_random_clock(&self) -> Store {
        self.store_with_clock(self.random_clock_offset())
    }

    pub fn is_calm(&self) -> bool {
        self.was_calm(Instant::now())
    }

    fn was_calm(&self, at: Instant) -> bool {
        self.state().calm_since.is_some_and(|since| at >= since + RECOVERY)
    }

    /// Sends a request to a free or a new instance. `None` if no response arrives.
    pub async fn send(&self, request: &ApiRequest) -> Option<ApiResponse> {
        let (number, router, clock_offset) = self.reserve();
        let sent = Instant::now();
        let kills = self.state().kills_per_mille;
        let life = if self.random.chance(kills) { self.random.below(400) } else { u64::MAX };
        let deadline = START + clock_offset + i64::try_from(self.began.elapsed().as_millis()).unwrap_or_default();
        let answered = timeout(Duration::from_millis(life.min(60_000)), exchange(router, request, deadline)).await;
        let response = answered.ok();
        self.release(number, response.is_none());
        self.check_response(request, response.as_ref(), sent, life);
        response
    }

    /// Sends a request until its outcome is certain.
    pub async fn settle(&self, request: &ApiRequest) -> ApiResponse {
        let mut unavailable = None;
        for attempt in 0..300 {
            let response = self.send(request).await;
            let is_final = |response: &ApiResponse| {
                !matches!(response.status, 429 | 500..) && response.body["code"] != "REQUEST_IN_PROGRESS"
            };
            let pause = match response {
                Some(response) if is_final(&response) => return response,
                Some(response) => {
                    let pause = response.retry_after.unwrap_or(1);
                    unavailable = Some(response);
                    pause * 1_000
                }
                None => 0,
            };
            sleep(Duration::from_millis(pause + self.random.below(100 << attempt.min(4)))).await;
        }
        self.add_violation(format!("{} {} never got a final response", request.method, request.path));
        unavailable.unwrap_or(ApiResponse { status: 503, ..ApiResponse::default() })
    }

    fn reserve(&self) -> (u64, Router, i64) {
        let now = Instant::now();
        let free = |instance: &ServiceInstance| !instance.is_busy && instance.frozen_until <= now;
        let mut state = self.state();
        let candidates: Vec<usize> = (0..state.instances.len()).filter(|place| free(&state.instances[*place])).collect();
        let place = match candidates.get(self.random.below(candidates.len() as u64) as usize) {
            Some(place) => *place,
            None => {
                if state.instances.len() >= MAX_INSTANCES {
                    state.instances.remove(0);
                }
                state.started += 1;
                let clock_offset = self.random_clock_offset();
                let app = App::new(self.store_with_clock(clock_offset));
                let router = server::router(app.with_key_encryption(Some(Arc::clone(&self.key_encryption))));
                let number = state.started;
                state.instances.push(ServiceInstance { number, router, clock_offset, is_busy: false, frozen_until: now });
                state.instances.len() - 1
            }
        };
        let instance = &mut state.instances[place];
        instance.is_busy = true;
        (instance.number, instance.router.clone(), instance.clock_offset)
    }

    /// Makes an instance free again, or drops it if it was killed.
    fn release(&self, number: u64, is_killed: bool) {
        let frozen = self.random.chance(FREEZES_PER_MILLE);
        let minutes = Duration::from_secs(if frozen { 60 + self.random.below(600) } else { 0 });
        let mut state = self.state();
        if is_killed {
            state.instances.retain(|instance| instance.number != number);
        } else if let Some(instance) = state.instances.iter_mut().find(|instance| instance.number == number) {
            instance.is_busy = false;
            instance.frozen_until = Instant::now() + minutes;
        }
    }

    /// Checks the conditions that every response must meet.
    fn check_response(&self, request: &ApiRequest, response: Option<&ApiResponse>, sent: Instant, life: u64) {
        let mut state = self.state();
        state.report.requests += 1;
        *state.report.responses.entry(response.map_or(0, |response| response.status)).or_default() += 1;
        drop(state);
        let was_calm = self.was_calm(sent);
        let what = format!("{} {}", request.method, request.path);
        let Some(response) = response else {
            if life > 60_000 {
                self.add_violation(format!("{what} got no response"));
            }
            return;
        };
        if sent.elapsed() > FUNCTION_TIMEOUT {
            self.add_violation(format!("{what} took {:?}", sent.elapsed()));
        }
        // Reads of a history wait for its index: docs/api.md, "History".
        let reads_history =
            ["/history", "as_of=", "/receipt", "/report", "/erase"].iter().any(|part| request.path.contains(part));
        let is_late_history = reads_history && self.table.weaknesses().history_lag_millis > 60_000;
        let is_unexpected = match response.status {
            401 => !request.may_be_unauthorized,
            500 => true,
            503 => was_calm && !is_late_history,
            _ => false,
        };
        if is_unexpected {
            self.add_violation(format!("{what} returned {}: {}", response.status, response.body));
        }
    }
}

async fn exchange(router: Router, request: &ApiRequest, now: i64) -> ApiResponse {
    let mut http = Request::builder().method(request.method).uri(format!("{BASE}{}", request.path));
    if !request.api_key.is_empty() {
        http = http.header("authorization", format!("Bearer {}", request.api_key));
    }
    if !request.headers.iter().any(|(name, _)| *name == "content-type") {
        http = http.header("content-type", "application/json");
    }
    for (name, value) in &request.headers {
        http = http.header(*name, value);
    }
    let body = match &request.body {
        Value::Null => Body::empty(),
        Value::String(text) => Body::from(text.clone()),
        body => Body::from(body.to_string()),
    };
    let mut context = Context::default();
    context.deadline = u64::try_from(now).unwrap_or_default() + FUNCTION_TIMEOUT.as_millis() as u64;
    let failed = |status| ApiResponse { status, ..ApiResponse::default() };
    let Ok(http) = http.body(body) else { return failed(500) };
    let Ok(response) = router.oneshot(http.with_lambda_context(context)).await;
    let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let (etag, retry_after) = (header("etag"), header("retry-after").and_then(|seconds| seconds.parse().ok()));
    let headers = response.headers().values().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
    ApiResponse { status, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()), etag, retry_after, headers }
}

/// Maximum delay between the start of a write and a list that should see it half done, in milliseconds.
const LIST_DELAY_MILLIS: u64 = 60;

/// In two cases out of three, lists assets during the action.
async fn beside_a_list(service: &Service, tenant: &Tenant, random: &SeededRandom, action: impl Future<Output = ()>) {
    let list = async {
        if random.below(3) > 0 {
            sleep(Duration::from_millis(random.below(LIST_DELAY_MILLIS))).await;
            check::list_assets(service, tenant, random).await;
        }
    };
    futures_util::join!(action, list);
}

pub async fn run(service: &Service, tenant: &Tenant, random: SeededRandom, number: usize) {
    while !service.is_over() {
        service.wait_while_idle().await;
        match random.below(27) {
            0..5 => beside_a_list(service, tenant, &random, records::create_asset(service, tenant, &random)).await,
            5..7 => beside_a_list(service, tenant, &random, records::change_asset(service, tenant, &random)).await,
            7 => records::change_asset_at_once(service, tenant, &random).await,
            8 | 9 => beside_a_list(service, tenant, &random, records::delete_asset(service, tenant, &random)).await,
            10 => records::read_asset(service, tenant, &random).await,
            11..15 => processes::start(service, tenant, &random).await,
            15..18 => processes::advance_or_cancel(service, tenant, &random).await,
            18 => records::write_user(service, tenant, &random).await,
            19 => check::list_users(service, tenant).await,
            20 => check::list_instances(service, tenant, &random).await,
            21..24 => records::verify_history(service, tenant, &random).await,
            _ => check::list_assets(service, tenant, &random).await,
        }
        // Sometimes pauses for longer, so that instances can be idle.
        let longest = if random.below(10) == 0 { 12_000 } else { 2_000 };
        sleep(Duration::from_millis(random.below(longest) + number as u64)).await;
    }
}
