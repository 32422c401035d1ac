//! `assetctl import --suggest`: the command that imports a file, as far as its columns and cells look familiar.

pub mod dates;
mod matching;
mod survey;
mod values;
pub mod words;

use crate::error::{EXIT_SUCCESS, Result};
use crate::import::args::Import;
use crate::import::columns::Mapping;
use crate::import::columns::convert::DateFormat;
use crate::import::columns::suggest::{quote, suggestions};
use crate::import::options::words;
use crate::import::source::Source;
use crate::output::{count, print_data, print_json};
use clap::ValueEnum;
use dates::Finding;
use serde_json::json;
use survey::Survey;
use terminal::{clean, print_note};

pub fn suggest(options: &Import, is_json: bool) -> Result<u8> {
    let source = Source::open(options)?;
    let found = suggestions(options.kind(), &source.names, &options.mappings);
    let mut suggested = options.clone();
    suggested.mappings.extend(found.mappings);
    let survey = Survey::of(&source, &suggested)?;
    let mut notes = Vec::new();
    values::owners(&mut suggested, &survey, &options.mappings, &mut notes);
    values::vocabularies(&mut suggested, &survey, &mut notes);
    dates(&mut suggested, &survey, &mut notes);
    prices(&mut suggested, &survey, &mut notes);
    matching::suggest(&mut suggested, &survey, &mut notes);
    let ignored: Vec<&str> = found.unknown.iter().map(String::as_str).collect();
    suggested.mappings.extend(ignored.iter().map(|column| Mapping { column: (*column).to_owned(), field: None }));
    if !ignored.is_empty() {
        notes.push(format!(
            "No guess for {}, so the command ignores {}. To keep a column: --map \"COLUMN=custom_fields.NAME\".",
            ignored.join(", "),
            if ignored.len() == 1 { "it" } else { "them" }
        ));
    }
    let has = |field: &str| survey.column(field).is_some();
    if !options.users && !has("asset_type_code") && !has("asset_type_id") && options.constants.is_empty() {
        notes.push("No column has the asset type. --set asset_type_code=CODE gives all rows one.".to_owned());
    }
    if has("model") || has("manufacturer") {
        notes.push(
            "manufacturer and model are free text. For models in your catalog, use manufacturer_name and model_name.".to_owned(),
        );
    }
    let words = command(&suggested);
    if is_json {
        let options = words.get(1..).unwrap_or_default();
        let report = json!({
            "columns": source.names, "command": words.join(" "), "options": options, "unknown": found.unknown, "notes": notes
        });
        print_json(&report)?;
        return Ok(EXIT_SUCCESS);
    }
    print_note(&format!("{}, {}", source.describe(), count(survey.rows, "row")));
    notes.iter().for_each(|note| print_note(&clean(note)));
    print_note("Nothing was sent. This command imports the file; add --dry-run to check every row first:");
    print_data(&words.join(" \\\n  "))?;
    Ok(EXIT_SUCCESS)
}

/// The command, and each of its options.
fn command(options: &Import) -> Vec<String> {
    let mut command = vec![format!("assetctl import {}", quote(&options.file.display().to_string()))];
    command.extend(words(options));
    command.extend(options.encoding.map(|encoding| format!("--encoding {}", encoding.name())));
    let name = |value: clap::builder::PossibleValue| value.get_name().to_owned();
    let delimiter = options.delimiter.and_then(|delimiter| delimiter.to_possible_value()).map(name);
    command.extend(delimiter.map(|delimiter| format!("--delimiter {delimiter}")));
    let format = options.format.and_then(|format| format.to_possible_value()).map(name);
    command.extend(format.map(|format| format!("--format {format}")));
    command
}

fn dates(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    if options.date_format.is_some() {
        return;
    }
    match survey.dates.finding() {
        Finding::Clear(format) => {
            options.date_format = DateFormat::parse(format).ok();
            let misfits = survey.dates.misfits(format);
            if misfits > 0 {
                notes.push(format!("{} not of the form {format}, and will be refused.", are(misfits, "date")));
            }
        }
        Finding::Ambiguous(one, other) => {
            notes.push(format!("Dates fit {one} and {other}. Add --date-format with the right one: it is not guessed."));
        }
        Finding::Nothing => {}
    }
}

fn prices(options: &mut Import, survey: &Survey, notes: &mut Vec<String>) {
    match survey.prices.finding() {
        Finding::Clear(_) => options.decimal_comma = true,
        Finding::Ambiguous(..) if !options.decimal_comma => notes.push(
            "Prices can be read with a decimal comma and with a decimal point. If 1.249 is more than a thousand, add --decimal-comma."
                .to_owned(),
        ),
        Finding::Ambiguous(..) | Finding::Nothing => {}
    }
}

/// `1 row is`, `2 rows are`.
fn are(number: u64, thing: &str) -> String {
    format!("{} {}", count(number, thing), if number == 1 { "is" } else { "are" })
}
