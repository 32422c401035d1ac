//! Reports the results of an import: writes refused rows to a file, which can be corrected and imported; shows each reason
//! once; and prints a summary, in a dry run with the fields that would change.

use crate::error::{CliError, Result};
use crate::http::unreadable;
use crate::import::args::{Import, OnError, command, with_options};
use crate::import::chunks::Chunk;
use crate::import::remedy::{Help, Remedies, SAME_VALUE};
use crate::import::rows::{Original, Row, RowError, UNREADABLE};
use crate::import::source::{STANDARD_INPUT, Source};
use crate::output::{Format, count, digits, duration, exact, persist, print_json, temporary_beside};
use csv::{StringRecord, WriterBuilder};
use domain::import::REASONS;
use domain::import::columns::Columns;
use domain::import::objects::Members;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::{clean, print, print_note};

/// Maximum number of reasons to show; the others are only counted.
const MAX_LINES: usize = 20;
/// Maximum number of refused rows in the JSON summary.
const MAX_TOLD: usize = 100;
/// Maximum number of fields to count: a file can name a new custom field in each row.
const MAX_FIELDS: usize = 1_000;
/// Maximum number of different reasons to count.
const MAX_REASONS: usize = 1_000;
/// Minimum number of rows with the same error for advice about the whole file.
const MANY: u64 = 3;
/// Maximum number of options to keep per reason.
const MAX_OPTIONS: usize = 20;
/// Codes of errors that a retry can solve: the service is busy, or a concurrent run is sending the row.
const TEMPORARY: [&str; 2] = ["UNAVAILABLE", "REQUEST_IN_PROGRESS"];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub created: u64,
    pub updated: u64,
    /// Rows that left their records unchanged.
    pub unchanged: u64,
    /// Rows that the service refused, or that can't be sent.
    pub refused: u64,
    /// Valid rows that were left out because another row was refused.
    pub skipped: u64,
    /// Rows that an earlier run of the same command imported.
    pub already: u64,
}

impl Counts {
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
    /// An earlier request with the same idempotency key imported the row.
    #[serde(default)]
    pub replayed: bool,
    #[serde(default)]
    pub errors: Vec<RowError>,
    /// Cells that were left out, with the errors that the service had found.
    #[serde(skip)]
    pub skipped_cells: Vec<RowError>,
    /// Fields that would change, in a dry run.
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

/// The results in the service's response to an import.
#[derive(Debug, Deserialize)]
struct ImportResponse {
    data: Vec<RowResult>,
}

#[derive(Debug)]
pub enum Results {
    Settled(Vec<RowResult>),
    /// This many rows are unavailable, so the same request must be sent again.
    Unavailable(usize),
}

/// Reads the response to a request with `sent` rows.
///
/// # Errors
///
/// Returns [`CliError::Failed`] if the response doesn't match the request.
pub fn results(body: &[u8], sent: usize) -> Result<Results> {
    let ImportResponse { data } = serde_json::from_slice(body).map_err(|_| unreadable())?;
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

pub struct Report<'a> {
    source: &'a Source,
    options: &'a Import,
    remedies: Remedies<'a>,
    pub counts: Counts,
    /// The first refused rows, with their errors.
    refused: Vec<Value>,
    reasons: Reasons,
    file: Option<RefusedFile>,
    /// Reasons for leaving cells out of imported rows.
    skipped: Reasons,
    skipped_cells: u64,
    changes: Changes,
    /// First request with rows that the service refused.
    pub refused_chunk: Option<Chunk>,
    pub has_broken: bool,
    /// Numbers of the requests whose rows were all refused.
    pub refused_chunks: Vec<u64>,
}

impl<'a> Report<'a> {
    pub fn new(source: &'a Source, options: &'a Import, columns: &'a Columns) -> Self {
        Self {
            source,
            options,
            remedies: Remedies { options, names: &source.header.names, columns },
            counts: Counts::default(),
            refused: Vec::new(),
            reasons: Reasons::default(),
            file: None,
            skipped: Reasons::default(),
            skipped_cells: 0,
            changes: Changes::default(),
            refused_chunk: None,
            has_broken: false,
            refused_chunks: Vec::new(),
        }
    }

