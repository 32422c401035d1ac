//! `assetctl set`: changes fields of assets. The changes are rows of an import, so the service decides the type of each value and
//! resolves names, and a dry run tells what would change. `user change` and the assistant's tools change records in the same way.

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id, unreadable, wrong_parameter};
use crate::import::chunks::MAX_ROWS;
use crate::lookup::{self, id_of, items, people_with, text};
use crate::output::{Format, count, digits, print_json, to_json};
use clap::Args;
use csv::WriterBuilder;
use domain::assets::csv_cell::{CLEAR, from_text};
use domain::import::{CUSTOM_FIELD, Kind};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use terminal::{Column, Table, clean, print, print_note};

/// The type of an asset, by its code or name, and the field for its ID.
const ASSET_TYPE: &str = "asset_type";
const ASSET_TYPE_ID: &str = "asset_type_id";

#[derive(Debug, Args)]
pub struct Set {
    /// Assets (tags, IDs or serial numbers), and the new values of their fields; an empty value clears a field
    #[arg(required = true, value_name = "TAG|FIELD=VALUE")]
    words: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Changes assets, one row of an import each.
pub async fn set(options: &Set, connection: &Connection, is_json: bool) -> Result<u8> {
    let client = Client::new(connection)?.with_exact_numbers();
    let (names, fields) = split(&options.words)?;
    let (fields, mut labels) = resolved(&client, fields).await?;
    let assets = lookup::assets(&client, &names).await?;
    // An asset has the name of its type.
    let types = assets.iter().map(|asset| (text(&asset[ASSET_TYPE_ID]).to_owned(), text(&asset["asset_type_name"]).to_owned()));
    labels.extend(types);
    carry_out(&Change::to(&client, Kind::Assets, assets, fields), options.dry_run, labels, is_json).await
}

/// A field's name, and a value.
type Cell = (String, String);

/// Splits words into names of records and assignments `FIELD=VALUE`.
fn split(words: &[String]) -> Result<(Vec<String>, Vec<Cell>)> {
    let (mut names, mut fields) = (Vec::new(), Vec::new());
    for word in words {
        match assignment(word) {
            Ok(field) => fields.push(field),
            Err(_) => names.push(word.clone()),
        }
    }
    match (names.is_empty(), fields.is_empty()) {
        (true, _) => Err(CliError::Usage("name the assets to change: assetctl set AST-000007 status=in_stock".into())),
        (_, true) => Err(CliError::Usage("give a new value, such as status=in_stock".into())),
        _ => Ok((names, fields)),
    }
}

/// Parses `FIELD=VALUE`. A name that no field can have, as in a scanned address, is an error.
pub fn assignment(text: &str) -> Result<Cell, String> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let field = text.split_once('=').filter(|(name, _)| is_name(name) || name.starts_with(CUSTOM_FIELD));
    let (name, value) = field.ok_or("must be FIELD=VALUE, such as location=Berlin")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Replaces the names of users and types by IDs. Also returns the names of the types by ID.
async fn resolved(client: &Client, fields: Vec<Cell>) -> Result<(Vec<Cell>, BTreeMap<String, String>)> {
    let (mut resolved, mut labels) = (Vec::new(), BTreeMap::new());
    for (name, value) in fields {
        resolved.push(match name.as_str() {
            "assigned_to" if !value.is_empty() => (name, id_of(&lookup::user(client, &value).await?)),
            ASSET_TYPE if !value.is_empty() => {
                let found = lookup::asset_type(client, &value).await?;
                labels.insert(id_of(&found), text(&found["name"]).to_owned());
                (ASSET_TYPE_ID.to_owned(), id_of(&found))
            }
            ASSET_TYPE => (ASSET_TYPE_ID.to_owned(), value),
            _ => (name, value),
        });
    }
    Ok((resolved, labels))
}

/// The new values of fields.
enum Fields {
    /// Texts, whose types the service decides. An empty text clears the field.
    Cells(Vec<Cell>),
    Values(Map<String, Value>),
}

/// A change of the same fields in several records. A record with an `updated_at` is refused if somebody has changed it since.
pub struct Change<'c> {
    client: &'c Client,
    kind: Kind,
    records: Vec<Value>,
    fields: Fields,
    /// Whether nothing is written if a record is refused.
    is_all_or_none: bool,
}

