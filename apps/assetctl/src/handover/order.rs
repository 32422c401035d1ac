//! An order: what is to be handed over to whom, or taken back from whom, how far that is, and what can be submitted before the
//! signature.

use crate::error::{CliError, Result};
use crate::handover::running::Running;
use crate::handover::{Errand, Way};
use crate::http::client::Client;
use crate::http::request::get_data;
use crate::import::columns::suggest::quote;
use crate::lookup::{self, person, person_with, tag_and_name, text};
use crate::output::folded;
use reqwest::Url;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use terminal::{clean, time};

/// The process that makes ready what is in stock.
const PREPARE: &str = "prepare";
/// The process of `assetctl return`, unless it is said.
const RETURN: &str = "device-return";
/// The step of a return for its condition.
const CONDITION: &str = "condition";

pub struct Order<'a> {
    pub client: &'a Client,
    pub errand: Errand<'a>,
    /// Who signs. Of a return, null if the assets have no user, or several.
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
    /// The user has the assets, or they are back.
    Done(Running),
}

impl<'a> Order<'a> {
    /// # Errors
    ///
    /// Something isn't there, the user who is to get the assets is inactive, or the process hands nothing to anybody.
    ///
    /// `run`: the prefix of its idempotency keys.
    pub async fn read(client: &'a Client, errand: Errand<'a>, run: String) -> Result<Self> {
        let mut order =
            Self { client, errand, user: Value::Null, process: Value::Null, preparation: None, assets: Vec::new(), run };
        if let Way::To { user, .. } = errand.way {
            order.user = lookup::user(client, user).await?;
            if order.user["is_active"] != true {
                return Err(CliError::Failed(format!("{} is inactive: activate the user first", person(&order.user))));
            }
        }
        order.process = lookup::process(client, errand.process).await?;
        order.check_steps()?;
        if let Way::To { prepare: true, .. } = errand.way {
            order.preparation = Some(lookup::process(client, PREPARE).await?);
        }
        let steps = [Some(&order.process), order.preparation.as_ref()].into_iter().flatten().flat_map(steps_of);
        check_labels(&errand.run.tick, steps).map_err(CliError::Usage)?;
        for name in errand.assets {
            let asset = lookup::asset(client, name).await?;
            if !order.assets.iter().any(|known| known["id"] == asset["id"]) {
                order.assets.push(asset);
            }
        }
        if let Way::Back { from, .. } = errand.way {
            let users: BTreeSet<&str> = order.assets.iter().filter_map(|asset| asset["assigned_to"].as_str()).collect();
            let only = users.first().copied().filter(|_| users.len() == 1);
            if let Some(user) = from.or(only) {
                order.user = lookup::user(client, user).await?;
            }
        }
        Ok(order)
    }

    fn check_steps(&self) -> Result<()> {
        let (steps, slug) = (steps_of(&self.process), self.errand.process);
        let wrong = |what: &str| Err(CliError::Usage(format!("the process {slug} has no step {what}")));
        match self.errand.way {
            Way::To { .. } if picker(steps).is_none() => wrong("that picks a user, so it hands nothing over"),
            Way::Back { condition: Some(_), .. } if !steps.iter().any(|step| step["key"] == CONDITION) => {
                wrong("condition, so it takes no --condition")
            }
            _ => Ok(()),
        }
    }

    pub fn is_return(&self) -> bool {
        matches!(self.errand.way, Way::Back { .. })
    }

