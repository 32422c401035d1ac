//! `assetctl offboard`: starts the return of all of a user's assets, and shows the plan for each.

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::handover::RETURN;
use crate::http::{Client, new_run_id, take};
use crate::lookup::{self, id_of, is_id, items, person, text};
use crate::output::{self, count, print_json, quote};
use crate::show::running;
use clap::Args;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use terminal::{Column, Table, clean, print, print_note};

/// Maximum number of process instances to describe.
const MAX_SHOWN: usize = 20;

pub const DRY_RUN: &[(&str, &str)] = &[("dry_run", "true")];

#[derive(Debug, Args)]
pub struct Offboard {
    /// User to offboard: an e-mail address, a name or an ID
    pub user: String,
    /// Slug of the process that takes the assets back [default: device-return]
    #[arg(long, value_name = "SLUG")]
    pub process: Option<String>,
    /// Leave the user active
    #[arg(long)]
    pub keep_active: bool,
    /// Don't ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Show the plan, and write nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

/// Shows the plan for a user's assets, asks for confirmation, and executes the plan.
pub async fn offboard(options: &Offboard, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?;
    // An ID isn't looked up, because the request to offboard checks it.
    let is_id = is_id(&options.user);
    let user = if is_id { options.user.clone() } else { id_of(&lookup::user(&client, &options.user).await?) };
    let body = body(&client, options.process.as_deref(), options.keep_active).await?;
    let path = format!("users/{user}/offboard");
    let mut plan = Plan::default();
    plan.add(client.post_document(&path, DRY_RUN, &body, None).await?);
    if options.dry_run {
        show(&client, &plan, false, is_json).await?;
        return Ok(exit_code(&plan));
    }
    if !options.yes {
        let deactivates = !options.keep_active && is_active(&client, &path, &plan).await?;
        if !plan.starts_anything() && !deactivates {
            show(&client, &plan, false, is_json).await?;
            print_note("There is nothing to do.");
            return Ok(exit_code(&plan));
        }
        confirm(&plan, deactivates)?;
    }
    let mut done = Plan::default();
    let sent = send(&client, &path, &body, &new_run_id()?, &mut done).await;
    // Processes that have started are shown, even if the rest failed.
    if sent.is_ok() || done.user.is_object() {
        show(&client, &done, true, is_json).await?;
    }
    sent.map(|()| exit_code(&done))
}

/// Whether the user is active; true without a request if the plan starts a process.
async fn is_active(client: &Client, path: &str, plan: &Plan) -> Result<bool> {
    if plan.starts_anything() {
        return Ok(true);
    }
    Ok(client.post(path, DRY_RUN, &json!({"deactivate": false}), None).await?["user"]["is_active"] == true)
}

/// Returns the body of a request to offboard. `process` is a slug.
pub async fn body(client: &Client, process: Option<&str>, keep_active: bool) -> Result<Value> {
    let mut body = json!({"deactivate": !keep_active});
    if let Some(slug) = process {
        body["process_id"] = lookup::process(client, slug).await?["id"].take();
    }
    Ok(body)
}

async fn show(client: &Client, plan: &Plan, is_done: bool, is_json: bool) -> Result<()> {
    if !plan.unreadable.is_empty() {
        let ids: Vec<&str> = plan.unreadable.iter().map(String::as_str).collect();
        print_note(&format!("warning: no process starts on assets that the service can't read: {}", ids.join(", ")));
    }
    if is_json {
        return print_json(&plan.as_json(!is_done));
    }
    print(&plan.in_words(is_done))?;
    let returns = if is_done || !plan.starts_anything() { plan.returns() } else { Vec::new() };
    if !returns.is_empty() {
        print(&format!("\nWhen they are back:\n  {}", returns.join("\n  ")))?;
    }
    let next = if is_done { plan.next_steps() } else { Vec::new() };
    if !next.is_empty() {
        let left = "These assets stay with the user. Do this first, then repeat the command:";
        print(&format!("\n{left}\n  {}", next.join("\n  ")))?;
    }
    if plan.stops_instances() {
        let mut stopped = Vec::new();
        for id in plan.picked_in.iter().take(MAX_SHOWN) {
            stopped.push(instance(client, id).await);
        }
        if plan.picked_in.len() > MAX_SHOWN {
            stopped.push(format!("{} more", plan.picked_in.len() - MAX_SHOWN));
        }
        print(&format!("\nThese have picked the user. Cancel them, or reactivate the user:\n  {}", stopped.join("\n  ")))?;
    }
    if plan.has_more && !is_done {
        print_note(MORE);
    }
    Ok(())
}

/// Describes a process instance: `AST-000007 My laptop: Employee Onboarding, step 2 of 4: …`; its ID if it can't be read.
async fn instance(client: &Client, id: &str) -> String {
    let read = client.data(&format!("processes/instances/{id}"), &[("omit", "signatures")]).await.unwrap_or_default();
    let named = |running| format!("{} {}: {running}", text(&read["asset_tag"]), text(&read["asset_name"]));
    clean(&running(&read).map_or_else(|| id.to_owned(), named))
}

pub const MORE: &str = "These are only the first assets: the process also starts on the user's other assets.";

/// Asks on standard error, because the result goes to standard output.
fn confirm(plan: &Plan, deactivates: bool) -> Result<()> {
    print_note(&plan.in_words(false));
    if plan.has_more {
        print_note(MORE);
    }
    match output::confirm(&format!("{}?", plan.question(deactivates)))? {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::Usage("nothing was started".into())),
        None => Err(CliError::Usage("nothing was started: answer y, or use --yes".into())),
    }
}