impl<'c> Change<'c> {
    pub fn to(client: &'c Client, kind: Kind, records: Vec<Value>, cells: Vec<Cell>) -> Self {
        Self { client, kind, records, fields: Fields::Cells(cells), is_all_or_none: false }
    }

    pub fn to_values(client: &'c Client, records: Vec<Value>, values: Map<String, Value>) -> Self {
        Self { client, kind: Kind::Assets, records, fields: Fields::Values(values), is_all_or_none: true }
    }

    /// Sends the rows. Returns the outcome of each, in the order of the records. Without an idempotency key, this is a dry run,
    /// whose outcomes have the `changes`.
    ///
    /// # Errors
    ///
    /// Returns [`CliError::Usage`] if the service doesn't know a field.
    pub async fn send(&self, key: Option<&str>) -> Result<Vec<Value>> {
        let path = format!("{}/import", self.kind.path());
        let mut query = vec![("match", "id"), ("on_error", if self.is_all_or_none { "abort" } else { "skip" })];
        query.extend(key.is_none().then_some(("dry_run", "true")));
        let mut outcomes = Vec::new();
        for (records, number) in self.records.chunks(MAX_ROWS).zip(1..) {
            let key = key.map(|key| if number == 1 { key.to_owned() } else { format!("{key}-{number}") });
            let sent = self.client.post_rows(&path, &query, self.rows(records)?, key.as_deref()).await;
            outcomes.extend(items(&sent.map_err(wrong_parameter)?).iter().cloned());
        }
        if outcomes.len() == self.records.len() { Ok(outcomes) } else { Err(unreadable()) }
    }

    fn rows(&self, records: &[Value]) -> Result<(Format, Vec<u8>)> {
        let is_guarded = records.iter().all(|record| record["updated_at"].is_string());
        let guards: &[&str] = if is_guarded { &["id", "updated_at"] } else { &["id"] };
        match &self.fields {
            Fields::Values(values) => {
                let row = |record: &Value| {
                    let guards = guards.iter().map(|name| ((*name).to_owned(), record[*name].clone()));
                    format!("{}\n", Value::Object(guards.chain(values.clone()).collect()))
                };
                Ok((Format::Ndjson, records.iter().map(row).collect::<String>().into_bytes()))
            }
            Fields::Cells(cells) => {
                for (index, (name, _)) in cells.iter().enumerate() {
                    if guards.contains(&name.as_str()) || cells.iter().skip(index + 1).any(|(other, _)| other == name) {
                        let why = if guards.contains(&name.as_str()) { "can't be changed" } else { "is given twice" };
                        return Err(CliError::Usage(format!("{name} {why}")));
                    }
                }
                let mut writer = WriterBuilder::new().from_writer(Vec::new());
                let failed = |error: csv::Error| CliError::Failed(error.to_string());
                let names = guards.iter().copied().chain(cells.iter().map(|(name, _)| name.as_str()));
                writer.write_record(names).map_err(failed)?;
                for record in records {
                    let values = cells.iter().map(|(_, value)| if value.is_empty() { CLEAR.into() } else { from_text(value) });
                    let row = guards.iter().map(|name| Cow::from(text(&record[*name]))).chain(values);
                    writer.write_record(row.map(Cow::into_owned)).map_err(failed)?;
                }
                Ok((Format::Csv, writer.into_inner().map_err(|error| CliError::Failed(error.to_string()))?))
            }
        }
    }
}

/// Makes the change, and prints what changes in each record. `labels` are names by ID.
pub async fn carry_out(change: &Change<'_>, dry_run: bool, labels: BTreeMap<String, String>, is_json: bool) -> Result<u8> {
    let mut outcomes = change.send(None).await?;
    if !dry_run {
        let planned = std::mem::replace(&mut outcomes, change.send(Some(&new_run_id()?)).await?);
        for (outcome, planned) in outcomes.iter_mut().zip(&planned) {
            if outcome["outcome"] == "updated" {
                outcome["changes"] = planned["changes"].clone();
            }
        }
    }
    let refused = number_of(&outcomes, "refused");
    let code = if refused == 0 { EXIT_SUCCESS } else { EXIT_REFUSED };
    if is_json {
        for (outcome, record) in outcomes.iter_mut().zip(&change.records) {
            let name = if change.kind == Kind::Users { "email" } else { "asset_tag" };
            outcome[name] = record[name].clone();
        }
        print_json(&json!({"rows": outcomes, "dry_run": dry_run}))?;
        return Ok(code);
    }
    let people = outcomes.iter().flat_map(|outcome| items(&outcome["changes"])).filter(|change| change["field"] == "assigned_to");
    let people = people.flat_map(|change| [&change["old"], &change["new"]]).filter_map(Value::as_str);
    let mut names = labels;
    names.extend(people_with(change.client, people).await?);
    print(&table(change, &outcomes, &names).render(terminal::width()))?;
    print_note(&summary(&outcomes, change.kind, dry_run));
    Ok(code)
}

