//! The options of an import, as the journal keeps them and as a command repeats them.

use crate::config::Connection;
use crate::error::Result;
use crate::http::request::new_run_id;
use crate::import::args::{Import, OnError};
use crate::import::columns::heading::Heading;
use crate::import::columns::owners::Owners;
use crate::import::columns::suggest::{as_option, quote};
use crate::import::rows::sniff;
use crate::import::source::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// Must change when rows are grouped differently.
const CHUNKING: &str = "3";

fn option(name: &str, value: &str) -> String {
    format!("{name} {}", quote(value))
}

/// As they are typed, of those that decide about rows.
#[must_use]
pub fn words(options: &Import) -> Vec<String> {
    let mut words: Vec<String> = options.users.then(|| "--users".to_owned()).into_iter().collect();
    words.extend(translations(options));
    words.extend(options.match_by.column().map(|column| format!("--match {column}")));
    words.extend(options.create_unmatched.then(|| "--create-unmatched".to_owned()));
    words.extend(options.date_format.as_ref().map(|format| option("--date-format", format.given())));
    words.extend(options.decimal_comma.then(|| "--decimal-comma".to_owned()));
    words.extend(options.decimal_point.then(|| "--decimal-point".to_owned()));
    words.extend(options.skip_bad.iter().map(|column| option("--skip-bad", column)));
    words
}

fn translations(options: &Import) -> Vec<String> {
    let mut words: Vec<String> = options.mappings.iter().map(as_option).collect();
    let values = options.value_mappings.iter();
    words.extend(values.map(|mapping| option("--map-value", &format!("{}={}", mapping.cell, mapping.meaning))));
    let constants = options.constants.iter();
    words.extend(constants.map(|constant| option("--set", &format!("{}={}", constant.field, constant.value))));
    words
}

/// With everything that decides about the requests.
pub fn heading(options: &Import, connection: &Connection, source: &Source) -> Result<Heading> {
    let run_id = new_run_id()?;
    let words = translations(options);
    let given = |name| words.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix(' ')).collect::<Vec<_>>().join(" ");
    let entries = [
        ("base URL", connection.base_url.to_string()),
        // Idempotency keys belong to an API key.
        ("API key", connection.api_key.prefix().to_owned()),
        ("--users", options.users.to_string()),
        ("--map", given("--map")),
        ("--map-value", given("--map-value")),
        ("--set", given("--set")),
        ("--match", options.match_by.column().unwrap_or("none").to_owned()),
        ("--create-unmatched", options.create_unmatched.to_string()),
        ("--on-error", if options.on_error == OnError::Abort { "abort" } else { "skip" }.to_owned()),
        ("--date-format", options.date_format.as_ref().map_or(String::new(), |format| format.given().to_owned())),
        ("--decimal-comma", options.decimal_comma.to_string()),
        ("--decimal-point", options.decimal_point.to_string()),
        ("--skip-bad", options.skip_bad.join(" ")),
        ("--encoding", source.examination.encoding.name().to_owned()),
        ("--delimiter", sniff::name(source.delimiter).to_owned()),
        ("--format", format!("{:?}", source.format).to_lowercase()),
        ("chunking", CHUNKING.to_owned()),
    ];
    let options: BTreeMap<String, String> = entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Heading { run_id, sha256: source.examination.sha256.clone(), options, owners: Owners::default() })
}

#[must_use]
pub fn resend_command(options: &Import, refused: Option<&Path>) -> Option<String> {
    let mut command = vec!["assetctl import".to_owned(), quote(&refused?.display().to_string())];
    command.extend(words(options));
    Some(command.join(" "))
}