    /// Adds the next rows of the file. `results` has a result for each sent row.
    pub fn add(&mut self, chunk: Chunk, results: Vec<RowResult>) -> Result<()> {
        if !results.is_empty() && results.iter().all(|row| row.outcome == Outcome::Refused) {
            self.refused_chunks.push(chunk.number);
        }
        let (mut results, mut is_refused) = (results.into_iter(), false);
        for row in &chunk.rows {
            let errors = match &row.sendable {
                Err(errors) => {
                    self.counts.refused += 1;
                    self.has_broken = true;
                    errors.clone()
                }
                Ok(_) => {
                    let Some(result) = results.next() else { continue };
                    self.counts.add(&result);
                    result.changes.iter().for_each(|change| self.changes.add(change));
                    if result.outcome != Outcome::Refused {
                        for error in &named(result.skipped_cells) {
                            self.skipped_cells += 1;
                            self.skipped.add(row, error, Help::default());
                        }
                        continue;
                    }
                    is_refused = true;
                    let mut errors = named(result.errors);
                    if errors.is_empty() {
                        errors.push(RowError::of_row("refused by the service"));
                    }
                    errors
                }
            };
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(RefusedFile::create(self.source)?),
            };
            file.write(row, &errors)?;
            errors.iter().for_each(|error| self.reasons.add(row, error, self.remedies.of(error, &row.original)));
            if self.refused.len() < MAX_TOLD {
                self.refused.push(json!({"row": row.number, "line": row.line, "errors": errors}));
            }
        }
        if is_refused && self.refused_chunk.is_none() {
            self.refused_chunk = Some(chunk);
        }
        Ok(())
    }

    /// Completes the file of refused rows, and returns its path; `None` if no row was refused.
    fn finish(&mut self) -> Result<Option<PathBuf>> {
        self.reasons.compare(self.counts.rows());
        self.file.take().map(|file| file.finish(self.source)).transpose()
    }
}

