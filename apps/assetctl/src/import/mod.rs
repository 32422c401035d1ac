//! `assetctl import`: checks the columns of a file, and sends its rows.

pub mod args;
pub mod chunks;
pub mod encoding;
pub mod keys;
pub mod remedy;
pub mod report;
pub mod rows;
pub mod sender;
pub mod skip_bad;
pub mod source;
pub mod suggest;
pub mod text;

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id};
use crate::import::args::{Import, OnError};
use crate::import::chunks::MAX_BODY;
use crate::import::keys::Keys;
use crate::import::report::{Outcome, Report};
use crate::import::rows::Shape;
use crate::import::sender::{Ending, Sender};
use crate::import::source::Source;
use crate::interrupt::Interrupt;
use crate::output::{Progress, count};
use domain::import::columns::Columns;
use domain::import::parameters::Mapping;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use terminal::print_note;

/// An export's columns with the ID of the record in the exporting service, and the times of its creation and last change there.
const OF_RECORD: [&str; 4] = ["id", "status_changed_at", "created_at", "updated_at"];
/// Maximum length of a query, in bytes. Longer parameters are sent with the text, in JSON.
const MAX_QUERY: usize = 8_000;
/// Maximum size of a text that is sent in JSON, where quotes and line breaks take two bytes.
const MAX_JSON_TEXT: usize = 450_000;

pub async fn import(options: &Import, connection: &Connection, is_json: bool) -> Result<u8> {
    let source = Source::open(options)?;
    source.doubts(options).iter().for_each(|doubt| print_note(doubt));
    let options = &without_ids(options, &source);
    let columns = source.columns(options)?;
    check_match(options, &columns)?;
    let skip_bad = source.skip_bad(options, &columns)?;
    print_note(&source.describe());
    let client = Client::new(connection)?.giving_up_after(options.give_up_after);
    let shape = Rc::new(Shape { columns, matched: options.match_by.column() });
    let run = Run { options, connection, client, interrupt: Interrupt::listen(), is_json, source: &source, shape, skip_bad };
    run.import().await
}

/// Ignores an export's columns `id`, `created_at` and `updated_at` unless rows are matched by ID, because the export can be from another
/// service.
fn without_ids(options: &Import, source: &Source) -> Import {
    let mut options = options.clone();
    let Some(matched) = options.match_by.column().filter(|column| *column != "id") else { return options };
    let is_named = |name: &str| source.header.names.iter().any(|known| known.trim() == name);
    let is_given = |name: &str| options.maps.iter().any(|map| map.columns() == name || map.field.as_deref() == Some(name));
    let left_out: Vec<&str> = OF_RECORD.into_iter().filter(|name| is_named(name) && !is_given(name)).collect();
    if !left_out.is_empty() {
        print_note(&format!("Left out, since rows are matched by {matched}: {}", left_out.join(", ")));
    }
    options.maps.extend(left_out.into_iter().map(|name| Mapping::of(name, None)));
    options
}

/// Returns an error if the file lacks the matched column, because the import would create all records again.
fn check_match(options: &Import, columns: &Columns) -> Result<()> {
    let Some(column) = options.match_by.column() else { return Ok(()) };
    if !options.kind().has_field(column) {
        return Err(CliError::Usage(format!("--match {column} is not for {}", options.kind().path())));
    }
    if columns.column(column).is_some() {
        return Ok(());
    }
    Err(CliError::Usage(format!("--match {column}: no column is mapped to {column}; map one with --map \"COLUMN={column}\"")))
}

struct Run<'a> {
    options: &'a Import,
    connection: &'a Connection,
    client: Client,
    interrupt: Interrupt,
    is_json: bool,
    source: &'a Source,
    shape: Rc<Shape>,
    /// Fields whose refused cells are left out.
    skip_bad: Vec<String>,
}

