//! A process instance in progress, or a movement, which is treated like one, and the wait for its signature.

use crate::error::{CliError, Result};
use crate::handover::order::{entries, is_of_type, steps_of};
use crate::http::client::Client;
use crate::http::request::{get_data, get_endlessly, new_run_id, post_data, unreadable};
use crate::lookup::text;
use crate::output::duration;
use serde_json::{Map, Value, json};
use std::time::Duration;
use terminal::print_note;

pub struct Running(pub Value);

impl Running {
    pub async fn read(client: &Client, path: &str) -> Result<Self> {
        let query: &[(&str, &str)] = if path.starts_with("movements/") { &[] } else { &[("omit", "signatures")] };
        Ok(Self(get_data(client, path, query).await?))
    }

    /// The instance, or the movement that it is part of.
    pub async fn of_instance(client: &Client, instance: Value) -> Result<Self> {
        match instance["movement_id"].as_str() {
            Some(movement) => Self::read(client, &format!("movements/{movement}")).await,
            None => Ok(Self(instance)),
        }
    }

    #[must_use]
    pub fn path(&self) -> String {
        let kind = if self.0["instances"].is_array() { "movements" } else { "processes/instances" };
        format!("{kind}/{}", text(&self.0["id"]))
    }

    /// Those that advance together, or did so to the end.
    fn instances(&self) -> Vec<&Value> {
        let all = self.0["instances"].as_array().map_or_else(|| vec![&self.0], |instances| instances.iter().collect());
        let open: Vec<&Value> = all.iter().copied().filter(|instance| instance["status"] == "in_progress").collect();
        if open.is_empty() { all.into_iter().filter(|instance| instance["status"] != "cancelled").collect() } else { open }
    }

    /// This field of each instance.
    #[must_use]
    pub fn members(&self, name: &str) -> Vec<&str> {
        self.instances().iter().map(|instance| text(&instance[name])).collect()
    }

    #[must_use]
    pub fn steps(&self) -> &[Value] {
        self.instances().into_iter().next().map(steps_of).unwrap_or_default()
    }

    #[must_use]
    pub fn current_step(&self) -> usize {
        self.0["current_step"].as_u64().and_then(|step| usize::try_from(step).ok()).unwrap_or_default()
    }

    /// The steps that are still to be submitted.
    #[must_use]
    pub fn open_steps(&self) -> &[Value] {
        if self.0["status"] == "in_progress" { self.steps().get(self.current_step()..).unwrap_or_default() } else { &[] }
    }

    #[must_use]
    pub fn open_labels(&self) -> String {
        terminal::clean(&self.open_steps().iter().map(|step| text(&step["label"])).collect::<Vec<_>>().join(", "))
    }

    /// Submits the open steps up to `through`.
    pub async fn advance(
        &self,
        client: &Client,
        through: &str,
        values: Map<String, Value>,
        query: &[(&str, &str)],
    ) -> Result<Self> {
        let body = json!({"current_step": self.current_step(), "through": through, "step_data": values});
        let url = client.url(&format!("{}/advance", self.path()), query)?;
        let key = query.is_empty().then(new_run_id).transpose()?;
        Ok(Self(post_data(client, &url, &body, key.as_deref()).await?))
    }

    /// What is left takes no value: only the end or, for whoever `receives` the assets, also confirmations.
    #[must_use]
    pub fn can_finish(&self, receives: bool) -> bool {
        let takes_none = |step: &Value| is_of_type(step, "complete") || receives && is_of_type(step, "confirmation");
        !self.open_steps().is_empty() && self.open_steps().iter().all(takes_none)
    }

    /// Submits what is left, if it takes no value, and confirms if one `receives` the assets.
    pub async fn finish(self, client: &Client, receives: bool, query: &[(&str, &str)]) -> Result<Self> {
        if !self.can_finish(receives) {
            return Ok(self);
        }
        let keys: Vec<String> = self.open_steps().iter().map(|step| text(&step["key"]).to_owned()).collect();
        let confirmations = self.open_steps().iter().filter(|step| is_of_type(step, "confirmation"));
        let values: Map<String, Value> = confirmations.map(|step| (text(&step["key"]).to_owned(), true.into())).collect();
        let last = keys.last().map(String::as_str).unwrap_or_default();
        match self.advance(client, last, values.clone(), query).await {
            // Somebody else was faster.
            Err(error) if error.is_conflict() => Self::read(client, &self.path()).await,
            Err(error) if error.is_too_many_steps() && query.is_empty() => {
                let mut running = self;
                for key in &keys {
                    running = running.advance(client, key, values.clone(), query).await?;
                }
                Ok(running)
            }
            finished => finished,
        }
    }

    /// Entries of checklists that are not ticked, and other steps without a value.
    #[must_use]
    pub fn left_open(&self) -> String {
        let data =
            |step: &Value| self.instances().into_iter().next().map(|instance| instance["step_data"][text(&step["key"])].clone());
        let open = self.steps().iter().flat_map(|step| {
            let value = data(step).unwrap_or_default();
            let ticked = |entry: &str| value.as_array().is_some_and(|all| all.iter().any(|one| one == entry));
            let is_empty = value.is_null() && !is_of_type(step, "complete") && !is_of_type(step, "checklist");
            let entries = entries(step).filter(|entry| is_of_type(step, "checklist") && !ticked(entry)).map(str::to_owned);
            entries.chain(is_empty.then(|| text(&step["label"]).to_owned())).collect::<Vec<_>>()
        });
        terminal::clean(&open.collect::<Vec<_>>().join(", "))
    }
}

/// The first pause between two looks at the link. Each is longer than the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// `path` names the instance or movement, `seconds` is the longest wait.
///
/// # Errors
///
/// Nobody signs in time, or the link is revoked or has expired.
pub async fn until_signed(client: &Client, path: &str, link: &Value, seconds: u64) -> Result<()> {
    print_note("Waiting for the signature. Ctrl-C ends the wait, and the link stays valid.");
    let limit = Duration::from_secs(seconds);
    let Ok(status) = tokio::time::timeout(limit, status_of_ended(client, path, link)).await else {
        let limit = duration(limit);
        return Err(CliError::Failed(format!("not signed within {limit}; the link stays valid. To go on, repeat the command.")));
    };
    match status?.as_str() {
        "used" | "ended" => Ok(()),
        other => Err(CliError::Failed(format!("not signed: the link is {other}; for another one, repeat the command"))),
    }
}

/// Looks at the link until it is not open any more.
async fn status_of_ended(client: &Client, path: &str, link: &Value) -> Result<String> {
    let url = client.url(&format!("{path}/links/{}", text(&link["id"])), &[] as &[(&str, &str)])?;
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = pause.mul_f64(1.3).min(MAX_PAUSE);
        let body = get_endlessly(client, &url, false, "The link stays valid.").await?;
        let link: Value = serde_json::from_slice(&body).unwrap_or_default();
        match link["data"]["status"].as_str() {
            Some("open") => {}
            Some(status) => return Ok(status.to_owned()),
            None => return Err(unreadable()),
        }
    }
}