/// Replaces the names of fields in errors with the file's headings, and parameters of the service with options.
fn named(errors: Vec<RowError>) -> Vec<RowError> {
    let detail = |detail: String| with_options(&detail).replace("create_unmatched=true", "--create-unmatched");
    let named = |error: RowError| {
        let column = error.heading.or(error.column);
        RowError { column, detail: detail(error.detail), code: error.code, heading: None }
    };
    errors.into_iter().map(named).collect()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns `a.csv.refused.csv` for `a.csv`, `stdin.refused.csv` for standard input, and `a.csv.refused-2.csv` for `a.csv.refused.csv`.
fn path_of(path: &Path, extension: &str) -> PathBuf {
    // A name such as `-.refused.csv` would be read as options.
    let path = if path == Path::new(STANDARD_INPUT) { Path::new("stdin") } else { path };
    let name = path.to_string_lossy();
    let earlier = name.strip_suffix(&format!(".{extension}")).and_then(|name| name.rsplit_once(".refused"));
    let attempt = |text: &str| if text.is_empty() { Some(1) } else { text.strip_prefix('-')?.parse::<u32>().ok() };
    match earlier.and_then(|(name, number)| Some((name, attempt(number)?))) {
        Some((name, number)) => PathBuf::from(format!("{name}.refused-{}.{extension}", number.saturating_add(1))),
        None => beside(path, &format!(".refused.{extension}")),
    }
}

/// Refused rows, in an unnamed temporary file, so that an interrupted import leaves nothing behind.
struct RefusedFile {
    output: BufWriter<File>,
    /// Delimiter, and index of the column with the reasons of an earlier import, if there is one; `None` for NDJSON.
    csv: Option<(u8, Option<usize>)>,
}

impl RefusedFile {
    fn create(source: &Source) -> Result<Self> {
        let mut output = BufWriter::new(tempfile::tempfile()?);
        let earlier = source.header.names.iter().position(|name| name == REASONS);
        let csv = (source.format == Format::Csv).then_some((source.header.delimiter, earlier));
        if csv.is_some() {
            // The byte order mark tells spreadsheet programs that the file is UTF-8.
            output.write_all("\u{feff}".as_bytes())?;
        }
        let mut file = Self { output, csv };
        let header: StringRecord = source.header.names.iter().collect();
        file.write_cells(REASONS, &header)?;
        Ok(file)
    }

    fn write(&mut self, row: &Row, errors: &[RowError]) -> Result<()> {
        let errors = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let reasons = format!("row {}, line {}: {errors}", row.number, row.line);
        match &row.original {
            Original::Cells(cells) => self.write_cells(&reasons, cells),
            Original::Line(line) => self.write_line(&reasons, line),
        }
    }

    /// Puts the reasons before the cells, so that a row with too few cells still lacks its last cell.
    fn write_cells(&mut self, reasons: &str, cells: &StringRecord) -> Result<()> {
        let Some((delimiter, earlier)) = self.csv else { return Ok(()) };
        let mut writer = WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(&mut self.output);
        let cells = cells.iter().enumerate().filter(|(index, _)| Some(*index) != earlier).map(|(_, cell)| cell);
        writer.write_record(std::iter::once(reasons).chain(cells)).map_err(io::Error::from)?;
        writer.flush()?;
        Ok(())
    }

    fn write_line(&mut self, reasons: &str, line: &str) -> Result<()> {
        let member = |name: &str, json: &str| format!("{}:{json}", Value::from(name));
        let mut members = vec![member(REASONS, &Value::from(reasons).to_string())];
        match serde_json::from_str(line) {
            Ok(Members(found)) => {
                let found = found.iter().filter(|(name, _)| name != REASONS);
                members.extend(found.map(|(name, value)| member(name, value.get())));
            }
            Err(_) => members.push(member(UNREADABLE, &Value::from(line).to_string())),
        }
        writeln!(self.output, "{{{}}}", members.join(","))?;
        Ok(())
    }

    /// Moves the file next to the imported file. Renames an earlier file of refused rows, which may contain corrections, to
    /// `….old`.
    fn finish(self, source: &Source) -> Result<PathBuf> {
        let path = path_of(&source.path, source.format.name());
        let mut rows = self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        rows.rewind()?;
        let mut file = temporary_beside(&path)?;
        io::copy(&mut rows, &mut file)?;
        if path.exists() {
            std::fs::rename(&path, beside(&path, ".old")).map_err(|error| CliError::file(&path, &error))?;
        }
        persist(file, &path)?;
        Ok(path)
    }
}

impl Report<'_> {
    /// Prints the summary after the last row. Returns whether all rows were accepted.
    pub fn print(&mut self, elapsed: Duration, has_written: bool, is_json: bool) -> Result<bool> {
        let file = self.finish()?;
        if is_json {
            print_json(&self.as_json(elapsed, has_written, file.as_deref()))?;
        } else {
            self.print_words(elapsed, has_written, file.as_deref())?;
        }
        Ok(self.counts.refused == 0)
    }

    fn print_words(&self, elapsed: Duration, has_written: bool, file: Option<&Path>) -> Result<()> {
        let reasons = self.reasons.most_frequent();
        for reason in reasons.iter().take(MAX_LINES) {
            print_note(&format!("{}\n  {}", clean(&reason.to_string()), clean(&reason.help())));
        }
        let more = reasons.len().saturating_sub(MAX_LINES) as u64 + self.reasons.left_out;
        if more > 0 {
            print_note(&format!("and {}, in the file of refused rows", count(more, "more reason")));
        }
        let (heading, would_be) = match (self.options.dry_run, has_written) {
            (true, _) => ("Dry run, nothing was written:", " would be"),
            (_, true) => ("Imported:", ""),
            _ => ("Nothing was written:", " would be"),
        };
        let (rows, kind, elapsed) = (count(self.counts.rows(), "row"), self.options.kind().path(), duration(elapsed));
        let Counts { created, updated, unchanged, refused, skipped, already } = self.counts;
        let already_imported = if already > 0 { format!(", {already} imported already") } else { String::new() };
        print(&format!(
            "{heading} {rows} of {kind} in {elapsed}:{would_be} {created} created, {updated} updated, {unchanged} unchanged, \
             {refused} refused, {skipped} skipped{already_imported}"
        ))?;
        if already > 0 {
            print_note(
                "Rows that this command imported in the last 24 hours were not imported again. --again imports them again.",
            );
        }
        self.print_skipped(would_be);
        self.print_changes()?;
        let Some(path) = file else { return Ok(()) };
        let (refused, aborts) = (path.display(), self.options.on_error == OnError::Abort);
        if has_written && !aborts {
            let command = command(self.options, path, &self.parameters()).join(" ");
            print_note(&format!("The refused rows are in {refused}. Correct them there, and import them:\n  {command}"));
            return Ok(());
        }
        let source = self.source.path.display();
        print_note(&format!("The refused rows and the reasons are in {refused}. Correct them in {source}, and import it again."));
        if has_written {
            print_note("Rows sent before the refused ones were imported. Importing the file again leaves them unchanged.");
        }
        Ok(())
    }

    /// Returns the parameters for importing the refused rows, whose file has its header in the first line.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = self.options.parameters();
        parameters.retain(|(name, _)| *name != "header_line");
        parameters
    }

    fn print_skipped(&self, would_be: &str) {
        if self.skipped_cells == 0 {
            return;
        }
        let is = match (would_be, self.skipped_cells) {
            ("", 1) => "was",
            ("", _) => "were",
            _ => "would be",
        };
        print_note(&format!("{} {is} left out, because of --skip-bad:", count(self.skipped_cells, "bad cell")));
        for reason in self.skipped.most_frequent().iter().take(MAX_LINES) {
            print_note(&format!("  {}", clean(&reason.to_string())));
        }
    }

    fn print_changes(&self) -> Result<()> {
        let changes = self.changes.most_frequent();
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
                "Warning: {field}: in {} only leading zeros differ, such as {old} and {new}. A spreadsheet may have dropped them: \
                 format the column as text in {}, or leave it out.",
                count(change.zeros, "row"),
                self.source.path.display()
            )));
        }
        Ok(())
    }

    fn as_json(&self, elapsed: Duration, has_written: bool, file: Option<&Path>) -> Value {
        let Counts { created, updated, unchanged, refused, skipped, already } = self.counts;
        json!({
            "kind": self.options.kind().path(),
            "file": self.source.path,
            "encoding": self.source.examination.encoding.name(),
            "delimiter": self.source.delimiter_name(),
            "dry_run": self.options.dry_run,
            "written": has_written,
            "rows": self.counts.rows(),
            "created": created,
            "updated": updated,
            "unchanged": unchanged,
            "refused": refused,
            "skipped": skipped,
            "imported_already": already,
            "skipped_cells": self.skipped_cells,
            "skipped_cell_reasons": self.skipped.as_json(),
            "changes": self.changes.as_json(),
            "seconds": elapsed.as_secs_f64(),
            "refused_file": file,
            "refused_reasons": self.reasons.as_json(),
            "refused_rows": self.refused,
            "refused_rows_left_out": refused - self.refused.len() as u64,
        })
    }
}