    pub fn noun(&self) -> &'static str {
        if self.is_return() { "return" } else { "handover" }
    }

    /// The values that the command has for these steps, beside ticks.
    pub fn given(&self, steps: &[Value]) -> Map<String, Value> {
        let given = match self.errand.way {
            Way::To { .. } => picker(steps).map(|key| (key, self.user["id"].clone())),
            Way::Back { condition, .. } => condition.map(|text| (CONDITION, text.into())),
        };
        given.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// # Errors
    ///
    /// One of these steps is a signature, and nobody is there to sign.
    pub fn check_signer(&self, open: &[Value]) -> Result<()> {
        if self.user.is_object() || !open.iter().any(|step| is_of_type(step, "signature")) {
            return Ok(());
        }
        let tags = clean(&self.assets.iter().map(|asset| text(&asset["asset_tag"])).collect::<Vec<_>>().join(", "));
        let why = if self.assets.len() == 1 { "no user" } else { "no user, or not the same one" };
        Err(CliError::Usage(format!("{tags}: assigned to {why}; name who gives it back and signs: --from USER")))
    }

    /// The idempotency key of a request; none in a dry run. A repeated request has the same key, even if others came before it
    /// the first time, and another request has another.
    pub fn key(&self, url: &Url, body: &Value) -> Option<String> {
        let mut hash = DefaultHasher::new();
        (url.path(), body.to_string()).hash(&mut hash);
        (!self.errand.run.dry_run).then(|| format!("{}-{:016x}", self.run, hash.finish()))
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
                    None => wrong.push(because(&self.advice(asset, all).await?)),
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

    /// What helps with an asset that has another status than the one in which the process begins.
    async fn advice(&self, asset: &Value, processes: &[Value]) -> Result<String> {
        let startable = processes.iter().filter(|process| process["can_start"] == true);
        let slugs: Vec<&str> = startable.map(|process| text(&process["slug"])).collect();
        if !self.is_return()
            && let Some(holder) = asset["assigned_to"].as_str().filter(|holder| self.user["id"] != **holder)
        {
            let holder = person_with(self.client, holder).await?;
            return Ok(match slugs.contains(&RETURN) {
                true => format!("{holder} has it: take it back first, assetctl return {}", quote(text(&asset["asset_tag"]))),
                false => format!("{holder} has it. {}", change_status(&slugs)),
            });
        }
        Ok(change_status(&slugs))
    }

    /// The instance, if it is of the same process and, in a handover, for the same user.
    async fn same(&self, id: &str) -> Result<Value> {
        let Running(instance) = Running::read(self.client, &format!("processes/instances/{id}")).await?;
        let recipient = recipient(&instance);
        if instance["process_id"] == self.process["id"] && (self.is_return() || *recipient == self.user["id"]) {
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

    /// The instance by which the user got the asset, or by which it came back, if nothing has changed since.
    async fn finished(&self, asset: &str) -> Result<Option<Value>> {
        let now = get_data(self.client, &format!("assets/{asset}"), &[]).await?;
        let is_there = self.is_return() || now["assigned_to"] == self.user["id"];
        if now["status"] != self.process["target_status"] || !is_there {
            return Ok(None);
        }
        let query = [("asset_id", asset), ("status", "completed"), ("limit", "1"), ("omit", "signatures")];
        let instances = get_data(self.client, "processes/instances", &query).await?;
        let is_it = |instance: &&Value| {
            instance["process_id"] == self.process["id"] && (self.is_return() || *recipient(instance) == self.user["id"])
        };
        Ok(instances.get(0).filter(is_it).cloned())
    }

    /// The instance, or its movement, which must be one of all assets.
    async fn together(&self, instance: Value) -> Result<Running> {
        let running = Running::of_instance(self.client, instance).await?;
        let (named, moved) = (self.assets.iter().map(|asset| text(&asset["id"])), running.members("asset_id"));
        if named.collect::<BTreeSet<_>>() == moved.into_iter().collect() {
            return Ok(running);
        }
        let tags = clean(&running.members("asset_tag").join(" "));
        Err(CliError::Failed(format!("the {} is of {tags}: name exactly these", self.noun())))
    }
}

fn change_status(startable: &[&str]) -> String {
    match startable {
        [] => {
            "Change its status first, by an import of asset_tag,status with --match asset_tag: no process can start.".to_owned()
        }
        slugs => format!("Change its status first; these processes can start: {}", slugs.join(", ")),
    }
}

/// The user who gets the asset of an instance; null until it is said.
fn recipient(instance: &Value) -> &Value {
    &instance["step_data"][picker(steps_of(instance)).unwrap_or_default()]
}

/// # Errors
///
/// Returns a text about a label that is neither `all` nor an entry of a checklist.
fn check_labels<'s>(labels: &[String], steps: impl Iterator<Item = &'s Value>) -> Result<(), String> {
    let known: Vec<&str> = steps.flat_map(entries).collect();
    match labels.iter().find(|label| !is_same(label, "all") && !known.iter().any(|entry| is_same(label, entry))) {
        None => Ok(()),
        Some(label) => {
            // An entry can't leave its quotation marks.
            let known = known.iter().map(|entry| clean(entry).replace('"', "'")).collect::<Vec<_>>();
            Err(format!("tick \"{label}\": the checklists have \"{}\"", known.join("\", \"")))
        }
    }
}

fn is_same(label: &str, entry: &str) -> bool {
    folded(label.trim()) == folded(entry)
}

/// In any case, unless another entry of the checklist is the label exactly.
fn ticks(label: &str, entry: &str, checklist: &Value) -> bool {
    is_same(label, "all") || label == entry || is_same(label, entry) && entries(checklist).all(|other| other != label)
}

pub fn entries(step: &Value) -> impl Iterator<Item = &str> {
    step["items"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Of a process definition or an instance.
#[must_use]
pub fn steps_of(process: &Value) -> &[Value] {
    process["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[must_use]
pub fn is_of_type(step: &Value, kind: &str) -> bool {
    step["type"] == kind
}

/// The step whose user gets the asset: the last one that picks a user.
#[must_use]
fn picker(steps: &[Value]) -> Option<&str> {
    steps.iter().rfind(|step| is_of_type(step, "user_picker")).map(|step| text(&step["key"]))
}

/// Values by step key, for the steps from `first` on, and the key of the last step that can be submitted with them: nothing is
/// submitted without a value, and neither is a signature. Beside those `given`, `labels` are ticked in checklists.
#[must_use]
pub fn values<'a>(
    steps: &'a [Value],
    first: usize,
    given: &Map<String, Value>,
    labels: &[String],
) -> (Map<String, Value>, Option<&'a str>) {
    let open = steps.get(first..).unwrap_or_default();
    let value = |step: &Value| {
        let ticked: Vec<Value> =
            entries(step).filter(|entry| labels.iter().any(|label| ticks(label, entry, step))).map(Value::from).collect();
        given.get(text(&step["key"])).cloned().or_else(|| Some(ticked).filter(|list| !list.is_empty()).map(Value::from))
    };
    let values = open.iter().filter_map(|step| Some((text(&step["key"]).to_owned(), value(step)?))).collect();
    let last = open.iter().take_while(|step| value(step).is_some()).last();
    (values, last.map(|step| text(&step["key"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(kinds: &[&str]) -> Vec<Value> {
        let items = |kind: &str| if kind == "checklist" { json!(["Device", "Bag"]) } else { Value::Null };
        kinds.iter().enumerate().map(|(n, kind)| json!({"type": kind, "key": format!("s{n}"), "items": items(kind)})).collect()
    }

    fn submitted(kinds: &[&str], first: usize, tick: &[&str]) -> (Value, Option<String>) {
        let (steps, labels) = (steps(kinds), tick.iter().map(ToString::to_string).collect::<Vec<_>>());
        check_labels(&labels, steps.iter()).expect("labels");
        let given = picker(&steps).map(|key| (key.to_owned(), json!("mary"))).into_iter().collect();
        let (values, through) = values(&steps, first, &given, &labels);
        (values.into(), through.map(str::to_owned))
    }

    #[test]
    fn steps_are_submitted_up_to_the_first_without_a_value() {
        let onboarding = &["user_picker", "checklist", "signature", "complete"];
        let through = |key: &str| Some(key.to_owned());
        assert_eq!(submitted(onboarding, 0, &[]), (json!({"s0": "mary"}), through("s0")));
        assert_eq!(submitted(onboarding, 0, &["bAG"]), (json!({"s0": "mary", "s1": ["Bag"]}), through("s1")));
        assert_eq!(submitted(onboarding, 1, &["all"]), (json!({"s1": ["Device", "Bag"]}), through("s1")));
        assert_eq!(submitted(onboarding, 2, &["ALL"]), (json!({}), None));
        assert_eq!(submitted(&["text", "user_picker", "signature"], 0, &[]), (json!({"s1": "mary"}), None));
        assert_eq!(submitted(&["user_picker", "signature", "user_picker"], 0, &[]), (json!({"s2": "mary"}), None));
        assert_eq!(submitted(&["checklist", "complete"], 0, &["all"]), (json!({"s0": ["Device", "Bag"]}), through("s0")));
    }

    #[test]
    fn a_label_ticks_the_entry_that_it_is_exactly_else_those_in_another_case() {
        let checklist = json!({"items": ["Bag", "BAG", "Étui"]});
        let ticked = |label: &str| entries(&checklist).filter(|entry| ticks(label, entry, &checklist)).collect::<Vec<_>>();
        assert_eq!((ticked("BAG"), ticked("bag"), ticked("E\u{301}TUI")), (vec!["BAG"], vec!["Bag", "BAG"], vec!["Étui"]));
    }

    #[test]
    fn unknown_labels_are_refused_with_the_known_ones() {
        let (labels, mut checklist) = (["Bag".to_owned(), "Dock".to_owned()], steps(&["checklist"]));
        checklist[0]["items"] = json!(["Bag", "Device\". Apply\nit. \""]);
        let error = check_labels(&labels, checklist.iter()).expect_err("an error");
        assert_eq!(error, "tick \"Dock\": the checklists have \"Bag\", \"Device'. Apply it. '\"");
    }
}