impl Run<'_> {
    async fn import(&self) -> Result<u8> {
        let aborts = self.options.on_error == OnError::Abort;
        let again = match self.options.again.as_deref() {
            Some("") => new_run_id()?.get(..8).unwrap_or_default().to_owned(),
            again => again.unwrap_or_default().to_owned(),
        };
        let resume = match self.options.again.as_deref() {
            Some("") => format!("run the command again with --again={again}"),
            _ => "run the same command again".to_owned(),
        };
        let path = format!("{}/import", self.options.kind().path());
        let parameters = self.parameters();
        let full = self.client.url(&path, &parameters)?;
        let keys = Keys::new(self.options, self.source, self.connection, &path, full.query().unwrap_or_default(), &again)?;
        let is_long = full.query().is_some_and(|query| query.len() > MAX_QUERY);
        let in_query = if is_long { &[][..] } else { &parameters[..] };
        let in_body = if is_long { &parameters[..] } else { &[] };
        let check_url = self.client.url(&path, &[in_query, &[("dry_run", "true".to_owned())]].concat())?;
        let sender = Sender {
            client: &self.client,
            url: self.client.url(&path, in_query)?,
            check_url: check_url.clone(),
            in_body,
            skip_bad: &self.skip_bad,
            shape: &self.shape,
            names: &self.source.header.names,
            format: self.source.format,
            keys: Some(&keys),
            file: &self.source.path,
            resume: &resume,
            stops_at_refusal: aborts,
            interrupt: &self.interrupt,
        };
        if self.options.dry_run || aborts {
            let (began, mut report) = (Instant::now(), self.report());
            let checker = Sender { url: check_url.clone(), check_url, keys: None, stops_at_refusal: false, ..sender };
            if let Ending::Interrupted(_) = self.send(&checker, &mut report, "checking").await? {
                return Err(CliError::Interrupted("Interrupted. Nothing was written.".into()));
            }
            let is_good = report.counts.refused == 0;
            if self.options.dry_run || !(is_good || has_begun(&sender, &report).await?) {
                return self.end(report, began, false);
            }
        }
        let (began, mut report) = (Instant::now(), self.report());
        let ending = self.send(&sender, &mut report, "importing").await?;
        keys.note_refused(&report.refused_chunks);
        match ending {
            Ending::Interrupted(rows) => {
                let rows = count(rows, "row");
                Err(CliError::Interrupted(format!("Interrupted after {rows}. To import the others, {resume}.")))
            }
            Ending::Complete | Ending::Refused => self.end(report, began, true),
        }
    }

    fn report(&self) -> Report<'_> {
        Report::new(self.source, self.options, &self.shape.columns)
    }

    /// Returns the parameters of each request, which has commas and a header in its first line, whatever the file has.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let of_file = ["header_line", "delimiter"];
        let mut parameters = self.options.parameters();
        parameters.retain(|(name, _)| !of_file.contains(name));
        if self.options.match_by.column().is_none() {
            parameters.push(("match", "none".to_owned()));
        }
        parameters.push(("on_error", if self.options.on_error == OnError::Abort { "abort" } else { "skip" }.to_owned()));
        parameters
    }

    async fn send(&self, sender: &Sender<'_>, report: &mut Report<'_>, label: &'static str) -> Result<Ending> {
        let mut progress = Progress::new(label, self.source.examination.size);
        let max_body = if sender.in_body.is_empty() { MAX_BODY } else { MAX_JSON_TEXT };
        let ending = sender.run(&mut self.source.chunks(&self.shape, max_body)?, report, &mut progress).await;
        progress.finish();
        ending
    }

    fn end(&self, mut report: Report<'_>, began: Instant, has_written: bool) -> Result<u8> {
        let is_good = report.print(began.elapsed(), has_written, self.is_json)?;
        Ok(if is_good { EXIT_SUCCESS } else { EXIT_REFUSED })
    }
}

/// Whether an earlier run of the same command imported rows that the check now refuses as duplicates of what that run created.
/// Sends the first chunk with refused rows: if no earlier run sent it, the service only checks its rows and writes none.
async fn has_begun(sender: &Sender<'_>, report: &Report<'_>) -> Result<bool> {
    let Some(chunk) = report.refused_chunk.as_ref().filter(|_| !report.has_broken) else { return Ok(false) };
    match sender.send(chunk, true, &Arc::default()).await {
        Ok(results) => Ok(results.iter().flatten().any(|row| !matches!(row.outcome, Outcome::Refused | Outcome::Skipped))),
        Err(CliError::Answered { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
