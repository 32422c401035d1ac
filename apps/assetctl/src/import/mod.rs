//! `assetctl import`.

pub mod args;
pub mod changes;
pub mod chunks;
pub mod columns;
pub mod journal;
pub mod options;
pub mod owner_lookup;
pub mod reasons;
pub mod refused;
pub mod rows;
pub mod sender;
pub mod settlement;
pub mod source;
pub mod suggestion;
pub mod summary;
pub mod unsettled;
pub mod way_out;

use crate::config::Connection;
use crate::error::{CliError, EXIT_REFUSED, EXIT_SUCCESS, Result};
use crate::format::Format;
use crate::http::client::{Client, ImportRequest};
use crate::import::args::{Import, OnError};
use crate::import::chunks::MAX_ROWS;
use crate::import::columns::{Columns, Mapping, Target, sent_name};
use crate::import::journal::{Journal, already_begun};
use crate::import::options::{heading, resend_command};
use crate::import::owner_lookup::find_owners;
use crate::import::refused::{beside, report};
use crate::import::sender::{Ending, Sender};
use crate::import::source::Source;
use crate::import::summary::{Summary, print_summary};
use crate::import::unsettled::CAPACITY;
use crate::interrupt::Interrupt;
use crate::output::count;
use crate::progress::Progress;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::print_note;

/// Columns of an export that name the record in the service from which it comes, or say when it was created there.
const OF_RECORD: [&str; 2] = ["id", "created_at"];

pub async fn import(options: &Import, connection: &Connection, is_json: bool) -> Result<u8> {
    let source = Source::open(options)?;
    source.doubts(options).iter().for_each(|doubt| print_note(doubt));
    let options = &without_ids(options, &source);
    let mut columns = source.columns(options)?;
    check_match(options, &columns)?;
    print_note(&source.describe());
    let client = Client::new(connection)?;
    let path = beside(&source.path, ".assetctl");
    let mut heading = heading(options, connection, &source)?;
    let resumed = options.resume.then(|| Journal::resume(&path, &heading)).transpose()?;
    if resumed.is_none() && !options.dry_run && path.exists() {
        return Err(already_begun(&path));
    }
    heading.owners = match &resumed {
        Some(journal) => journal.owners().clone(),
        None => find_owners(&client, &source, options, &columns).await?,
    };
    columns.fields.owners = Rc::new(heading.owners.clone());
    let run = Run {
        options,
        client,
        interrupt: Interrupt::listen(),
        summary: Summary::new(options, is_json),
        source: &source,
        columns,
    };
    if options.dry_run {
        return run.check(&mut Journal::temporary(heading)?, "checking").await.map(|code| code.unwrap_or(EXIT_SUCCESS));
    }
    let mut journal = if let Some(journal) = resumed {
        if journal.is_forgotten() && options.match_by.column().is_none() {
            return Err(CliError::Usage(format!(
                "more than a day has passed since this import was interrupted, and the service has forgotten which of the requests \
                 under way took effect: the {} rows after the first {} chunks may exist already. Delete {} and start again with \
                 --match, so that rows that exist are updated.",
                CAPACITY * MAX_ROWS,
                journal.len(),
                path.display()
            )));
        }
        print_note(&format!("Resuming: {} settled.", settled(&journal)));
        journal
    } else {
        if options.on_error == OnError::Abort
            && let Some(code) = run.check(&mut Journal::temporary(heading.clone())?, "checking").await?
        {
            return Ok(code);
        }
        Journal::create(&path, heading)?
    };
    run.write(&mut journal).await
}

/// An export has IDs. If rows name what they update by something else, the IDs may be those of another service.
fn without_ids(options: &Import, source: &Source) -> Import {
    let mut options = options.clone();
    if options.match_by.column().is_some_and(|column| column != "id") {
        let is_given =
            |name: &str| options.mappings.iter().any(|mapping| mapping.column == name || mapping.field.as_deref() == Some(name));
        let left_out: Vec<&str> = OF_RECORD
            .into_iter()
            .filter(|name| source.names.iter().any(|known| known.trim() == *name) && !is_given(name))
            .collect();
        if !left_out.is_empty() {
            let matched = options.match_by.column().unwrap_or_default();
            print_note(&format!("Left out, since rows are matched by {matched}: {}", left_out.join(", ")));
        }
        options.mappings.extend(left_out.into_iter().map(|name| Mapping { column: name.to_owned(), field: None }));
    }
    options
}

