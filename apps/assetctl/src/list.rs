//! `assetctl list`.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::client::Client;
use crate::http::request::{get_document, take};
use crate::lookup::person;
use crate::output::{count, digits, print, print_data, print_json};
use crate::selection::{AssetFilters, nearest};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use terminal::{Column, Table, print_note, time};

/// The service's maximum.
const PAGE: u64 = 100;
const CUSTOM_FIELD: &str = "custom_fields.";
/// The columns of a table.
const COLUMNS: [&str; 6] = ["asset_tag", "name", "status", "location", "assigned_to", "warranty_until"];
/// Fields whose times a table shows to the minute.
const TIMES: [&str; 4] = ["created_at", "updated_at", "last_seen_at", "at"];
/// What a spreadsheet takes for the beginning of a formula.
const FORMULAS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Options of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Which assets
    #[command(flatten)]
    filters: AssetFilters,
    /// Sort by a field, such as location, or -purchase_price for the highest first; otherwise, the newest come first
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

pub fn at_least_one(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a number from 1 on".to_owned())
}

/// The form that the options ask for.
pub fn form(format: Option<Form>, is_json: bool) -> Result<Form> {
    match format {
        Some(Form::Table | Form::Csv) if is_json => Err(CliError::Usage("give --json or --format, not both".into())),
        None if is_json => Ok(Form::Json),
        format => Ok(format.unwrap_or(Form::Table)),
    }
}

/// The form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Columns for people
    Table,
    /// A table with a header, for spreadsheets
    Csv,
    /// An object, as with --json
    Json,
}

/// Prints all pages of the list.
pub async fn list(options: &List, connection: &Connection, is_json: bool) -> Result<u8> {
    let form = form(options.format, is_json)?;
    let client = Client::new(connection)?.with_exact_numbers();
    let mut query = options.filters.pairs(&client).await?;
    query.extend(options.sort.iter().map(|sort| ("sort".to_owned(), sort.clone())));
    let (assets, total) = match read(&client, query, options.limit.unwrap_or(u64::MAX)).await {
        Err(error) => return Err(options.filters.explain(&client, error).await),
        read => read?,
    };
    if total == 0 {
        options.filters.explain_nothing(&client).await;
    }
    let columns: Vec<&str> = options.columns.iter().map(String::as_str).collect();
    if let Some(first) = assets.first() {
        check(&columns, first)?;
    }
    match form {
        Form::Json if columns.is_empty() => print_json(&json!({"total": total, "assets": assets}))?,
        Form::Json => {
            let assets: Value = assets.iter().map(|asset| picked(asset, &columns)).collect();
            print_json(&json!({"total": total, "assets": assets}))?;
        }
        Form::Csv => print_data(csv(&assets, if columns.is_empty() { &COLUMNS } else { &columns })?.trim_end_matches("\r\n"))?,
        Form::Table => {
            print(&table(&assets, if columns.is_empty() { &COLUMNS } else { &columns }).render(terminal::width()))?;
            let shown = assets.len() as u64;
            let all = if shown < total { format!("{shown} of ") } else { String::new() };
            print_note(&format!("{all}{}", count(total, "asset")));
        }
    }
    Ok(EXIT_SUCCESS)
}

/// At most `limit` assets, and the number of all that match. Each has its `assigned_user` if the key may read users.
pub async fn read(client: &Client, mut query: Vec<(String, String)>, limit: u64) -> Result<(Vec<Value>, u64)> {
    query.push(("limit".to_owned(), PAGE.min(limit).to_string()));
    let (mut assets, mut is_expanded) = (Vec::new(), true);
    for page in 1_u64.. {
        let number = page.to_string();
        let document = async |is_expanded: bool| {
            let pairs = query.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let expand = is_expanded.then_some(("expand", "assigned_to"));
            let pairs: Vec<(&str, &str)> = pairs.chain([("page", number.as_str())]).chain(expand).collect();
            get_document(client, "assets", &pairs).await
        };
        let (mut document, _) = match document(is_expanded).await {
            Err(CliError::Answered { status: 403, .. }) if is_expanded => {
                is_expanded = false;
                document(false).await?
            }
            read => read?,
        };
        let total = document["meta"]["total"].as_u64().unwrap_or_default();
        let Value::Array(rows) = take(&mut document, "data") else { return Ok((assets, total)) };
        let is_last = rows.is_empty();
        assets.extend(rows);
        let read = assets.len() as u64;
        if is_last || read >= limit.min(total) {
            assets.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            return Ok((assets, total));
        }
    }
    Ok((assets, 0))
}

fn check(columns: &[&str], asset: &Value) -> Result<()> {
    let is_known = |column: &&&str| column.starts_with(CUSTOM_FIELD) || asset.get(**column).is_some();
    let Some(unknown) = columns.iter().find(|column| !is_known(column)) else { return Ok(()) };
    let known = nearest(unknown, asset.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)));
    Err(CliError::Usage(format!("--columns: unknown {unknown}; known: {}, custom_fields.NAME", known.join(", "))))
}

/// Null if the asset doesn't have it.
fn field<'a>(asset: &'a Value, column: &str) -> &'a Value {
    match column.strip_prefix(CUSTOM_FIELD) {
        Some(name) => &asset["custom_fields"][name],
        None => &asset[column],
    }
}

fn picked(asset: &Value, columns: &[&str]) -> Value {
    columns.iter().map(|column| ((*column).to_owned(), field(asset, column).clone())).collect::<Map<_, _>>().into()
}

/// `custom_fields.cost_center` is `COST CENTER`.
fn title(column: &str) -> Column {
    Column::named(&column.trim_start_matches(CUSTOM_FIELD).to_uppercase().replace('_', " "))
}

/// Empty if it is not set.
fn cell(asset: &Value, column: &str) -> String {
    match field(asset, column) {
        Value::Null => String::new(),
        number if digits(number).is_some() => digits(number).unwrap_or_default().to_owned(),
        Value::String(_) if column == "assigned_to" && asset["assigned_user"].is_object() => person(&asset["assigned_user"]),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn table(assets: &[Value], columns: &[&str]) -> Table {
    let titles: Vec<Column> = columns.iter().map(|column| title(column)).collect();
    let mut table = Table::new(&titles);
    for asset in assets {
        let shown = |column: &&str| if TIMES.contains(column) { time(&cell(asset, column)) } else { cell(asset, column) };
        table.add(columns.iter().map(shown));
    }
    table
}

pub fn csv(assets: &[Value], columns: &[&str]) -> Result<String> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let failed = |error: &dyn std::fmt::Display| CliError::Failed(format!("can't write CSV: {error}"));
    writer.write_record(columns).map_err(|error| failed(&error))?;
    for asset in assets {
        let cells = columns.iter().map(|column| {
            let cell = cell(asset, column);
            let value = field(asset, column);
            if cell.starts_with(FORMULAS) && value.is_string() && digits(value).is_none() { format!("'{cell}") } else { cell }
        });
        writer.write_record(cells).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
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
        assert_eq!(csv(&assets(), &["name", "purchase_price", "last_seen_at"]).unwrap(), expected);
    }

    #[test]
    fn unknown_columns_are_refused_with_the_known_ones() {
        assert!(check(&["name", "custom_fields.x"], &assets()[0]).is_ok());
        let refused = check(&["nmae"], &assets()[1]).unwrap_err().to_string();
        assert!(refused.starts_with("--columns: unknown nmae; known: ") && refused.contains("asset_tag"), "{refused}");
    }
}
