//! The result of each request's rows, and the summary at the end of an import.

use crate::error::{CliError, Result};
use crate::import::args::{Import, OnError};
use crate::import::refused::{Reason, Report};
use crate::import::rows::{RowError, encoding};
use crate::import::sender::FieldChange;
use crate::import::source::Source;
use crate::output::{count, duration, print, print_json};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use terminal::{clean, print_note};

/// Reasons that are told on a terminal.
const MAX_LINES: usize = 20;

pub struct Summary {
    kind: &'static str,
    is_dry_run: bool,
    aborts: bool,
    pub is_json: bool,
}

impl Summary {
    #[must_use]
    pub fn new(options: &Import, is_json: bool) -> Self {
        let aborts = options.on_error == OnError::Abort;
        Self { kind: options.kind().path(), is_dry_run: options.dry_run, aborts, is_json }
    }
}

pub fn print_summary(
    summary: &Summary,
    source: &Source,
    report: &Report<'_>,
    file: Option<&Path>,
    elapsed: Duration,
    has_written: bool,
    resend: Option<String>,
) -> Result<()> {
    if summary.is_json {
        return print_json(&as_json(summary, source, report, file, elapsed, has_written));
    }
    let reasons = report.reasons.most_frequent();
    for reason in reasons.iter().take(MAX_LINES) {
        print_note(&format!("{}\n  {}", clean(&reason.to_string()), clean(&reason.way_out())));
    }
    let more = reasons.len().saturating_sub(MAX_LINES) as u64 + report.reasons.left_out();
    if more > 0 {
        print_note(&format!("and {}, in the file of refused rows", count(more, "more reason")));
    }
    let counts = &report.counts;
    let (heading, would_be) = match (summary.is_dry_run, has_written) {
        (true, _) => ("Dry run, nothing was written:", " would be"),
        (_, true) => ("Imported:", ""),
        _ => ("Nothing was written:", " would be"),
    };
    let already = match counts.already {
        0 => String::new(),
        rows => format!(", {rows} imported already"),
    };
    print(&format!(
        "{heading} {} of {} in {}:{would_be} {} created, {} updated, {} unchanged, {} refused, {} skipped{already}",
        count(counts.rows(), "row"),
        summary.kind,
        duration(elapsed),
        counts.created,
        counts.updated,
        counts.unchanged,
        counts.refused,
        counts.skipped
    ))?;
    if counts.already > 0 {
        print_note("Rows that this command imported in the last 24 hours are left as they are. --again imports them again.");
    }
    print_skipped(report, would_be);
    print_changes(report, source)?;
    let Some(file) = file else { return Ok(()) };
    match resend {
        _ if !has_written || summary.aborts => {
            print_note(&format!(
                "The refused rows and the reasons are in {}. Mend them in {} and send it again.",
                file.display(),
                source.path.display()
            ));
            if has_written && summary.aborts {
                print_note("Rows in requests before the refused one were written. They are left as they are then.");
            }
        }
        Some(command) => {
            print_note(&format!("The refused rows are in {}. Mend them there, and send them:\n  {command}", file.display()));
        }
        None => {}
    }
    Ok(())
}

fn print_skipped(report: &Report<'_>, would_be: &str) {
    if report.skipped_cells == 0 {
        return;
    }
    let is = match (would_be, report.skipped_cells) {
        ("", 1) => "was",
        ("", _) => "were",
        _ => "would be",
    };
    print_note(&format!("{} {is} left out, as --skip-bad says:", count(report.skipped_cells, "bad cell")));
    for reason in report.skipped.most_frequent().iter().take(MAX_LINES) {
        print_note(&format!("  {}", clean(&reason.to_string())));
    }
}

/// Only a dry run knows them.
fn print_changes(report: &Report<'_>, source: &Source) -> Result<()> {
    let changes = report.changes.most_frequent();
    for (field, change) in changes.iter().take(MAX_LINES) {
        let (old, new) = &change.example;
        print(&clean(&format!("  {field}: {}, such as {old} to {new}", count(change.rows, "row"))))?;
    }
    let more = changes.len().saturating_sub(MAX_LINES) as u64;
    if more > 0 {
        print(&format!("  and {}", count(more, "more field")))?;
    }
    for (field, change) in changes.iter().filter(|(_, change)| change.zeros > 0) {
        let (old, new) = &change.example_of_zeros;
        print_note(&clean(&format!(
            "Warning: {field}: in {} only leading zeros differ, such as {old} and {new}. A spreadsheet may have dropped them: format \
             the column as text in {}, or leave it out.",
            count(change.zeros, "row"),
            source.path.display()
        )));
    }
    Ok(())
}