/// A reason for refusing rows: its first row, and advice.
#[derive(Debug)]
struct Reason {
    rows: u64,
    row: u64,
    line: u64,
    error: RowError,
    help: String,
    if_most: Option<String>,
    /// Options that the advice adds to the command.
    options: BTreeSet<String>,
    /// Number of the last row with the reason, because a row counts once even if several cells have it.
    last_row: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, row, line, error, .. } = self;
        match rows {
            1 => write!(formatter, "row {row}, line {line}: {error}"),
            rows => write!(formatter, "{rows} rows, for example row {row}, line {line}: {error}"),
        }
    }
}

impl Reason {
    fn as_json(&self) -> Value {
        let (Self { rows, row, line, error, .. }, help) = (self, self.help());
        let RowError { column, detail, code, .. } = error;
        json!({"rows": rows, "row": row, "line": line, "column": column, "detail": detail, "code": code, "way_out": help})
    }

    fn help(&self) -> String {
        std::iter::once(&self.help).chain(&self.options).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Default)]
struct Reasons {
    found: Vec<Reason>,
    places: HashMap<String, usize>,
    /// Number of errors beyond the counted reasons.
    left_out: u64,
}

impl Reasons {
    fn add(&mut self, row: &Row, error: &RowError, help: Help) {
        let Help { text: help, option, if_most } = help;
        let key = format!("{:?} {} {help}", error.column, general(&error.detail));
        if let Some(reason) = self.places.get(&key).and_then(|place| self.found.get_mut(*place)) {
            reason.rows += u64::from(reason.last_row != row.number);
            reason.last_row = row.number;
            reason.options.extend(option.filter(|_| reason.options.len() < MAX_OPTIONS));
        } else if self.found.len() < MAX_REASONS {
            self.places.insert(key, self.found.len());
            let (error, row, line, options) = (error.clone(), row.number, row.line, option.into_iter().collect());
            self.found.push(Reason { rows: 1, row, line, error, help, if_most, options, last_row: row });
        } else {
            self.left_out += 1;
        }
    }

