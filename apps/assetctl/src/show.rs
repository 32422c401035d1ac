//! `assetctl show`.

use crate::config::Connection;
use crate::error::{EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::{get_data, get_document, take};
use crate::lookup::{self, people_with, tag_and_name, text};
use crate::output::{digits, print, print_json};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use terminal::{Column, Table, record, time};

/// Changes that are shown.
const CHANGES: &str = "5";
/// Fields of one change, these before others, and characters of a value, so that all fits a screen.
const MAX_FIELDS: usize = 3;
const FIRST_FIELDS: [&str; 3] = ["status", "assigned_to", "running_instance_id"];
const MAX_CHARS: usize = 24;
/// Fields of an asset that have their own place.
const SHOWN_FIRST: [&str; 11] = [
    "id",
    "asset_tag",
    "name",
    "status",
    "assigned_to",
    "location",
    "asset_type_name",
    "asset_type_id",
    "manufacturer",
    "model",
    "custom_fields",
];

/// What is shown of an asset.
pub struct Shown {
    pub asset: Value,
    /// The running process instance.
    pub process: Value,
    /// The latest changes.
    pub history: Value,
    pub total_changes: Value,
    /// By id.
    pub people: BTreeMap<String, String>,
}

/// Reads an asset with so many of its latest changes.
pub async fn read(client: &Client, name: &str, changes: &str, with_process: bool) -> Result<Shown> {
    let asset = lookup::asset(client, name).await?;
    let id = text(&asset["id"]);
    let query = [("asset_id", id), ("status", "in_progress"), ("limit", "1"), ("omit", "signatures")];
    let running = if with_process { get_data(client, "processes/instances", &query).await? } else { Value::Null };
    let process = running.get(0).cloned().unwrap_or_default();
    let (mut history, _) = get_document(client, &format!("assets/{id}/history"), &[("limit", changes)]).await?;
    let total_changes = history["meta"]["total"].clone();
    let history = take(&mut history, "data");
    let people = people_with(client, assigned(&history).chain(asset["assigned_to"].as_str())).await?;
    Ok(Shown { asset, process, history, total_changes, people })
}

/// Shows an asset with its owner, the running process and the latest changes.
pub async fn show(name: &str, connection: &Connection, is_json: bool) -> Result<u8> {
    let Shown { asset, process, history, people, .. } =
        read(&Client::new(connection)?.with_exact_numbers(), name, CHANGES, true).await?;
    if is_json {
        print_json(&json!({"asset": asset, "process": process, "history": history}))?;
        return Ok(EXIT_SUCCESS);
    }
    let width = terminal::width().or(Some(80));
    let members = members(&asset, &process, &people);
    let fields = record(members.iter().map(|(title, text)| (title.as_str(), text.clone())), width);
    print(&format!("{fields}\n\n{}", changes(&history, &people).render(width)))?;
    Ok(EXIT_SUCCESS)
}

pub fn entries(history: &Value) -> impl Iterator<Item = &Value> {
    history.as_array().into_iter().flatten()
}

/// Ids of the users to whom assets were assigned, or not any more.
pub fn assigned(history: &Value) -> impl Iterator<Item = &str> {
    let changes = entries(history).map(|entry| &entry["changes"]["assigned_to"]);
    changes.flat_map(|change| [&change["old"], &change["new"]]).filter_map(Value::as_str)
}

/// `Employee Onboarding, step 2 of 4: Handed over (by Ada, 2026-03-01 09:00 UTC)`.
pub fn running(process: &Value) -> Option<String> {
    let steps = process["steps"].as_array()?;
    let current = process["current_step"].as_u64().unwrap_or_default();
    let label = usize::try_from(current).ok().and_then(|step| steps.get(step)).map_or("-", |step| text(&step["label"]));
    let (name, by, at) = (text(&process["process_name"]), text(&process["started_by_name"]), time(text(&process["started_at"])));
    Some(format!("{name}, step {} of {}: {label} (by {by}, {at} UTC)", current + 1, steps.len()))
}

/// Every field that is set.
fn members(asset: &Value, process: &Value, people: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let owner = asset["assigned_to"].as_str().map(|id| people.get(id).map_or(id, String::as_str));
    let model = [&asset["manufacturer"], &asset["model"]].into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    let first = [
        ("Asset", tag_and_name(asset)),
        ("Status", text(&asset["status"]).to_owned()),
        ("Owner", owner.unwrap_or("nobody").to_owned()),
        ("Location", text(&asset["location"]).to_owned()),
        ("Process", running(process).unwrap_or_else(|| "none in progress".to_owned())),
        ("Type", text(&asset["asset_type_name"]).to_owned()),
        ("Model", model),
    ];
    let first = first.into_iter().filter(|(_, text)| !text.is_empty() && text != "-");
    let is_other = |name: &str| !SHOWN_FIRST.contains(&name);
    let others = asset.as_object().into_iter().flatten().filter(|(name, _)| is_other(name));
    let others = others.map(|(name, value)| (title(name), value_of(name, value)));
    let custom = asset["custom_fields"].as_object().into_iter().flatten();
    let custom = custom.map(|(name, value)| (format!("custom_fields.{name}"), value_of("", value)));
    let id = [("Id".to_owned(), text(&asset["id"]).to_owned())];
    let all = first.map(|(title, text)| (title.to_owned(), text)).chain(others).chain(custom).chain(id);
    all.filter(|(_, text)| !text.is_empty()).collect()
}

/// `created_at` is `Created at`.
fn title(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    (first + letters.as_str()).replace('_', " ")
}

/// On one line; empty if it is not set.
fn value_of(name: &str, value: &Value) -> String {
    if let Some(digits) = digits(value).map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string())) {
        // Beside custom fields, numbers are amounts of money.
        let fraction = digits.split_once('.').map_or(2, |(_, fraction)| fraction.len());
        return if name.is_empty() { digits } else { digits + "0".repeat(2_usize.saturating_sub(fraction)).as_str() };
    }
    match value {
        Value::Null => String::new(),
        Value::String(text) if matches!(name, "created_at" | "updated_at" | "last_seen_at") => time(text) + " UTC",
        Value::String(text) => text.lines().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn changes(history: &Value, people: &BTreeMap<String, String>) -> Table {
    let mut table = Table::new(&[Column::new("WHEN (UTC)"), Column::text("WHO"), Column::text("WHAT")]);
    for entry in entries(history) {
        let actor = &entry["actor"];
        let who = actor["user_name"].as_str().unwrap_or(text(&actor["key_name"]));
        table.add([time(text(&entry["at"])), short(who), what(entry, people)]);
    }
    table
}

/// `created`, or the changed fields.
pub fn what(entry: &Value, people: &BTreeMap<String, String>) -> String {
    let kind = text(&entry["type"]).trim_start_matches("asset.");
    let changed = entry["changes"].as_object().filter(|_| kind == "updated");
    let value = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        number if digits(number).is_some() => digits(number).unwrap_or_default().to_owned(),
        Value::String(text) => short(people.get(text).map_or(text, |person| person.split(" <").next().unwrap_or_default())),
        other => short(&other.to_string()),
    };
    let mut fields: Vec<(&String, &Value)> = changed.into_iter().flatten().collect();
    fields.sort_by_key(|(name, _)| !FIRST_FIELDS.contains(&name.as_str()));
    let fields = fields.into_iter().take(MAX_FIELDS).map(|(name, change)| match name.as_str() {
        "running_instance_id" => if change["new"].is_null() { "process ended" } else { "process started" }.to_owned(),
        name => format!("{name}: {} → {}", value(&change["old"]), value(&change["new"])),
    });
    let mut parts: Vec<String> = fields.collect();
    match changed.map_or(0, |fields| fields.len()) {
        0 => parts.push(kind.to_owned()),
        all if all > MAX_FIELDS => parts.push(format!("{} more", all - MAX_FIELDS)),
        _ => {}
    }
    parts.join(", ")
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(MAX_CHARS).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}
