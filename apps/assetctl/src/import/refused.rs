//! The file of refused rows, which can be mended and sent again.
//!
//! It is written at the end, by reading the imported file once more: the journal has the refused rows and the reasons. So the
//! rows are in the file's order and complete, also after interruptions.

use crate::error::{CliError, Result};
use crate::format::Format;
use crate::import::args::Import;
use crate::import::changes::Changes;
use crate::import::chunks::ChunkRow;
use crate::import::columns::{Columns, REASONS, Target, sent_name};
use crate::import::journal::Journal;
use crate::import::reasons::Reasons;
use crate::import::rows::ndjson_rows::{Members, UNREADABLE};
use crate::import::rows::{Original, RowError};
use crate::import::settlement::Counts;
use crate::import::source::Source;
use crate::import::way_out::{Help, WayOut};
use csv::{StringRecord, WriterBuilder};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Refused rows that are told beside the file.
pub const MAX_TOLD: usize = 100;

#[derive(Debug, Serialize)]
pub struct RefusedRow {
    row: u64,
    line: u64,
    errors: Vec<RowError>,
}

#[derive(Debug, Default)]
pub struct Report {
    pub counts: Counts,
    /// The first refused rows.
    pub refused: Vec<RefusedRow>,
    pub reasons: Reasons,
    pub file: Option<PathBuf>,
    /// The cells that were left out of rows that are not refused, and their number.
    pub skipped: Reasons,
    pub skipped_cells: u64,
    /// Of a dry run.
    pub changes: Changes,
}

/// Reads the file again and writes the refused rows.
pub fn report(source: &Source, options: &Import, columns: &Columns, journal: &mut Journal) -> Result<Report> {
    let way_out = WayOut { options, names: &source.names, targets: &columns.targets };
    let mut chunks = source.chunks(options, columns)?;
    let targets = columns.targets.iter().zip(&source.names);
    let columns: HashMap<&str, &str> = targets
        .filter_map(|(target, name)| match target {
            Target::Field(field) => Some((sent_name(field), name.as_str())),
            Target::Ignored | Target::Nameless => None,
        })
        .collect();
    let mut report = Report { counts: *journal.counts(), ..Report::default() };
    let mut file = None;
    while let Some(chunk) = chunks.next()? {
        let settlement = journal.settlement(chunk.number)?.unwrap_or_default();
        report.changes.add_all(&settlement.changes);
        let mut refused = settlement.refused.into_iter().peekable();
        let mut skipped = settlement.skipped_cells.into_iter().peekable();
        let mut sent = 0;
        for row in chunk.rows {
            let errors = if row.errors.is_empty() {
                sent += 1;
                refused.next_if(|(index, _)| *index == sent - 1).map(|(_, errors)| named(errors, &columns)).unwrap_or_default()
            } else {
                report.counts.refused += 1;
                row.errors.clone()
            };
            if errors.is_empty() {
                let by_service = skipped.next_if(|(index, _)| *index + 1 == sent).map(|(_, errors)| named(errors, &columns));
                for error in row.skipped.iter().chain(by_service.iter().flatten()) {
                    report.skipped_cells += 1;
                    report.skipped.add(&row, error, Help::default());
                }
                continue;
            }
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(RefusedFile::create(source)?),
            };
            file.write(&row, &errors)?;
            errors.iter().for_each(|error| report.reasons.add(&row, error, way_out.of(error, &row.original)));
            if report.refused.len() < MAX_TOLD {
                report.refused.push(RefusedRow { row: row.number, line: row.line, errors });
            }
        }
    }
    report.reasons.compare(report.counts.rows());
    report.file = file.map(RefusedFile::finish).transpose()?;
    Ok(report)
}

/// Puts the file's names of the columns. A refused row has a reason, even if the service gave none.
fn named(errors: Vec<RowError>, columns: &HashMap<&str, &str>) -> Vec<RowError> {
    if errors.is_empty() {
        return vec![RowError::of_row("refused by the service")];
    }
    let name = |field: String| columns.get(field.as_str()).map_or(field.clone(), |name| (*name).to_owned());
    // The service names the parameter of a request.
    let detail = |detail: String| detail.replace("create_unmatched=true", "--create-unmatched");
    errors.into_iter().map(|error| RowError { column: error.column.map(name), detail: detail(error.detail), ..error }).collect()
}

