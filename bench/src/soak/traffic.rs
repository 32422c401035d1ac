//! The random traffic of a soak test, and the checks of each response.

use super::fault_injection::random_below;
use super::tally::SharedTally;
use crate::service::ApiClient;
use anyhow::Result;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a client sends a request, when the responses say to try again.
const MAX_ATTEMPTS: usize = 8;

/// What the clients of one tenant share.
pub struct Tenant {
    pub name: String,
    /// One client for each instance of the service.
    pub clients: Vec<ApiClient>,
    /// The id of a process definition with three steps.
    process_id: String,
    user_id: String,
    asset_ids: Mutex<Vec<String>>,
}

impl Tenant {
    /// Creates the user and the process definition that the traffic needs.
    pub async fn new(name: String, clients: Vec<ApiClient>) -> Result<Self> {
        let user = json!({"email": "ada@example.com", "display_name": "Ada"});
        let steps = json!([
            {"type": "user_picker", "key": "who", "label": "Who", "required": true},
            {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
            {"type": "complete", "key": "done", "label": "Done"}
        ]);
        let process = json!({"name": "Soak", "trigger_status": "in_stock", "target_status": "in_stock", "steps": steps});
        let create = async |path: &str, body: Value| -> Result<String> {
            let (status, response) = clients[0].send("POST", path, &body.to_string(), None).await?;
            anyhow::ensure!(status.is_success(), "{path}: {response}");
            Ok(response["data"]["id"].as_str().unwrap_or_default().to_owned())
        };
        let (user_id, process_id) = (create("/users", user).await?, create("/processes", process).await?);
        Ok(Self { name, clients, process_id, user_id, asset_ids: Mutex::default() })
    }

    fn asset_ids(&self) -> MutexGuard<'_, Vec<String>> {
        self.asset_ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn random_asset(&self) -> Option<String> {
        let asset_ids = self.asset_ids();
        asset_ids.get(random_below(asset_ids.len() as u64) as usize).cloned()
    }

    /// Does something random.
    pub async fn act(&self, tally: &SharedTally) -> Result<()> {
        match (random_below(20), self.random_asset()) {
            (0..5, _) | (_, None) => self.create_asset(tally).await?,
            (5..9, Some(asset)) => {
                let name = format!("renamed {}", random_below(1_000_000));
                let body = json!({"name": name, "notes": "x".repeat(random_below(300) as usize)});
                self.send(tally, "PATCH", &format!("/assets/{asset}"), &body).await?;
            }
            (9..13, Some(_)) => {
                let queries = ["", "?q=renamed", "?status=in_stock&sort=-name", "?limit=100&page=2", "?kind=physical"];
                let query = queries[random_below(5) as usize];
                self.send(tally, "GET", &format!("/assets{query}"), &Value::Null).await?;
            }
            (13..17, Some(asset)) => self.run_process(tally, &asset).await?,
            (17, Some(asset)) => {
                let (status, _) = self.send(tally, "DELETE", &format!("/assets/{asset}"), &Value::Null).await?;
                if status.is_success() || status == StatusCode::NOT_FOUND {
                    self.asset_ids().retain(|id| *id != asset);
                }
            }
            (18, Some(asset)) => {
                let path = format!("/assets/{asset}/history?verify=true&limit=5");
                let (status, history) = self.send(tally, "GET", &path, &Value::Null).await?;
                if status.is_success() && history["verification"]["valid"] != true {
                    tally.add_violation(format!("{path}: {}", history["verification"]));
                }
            }
            (_, Some(_)) => {
                let email = format!("user{}@example.com", random_below(10_000));
                self.send(tally, "POST", "/users", &json!({"email": email, "display_name": "U"})).await?;
            }
        }
        Ok(())
    }

    /// Creates an asset; sometimes sends the request twice at once, with the same idempotency key.
    async fn create_asset(&self, tally: &SharedTally) -> Result<()> {
        let (body, key) = (json!({"name": format!("asset {}", random_below(1_000_000))}), random_key());
        let copies = if random_below(4) == 0 { 2 } else { 1 };
        let requests = (0..copies).map(|_| self.send_with_key(tally, &key, "POST", "/assets", &body));
        let responses = futures_util::future::try_join_all(requests).await?;
        let id = |(_, response): &(StatusCode, Value)| response["data"]["id"].as_str().map(str::to_owned);
        let ids: Vec<String> = responses.iter().filter_map(id).collect();
        if ids.windows(2).any(|pair| pair[0] != pair[1]) {
            tally.add_violation(format!("one idempotency key created two assets: {ids:?}"));
        }
        self.asset_ids().extend(ids.into_iter().take(1));
        Ok(())
    }

    /// Starts a process on an asset, submits some or all steps, and cancels the instance.
    async fn run_process(&self, tally: &SharedTally, asset: &str) -> Result<()> {
        let start = format!("/processes/{}/start", self.process_id);
        let (status, instance) = self.send(tally, "POST", &start, &json!({"asset_id": asset})).await?;
        let Some(id) = instance["data"]["id"].as_str().filter(|_| status.is_success()) else { return Ok(()) };
        let step_data = [json!({"who": self.user_id}), json!({"list": ["a"]}), json!({})];
        for (step, data) in step_data.iter().enumerate().take(1 + random_below(4) as usize) {
            let body = json!({"step_data": data, "current_step": step});
            self.send(tally, "POST", &format!("/processes/instances/{id}/advance"), &body).await?;
        }
        let cancel = format!("/processes/instances/{id}/cancel");
        let (status, response) = self.send(tally, "POST", &cancel, &json!({"reason": "soak"})).await?;
        let is_expected = status.is_success()
            || response["code"] == "INSTANCE_CLOSED"
            || status == StatusCode::SERVICE_UNAVAILABLE
            || status == StatusCode::TOO_MANY_REQUESTS;
        if !is_expected {
            tally.add_violation(format!("{cancel} returned {status}: {response}"));
        }
        Ok(())
    }

    async fn send(&self, tally: &SharedTally, method: &str, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        self.send_with_key(tally, &random_key(), method, path, body).await
    }

    /// Sends a request, each attempt through a random instance of the service, and returns the last response.
    async fn send_with_key(
        &self,
        tally: &SharedTally,
        idempotency_key: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value)> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut last = (StatusCode::SERVICE_UNAVAILABLE, Value::Null);
        for _ in 0..MAX_ATTEMPTS {
            let client = &self.clients[random_below(self.clients.len() as u64) as usize];
            let (status, response) = client.send(method, path, &text, Some(idempotency_key)).await?;
            tally.lock().count(&response);
            if status == StatusCode::INTERNAL_SERVER_ERROR || status == StatusCode::UNAUTHORIZED {
                tally.add_violation(format!("{method} {path} returned {status}: {response}"));
            }
            let is_final = status != StatusCode::SERVICE_UNAVAILABLE && response["code"] != "REQUEST_IN_PROGRESS";
            last = (status, response);
            if is_final {
                break;
            }
        }
        Ok(last)
    }
}

fn random_key() -> String {
    format!("{:x}", random_below(u64::MAX))
}
