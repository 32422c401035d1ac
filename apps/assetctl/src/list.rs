//! `assetctl list`, `events` and `stats`: tables of assets, changes and statistics.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, Query, Rows};
use crate::lookup::{everybody, id_of, is_id, items, people_with, person, text, user_named};
use crate::output::{count, digits, print_json};
use crate::selection::{AssetFilters, hint, in_options, nearest};
use crate::show::{actor_name, assigned, time_of, time_zone, what};
use clap::{Args, ValueEnum};
use domain::import::CUSTOM_FIELD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use terminal::{Column, Table, print, print_data, print_note, time};

/// Default columns in a table of assets.
const COLUMNS: [&str; 6] = ["asset_tag", "name", "status", "location", "assigned_to", "warranty_until"];
const EVENT_COLUMNS: [&str; 5] = ["at", "asset_tag", "name", "what", "who"];
/// Time fields that a table shows to the minute.
const TIMES: [&str; 5] = ["created_at", "updated_at", "last_seen_at", "status_changed_at", "at"];
/// First characters of spreadsheet formulas.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filters: AssetFilters,
    /// Sort by a field, such as location, or -purchase_price for the highest first [default: newest first]
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Fields to show, separated by commas, such as `asset_tag,custom_fields.cost_center`
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    columns: Vec<String>,
    /// How the list is printed [default: table]
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Show at most this many assets
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    limit: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Events {
    /// From this day or time on, such as 2026-03-01; days are in the organization's time zone
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Up to the end of this day, or up to this time
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
    /// Only changes by this user (an e-mail address, a name or an ID), or by the key or the link with this ID
    #[arg(long, value_name = "USER")]
    actor: Option<String>,
    /// Only these types, separated by commas: asset.updated, or asset.* for every change to an asset
    #[arg(long, value_name = "TYPES")]
    types: Option<String>,
    /// Show at most this many events, oldest first
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    limit: Option<u64>,
    /// How the events are printed [default: table]
    #[arg(long, value_enum)]
    format: Option<Form>,
}

#[derive(Debug, Args)]
pub struct Stats {
    /// Count assets and add up their prices, grouped by this field: status, type, manufacturer, model, location, person,
    /// purchase_month, warranty_month or custom_fields.NAME
    #[arg(long, value_name = "FIELD", value_parser = group_field)]
    by: Option<String>,
    /// Number of location levels to group by [default: 1]
    #[arg(long, value_name = "LEVELS", requires = "by", value_parser = clap::value_parser!(u64).range(1..=8))]
    depth: Option<u64>,
    #[command(flatten)]
    filters: AssetFilters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Columns for people
    Table,
    /// A table with a header, for spreadsheets
    Csv,
    /// An object, as with --json
    Json,
}

/// Returns the service's name of a field to group by.
#[expect(clippy::unnecessary_wraps, reason = "clap's signature")]
fn group_field(text: &str) -> Result<String, String> {
    Ok(match text {
        "type" => "asset_type",
        "person" | "user" => "assigned_to",
        "place" => "location",
        text => text,
    }
    .to_owned())
}

pub fn at_least_one(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a positive integer".to_owned())
}

fn form(format: Option<Form>, is_json: bool) -> Result<Form> {
    match format {
        Some(Form::Table | Form::Csv) if is_json => Err(CliError::Usage("give --json or --format, not both".into())),
        None if is_json => Ok(Form::Json),
        format => Ok(format.unwrap_or(Form::Table)),
    }
}