fn number_of(outcomes: &[Value], kind: &str) -> u64 {
    outcomes.iter().filter(|outcome| outcome["outcome"] == kind).count() as u64
}

fn table(change: &Change<'_>, outcomes: &[Value], names: &BTreeMap<String, String>) -> Table {
    let (title, name) = if change.kind == Kind::Users { ("USER", "email") } else { ("TAG", "asset_tag") };
    let mut table = Table::new(&[Column::new(title), Column::text("CHANGES")]);
    for (record, outcome) in change.records.iter().zip(outcomes) {
        table.add([text(&record[name]).to_owned(), told(outcome, names)]);
    }
    table
}

/// Describes the outcome of a row, such as `location: Berlin → none`.
fn told(outcome: &Value, names: &BTreeMap<String, String>) -> String {
    let value = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if digits(value).is_none() => names.get(text).unwrap_or(text).clone(),
        other => to_json(other),
    };
    let field = |change: &Value| if change["field"] == ASSET_TYPE_ID { ASSET_TYPE } else { text(&change["field"]) }.to_owned();
    let change = |change: &Value| format!("{}: {} → {}", field(change), value(&change["old"]), value(&change["new"]));
    match text(&outcome["outcome"]) {
        "refused" => format!("refused: {}", refusal(outcome)),
        "updated" => {
            let more = outcome["more_changes"].as_u64().map(|more| format!("{more} more"));
            items(&outcome["changes"]).iter().map(change).chain(more).collect::<Vec<_>>().join(", ")
        }
        other => other.to_owned(),
    }
}

/// Returns the errors of a refused row, in the service's words.
pub fn refusal(outcome: &Value) -> String {
    let error = |error: &Value| match error["column"].as_str() {
        Some(column) => format!("{column}: {}", text(&error["detail"])),
        None => text(&error["detail"]).to_owned(),
    };
    items(&outcome["errors"]).iter().map(error).collect::<Vec<_>>().join("; ")
}

/// Counts the outcomes, such as `2 assets changed, 1 unchanged`.
fn summary(outcomes: &[Value], kind: Kind, dry_run: bool) -> String {
    let noun = if kind == Kind::Users { "user" } else { "asset" };
    let verb = if dry_run { "would change" } else { "changed" };
    let mut summary = format!("{} {verb}", count(number_of(outcomes, "updated"), noun));
    for kind in ["unchanged", "refused"] {
        let number = number_of(outcomes, kind);
        if number > 0 {
            summary.push_str(&format!(", {number} {kind}"));
        }
    }
    summary
}

/// Like [`Change::send`], but fails if a record is refused.
///
/// # Errors
///
/// Returns [`CliError::Answered`] with the service's words, and with status 412 if somebody has changed a record.
pub async fn accepted(change: &Change<'_>, key: Option<&str>) -> Result<Vec<Value>> {
    let outcomes = change.send(key).await?;
    // Tags by refusal.
    let mut refused: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (record, outcome) in change.records.iter().zip(&outcomes).filter(|(_, outcome)| outcome["outcome"] == "refused") {
        refused.entry(refusal(outcome)).or_default().push(text(&record["asset_tag"]));
    }
    if refused.is_empty() {
        return Ok(outcomes);
    }
    let has_code = |error: &Value| error["code"] == "PRECONDITION_FAILED";
    let is_changed = outcomes.iter().any(|outcome| items(&outcome["errors"]).iter().any(has_code));
    let lines = refused.iter().map(|(refusal, tags)| clean(&format!("{}: {refusal}", tags.join(", ")))).collect::<Vec<_>>();
    let (status, code) = if is_changed { (412, "PRECONDITION_FAILED") } else { (422, "VALIDATION_ERROR") };
    Err(CliError::Answered { status, code: code.into(), detail: lines.join("\n"), errors: Vec::new() })
}