fn as_json(
    summary: &Summary,
    source: &Source,
    report: &Report<'_>,
    file: Option<&Path>,
    elapsed: Duration,
    has_written: bool,
) -> Value {
    let counts = &report.counts;
    json!({
        "kind": summary.kind,
        "file": source.path,
        "encoding": source.examination.encoding.name(),
        "delimiter": encoding::delimiter_name(source.delimiter),
        "dry_run": summary.is_dry_run,
        "written": has_written,
        "rows": counts.rows(),
        "created": counts.created,
        "updated": counts.updated,
        "unchanged": counts.unchanged,
        "refused": counts.refused,
        "skipped": counts.skipped,
        "imported_already": counts.already,
        "skipped_cells": report.skipped_cells,
        "skipped_cell_reasons": report.skipped.most_frequent().iter().map(Reason::as_json).collect::<Vec<_>>(),
        "changes": report.changes.as_json(),
        "seconds": elapsed.as_secs_f64(),
        "refused_file": file,
        "refused_reasons": report.reasons.most_frequent().iter().map(Reason::as_json).collect::<Vec<_>>(),
        "refused_rows": report.refused,
        "refused_rows_left_out": counts.refused - report.refused.len() as u64,
    })
}

/// Errors that the next attempt may not have: the service is busy, or another run of the command sends the row just now.
const TEMPORARY: [&str; 2] = ["UNAVAILABLE", "REQUEST_IN_PROGRESS"];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub created: u64,
    pub updated: u64,
    /// Records that already were as the row says.
    pub unchanged: u64,
    /// Rows that were refused by the service, or can't be sent.
    pub refused: u64,
    /// Good rows that were left out because another one was refused.
    pub skipped: u64,
    /// Rows that an earlier run of the same command imported.
    pub already: u64,
}

impl Counts {
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.created + self.updated + self.unchanged + self.refused + self.skipped + self.already
    }

    pub fn add(&mut self, result: &RowResult) {
        *match result.outcome {
            _ if result.replayed => &mut self.already,
            Outcome::Created => &mut self.created,
            Outcome::Updated => &mut self.updated,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Refused => &mut self.refused,
            Outcome::Skipped => &mut self.skipped,
        } += 1;
    }
}

#[derive(Debug, Deserialize)]
pub struct RowResult {
    row: usize,
    pub outcome: Outcome,
    /// An earlier request with the same idempotency key imported it.
    #[serde(default)]
    pub replayed: bool,
    #[serde(default)]
    pub errors: Vec<RowError>,
    #[serde(default)]
    pub skipped_cells: Vec<RowError>,
    /// In a dry run.
    #[serde(default)]
    pub changes: Vec<FieldChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Created,
    Updated,
    Unchanged,
    Refused,
    Skipped,
}

/// The service's answer to an import.
#[derive(Debug, Deserialize)]
struct ImportResponse {
    data: Vec<RowResult>,
}

#[derive(Debug)]
pub enum Results {
    Settled(Vec<RowResult>),
    /// This many rows must be tried again, with the same request.
    Unavailable(usize),
}

/// Reads the answer to a request that had `sent` rows.
///
/// # Errors
///
/// Returns [`CliError::Failed`] if it doesn't fit the request.
pub fn results(body: &[u8], sent: usize) -> Result<Results> {
    let ImportResponse { data } = serde_json::from_slice(body)
        .map_err(|error| CliError::Failed(format!("can't read the service's answer; check --base-url: {error}")))?;
    let is_in_order = data.iter().enumerate().all(|(index, result)| result.row == index + 1);
    if data.len() != sent || !is_in_order {
        return Err(CliError::Failed(format!("the service answered for {} rows instead of {sent}", data.len())));
    }
    let is_temporary = |error: &RowError| error.code.as_deref().is_some_and(|code| TEMPORARY.contains(&code));
    let is_unavailable = |result: &&RowResult| result.errors.iter().any(is_temporary);
    Ok(match data.iter().filter(is_unavailable).count() {
        0 => Results::Settled(data),
        unavailable => Results::Unavailable(unavailable),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(data: &Value, sent: usize) -> Result<Results> {
        results(json!({"data": data, "meta": {"rows": 3}}).to_string().as_bytes(), sent)
    }

    #[test]
    fn settled_rows_are_counted() {
        let data = json!([
            {"row": 1, "outcome": "created", "id": "a"},
            {"row": 2, "outcome": "refused", "id": null, "errors": [{"column": "name", "detail": "is empty", "code": "VALIDATION_ERROR"}]},
            {"row": 3, "outcome": "unchanged", "id": "b", "errors": []},
            {"row": 4, "outcome": "created", "id": "c", "replayed": true},
        ]);
        let Ok(Results::Settled(rows)) = read(&data, 4) else { panic!("not settled") };
        let mut counts = Counts::default();
        rows.iter().for_each(|row| counts.add(row));
        assert_eq!(counts, Counts { created: 1, refused: 1, unchanged: 1, already: 1, ..Counts::default() });
        assert_eq!(rows[1].errors[0].to_string(), "name: is empty");
    }

    #[test]
    fn temporary_errors_and_misfits_are_seen() {
        let refused = |code: &str| json!([{"row": 1, "outcome": "refused", "errors": [{"detail": "busy", "code": code}]}]);
        for code in TEMPORARY {
            assert!(matches!(read(&refused(code), 1), Ok(Results::Unavailable(1))), "{code}");
        }
        assert!(matches!(read(&refused("CONFLICT"), 1), Ok(Results::Settled(_))));
        assert!(read(&refused("CONFLICT"), 2).is_err() && results(b"<html>", 1).is_err());
    }
}