pub async fn list(options: &List, connection: &Connection, is_json: bool) -> Result<u8> {
    let form = form(options.format, is_json)?;
    let client = Client::new(connection)?.with_exact_numbers();
    let mut query = options.filters.query(&client).await?;
    query.extend(options.sort.iter().map(|sort| ("sort".to_owned(), sort.clone())));
    let Rows { rows: assets, total, meta, .. } = match read(&client, query, options.limit).await {
        Err(error) => return Err(options.filters.explain(&client, error).await),
        read => read?,
    };
    hint(&meta).into_iter().for_each(print_note);
    let columns: Vec<&str> = options.columns.iter().map(String::as_str).collect();
    if let Some(first) = assets.first() {
        check(&columns, first)?;
    }
    let shown: &[&str] = if columns.is_empty() { &COLUMNS } else { &columns };
    match form {
        Form::Json if columns.is_empty() => print_json(&json!({"total": total, "assets": assets}))?,
        Form::Json => {
            let picked = |asset: &Value| {
                columns.iter().map(|name| ((*name).to_owned(), field(asset, name).clone())).collect::<Map<_, _>>()
            };
            let assets: Vec<_> = assets.iter().map(picked).collect();
            print_json(&json!({"total": total, "assets": assets}))?;
        }
        Form::Csv => print_csv(&assets, shown)?,
        Form::Table => {
            print(&table(&assets, shown).render(terminal::width()))?;
            let number = assets.len() as u64;
            let all = if number < total { format!("{number} of ") } else { String::new() };
            print_note(&format!("{all}{}", count(total, "asset")));
        }
    }
    Ok(EXIT_SUCCESS)
}

/// Reads assets, each with its `assigned_user` if the key has access to users.
pub async fn read(client: &Client, query: Query, limit: Option<u64>) -> Result<Rows> {
    let (limit, expand) = (limit.unwrap_or(u64::MAX), ("expand".to_owned(), "assigned_to".to_owned()));
    match client.rows("assets", query.iter().cloned().chain([expand]).collect(), limit).await {
        Err(CliError::Answered { status: 403, .. }) => client.rows("assets", query, limit).await,
        read => read,
    }
}

fn check(columns: &[&str], asset: &Value) -> Result<()> {
    let is_known = |column: &&&str| column.starts_with(CUSTOM_FIELD) || asset.get(**column).is_some();
    let Some(unknown) = columns.iter().find(|column| !is_known(column)) else { return Ok(()) };
    let known = nearest(unknown, asset.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)));
    Err(CliError::Usage(format!("--columns: unknown {unknown}; known: {}, custom_fields.NAME", known.join(", "))))
}

pub async fn events(options: &Events, connection: &Connection, is_json: bool) -> Result<u8> {
    let form = form(options.format, is_json)?;
    let client = Client::new(connection)?.with_exact_numbers();
    let read = client.rows("events", query(options, &client).await?, options.limit.unwrap_or(u64::MAX)).await;
    let Rows { rows: events, has_more, .. } = read.map_err(in_options)?;
    if form == Form::Json {
        print_json(&json!({"events": events}))?;
        return Ok(EXIT_SUCCESS);
    }
    let people = people_with(&client, assigned(&events)).await?;
    let rows: Vec<Value> = events.iter().map(|event| row(event, &people)).collect();
    if form == Form::Csv {
        print_csv(&rows, &EVENT_COLUMNS)?;
        return Ok(EXIT_SUCCESS);
    }
    print(&table(&rows, &EVENT_COLUMNS).render(terminal::width()))?;
    let more = if has_more { ", and there are more" } else { "" };
    print_note(&format!("{}{more}", count(rows.len() as u64, "event")));
    Ok(EXIT_SUCCESS)
}

async fn query(options: &Events, client: &Client) -> Result<Query> {
    let mut query: Query = options.types.iter().map(|types| ("types".to_owned(), types.clone())).collect();
    let times = [("since", &options.since), ("until", &options.until)];
    let zone = time_zone(client, times.iter().any(|(_, time)| time.is_some())).await?;
    for (name, time) in times {
        if let Some(time) = time {
            query.push((name.to_owned(), time_of(&format!("--{name}"), time, name == "until", &zone)?));
        }
    }
    if let Some(actor) = &options.actor {
        let id = if is_id(actor) { actor.clone() } else { id_of(&user_named(client, actor).await?) };
        query.push(("actor_id".to_owned(), id));
    }
    Ok(query)
}