/// Sends requests until the service reports no more assets of the user, and adds the responses to `done`. `run` is the prefix of
/// the idempotency keys.
pub async fn send(client: &Client, path: &str, body: &Value, run: &str, done: &mut Plan) -> Result<()> {
    for number in 1.. {
        let answer = client.post_document(path, &[], body, Some(&format!("{run}-{number}"))).await;
        let rest = |error: &CliError| format!("{error}\nSome processes have started; repeat this for the rest.");
        let answer = answer.map_err(|error| match error {
            error if number == 1 => error,
            CliError::Unanswered(_) => CliError::Unanswered(rest(&error)),
            _ => CliError::Failed(rest(&error)),
        })?;
        let has_started = done.add(answer);
        if !done.has_more {
            break;
        }
        if !has_started {
            return Err(CliError::Failed(
                "the service reports more assets, but didn't start a process for any of them; report this to its operator".into(),
            ));
        }
    }
    Ok(())
}

fn exit_code(plan: &Plan) -> u8 {
    if plan.refused() == 0 { EXIT_SUCCESS } else { EXIT_REFUSED }
}

/// Lists of assets in a response, in the order of the table.
const LISTS: [&str; 3] = ["instances", "in_progress", "not_started"];

/// One or more responses, merged.
#[derive(Debug, Default)]
pub struct Plan {
    user: Value,
    pub process: Value,
    movements: Vec<Value>,
    /// Assets of each list by ID, because a response can repeat assets of an earlier response.
    assets: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// IDs of assets that the service can't read.
    pub unreadable: BTreeSet<String>,
    /// IDs of process instances in progress that have picked the user.
    picked_in: BTreeSet<String>,
    /// Whether another request is needed for the remaining assets.
    pub has_more: bool,
}

impl Plan {
    /// Adds a response. Returns whether its request started any process.
    pub fn add(&mut self, mut answer: Value) -> bool {
        let ids = |list: &Value| items(list).iter().filter_map(Value::as_str).map(str::to_owned).collect::<BTreeSet<_>>();
        self.picked_in = ids(&answer["meta"]["picked_in"]);
        let mut data = take(&mut answer, "data");
        let movements = items(&data["movements"]).to_vec();
        let has_started = !movements.is_empty() || !items(&data["instances"]).is_empty();
        self.movements.extend(movements);
        for list in LISTS {
            let by_id = items(&data[list]).iter().map(|asset| (text(&asset["asset_id"]).to_owned(), asset.clone()));
            self.assets.entry(list).or_default().extend(by_id);
        }
        // The next response lists processes that this command has started as in progress.
        let started: BTreeSet<String> = self.started().map(|asset| text(&asset["asset_id"]).to_owned()).collect();
        self.assets.entry("in_progress").or_default().retain(|id, _| !started.contains(id));
        self.unreadable.extend(ids(&data["unreadable"]));
        self.has_more = data["has_more"] == true;
        (self.user, self.process) = (take(&mut data, "user"), take(&mut data, "process"));
        has_started
    }

    pub fn started(&self) -> impl Iterator<Item = &Value> {
        self.movements.iter().flat_map(|movement| items(&movement["assets"])).chain(self.list("instances"))
    }

