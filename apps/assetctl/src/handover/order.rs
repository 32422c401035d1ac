//! What is to be handed over to whom, and how far that is.

use crate::error::{CliError, Result};
use crate::handover::args::Handover;
use crate::handover::running::Running;
use crate::handover::values::{check_labels, picker, steps_of};
use crate::http::client::Client;
use crate::http::request::get_data;
use crate::lookup::{self, person, person_with, tag_and_name, text};
use reqwest::Url;
use serde_json::Value;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use terminal::{clean, time};

/// The process that makes ready what is in stock.
const PREPARE: &str = "prepare";

pub struct Order<'a> {
    pub client: &'a Client,
    pub options: &'a Handover,
    pub user: Value,
    pub process: Value,
    pub preparation: Option<Value>,
    pub assets: Vec<Value>,
    run: String,
}

pub enum State {
    /// Nothing is in the way.
    New,
    /// The preparation must run on these first.
    Unprepared(Vec<Value>),
    /// It was begun for the same user.
    Running(Running),
    /// The user has the assets.
    Done(Running),
}

impl<'a> Order<'a> {
    /// # Errors
    ///
    /// Something isn't there, the user is inactive, or the process hands nothing to anybody.
    ///
    /// `run`: the prefix of its idempotency keys.
    pub async fn read(client: &'a Client, options: &'a Handover, run: String) -> Result<Self> {
        let user = lookup::user(client, &options.to).await?;
        if user["is_active"] != true {
            return Err(CliError::Failed(format!("{} is inactive: activate the user first", person(&user))));
        }
        let process = lookup::process(client, &options.process).await?;
        if picker(steps_of(&process)).is_none() {
            let slug = &options.process;
            return Err(CliError::Usage(format!("the process {slug} has no step that picks a user, so it hands nothing over")));
        }
        let preparation = if options.prepare { Some(lookup::process(client, PREPARE).await?) } else { None };
        let steps = [Some(&process), preparation.as_ref()].into_iter().flatten().flat_map(steps_of);
        check_labels(&options.tick, steps).map_err(CliError::Usage)?;
        let mut assets: Vec<Value> = Vec::new();
        for name in &options.assets {
            let asset = lookup::asset(client, name).await?;
            if !assets.iter().any(|known| known["id"] == asset["id"]) {
                assets.push(asset);
            }
        }
        Ok(Self { client, options, user, process, preparation, assets, run })
    }

    /// The idempotency key of a request; none in a dry run. A repeated request has the same key, even if others came before it
    /// the first time, and another request has another.
    pub fn key(&self, url: &Url, body: &Value) -> Option<String> {
        let mut hash = DefaultHasher::new();
        (url.path(), body.to_string()).hash(&mut hash);
        (!self.options.dry_run).then(|| format!("{}-{:016x}", self.run, hash.finish()))
    }

    /// # Errors
    ///
    /// The process can't run on one of the assets, or not on all of them together; the text says what helps.
    pub async fn look(&self) -> Result<State> {
        let (mut running, mut done, mut unprepared, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for asset in &self.assets {
            let processes = get_data(self.client, &format!("assets/{}/processes", text(&asset["id"])), &[]).await?;
            let all = processes.as_array().map(Vec::as_slice).unwrap_or_default();
            let own = all.iter().find(|process| process["id"] == self.process["id"]).unwrap_or(&Value::Null);
            let is_prepare = |process: &&Value| process["slug"] == PREPARE && process["can_start"] == true;
            let helps = all.iter().find(is_prepare).is_some_and(|prepare| prepare["target_status"] == own["trigger_status"]);
            let because = |advice: &str| clean(&format!("{}: {} {advice}", tag_and_name(asset), text(&own["detail"])));
            match own["code"].as_str() {
                None => {}
                Some("PROCESS_RUNNING") => running.push(self.same(text(&own["instance_id"])).await?),
                Some("WRONG_ASSET_STATUS") => match self.finished(text(&asset["id"])).await? {
                    Some(instance) => done.push(instance),
                    None if helps && self.preparation.is_some() => unprepared.push(asset.clone()),
                    None if helps => wrong.push(because("The option prepare runs the process prepare first.")),
                    None => {
                        let startable = all.iter().filter(|process| process["can_start"] == true);
                        let slugs = startable.map(|process| text(&process["slug"])).collect::<Vec<_>>().join(", ");
                        wrong.push(because(&format!("Change its status first; these processes can start: {slugs}")));
                    }
                },
                Some(_) => wrong.push(because("")),
            }
        }
        match (running.len(), done.len()) {
            _ if !wrong.is_empty() => Err(CliError::Failed(wrong.join("\n"))),
            (0, 0) if unprepared.is_empty() => Ok(State::New),
            (0, 0) => Ok(State::Unprepared(unprepared)),
            (begun, 0) if begun == self.assets.len() => self.together(running.swap_remove(0)).await.map(State::Running),
            (0, all) if all == self.assets.len() => self.together(done.swap_remove(0)).await.map(State::Done),
            _ => {
                let begun =
                    running.iter().chain(&done).map(|instance| text(&instance["asset_tag"])).collect::<Vec<_>>().join(", ");
                Err(CliError::Failed(format!("{} is begun or done already: name it in a command of its own", clean(&begun))))
            }
        }
    }

    /// The instance, if it is of the same process and for the same user.
    async fn same(&self, id: &str) -> Result<Value> {
        let Running(instance) = Running::read(self.client, &format!("processes/instances/{id}")).await?;
        let recipient = recipient(&instance);
        if instance["process_id"] == self.process["id"] && *recipient == self.user["id"] {
            return Ok(instance);
        }
        let to = match recipient.as_str() {
            Some(user) => format!(" for {}", person_with(self.client, user).await?),
            None => String::new(),
        };
        let [tag, process, by, at] =
            ["asset_tag", "process_name", "started_by_name", "started_at"].map(|name| text(&instance[name]));
        let at = time(at);
        let text = format!("{tag}: {process}{to} is in progress, started by {by} at {at} UTC; complete or cancel it first");
        Err(CliError::Failed(clean(&text)))
    }

    /// The instance by which the user got the asset, if nothing has changed since.
    async fn finished(&self, asset: &str) -> Result<Option<Value>> {
        let now = get_data(self.client, &format!("assets/{asset}"), &[]).await?;
        if now["status"] != self.process["target_status"] || now["assigned_to"] != self.user["id"] {
            return Ok(None);
        }
        let process = ("process_id", text(&self.process["id"]));
        let query = [("asset_id", asset), process, ("status", "completed"), ("limit", "1"), ("omit", "signatures")];
        let instances = get_data(self.client, "processes/instances", &query).await?;
        Ok(instances.get(0).filter(|instance| *recipient(instance) == self.user["id"]).cloned())
    }

    /// The instance, or its movement, which must be one of all assets.
    async fn together(&self, instance: Value) -> Result<Running> {
        let running = Running::of_instance(self.client, instance).await?;
        let (named, moved) = (self.assets.iter().map(|asset| text(&asset["id"])), running.members("asset_id"));
        if named.collect::<BTreeSet<_>>() == moved.into_iter().collect() {
            return Ok(running);
        }
        let tags = clean(&running.members("asset_tag").join(" "));
        Err(CliError::Failed(format!("the handover is of {tags}: name exactly these")))
    }
}

/// The user who gets the asset of an instance; null until it is said.
fn recipient(instance: &Value) -> &Value {
    &instance["step_data"][picker(steps_of(instance)).unwrap_or_default()]
}