fn row(event: &Value, people: &BTreeMap<String, String>) -> Value {
    let (tag, name, who) = (&event["entity_tag"], &event["entity_name"], actor_name(event));
    json!({"at": event["at"], "asset_tag": tag, "name": name, "what": what(event, people), "who": who})
}

/// Returns the value of a field; null if the asset lacks the field.
fn field<'a>(asset: &'a Value, column: &str) -> &'a Value {
    match column.strip_prefix(CUSTOM_FIELD) {
        Some(name) => &asset["custom_fields"][name],
        None => &asset[column],
    }
}

/// Returns the heading of a column: `COST CENTER` for `custom_fields.cost_center`.
fn title(column: &str) -> Column {
    Column::named(&column.trim_start_matches(CUSTOM_FIELD).to_uppercase().replace('_', " "))
}

/// Returns the text of a cell, empty for null.
fn cell(asset: &Value, column: &str) -> String {
    let value = field(asset, column);
    match value {
        Value::Null => String::new(),
        Value::String(_) if column == "assigned_to" && asset["assigned_user"].is_object() => person(&asset["assigned_user"]),
        Value::String(text) => digits(value).unwrap_or(text).to_owned(),
        other => other.to_string(),
    }
}

pub fn table(rows: &[Value], columns: &[&str]) -> Table {
    let mut table = Table::new(&columns.iter().map(|column| title(column)).collect::<Vec<_>>());
    for row in rows {
        let shown = |column: &&str| if TIMES.contains(column) { time(&cell(row, column)) } else { cell(row, column) };
        table.add(columns.iter().map(shown));
    }
    table
}

fn print_csv(rows: &[Value], columns: &[&str]) -> Result<()> {
    let csv = csv(rows, columns).map_err(|error| CliError::Failed(format!("can't write CSV: {error}")))?;
    print_data(String::from_utf8_lossy(&csv).trim_end_matches("\r\n"))?;
    Ok(())
}

/// Returns CSV with a header. An apostrophe keeps a spreadsheet from reading text as a formula.
pub fn csv(rows: &[Value], columns: &[&str]) -> csv::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(columns)?;
    for row in rows {
        let cells = columns.iter().map(|column| {
            let (cell, value) = (cell(row, column), field(row, column));
            if cell.starts_with(FORMULAS) && value.is_string() && digits(value).is_none() { format!("'{cell}") } else { cell }
        });
        writer.write_record(cells)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// Prints the statistics or, with `--by`, the groups.
pub async fn stats(options: &Stats, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?;
    let mut query = options.filters.query(&client).await?;
    query.extend(options.by.iter().map(|field| ("group_by".to_owned(), field.clone())));
    query.extend(options.depth.iter().map(|depth| ("depth".to_owned(), depth.to_string())));
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = match client.document("stats", &query).await {
        Err(error) => return Err(with_custom_field(options.filters.explain(&client, error).await, options.by.as_deref())),
        answer => answer?.0,
    };
    hint(&answer["meta"]).into_iter().for_each(print_note);
    let stats = answer["data"].clone();
    match &options.by {
        _ if is_json => print_json(&stats)?,
        None => print(&summary(&stats))?,
        Some(field) => {
            let people = if field == "assigned_to" { everybody(&client).await? } else { BTreeMap::new() };
            print(&groups(field, &stats, &people).render(terminal::width()))?;
        }
    }
    Ok(EXIT_SUCCESS)
}

/// Adds advice on how to name a custom field, if the error concerns `--by`.
fn with_custom_field(error: CliError, by: Option<&str>) -> CliError {
    match (error, by) {
        (CliError::Usage(detail), Some(by)) if detail.contains("\n  --by: ") && !by.contains('.') => {
            CliError::Usage(format!("{detail}\nFor the custom field {by}: --by custom_fields.{by}"))
        }
        (error, _) => error,
    }
}

/// Returns a table with a row for each group, one for the rest, and one for the total. `people` are names by ID.
fn groups(field: &str, stats: &Value, people: &BTreeMap<String, String>) -> Table {
    let mut table = Table::new(&[title(field), Column::number("ASSETS"), Column::number("PURCHASE PRICE")]);
    let (mut assets, mut value) = (0, Vec::new());
    let mut add = |name: String, group: &Value| {
        let (number, price) = (group["count"].as_u64().unwrap_or_default(), text(&group["purchase_price"]));
        assets += number;
        value.push(price.to_owned());
        table.add([name, number.to_string(), price.to_owned()]);
    };
    for group in items(&stats["groups"]) {
        let name = match (&group["value"], group["id"].as_str()) {
            (value, Some(id)) => people.get(id).map_or_else(|| value.as_str().unwrap_or(id), String::as_str),
            (value, None) => value.as_str().unwrap_or("(none)"),
        };
        add(name.to_owned(), group);
    }
    let rest = &stats["rest"];
    if let Some(groups) = rest["groups"].as_u64().filter(|groups| *groups > 0) {
        add(format!("({})", count(groups, "smaller group")), rest);
    }
    table.add(["Total".to_owned(), assets.to_string(), sum(value.iter().map(String::as_str))]);
    table
}

/// Returns the exact sum of decimal strings, with at least two fractional digits.
fn sum<'a>(prices: impl Iterator<Item = &'a str>) -> String {
    const FRACTION: usize = 4;
    let units = |price: &str| {
        let (whole, fraction) = price.split_once('.').unwrap_or((price, ""));
        format!("{whole}{fraction:0<FRACTION$}").parse::<i128>().unwrap_or_default()
    };
    let digits = format!("{:05}", prices.map(units).sum::<i128>());
    let (whole, fraction) = digits.split_at(digits.len() - FRACTION);
    format!("{whole}.{:0<2}", fraction.trim_end_matches('0'))
}

