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
    report: &Report,
    elapsed: Duration,
    has_written: bool,
    resend: Option<String>,
) -> Result<()> {
    if summary.is_json {
        return print_json(&as_json(summary, source, report, elapsed, has_written));
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
    print(&format!(
        "{heading} {} of {} in {}:{would_be} {} created, {} updated, {} unchanged, {} refused, {} skipped",
        count(counts.rows(), "row"),
        summary.kind,
        duration(elapsed),
        counts.created,
        counts.updated,
        counts.unchanged,
        counts.refused,
        counts.skipped
    ))?;
    let Some(file) = &report.file else { return Ok(()) };
    match resend {
        _ if !has_written || summary.aborts => {
            print_note(&format!(
                "The refused rows and the reasons are in {}. Mend them in {} and send it again.",
                file.display(),
                source.path.display()
            ));
            if has_written && summary.aborts {
                print_note(
                    "Rows in requests before the refused one were written: use --match, so that they aren't created again.",
                );
            }
        }
        Some(command) => {
            print_note(&format!("The refused rows are in {}. Mend them there, and send them:\n  {command}", file.display()));
        }
        None => {}
    }
    Ok(())
}

fn as_json(summary: &Summary, source: &Source, report: &Report, elapsed: Duration, has_written: bool) -> Value {
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
        "seconds": elapsed.as_secs_f64(),
        "refused_file": report.file,
        "refused_reasons": report.reasons.most_frequent().iter().map(Reason::as_json).collect::<Vec<_>>(),
        "refused_rows": report.refused,
        "refused_rows_left_out": counts.refused - report.refused.len() as u64,
    })
}
