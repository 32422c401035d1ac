//! The options of an import, as a command repeats them.

use crate::import::args::Import;
use crate::import::columns::suggest::{as_option, quote};
use std::path::Path;

fn option(name: &str, value: &str) -> String {
    format!("{name} {}", quote(value))
}

/// As they are typed, of those that decide about rows.
#[must_use]
pub fn words(options: &Import) -> Vec<String> {
    let mut words: Vec<String> = options.users.then(|| "--users".to_owned()).into_iter().collect();
    words.extend(options.mappings.iter().map(as_option));
    let values = options.value_mappings.iter();
    words.extend(values.map(|mapping| option("--map-value", &format!("{}={}", mapping.cell, mapping.meaning))));
    let constants = options.constants.iter();
    words.extend(constants.map(|constant| option("--set", &format!("{}={}", constant.field, constant.value))));
    words.extend(options.match_by.column().map(|column| format!("--match {column}")));
    words.extend(options.create_unmatched.then(|| "--create-unmatched".to_owned()));
    words.extend(options.date_format.as_ref().map(|format| option("--date-format", format.given())));
    words.extend(options.decimal_comma.then(|| "--decimal-comma".to_owned()));
    words.extend(options.decimal_point.then(|| "--decimal-point".to_owned()));
    words.extend(options.skip_bad.iter().map(|column| option("--skip-bad", column)));
    words
}

#[must_use]
pub fn resend_command(options: &Import, refused: Option<&Path>) -> Option<String> {
    let mut command = vec!["assetctl import".to_owned(), quote(&refused?.display().to_string())];
    command.extend(words(options));
    Some(command.join(" "))
}