fn summary(stats: &Value) -> String {
    let (assets, instances) = (&stats["assets"], &stats["instances"]);
    let number = |name: &str| assets[name].as_u64().unwrap_or_default();
    let heading = format!("{}: {} assigned, {} not", count(number("total"), "asset"), number("assigned"), number("unassigned"));
    let warranty = |name: &str| assets["warranty"][name].as_u64().unwrap_or_default().to_string();
    let warranties = [
        ("has ended", "ended"),
        ("ends within 30 days", "within_30"),
        ("ends within 60 days", "within_60"),
        ("ends within 90 days", "within_90"),
    ];
    let mut ends = Table::new(&[Column::text("WARRANTY"), Column::number("ASSETS")]);
    warranties.iter().for_each(|(title, name)| ends.add([(*title).to_owned(), warranty(name)]));
    let mut statuses = Table::new(&[Column::text("STATUS"), Column::number("ASSETS"), Column::number("VALUE")]);
    for (status, count) in members(&assets["by_status"]) {
        let value = assets["value_by_status"][status].as_str().unwrap_or("-").to_owned();
        statuses.add([status.to_owned(), count, value]);
    }
    let tables = [
        Some(statuses),
        counts("KIND", "ASSETS", &assets["by_kind"]),
        counts("TYPE", "ASSETS", &assets["by_type"]),
        counts("MANUFACTURER", "ASSETS", &assets["by_manufacturer"]),
        Some(ends),
        counts("PROCESS INSTANCES", "COUNT", &instances["by_status"]),
        counts("PROCESS", "INSTANCES", &instances["by_process"]),
    ];
    let tables = tables.into_iter().flatten().map(|table| table.render(terminal::width()));
    std::iter::once(heading).chain(tables).collect::<Vec<_>>().join("\n\n")
}

fn members(counts: &Value) -> impl Iterator<Item = (&str, String)> {
    counts.as_object().into_iter().flatten().map(|(name, count)| (name.as_str(), count.to_string()))
}

