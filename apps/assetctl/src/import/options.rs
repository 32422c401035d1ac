//! The options of an import, as the journal keeps them and as a command repeats them.

use crate::config::Connection;
use crate::error::Result;
use crate::http::request::new_run_id;
use crate::import::args::{Import, OnError};
use crate::import::columns::heading::Heading;
use crate::import::columns::suggest::{as_option, quote};
use crate::import::rows::sniff;
use crate::import::source::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// Must change when rows are grouped differently.
const CHUNKING: &str = "2";

/// With everything that decides about the requests.
pub fn heading(options: &Import, connection: &Connection, source: &Source) -> Result<Heading> {
    let run_id = new_run_id()?;
    let mappings: Vec<String> = options.mappings.iter().map(as_option).collect();
    let entries = [
        ("base URL", connection.base_url.to_string()),
        // Idempotency keys belong to an API key.
        ("API key", connection.api_key.prefix().to_owned()),
        ("--users", options.users.to_string()),
        ("--map", mappings.join(" ")),
        ("--match", options.match_by.column().unwrap_or("none").to_owned()),
        ("--create-unmatched", options.create_unmatched.to_string()),
        ("--on-error", if options.on_error == OnError::Abort { "abort" } else { "skip" }.to_owned()),
        ("--date-format", options.date_format.as_ref().map_or(String::new(), |format| format.given().to_owned())),
        ("--decimal-comma", options.decimal_comma.to_string()),
        ("--encoding", source.examination.encoding.name().to_owned()),
        ("--delimiter", sniff::name(source.delimiter).to_owned()),
        ("--format", format!("{:?}", source.format).to_lowercase()),
        ("chunking", CHUNKING.to_owned()),
    ];
    let options: BTreeMap<String, String> = entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Heading { run_id, sha256: source.examination.sha256.clone(), options })
}

#[must_use]
pub fn resend_command(options: &Import, refused: Option<&Path>) -> Option<String> {
    let mut words = vec!["assetctl import".to_owned(), quote(&refused?.display().to_string())];
    if options.users {
        words.push("--users".into());
    }
    words.extend(options.mappings.iter().map(as_option));
    if let Some(column) = options.match_by.column() {
        words.push(format!("--match {column}"));
    }
    if options.create_unmatched {
        words.push("--create-unmatched".into());
    }
    if let Some(format) = &options.date_format {
        words.push(format!("--date-format {}", quote(format.given())));
    }
    if options.decimal_comma {
        words.push("--decimal-comma".into());
    }
    Some(words.join(" "))
}