    /// If most rows have the same error, replaces the advice about single rows with advice about the whole file. `rows` is the
    /// total number of rows.
    fn compare(&mut self, rows: u64) {
        for reason in self.found.iter_mut().filter(|reason| reason.rows >= MANY && reason.rows * 2 > rows) {
            if let Some(help) = reason.if_most.take() {
                reason.help = help;
            }
        }
    }

    /// Returns the reasons sorted by frequency, then in file order.
    fn most_frequent(&self) -> Vec<&Reason> {
        let mut reasons: Vec<&Reason> = self.found.iter().collect();
        reasons.sort_by_key(|reason| Reverse(reason.rows));
        reasons
    }

    fn as_json(&self) -> Value {
        self.most_frequent().into_iter().map(Reason::as_json).collect()
    }
}

/// Removes the cell's value from the beginning of an error, and the numbers of other rows.
fn general(detail: &str) -> &str {
    if detail.starts_with(SAME_VALUE) {
        return SAME_VALUE;
    }
    detail.strip_prefix('"').and_then(|rest| rest.split_once("\" ")).map_or(detail, |(_, rest)| rest)
}

/// A change to a field of a row, from the service.
#[derive(Debug, Deserialize)]
pub struct FieldChange {
    field: String,
    #[serde(deserialize_with = "exactly")]
    old: Value,
    #[serde(deserialize_with = "exactly")]
    new: Value,
}

fn exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    exact(Box::<RawValue>::deserialize(deserializer)?.get()).map_err(serde::de::Error::custom)
}

#[derive(Debug, Default)]
struct Changes(BTreeMap<String, Change>);

#[derive(Debug, Default)]
struct Change {
    rows: u64,
    /// First old and new value.
    example: (String, String),
    /// Number of rows that differ only in leading zeros.
    zeros: u64,
    example_of_zeros: (String, String),
}

impl Changes {
    fn add(&mut self, change: &FieldChange) {
        let FieldChange { field, old, new } = change;
        if self.0.len() >= MAX_FIELDS && !self.0.contains_key(field) {
            return;
        }
        let (sum, example) = (self.0.entry(field.clone()).or_default(), (text(old), text(new)));
        sum.rows += 1;
        if differ_in_zeros(&example.0, &example.1) {
            sum.zeros += 1;
            if sum.zeros == 1 {
                sum.example_of_zeros.clone_from(&example);
            }
        }
        if sum.rows == 1 {
            sum.example = example;
        }
    }

    fn most_frequent(&self) -> Vec<(&str, &Change)> {
        let mut changes: Vec<_> = self.0.iter().map(|(field, change)| (field.as_str(), change)).collect();
        changes.sort_by_key(|(_, change)| Reverse(change.rows));
        changes
    }

