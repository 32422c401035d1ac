//! What became of the rows of a file, and the file of refused rows, which can be mended and sent again.

use crate::error::{CliError, Result};
use crate::format::Format;
use crate::import::args::Import;
use crate::import::changes::Changes;
use crate::import::chunks::{Chunk, ChunkRow};
use crate::import::columns::{Columns, REASONS, Target, sent_name};
use crate::import::reasons::Reasons;
use crate::import::results::{Counts, Outcome, RowResult};
use crate::import::rows::ndjson_rows::{Members, UNREADABLE};
use crate::import::rows::{Original, RowError};
use crate::import::source::Source;
use crate::import::way_out::{Help, WayOut};
use csv::{StringRecord, WriterBuilder};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// Refused rows that are told beside the file.
pub const MAX_TOLD: usize = 100;

#[derive(Debug, Serialize)]
pub struct RefusedRow {
    row: u64,
    line: u64,
    errors: Vec<RowError>,
}

/// What became of the rows so far.
pub struct Report<'a> {
    source: &'a Source,
    way_out: WayOut<'a>,
    /// The file's names of columns, by the field that is sent.
    columns: HashMap<&'a str, &'a str>,
    pub counts: Counts,
    /// The first refused rows.
    pub refused: Vec<RefusedRow>,
    pub reasons: Reasons,
    file: Option<RefusedFile>,
    /// The cells that were left out of rows that are not refused, and their number.
    pub skipped: Reasons,
    pub skipped_cells: u64,
    /// Of a dry run.
    pub changes: Changes,
    /// The first rows of which the service refused some.
    pub refused_chunk: Option<Chunk>,
    /// Rows can't be sent.
    pub has_broken: bool,
}

impl<'a> Report<'a> {
    #[must_use]
    pub fn new(source: &'a Source, options: &'a Import, columns: &'a Columns) -> Self {
        let targets = columns.targets.iter().zip(&source.names);
        let names = targets.filter_map(|(target, name)| match target {
            Target::Field(field) => Some((sent_name(field), name.as_str())),
            Target::Ignored | Target::Nameless => None,
        });
        Self {
            source,
            way_out: WayOut { options, names: &source.names, targets: &columns.targets },
            columns: names.collect(),
            counts: Counts::default(),
            refused: Vec::new(),
            reasons: Reasons::default(),
            file: None,
            skipped: Reasons::default(),
            skipped_cells: 0,
            changes: Changes::default(),
            refused_chunk: None,
            has_broken: false,
        }
    }

    /// Adds the next rows of the file. `results`: of those that were sent.
    pub fn add(&mut self, chunk: Chunk, results: Vec<RowResult>) -> Result<()> {
        let (mut results, mut is_refused) = (results.into_iter(), false);
        for row in &chunk.rows {
            let (mut errors, mut skipped) = (row.errors.clone(), row.skipped.clone());
            if errors.is_empty() {
                let Some(result) = results.next() else { continue };
                self.counts.add(&result);
                result.changes.iter().for_each(|change| self.changes.add(change));
                skipped.extend(self.named(result.skipped_cells));
                if result.outcome == Outcome::Refused {
                    is_refused = true;
                    errors = self.named(result.errors);
                    if errors.is_empty() {
                        errors.push(RowError::of_row("refused by the service"));
                    }
                }
            } else {
                self.counts.refused += 1;
                self.has_broken = true;
            }
            if errors.is_empty() {
                for error in &skipped {
                    self.skipped_cells += 1;
                    self.skipped.add(row, error, Help::default());
                }
                continue;
            }
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(RefusedFile::create(self.source)?),
            };
            file.write(row, &errors)?;
            errors.iter().for_each(|error| self.reasons.add(row, error, self.way_out.of(error, &row.original)));
            if self.refused.len() < MAX_TOLD {
                self.refused.push(RefusedRow { row: row.number, line: row.line, errors });
            }
        }
        if is_refused && self.refused_chunk.is_none() {
            self.refused_chunk = Some(chunk);
        }
        Ok(())
    }

    /// Puts the file's names of the columns.
    fn named(&self, errors: Vec<RowError>) -> Vec<RowError> {
        let name = |field: String| self.columns.get(field.as_str()).map_or(field.clone(), |name| (*name).to_owned());
        // The service names the parameter of a request.
        let detail = |detail: String| detail.replace("create_unmatched=true", "--create-unmatched");
        let named = |error: RowError| RowError { column: error.column.map(name), detail: detail(error.detail), ..error };
        errors.into_iter().map(named).collect()
    }

    /// After the last row. Returns the file of refused rows, if there are any.
    pub fn finish(&mut self) -> Result<Option<PathBuf>> {
        self.reasons.compare(self.counts.rows());
        self.file.take().map(|file| file.finish(self.source)).transpose()
    }
}

fn reasons(errors: &[RowError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
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

/// Collected in a file without a name, so that an interrupted import leaves nothing behind.
struct RefusedFile {
    output: BufWriter<File>,
    /// The delimiter, and the column with the reasons of an earlier attempt; `None` for NDJSON.
    csv: Option<(u8, Option<usize>)>,
}

impl RefusedFile {
    fn create(source: &Source) -> Result<Self> {
        let mut output = BufWriter::new(tempfile::tempfile()?);
        let earlier = source.names.iter().position(|name| name == REASONS);
        let csv = (source.format == Format::Csv).then_some((source.delimiter, earlier));
        if csv.is_some() {
            // The byte order mark tells spreadsheets that it is UTF-8.
            output.write_all("\u{feff}".as_bytes())?;
        }
        let mut file = Self { output, csv };
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

    /// Puts it beside the imported file. One that an earlier import left may have been mended: it is kept as `….old`.
    fn finish(self, source: &Source) -> Result<PathBuf> {
        let path = path_of(&source.path, if source.format == Format::Csv { "csv" } else { "ndjson" });
        let mut rows = self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        rows.rewind()?;
        let mut file = crate::output::temporary_beside(&path)?;
        io::copy(&mut rows, &mut file)?;
        if path.exists() {
            std::fs::rename(&path, beside(&path, ".old")).map_err(|error| CliError::file(&path, &error))?;
        }
        crate::output::persist(file, &path)?;
        Ok(path)
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
