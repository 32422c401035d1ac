//! Questions about assets.

use crate::error::{CliError, Result};
use crate::lookup::{self, person, text};
use crate::mcp::answer::{self, Answer, quoted};
use crate::mcp::consent::{Asker, Query, Row, day, filters};
use crate::output::count;
use crate::selection::NOBODY;
use crate::show::{self, entries};
use crate::who::{asset_on, time_on};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The fields of an asset in a list.
const LISTED: [&str; 7] = ["asset_tag", "name", "status", "location", "asset_type_name", "serial_number", "warranty_until"];
/// Arguments, and the filters of the list that they are.
const FILTERS: [(&str, &str); 7] = [
    ("words", "q"),
    ("status", "status"),
    ("place", "location"),
    ("manufacturer", "manufacturer"),
    ("warranty_before", "warranty_before"),
    ("changed_since", "updated_since"),
    ("sort", "sort"),
];
/// Parameters of the list that are no filters.
const OWN: [&str; 4] = ["page", "limit", "expand", "sort"];

pub async fn find(asker: &Asker, arguments: &Value) -> Result<Answer> {
    let mut query = filters(arguments, &FILTERS);
    for (name, value) in arguments["filters"].as_object().into_iter().flatten() {
        if OWN.contains(&name.as_str()) {
            return Err(CliError::Usage(format!("wrong arguments: {name} is no filter")));
        }
        query.push((name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    match arguments["person"].as_str() {
        None => {}
        Some(NOBODY) => query.push(("assigned_to".to_owned(), NOBODY.to_owned())),
        Some(_) => query.push(("assigned_to".to_owned(), text(&asker.person(&arguments["person"]).await?["id"]).to_owned())),
    }
    if let Some(name) = arguments["type"].as_str() {
        query.push(("asset_type_id".to_owned(), lookup::asset_type(&asker.client, name).await?));
    }
    if asker.has("users:read") {
        query.push(("expand".to_owned(), "assigned_to".to_owned()));
    }
    listed(asker, "assets", query, &arguments["skip"], "found", row).await
}

/// A page of a list of assets. `what`: what they are, in the line for people.
async fn listed(asker: &Asker, path: &str, query: Query, skip: &Value, what: &str, row: Row) -> Result<Answer> {
    let data = asker.list(path, query, skip, "assets", row).await?;
    let from = skip.as_u64().map_or(String::new(), |skip| format!(", after the first {skip}"));
    let first = answer::first(&data["assets"], 3, in_words);
    Ok(Answer::new(format!("{} {what}{from}{first}", count(data["total"].as_u64().unwrap_or_default(), "asset")), data))
}

fn row(asset: &Value) -> Value {
    let (mut row, user) = (row_of_owner(asset), &asset["assigned_user"]);
    if asset["assigned_to"].is_string() {
        row["assigned_to"] = if user.is_object() { person(user).into() } else { asset["assigned_to"].clone() };
    }
    row
}

/// Without its holder.
pub fn row_of_owner(asset: &Value) -> Value {
    let members = LISTED.into_iter().map(|name| (name.to_owned(), asset[name].clone()));
    members.filter(|(_, value)| !value.is_null() && value != "").collect::<Map<_, _>>().into()
}

/// `"AST-000007" "My laptop" (in_use, "Ada <ada@example.com>")`; `nobody` if that is said.
fn in_words(asset: &Value) -> String {
    let owner = match asset.get("assigned_to") {
        None => String::new(),
        Some(Value::Null) => ", nobody".to_owned(),
        Some(owner) => format!(", {}", quoted(owner)),
    };
    format!("{} ({}{owner})", named(asset), text(&asset["status"]))
}

pub fn named(asset: &Value) -> String {
    format!("{} {}", quoted(&asset["asset_tag"]), quoted(&asset["name"]))
}

pub async fn show(asker: &Asker, arguments: &Value) -> Result<Answer> {
    let (name, day) = (text(&arguments["asset"]), day(&arguments["on"])?);
    let (mut asset, _, when) = asset_on(&asker.client, name, day, &asker.me["tenant"]["time_zone"]).await?;
    let (mut data, mut more) = (Map::new(), String::new());
    if when.starts_with("now") {
        let limit = arguments["changes"].as_u64().unwrap_or(5).clamp(1, 50).to_string();
        let shown = show::read(&asker.client, text(&asset["id"]), &limit, asker.has("processes:read")).await?;
        if let Some(running) = show::running(&shown.process) {
            more = format!(", in the process {}", quoted(&running.as_str().into()));
            data.insert("process".to_owned(), running.into());
        }
        let all: Vec<Value> = entries(&shown.history).map(|entry| change(entry, &shown.people)).collect();
        let total = shown.total_changes.as_u64().unwrap_or_default();
        let has_more = total > all.len() as u64;
        data.extend(answer::rows("changes", all, has_more, |_| "changes_since with this asset has all changes".to_owned()));
        more.push_str(&format!("; {} in its history", count(total, "change")));
        data.insert("total_changes".to_owned(), shown.total_changes);
        asset = shown.asset;
    }
    asset["assigned_to"] = asker.name_of(&asset["assigned_to"]).await?;
    let line = format!("As of {when}: {}{more}.", in_words(&asset));
    if let Some(fields) = asset.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && value != "" && value != &json!({}));
    }
    data.extend([("asset".to_owned(), asset), ("as_of".to_owned(), when.into())]);
    Ok(Answer::new(line, data))
}

/// An entry of a history or of the feed. `people` are by id.
pub fn change(entry: &Value, people: &BTreeMap<String, String>) -> Value {
    let (actor, is_update) = (&entry["actor"], text(&entry["type"]).ends_with(".updated"));
    let by = actor["user_name"].as_str().unwrap_or(text(&actor["key_name"]));
    let one = |(field, change): (&String, &Value)| {
        let [from, to] = [&change["old"], &change["new"]].map(|value| match value.as_str() {
            Some(id) if field == "assigned_to" => people.get(id).map(String::as_str).into(),
            _ => value.clone(),
        });
        json!({"field": field, "from": from, "to": to})
    };
    let fields = entry["changes"].as_object().filter(|_| is_update).map(|fields| fields.iter().map(one).collect::<Value>());
    json!({"at": entry["at"], "by": by, "event": entry["type"], "fields": fields})
}

pub async fn who_has(asker: &Asker, arguments: &Value) -> Result<Answer> {
    let day = day(&arguments["on"])?;
    match (arguments["asset"].as_str(), arguments["person"].as_str()) {
        (Some(name), None) => {
            let (mut asset, _, when) = asset_on(&asker.client, name, day, &asker.me["tenant"]["time_zone"]).await?;
            asset["assigned_to"] = asker.name_of(&asset["assigned_to"]).await?;
            let line = format!("As of {when}: {}.", in_words(&asset));
            let person = asset["assigned_to"].clone();
            Ok(Answer::new(line, [("asset", row(&asset)), ("person", person), ("as_of", when.into())]))
        }
        (None, Some(_)) => {
            let user = asker.person(&arguments["person"]).await?;
            let (time, when) = time_on(day, &asker.me["tenant"]["time_zone"])?;
            let (path, query) = (format!("users/{}/assets", text(&user["id"])), time.map(|time| ("as_of".to_owned(), time)));
            let (person, query) = (Value::from(person(&user)), query.into_iter().collect());
            let what = format!("of {}, {when}", quoted(&person));
            let mut answer = listed(asker, &path, query, &arguments["skip"], &what, row_of_owner).await?;
            (answer.data["person"], answer.data["as_of"]) = (person, when.into());
            Ok(answer)
        }
        _ => Err(CliError::Usage("give either asset or person".into())),
    }
}

pub async fn possible(asker: &Asker, arguments: &Value) -> Result<Answer> {
    let mut asset = lookup::asset(&asker.client, text(&arguments["asset"])).await?;
    asset["assigned_to"] = asker.name_of(&asset["assigned_to"]).await?;
    let found = asker.data(&format!("assets/{}/processes", text(&asset["id"])), &[]).await?;
    let is_running = entries(&found).any(|process| process["code"] == "PROCESS_RUNNING");
    let why_not = match asker.has("assets:write") {
        false => Some("the key lacks assets:write"),
        true => is_running.then_some("a process is running: until it ends, status and assigned_to can't change"),
    };
    let mut edit = json!({"allowed": why_not.is_none(), "why_not": why_not});
    if asker.has("settings:read") {
        let next = asker.data("settings", &[]).await?["status_transitions"][text(&asset["status"])].clone();
        edit["next_status"] = if next.is_null() { "any".into() } else { next };
    }
    let can_start: Value = entries(&found).filter(|process| process["can_start"] == true).cloned().collect();
    let in_short = |process: &Value| format!("{} → {}", quoted(&process["name"]), text(&process["target_status"]));
    let starts = answer::first(&can_start, 5, in_short);
    let why = why_not.map_or(String::new(), |why| format!(" Its fields can't change: {why}."));
    let able = if asker.has("processes:write") { "" } else { ", though not with this key, which lacks processes:write" };
    let number = count(entries(&can_start).count() as u64, "kind");
    let line = format!("{}. {number} of process can start{able}{starts}{why}", in_words(&asset));
    let skip = arguments["skip"].as_u64().and_then(|skip| usize::try_from(skip).ok()).unwrap_or_default();
    let next = |shown| format!("call again with skip={}", skip + shown);
    let mut data = answer::rows("processes", entries(&found).skip(skip).cloned().collect(), false, next);
    data.extend([("asset".to_owned(), row(&asset)), ("edit".to_owned(), edit)]);
    Ok(Answer::new(line, data))
}
