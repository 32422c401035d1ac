//! What the clients of a soak do, and what they hold against the service.

use super::chaos::below;
use crate::service::Caller;
use anyhow::Result;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How often a client sends a request again that got no answer.
const TRIES: usize = 8;

/// What the clients of one tenant share.
pub struct Tenant {
    pub name: String,
    /// The same tenant on several instances of the service.
    pub callers: Vec<Caller>,
    /// A definition of three steps.
    pub process: String,
    pub user: String,
    assets: Mutex<Vec<String>>,
}

/// What was counted.
#[derive(Default)]
pub struct Tally {
    pub requests: u64,
    pub answers: BTreeMap<String, u64>,
    /// What should never have happened.
    pub wrong: Vec<String>,
}

pub type Shared = Arc<Mutex<Tally>>;

impl Tenant {
    /// A new one, with what its clients need.
    pub async fn new(name: String, callers: Vec<Caller>) -> Result<Self> {
        let tenant = Self { name, callers, process: String::new(), user: String::new(), assets: Mutex::default() };
        let user = json!({"email": "ada@example.com", "display_name": "Ada"});
        let steps = json!([
            {"type": "user_picker", "key": "who", "label": "Who", "required": true},
            {"type": "checklist", "key": "list", "label": "List", "items": ["a", "b"]},
            {"type": "complete", "key": "done", "label": "Done"}
        ]);
        let process = json!({"name": "Soak", "trigger_status": "in_stock", "target_status": "in_stock", "steps": steps});
        let id = async |path: &str, body: Value| -> Result<String> {
            let (status, answer) = tenant.callers[0].send("POST", path, &body.to_string(), None).await?;
            anyhow::ensure!(status.is_success(), "{path}: {answer}");
            Ok(answer["data"]["id"].as_str().unwrap_or_default().to_owned())
        };
        let (user, process) = (id("/users", user).await?, id("/processes", process).await?);
        Ok(Self { process, user, ..tenant })
    }

    fn caller(&self) -> &Caller {
        &self.callers[below(self.callers.len() as u64) as usize]
    }

    fn some_asset(&self) -> Option<String> {
        let assets = self.assets.lock().unwrap_or_else(PoisonError::into_inner);
        assets.get(below(assets.len() as u64) as usize).cloned()
    }

    /// Does one thing at random. Whatever is not answered is sent again, through any instance.
    pub async fn act(&self, tally: &Shared) -> Result<()> {
        let asset = self.some_asset();
        match (below(20), asset) {
            (0..5, _) | (_, None) => self.create(tally).await,
            (5..9, Some(asset)) => {
                let body = json!({"name": format!("renamed {}", below(1_000_000)), "notes": "x".repeat(below(300) as usize)});
                self.ask(tally, "PATCH", &format!("/assets/{asset}"), &body).await.map(|_| ())
            }
            (9..13, Some(_)) => {
                let query = ["", "?q=renamed", "?status=in_stock&sort=-name", "?limit=100&page=2", "?kind=physical"];
                self.ask(tally, "GET", &format!("/assets{}", query[below(5) as usize]), &Value::Null).await.map(|_| ())
            }
            (13..17, Some(asset)) => self.run(tally, &asset).await,
            (17, Some(asset)) => {
                let (status, _) = self.ask(tally, "DELETE", &format!("/assets/{asset}"), &Value::Null).await?;
                if status.is_success() || status == StatusCode::NOT_FOUND {
                    self.assets.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != asset);
                }
                Ok(())
            }
            (18, Some(asset)) => {
                let path = format!("/assets/{asset}/history?verify=true&limit=5");
                let (status, history) = self.ask(tally, "GET", &path, &Value::Null).await?;
                if status.is_success() && history["verification"]["valid"] != true {
                    tally
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .wrong
                        .push(format!("{path}: {}", history["verification"]));
                }
                Ok(())
            }
            (_, Some(_)) => {
                let email = format!("user{}@example.com", below(10_000));
                self.ask(tally, "POST", "/users", &json!({"email": email, "display_name": "U"})).await.map(|_| ())
            }
        }
    }

    /// Makes an asset, now and then by a double click.
    async fn create(&self, tally: &Shared) -> Result<()> {
        let (body, key) = (json!({"name": format!("asset {}", below(1_000_000))}), format!("{:x}", below(u64::MAX)));
        let once = || self.under(tally, &key, "POST", "/assets", &body);
        let (first, second) =
            if below(4) == 0 { tokio::try_join!(once(), once())? } else { (once().await?, (StatusCode::OK, Value::Null)) };
        let id = |answer: &Value| answer["data"]["id"].as_str().map(str::to_owned);
        let ids: Vec<String> = [&first.1, &second.1].into_iter().filter_map(id).collect();
        if ids.windows(2).any(|pair| pair[0] != pair[1]) {
            tally.lock().unwrap_or_else(PoisonError::into_inner).wrong.push(format!("one creation, two assets: {ids:?}"));
        }
        self.assets.lock().unwrap_or_else(PoisonError::into_inner).extend(ids.into_iter().take(1));
        Ok(())
    }

    /// Starts a process and goes on with it, to its end, its cancellation or somewhere in between.
    async fn run(&self, tally: &Shared, asset: &str) -> Result<()> {
        let start = format!("/processes/{}/start", self.process);
        let (status, run) = self.ask(tally, "POST", &start, &json!({"asset_id": asset})).await?;
        let Some(id) = run["data"]["id"].as_str().filter(|_| status.is_success()).map(str::to_owned) else { return Ok(()) };
        let answers = [json!({"who": self.user}), json!({"list": ["a"]}), json!({})];
        for (step, data) in answers.iter().enumerate().take(1 + below(4) as usize) {
            let body = json!({"step_data": data, "current_step": step});
            self.ask(tally, "POST", &format!("/processes/instances/{id}/advance"), &body).await?;
        }
        let cancel = format!("/processes/instances/{id}/cancel");
        let (status, answer) = self.ask(tally, "POST", &cancel, &json!({"reason": "soak"})).await?;
        if !status.is_success()
            && answer["code"] != "INSTANCE_CLOSED"
            && status != StatusCode::SERVICE_UNAVAILABLE
            && status != StatusCode::TOO_MANY_REQUESTS
        {
            tally.lock().unwrap_or_else(PoisonError::into_inner).wrong.push(format!("a cancel got {status}: {answer}"));
        }
        Ok(())
    }

    async fn ask(&self, tally: &Shared, method: &str, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        self.under(tally, &format!("{:x}", below(u64::MAX)), method, path, body).await
    }

    /// Sends a request under an idempotency key, and again while it is not answered.
    async fn under(&self, tally: &Shared, key: &str, method: &str, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut last = (StatusCode::SERVICE_UNAVAILABLE, Value::Null);
        for _ in 0..TRIES {
            let (status, answer) = self.caller().send(method, path, &text, Some(key)).await?;
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.requests += 1;
            let code = answer["code"].as_str().unwrap_or("success").to_owned();
            if status == StatusCode::INTERNAL_SERVER_ERROR || status == StatusCode::UNAUTHORIZED {
                tally.wrong.push(format!("{method} {path} got {status}: {answer}"));
            }
            *tally.answers.entry(code.clone()).or_default() += 1;
            last = (status, answer);
            if status != StatusCode::SERVICE_UNAVAILABLE && code != "REQUEST_IN_PROGRESS" {
                break;
            }
        }
        Ok(last)
    }
}
