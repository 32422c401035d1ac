//! `assetctl import --suggest`: asks the service how to import a file, and prints the command.

use crate::config::Connection;
use crate::error::{EXIT_SUCCESS, Result};
use crate::http::{Client, unreadable};
use crate::import::args::{Import, command, with_options};
use crate::import::source::Source;
use crate::output::{count, print_json};
use domain::import::REASONS;
use domain::import::parameters::Mapping;
use serde::Deserialize;
use serde_json::json;
use terminal::{clean, print_data, print_note};

/// Maximum size of the beginning of a file, in bytes.
const MAX_BEGINNING: usize = 1_000_000;

/// The service's suggestion.
#[derive(Debug, Deserialize)]
struct Suggestion {
    parameters: Vec<Parameter>,
    columns: Vec<Column>,
    doubts: Vec<String>,
    list: String,
}

#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct Column {
    heading: String,
    field: Option<String>,
    why: String,
}

pub async fn suggest(options: &Import, connection: &Connection, is_json: bool) -> Result<u8> {
    let source = Source::open(options)?;
    let client = Client::new(connection)?.giving_up_after(options.give_up_after);
    let path = format!("{}/import/suggest", options.kind().path());
    // A dry run can be sent again if the service is busy.
    let url = client.url(&path, &[&options.parameters()[..], &[("dry_run", "true".to_owned())]].concat())?;
    let beginning = source.beginning(MAX_BEGINNING)?.into_bytes();
    let answer = client.ask(url, source.format.content_type(), beginning).await?;
    let suggestion: Suggestion = serde_json::from_value(answer["data"].clone()).map_err(|_| unreadable())?;
    let detected = source.delimiter_name();
    let is_needed =
        |parameter: &&Parameter| parameter.name != "delimiter" || options.delimiter.is_some() || parameter.value != detected;
    let mut parameters: Vec<(&str, String)> = suggestion
        .parameters
        .iter()
        .filter(is_needed)
        .map(|parameter| (parameter.name.as_str(), parameter.value.clone()))
        .collect();
    // A column that nothing places isn't dropped without a word: the command runs only once somebody has decided.
    let written = |column: &Column, field| Mapping::of(&column.heading, field).to_string();
    let is_mapped = |column: &Column| parameters.contains(&("map", written(column, None)));
    let open: Vec<&Column> = suggestion
        .columns
        .iter()
        .filter(|column| column.field.is_none() && !is_mapped(column) && column.heading != REASONS)
        .collect();
    let place = parameters.iter().rposition(|(name, _)| *name == "map").map_or(0, |place| place + 1);
    parameters.splice(place..place, open.iter().map(|column| ("map", written(column, Some("?")))));
    let mut notes = source.doubts(options);
    notes.extend(suggestion.doubts.iter().map(|doubt| with_options(doubt)));
    if suggestion.list == "users" && !options.users {
        notes.push("For a list of users: add --users.".to_owned());
    }
    notes.extend(open.iter().map(|column| format!("{}: {}.", column.heading, column.why)));
    if !open.is_empty() {
        let keep = if options.users { "a field, such as display_name" } else { "a field, such as notes or custom_fields.NAME" };
        notes.push(format!("Write {keep} instead of each \"?\", or nothing, to ignore the column."));
    }
    let mut words = command(options, &source.path, &parameters);
    words.extend(options.encoding.map(|encoding| format!("--encoding {}", encoding.name())));
    words.extend(options.format.map(|format| format!("--format {}", format.name())));
    if is_json {
        let unknown: Vec<&str> = open.iter().map(|column| column.heading.as_str()).collect();
        print_json(&json!({
            "columns": source.header.names, "command": words.join(" "), "options": words.get(1..).unwrap_or_default(),
            "unknown": unknown, "notes": notes, "suggestion": answer["data"],
        }))?;
        return Ok(EXIT_SUCCESS);
    }
    print_note(&format!("{}, {}", source.describe(), count(answer["data"]["rows"].as_u64().unwrap_or_default(), "row")));
    notes.iter().for_each(|note| print_note(&clean(note)));
    print_note("Nothing was imported. This command imports the file; add --dry-run to check every row first:");
    print_data(&words.join(" \\\n  "))?;
    Ok(EXIT_SUCCESS)
}