fn reasons(errors: &[RowError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[must_use]
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// For `a.csv`: `a.csv.refused.csv`, and of that one's `a.csv.refused-2.csv`.
fn path_of(path: &Path, extension: &str) -> PathBuf {
    let name = path.to_string_lossy();
    let earlier = name.strip_suffix(&format!(".{extension}")).and_then(|name| name.rsplit_once(".refused"));
    let attempt = |text: &str| if text.is_empty() { Some(1) } else { text.strip_prefix('-')?.parse::<u32>().ok() };
    match earlier.and_then(|(name, number)| Some((name, attempt(number)?))) {
        Some((name, number)) => PathBuf::from(format!("{name}.refused-{}.{extension}", number.saturating_add(1))),
        None => beside(path, &format!(".refused.{extension}")),
    }
}

struct RefusedFile {
    path: PathBuf,
    output: BufWriter<NamedTempFile>,
    /// The delimiter, and the column with the reasons of an earlier attempt; `None` for NDJSON.
    csv: Option<(u8, Option<usize>)>,
}

impl RefusedFile {
    /// The file gets its name when it is complete.
    fn create(source: &Source) -> Result<Self> {
        let path = path_of(&source.path, if source.format == Format::Csv { "csv" } else { "ndjson" });
        let mut output = BufWriter::new(crate::output::temporary_beside(&path)?);
        let earlier = source.names.iter().position(|name| name == REASONS);
        let csv = (source.format == Format::Csv).then_some((source.delimiter, earlier));
        if csv.is_some() {
            // The byte order mark tells spreadsheets that it is UTF-8.
            output.write_all("\u{feff}".as_bytes())?;
        }
        let mut file = Self { path, output, csv };
        let header: StringRecord = source.names.iter().collect();
        file.write_cells(REASONS, &header)?;
        Ok(file)
    }

    fn write(&mut self, row: &ChunkRow, errors: &[RowError]) -> Result<()> {
        let reasons = format!("row {}, line {}: {}", row.number, row.line, reasons(errors));
        match &row.original {
            Original::Cells(cells) => self.write_cells(&reasons, cells),
            Original::Line(line) => self.write_line(&reasons, line),
        }
    }

    /// Writes the reasons before the cells, so that a row with a cell too few still has one too few.
    fn write_cells(&mut self, reasons: &str, cells: &StringRecord) -> Result<()> {
        let Some((delimiter, earlier)) = self.csv else { return Ok(()) };
        let mut writer = WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(&mut self.output);
        let cells = cells.iter().enumerate().filter(|(index, _)| Some(*index) != earlier).map(|(_, cell)| cell);
        writer.write_record(std::iter::once(reasons).chain(cells)).map_err(io::Error::from)?;
        writer.flush()?;
        Ok(())
    }

    fn write_line(&mut self, reasons: &str, line: &str) -> Result<()> {
        let mut members = vec![format!("{}:{}", Value::from(REASONS), Value::from(reasons))];
        match serde_json::from_str(line) {
            Ok(Members(found)) => members.extend(
                found
                    .iter()
                    .filter(|(name, _)| name != REASONS)
                    .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get())),
            ),
            Err(_) => members.push(format!("{}:{}", Value::from(UNREADABLE), Value::from(line))),
        }
        writeln!(self.output, "{{{}}}", members.join(","))?;
        Ok(())
    }

    /// Gives the file its name. One that an earlier import left may have been mended: it is kept as `….old`.
    fn finish(self) -> Result<PathBuf> {
        let file = self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        if self.path.exists() {
            std::fs::rename(&self.path, beside(&self.path, ".old")).map_err(|error| CliError::file(&self.path, &error))?;
        }
        crate::output::persist(file, &self.path)?;
        Ok(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_refused_again_are_numbered() {
        for (path, refused) in [
            ("/x/a.csv", "/x/a.csv.refused.csv"),
            ("a.csv.refused.csv", "a.csv.refused-2.csv"),
            ("a.csv.refused-2.csv", "a.csv.refused-3.csv"),
            ("a.refused-x.csv", "a.refused-x.csv.refused.csv"),
            ("a.refused.ndjson", "a.refused.ndjson.refused.csv"),
        ] {
            assert_eq!(path_of(Path::new(path), "csv"), Path::new(refused));
        }
    }
}