fn counts(title: &'static str, number: &'static str, counts: &Value) -> Option<Table> {
    let mut table = Table::new(&[Column::text(title), Column::number(number)]);
    members(counts).for_each(|(name, count)| table.add([if name.is_empty() { "(none)" } else { name }.to_owned(), count]));
    (!table.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assets() -> Vec<Value> {
        let ada = json!({"display_name": "Ada", "email": "ada@example.com"});
        vec![
            json!({"asset_tag": "AST-1", "name": "=1+1", "assigned_to": "u1", "assigned_user": ada, "custom_fields": {"a": 5},
                   "last_seen_at": "2026-03-05T10:00:00.000Z", "purchase_price": -1}),
            json!({"asset_tag": "AST-2", "name": "Lap, top", "assigned_to": null, "custom_fields": {}, "last_seen_at": null}),
        ]
    }

    #[test]
    fn a_table_shows_people_and_custom_fields() {
        let expected = "\
ASSET TAG  ASSIGNED TO            LAST SEEN AT      A
AST-1      Ada <ada@example.com>  2026-03-05 10:00  5
AST-2";
        assert_eq!(table(&assets(), &["asset_tag", "assigned_to", "last_seen_at", "custom_fields.a"]).render(None), expected);
    }

    #[test]
    fn csv_has_no_formulas() {
        let expected = "name,purchase_price,last_seen_at\r\n'=1+1,-1,2026-03-05T10:00:00.000Z\r\n\"Lap, top\",,\r\n";
        assert_eq!(csv(&assets(), &["name", "purchase_price", "last_seen_at"]).unwrap(), expected.as_bytes());
    }

    #[test]
    fn a_row_says_what_changed_and_who_changed_it() {
        let change = json!({"assigned_to": {"old": null, "new": "u1"}});
        let mut event = json!({"at": "2026-03-05T10:00:00.000Z", "type": "asset.updated", "entity_tag": "AST-1",
            "entity_name": "Laptop", "actor": {"user_name": "Grace", "key_name": "k"}, "changes": change});
        let people = BTreeMap::from([("u1".to_owned(), "Ada <ada@example.com>".to_owned())]);
        let line =
            |event: &Value| table(&[row(event, &people)], &EVENT_COLUMNS).render(None).lines().next_back().unwrap().to_owned();
        assert_eq!(line(&event), "2026-03-05 10:00  AST-1      Laptop  assigned_to: none → Ada  Grace");
        event["type"] = "user.created".into();
        event["actor"]["user_name"] = Value::Null;
        event["entity_tag"] = Value::Null;
        assert_eq!(line(&event), "2026-03-05 10:00             Laptop  user.created  k");
    }

    #[test]
    fn groups_end_with_the_rest_and_the_total() {
        let stats = json!({
            "groups": [
                {"value": "Berlin", "count": 12, "purchase_price": "10000.5"}, {"value": null, "count": 3, "purchase_price": "0.00"},
                {"value": null, "id": "u1", "count": 1, "purchase_price": "0.0301"}, {"id": "u2", "count": 1, "purchase_price": "1.00"}
            ],
            "rest": {"groups": 2, "count": 4, "purchase_price": "7.00"}
        });
        let expected = "\
COST CENTER         ASSETS  PURCHASE PRICE
Berlin                  12         10000.5
(none)                   3            0.00
Ada                      1          0.0301
u2                       1            1.00
(2 smaller groups)       4            7.00
Total                   21      10008.5301";
        let people = BTreeMap::from([("u1".to_owned(), "Ada".to_owned())]);
        assert_eq!(groups("custom_fields.cost_center", &stats, &people).render(Some(80)), expected);
        let none = groups("location", &json!({"groups": [], "rest": {"groups": 0}}), &people).render(None);
        assert_eq!(none, "LOCATION  ASSETS  PURCHASE PRICE\nTotal          0            0.00");
    }

    #[test]
    fn prices_are_added_exactly() {
        for (prices, expected) in [
            (&["0.1", "0.2"][..], "0.30"),
            (&["999999999999.9999", "0.0001"], "1000000000000.00"),
            (&["12", "-"], "12.00"),
            (&[], "0.00"),
        ] {
            assert_eq!(sum(prices.iter().copied()), expected);
        }
    }
}