/// Matching by a column that the file doesn't have would create everything anew.
fn check_match(options: &Import, columns: &Columns) -> Result<()> {
    let Some(column) = options.match_by.column() else { return Ok(()) };
    if !options.kind().has_column(column) {
        return Err(CliError::Usage(format!("--match {column} is not for {}", options.kind().path())));
    }
    if columns.targets.contains(&Target::Field(column.to_owned())) {
        return Ok(());
    }
    Err(CliError::Usage(format!("--match {column}: no column of the file is {column}; name it with --map \"COLUMN={column}\"")))
}

fn settled(journal: &Journal) -> String {
    let rows = journal.counts().rows();
    format!("{} {}", count(rows, "row"), if rows == 1 { "is" } else { "are" })
}

struct Run<'a> {
    options: &'a Import,
    client: Client,
    interrupt: Interrupt,
    summary: Summary,
    source: &'a Source,
    columns: Columns,
}

impl Run<'_> {
    /// Sends all rows without effect. Returns the exit code unless they are to be written next.
    async fn check(&self, journal: &mut Journal, label: &'static str) -> Result<Option<u8>> {
        let began = Instant::now();
        let ending = self.send(journal, label, true).await?;
        if ending == Ending::Interrupted {
            return Err(CliError::Interrupted("Interrupted. Nothing was written.".into()));
        }
        let report = report(self.source, self.options, &self.columns, journal)?;
        if !self.options.dry_run && report.counts.refused == 0 {
            return Ok(None);
        }
        let code = if report.counts.refused == 0 { EXIT_SUCCESS } else { EXIT_REFUSED };
        print_summary(&self.summary, self.source, &report, began.elapsed(), false, None)?;
        Ok(Some(code))
    }

    /// Imports the chunks that the journal lacks.
    async fn write(&self, journal: &mut Journal) -> Result<u8> {
        let began = Instant::now();
        let ending = match self.send(journal, "importing", false).await {
            Ok(ending) => ending,
            Err(error @ CliError::Rejected(_)) if !self.options.resume => {
                journal.remove()?;
                return Err(error);
            }
            Err(error) => {
                return Err(CliError::Failed(format!(
                    "{error}\n{} settled. When that is mended, repeat the command with --resume.",
                    settled(journal)
                )));
            }
        };
        if ending == Ending::Interrupted {
            return Err(CliError::Interrupted(format!(
                "Interrupted; {} settled. To go on with the others, repeat the command with --resume.",
                settled(journal)
            )));
        }
        let report = report(self.source, self.options, &self.columns, journal)?;
        let code = if report.counts.refused == 0 { EXIT_SUCCESS } else { EXIT_REFUSED };
        let resend = resend_command(self.options, report.file.as_deref());
        print_summary(&self.summary, self.source, &report, began.elapsed(), true, resend)?;
        journal.remove()?;
        Ok(code)
    }

    async fn send(&self, journal: &mut Journal, label: &'static str, is_dry_run: bool) -> Result<Ending> {
        let options = self.options;
        let mut query = vec![("match", options.match_by.column().unwrap_or("none").to_owned())];
        query.push(("on_error", if options.on_error == OnError::Abort { "abort" } else { "skip" }.to_owned()));
        if options.create_unmatched {
            query.push(("create_unmatched", "true".to_owned()));
        }
        let skip_bad: Vec<&str> = self.columns.fields.skip_bad.iter().map(|field| sent_name(field)).collect();
        if !skip_bad.is_empty() {
            query.push(("skip_bad", skip_bad.join(",")));
        }
        if is_dry_run {
            query.push(("dry_run", "true".to_owned()));
        }
        let path = if options.users { "users/import" } else { "assets/import" };
        let content_type = if self.source.format == Format::Csv { "text/csv" } else { "application/x-ndjson" };
        let mut progress = Progress::new(label, self.source.examination.size);
        let sender = Sender {
            client: self.client.clone(),
            request: Arc::new(ImportRequest { path, query, content_type }),
            is_dry_run,
            stops_at_refusal: !is_dry_run && options.on_error == OnError::Abort,
            journal,
            progress: &mut progress,
            patience: Duration::from_secs(options.give_up_after),
            interrupt: self.interrupt.clone(),
        };
        let ending = sender.run(&mut self.source.chunks(options, &self.columns)?).await;
        progress.finish();
        ending
    }
}
