//! The summary at the end of an import.

use crate::error::Result;
use crate::import::args::{Import, OnError};
use crate::import::reasons::Reason;
use crate::import::refused::Report;
use crate::import::rows::sniff;
use crate::import::source::Source;
use crate::output::{count, print, print_json};
use crate::progress::duration;
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
        "delimiter": sniff::name(source.delimiter),
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