    fn as_json(&self) -> Value {
        let change = |(field, change): (&str, &Change)| {
            let (old, new) = &change.example;
            json!({"field": field, "rows": change.rows, "old": old, "new": new, "only_leading_zeros": change.zeros})
        };
        self.most_frequent().into_iter().map(change).collect()
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        number if digits(number).is_some() => digits(number).unwrap_or_default().to_owned(),
        Value::String(text) if text.is_empty() => "an empty value".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn differ_in_zeros(old: &str, new: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches('0').to_owned();
    old != new && !bare(old).is_empty() && bare(old) == bare(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &Value, sent: usize) -> Result<Results> {
        results(json!({"data": data, "meta": {"rows": 3}}).to_string().as_bytes(), sent)
    }

    #[test]
    fn temporary_errors_and_misfits_are_recognized() {
        let refused = |code: &str| json!([{"row": 1, "outcome": "refused", "errors": [{"detail": "busy", "code": code}]}]);
        for code in TEMPORARY {
            assert!(matches!(read(&refused(code), 1), Ok(Results::Unavailable(1))), "{code}");
        }
        assert!(matches!(read(&refused("CONFLICT"), 1), Ok(Results::Settled(_))));
        assert!(read(&refused("CONFLICT"), 2).is_err() && results(b"<html>", 1).is_err());
    }

    #[test]
    fn rows_that_are_refused_again_are_numbered() {
        for (path, refused) in [
            ("/x/a.csv", "/x/a.csv.refused.csv"),
            ("-", "stdin.refused.csv"),
            ("a.csv.refused.csv", "a.csv.refused-2.csv"),
            ("a.csv.refused-2.csv", "a.csv.refused-3.csv"),
            ("a.refused-x.csv", "a.refused-x.csv.refused.csv"),
            ("a.refused.ndjson", "a.refused.ndjson.refused.csv"),
        ] {
            assert_eq!(path_of(Path::new(path), "csv"), Path::new(refused));
        }
    }

    fn reasons(errors: &[(u64, &str, &str)]) -> Vec<String> {
        let mut reasons = Reasons::default();
        for (number, detail, help) in errors {
            let (original, sendable) = (Original::Line(String::new()), Err(Vec::new()));
            let row = Row { number: *number, line: number + 1, original, sendable };
            reasons.add(&row, &RowError::of_column("X", *detail), (*help).to_owned().into());
        }
        reasons.most_frequent().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_reasons_are_told_once_and_frequent_ones_first() {
        let found = reasons(&[
            (1, "is empty", "a"),
            (2, "\"31.02.2024\" is not a date", "b"),
            (3, "\"soon\" is not a date", "b"),
            (3, "\"soon\" is not a date", "b"),
            (4, "has the same value in row 5", "c"),
            (5, "has the same value in row 4", "c"),
            (6, "must be one of in_stock", "--map-value X:Lager=in_stock"),
            (7, "must be one of in_stock", "--map-value X:Frei=in_stock"),
        ]);
        assert_eq!(
            found,
            [
                "2 rows, for example row 2, line 3: X: \"31.02.2024\" is not a date",
                "2 rows, for example row 4, line 5: X: has the same value in row 5",
                "row 1, line 2: X: is empty",
                "row 6, line 7: X: must be one of in_stock",
                "row 7, line 8: X: must be one of in_stock",
            ]
        );
    }

    #[test]
    fn changes_are_counted_by_field_and_lost_zeros_apart() {
        let mut all = Changes::default();
        for (field, old, new) in [
            ("custom_fields.cost_center", json!("4711"), json!("4712")),
            ("custom_fields.cost_center", json!("0815"), json!("815")),
            ("custom_fields.cost_center", json!("007"), json!("7")),
            ("assigned_to", json!(null), json!("a")),
            ("purchase_price", json!(0), exact("1.50").unwrap()),
        ] {
            all.add(&FieldChange { field: field.into(), old, new });
        }
        let expected = json!([
            {"field": "custom_fields.cost_center", "rows": 3, "old": "4711", "new": "4712", "only_leading_zeros": 2},
            {"field": "assigned_to", "rows": 1, "old": "nothing", "new": "a", "only_leading_zeros": 0},
            {"field": "purchase_price", "rows": 1, "old": "0", "new": "1.50", "only_leading_zeros": 0},
        ]);
        assert_eq!(all.as_json(), expected);
        assert_eq!(all.most_frequent()[0].1.example_of_zeros, ("0815".into(), "815".into()));
    }
}