    pub fn list(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.assets.get(name).into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the number of assets on which the process can't start.
    fn refused(&self) -> usize {
        self.list("not_started").count() + self.unreadable.len()
    }

    fn starts_anything(&self) -> bool {
        self.has_more || self.started().next().is_some()
    }

    /// Whether instances can't go on because the user is inactive.
    fn stops_instances(&self) -> bool {
        self.user["is_active"] == false && !self.picked_in.is_empty()
    }

    /// Returns the question to confirm, without a question mark.
    fn question(&self, deactivates: bool) -> String {
        match (self.starts_anything(), deactivates) {
            (true, true) => format!("Start this for {}, and deactivate the user", self.user()),
            (true, false) => format!("Start this for {}", self.user()),
            (false, _) => format!("Deactivate {}", self.user()),
        }
    }

    pub fn user(&self) -> String {
        person(&self.user)
    }

    pub fn as_json(&self, is_dry_run: bool) -> Value {
        let list = |name| self.list(name).cloned().collect::<Vec<_>>();
        json!({
            "user": self.user, "process": self.process, "movements": self.movements, "instances": list("instances"),
            "in_progress": list("in_progress"), "not_started": list("not_started"), "unreadable": self.unreadable, "picked_in": self.picked_in,
            "has_more": self.has_more, "dry_run": is_dry_run
        })
    }

    fn in_words(&self, is_done: bool) -> String {
        let summary = self.summary(&clean(self.process["name"].as_str().unwrap_or("the process")), is_done);
        format!("{}\n\n{summary}", self.table(is_done, terminal::width()))
    }

    /// Returns the plan as a table. `width` is the terminal's width in columns. `is_done` means that the plan was executed.
    fn table(&self, is_done: bool, width: Option<usize>) -> String {
        let mut table = Table::new(&[Column::new("TAG"), Column::text("ASSET"), Column::text("PROCESS")]);
        let mut add = |asset: &Value, what: String| {
            table.add([text(&asset["asset_tag"]).to_owned(), text(&asset["asset_name"]).to_owned(), what]);
        };
        let starts = if is_done { "started" } else { "starts" };
        for (movement, number) in self.movements.iter().zip(1..) {
            let name = movement["number"].as_str().map_or(format!("in movement {number}"), |number| format!("in {number}"));
            items(&movement["assets"]).iter().for_each(|asset| add(asset, format!("{starts} {name}")));
        }
        self.list("instances").for_each(|asset| add(asset, starts.to_owned()));
        self.list("in_progress").for_each(|asset| add(asset, "in progress already".to_owned()));
        for asset in self.list("not_started") {
            add(asset, format!("can't start: {} {}", text(&asset["code"]), text(&asset["detail"])));
        }
        if table.is_empty() { "The user has no assets.".to_owned() } else { table.render(width) }
    }

    /// Returns the commands that take the assets back: one per movement, and one per other asset.
    fn returns(&self) -> Vec<String> {
        let tag = |asset: &Value| quote(asset["asset_tag"].as_str().unwrap_or_default());
        let of_movement = |movement: &Value| (movement["id"].clone(), items(&movement["assets"]).iter().map(tag).collect());
        let mut groups: Vec<(Value, Vec<String>)> = self.movements.iter().map(of_movement).collect();
        for asset in self.list("instances").chain(self.list("in_progress")) {
            let movement = &asset["movement_id"];
            match groups.iter_mut().find(|(id, _)| !movement.is_null() && id == movement) {
                Some((_, tags)) => tags.push(tag(asset)),
                None => groups.push((movement.clone(), vec![tag(asset)])),
            }
        }
        let process = self.process["slug"].as_str().filter(|slug| *slug != RETURN);
        let process = process.map_or(String::new(), |slug| format!(" --process {}", quote(slug)));
        let command = |(_, mut tags): (Value, Vec<String>)| {
            tags.sort();
            format!("assetctl return {}{process}", tags.join(" "))
        };
        groups.into_iter().map(command).collect()
    }

    /// Returns advice for assets on which the process can't start, by reason.
    fn next_steps(&self) -> Vec<String> {
        let mut tags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for asset in self.list("not_started") {
            let tag = asset["asset_tag"].as_str().unwrap_or_default();
            tags.entry(asset["code"].as_str().unwrap_or_default()).or_default().push(tag);
        }
        let step = |(code, mut tags): (&str, Vec<&str>)| {
            tags.sort_unstable();
            let help = match code {
                "WRONG_ASSET_STATUS" => {
                    "change the status to the one in which the process begins: assetctl set TAG status=STATUS; or, if the user \
                     doesn't have the asset: assetctl set TAG assigned_to="
                }
                "PROCESS_RUNNING" => "complete or cancel the process in progress; assetctl show TAG shows it",
                _ => "see the reason above",
            };
            clean(&format!("{}: {help}", tags.join(", ")))
        };
        tags.into_iter().map(step).collect()
    }

    /// Summarizes the plan in a line. `process` is a name.
    pub fn summary(&self, process: &str, is_done: bool) -> String {
        let starts = if is_done { "started" } else { "would start" };
        let mut text = format!("{process} {starts} on {}", count(self.started().count() as u64, "asset"));
        for (number, what) in [(self.list("in_progress").count(), "in progress already"), (self.refused(), "that can't start")] {
            if number > 0 {
                text.push_str(&format!(", {number} {what}"));
            }
        }
        let user = match (self.user["is_active"] == false, is_done) {
            (true, true) => "is inactive",
            (true, false) => "would be inactive",
            (false, true) => "is still active",
            (false, false) => "would stay active",
        };
        let stopped = match self.stops_instances() {
            true => format!("; {} that picked the user can't go on", count(self.picked_in.len() as u64, "instance")),
            false => String::new(),
        };
        format!("{text}; the user {user}{stopped}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset(id: &str) -> Value {
        json!({"asset_id": id, "asset_tag": format!("AST-{id}"), "asset_name": "ノートパソコン", "instance_id": null})
    }

    fn answer(has_more: bool) -> Value {
        let mut refused = asset("5");
        refused["code"] = "WRONG_ASSET_STATUS".into();
        refused["detail"] = "The asset is in_stock.".into();
        json!({
            "user": {"id": "u", "display_name": "Ada", "email": "ada@example.com", "is_active": false},
            "process": {"id": "p", "name": "Device Return", "slug": "device-return"},
            "movements": [{"id": null, "number": null, "assets": [asset("1"), asset("2")]}],
            "instances": [asset("3")], "in_progress": [asset("4")], "not_started": [refused], "has_more": has_more
        })
    }

    #[test]
    fn the_table_has_a_line_for_each_asset() {
        let mut plan = Plan::default();
        assert!(plan.add(json!({"data": answer(false), "meta": {"picked_in": ["i", "j"]}})));
        let expected = "\
TAG    ASSET           PROCESS
AST-1  ノートパソコン  starts in movement 1
AST-2  ノートパソコン  starts in movement 1
AST-3  ノートパソコン  starts
AST-4  ノートパソコン  in progress already
AST-5  ノートパソコン  can't start: WRONG_ASSET_STATUS The asset is in_stock.";
        assert_eq!(plan.table(false, Some(80)), expected);
        assert_eq!(
            plan.summary("Device Return", false),
            "Device Return would start on 3 assets, 1 in progress already, 1 that can't start; the user would be inactive; \
             2 instances that picked the user can't go on"
        );
        assert_eq!((plan.refused(), plan.user().as_str()), (1, "Ada <ada@example.com>"));
        assert_eq!(plan.question(false), "Start this for Ada <ada@example.com>");
        assert_eq!(plan.returns(), ["assetctl return AST-1 AST-2", "assetctl return AST-3", "assetctl return AST-4"]);
        let [step] = plan.next_steps().try_into().expect("one reason");
        assert!(step.starts_with("AST-5: change the status ") && step.ends_with(": assetctl set TAG assigned_to="), "{step}");
        assert_eq!(Plan::default().table(false, None), "The user has no assets.");
        assert!(!Plan::default().starts_anything() && Plan::default().question(true).starts_with("Deactivate "));
    }

    #[test]
    fn several_answers_are_added_up() {
        let mut plan = Plan::default();
        assert!(plan.add(json!({"data": answer(true)})) && plan.has_more);
        let mut next = answer(false);
        next["movements"] = json!([{"id": "m", "number": "MOV-000002", "assets": [asset("6"), asset("7")]}]);
        next["instances"] = json!([]);
        next["in_progress"] = json!([asset("1"), asset("3"), asset("4")]);
        assert!(plan.add(json!({"data": next})) && !plan.has_more);
        let all = plan.as_json(false);
        assert_eq!(all["in_progress"], json!([asset("4")]));
        assert_eq!((all["movements"].as_array().map(Vec::len), all["instances"].as_array().map(Vec::len)), (Some(2), Some(1)));
        assert_eq!(plan.refused(), 1);
        let mut nothing = answer(true);
        nothing["movements"] = json!([]);
        nothing["instances"] = json!([]);
        assert!(!plan.add(json!({"data": nothing})));
    }
}
