//! A tenant, and the model that its clients share: the possible states of its records, as the clients know them.

use super::service::{ApiRequest, ApiResponse, Service};
use crate::faulty_table::SeededRandom;
use anyhow::{Result, ensure};
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::domain::values::id::TenantId;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// A text in the records of every tenant that has a model.
pub const MARKER: &str = "marker of a simulated tenant";

/// An asset, or a process instance with the name of its asset, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetState {
    pub name: String,
    pub status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserState {
    pub name: String,
    pub is_active: bool,
}

/// A record, with its ID once the ID is known.
#[derive(Debug, Clone)]
pub struct Record<S> {
    pub id: Option<String>,
    pub register: Register<S>,
    /// For an asset: the process in progress on it.
    pub running: Option<RunningProcess>,
}

impl<S> Default for Record<S> {
    fn default() -> Self {
        Self { id: None, register: Register::default(), running: None }
    }
}

#[derive(Debug, Clone)]
pub struct RunningProcess {
    /// Path of the instance or the movement.
    pub path: String,
    pub assets: Vec<usize>,
    pub instances: Vec<usize>,
    pub step: u64,
}

#[derive(Debug, Default)]
pub struct Model {
    pub assets: Vec<Record<AssetState>>,
    pub users: Vec<Record<UserState>>,
    pub instances: Vec<Record<AssetState>>,
    /// Last number used in a name. Each name is used once.
    pub names: u64,
    pub events: Vec<String>,
}

pub struct Tenant {
    pub id: TenantId,
    pub api_key: String,
    pub name: String,
    /// A process of three steps, from `in_stock` to `in_use`.
    pub process_id: String,
    model: Mutex<Model>,
}

impl Tenant {
    /// Creates a tenant, and a process of this name for its traffic.
    pub async fn create(service: &Service, number: usize, process: &str) -> Result<Self> {
        let created = service.store().create_tenant(format!("Tenant {number}").parse()?, None, 100_000).await?;
        let mut tenant = Self {
            id: created.tenant_id,
            api_key: created.api_key.expose(),
            name: format!("tenant {number}"),
            process_id: String::new(),
            model: Mutex::default(),
        };
        let steps = json!([
            {"type": "text", "key": "a", "label": "A", "required": true},
            {"type": "checklist", "key": "b", "label": "B", "items": ["x", "y"]},
            {"type": "complete", "key": "c", "label": "C"}
        ]);
        let process = json!({"name": process, "trigger_status": "in_stock", "target_status": "in_use", "steps": steps});
        let response = service.settle(&tenant.request("POST", "/processes", process)).await;
        ensure!(response.status == 201, "can't create a process: {}", response.body);
        tenant.process_id = id_in(&response);
        Ok(tenant)
    }

    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn request(&self, method: &'static str, path: impl Into<String>, body: Value) -> ApiRequest {
        ApiRequest { method, path: path.into(), body, api_key: self.api_key.clone(), ..ApiRequest::default() }
    }

    /// Returns a POST with a random idempotency key.
    pub fn keyed_post(&self, path: impl Into<String>, body: Value, random: &SeededRandom) -> ApiRequest {
        let key = ("idempotency-key", format!("{:x}", random.next()));
        ApiRequest { headers: vec![key], ..self.request("POST", path, body) }
    }

    /// Sends a request, usually once, and in one case out of `rarity` together with a rival that has a different idempotency key.
    pub async fn post_with_rivals(
        &self,
        service: &Service,
        path: &str,
        body: &Value,
        (random, rarity): (&SeededRandom, u64),
    ) -> Vec<ApiResponse> {
        let rivals = if random.below(rarity) == 0 { 2 } else { 1 };
        let requests: Vec<_> = (0..rivals).map(|_| self.keyed_post(path, body.clone(), random)).collect();
        join_all(requests.iter().map(|request| service.settle(request))).await
    }
}

pub fn id_in(response: &ApiResponse) -> String {
    response.body["data"]["id"].as_str().unwrap_or_default().to_owned()
}

impl Model {
    pub fn random_id(&self, random: &SeededRandom) -> Option<String> {
        let ids =
            self.assets.iter().filter_map(|asset| asset.id.as_ref()).chain(self.users.iter().filter_map(|user| user.id.as_ref()));
        let ids: Vec<&String> = ids.collect();
        ids.get(random.below(ids.len() as u64) as usize).map(|id| (*id).clone())
    }

    pub fn next_number(&mut self) -> u64 {
        self.names += 1;
        self.names
    }
}

/// A write of a record, which can take effect at any time after it was noted.
#[derive(Debug, Clone)]
struct Write<S> {
    /// The write must have taken effect by this time.
    ended: Option<Instant>,
    /// `None` if the record is deleted.
    state: Option<S>,
}

/// The states of one record. Its writes don't overlap, because a client reserves the record for each.
#[derive(Debug, Clone)]
pub struct Register<S> {
    writes: Vec<Write<S>>,
    pub is_reserved: bool,
    pub changes: u64,
}

impl<S> Default for Register<S> {
    fn default() -> Self {
        Self { writes: Vec::new(), is_reserved: false, changes: 0 }
    }
}

impl<S: Clone> Register<S> {
    pub fn begin(&mut self, state: Option<S>) {
        self.writes.push(Write { ended: None, state });
    }

    pub fn end(&mut self) {
        self.changes += 1;
        if let Some(write) = self.writes.last_mut() {
            write.ended = Some(Instant::now());
        }
    }

    pub fn abandon(&mut self) {
        self.writes.pop();
    }

    pub fn state(&self) -> Option<&S> {
        self.writes.last()?.state.as_ref()
    }

    pub fn is_changing(&self) -> bool {
        self.writes.last().is_some_and(|write| write.ended.is_none())
    }

    /// Returns the possible results of a read that started at `from` and ends now.
    pub fn possible(&self, from: Instant) -> Vec<Option<S>> {
        let certain = self.writes.iter().rposition(|write| write.ended.is_some_and(|ended| ended <= from));
        let mut states: Vec<Option<S>> = Vec::new();
        if certain.is_none() {
            states.push(None);
        }
        states.extend(self.writes[certain.unwrap_or(0)..].iter().map(|write| write.state.clone()));
        states
    }
}
