//! What became of the rows of a file: the refused ones go to a file, which can be mended and sent again, and each reason is told
//! once.

use crate::error::{CliError, Result};
use crate::import::args::Import;
use crate::import::chunks::{Chunk, ChunkRow};
use crate::import::columns::{Columns, REASONS, Target, sent_name};
use crate::import::rows::ndjson_rows::{Members, UNREADABLE};
use crate::import::rows::{Original, RowError};
use crate::import::sender::Changes;
use crate::import::source::Source;
use crate::import::summary::{Counts, Outcome, RowResult};
use crate::import::way_out::{Help, SAME_VALUE, WayOut};
use crate::output::Format;
use csv::{StringRecord, WriterBuilder};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;
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
    /// The requests that had no effect.
    pub refused_chunks: Vec<u64>,
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
            refused_chunks: Vec::new(),
        }
    }

    /// Adds the next rows of the file. `results`: of the rows that were sent.
    pub fn add(&mut self, chunk: Chunk, results: Vec<RowResult>) -> Result<()> {
        if !results.is_empty() && results.iter().all(|row| row.outcome == Outcome::Refused) {
            self.refused_chunks.push(chunk.number);
        }
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
                    errors.clone_from(&row.bad);
                    let is_known = |error: &RowError| row.bad.iter().any(|bad| bad.column == error.column);
                    errors.extend(self.named(result.errors).into_iter().filter(|error| !is_known(error)));
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

/// The different reasons that are counted.
const MAX_REASONS: usize = 1_000;
/// Fewer rows than these can be wrong one by one.
const MANY: u64 = 3;
/// The options of a reason.
const MAX_OPTIONS: usize = 20;

/// A reason, the first row that has it, and what helps.
#[derive(Debug, Clone)]
pub struct Reason {
    pub rows: u64,
    pub row: u64,
    pub line: u64,
    error: RowError,
    way_out: String,
    if_most: Option<String>,
    /// To be added, all of them.
    options: BTreeSet<String>,
    /// A row is counted once, even if several of its cells have the reason.
    last_row: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, row, line, error, .. } = self;
        match rows {
            1 => write!(formatter, "row {row}, line {line}: {error}"),
            rows => write!(formatter, "{rows} rows: {error}, for example row {row}, line {line}"),
        }
    }
}

impl Reason {
    #[must_use]
    pub fn as_json(&self) -> Value {
        let RowError { column, detail, code } = &self.error;
        let way_out = self.way_out();
        json!({
            "rows": self.rows, "row": self.row, "line": self.line, "column": column, "detail": detail, "code": code, "way_out": way_out
        })
    }

    #[must_use]
    pub fn way_out(&self) -> String {
        std::iter::once(&self.way_out).chain(&self.options).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, Default)]
pub struct Reasons {
    found: Vec<Reason>,
    places: HashMap<String, usize>,
    left_out: u64,
}

impl Reasons {
    pub fn add(&mut self, row: &ChunkRow, error: &RowError, help: Help) {
        let Help { text: way_out, option, if_most } = help;
        let key = format!("{:?} {} {way_out}", error.column, general(&error.detail));
        if let Some(reason) = self.places.get(&key).and_then(|place| self.found.get_mut(*place)) {
            reason.rows += u64::from(reason.last_row != row.number);
            reason.last_row = row.number;
            reason.options.extend(option.filter(|_| reason.options.len() < MAX_OPTIONS));
        } else if self.found.len() < MAX_REASONS {
            self.places.insert(key, self.found.len());
            let (row, line) = (row.number, row.line);
            self.found.push(Reason {
                rows: 1,
                row,
                line,
                error: error.clone(),
                way_out,
                if_most,
                options: option.into_iter().collect(),
                last_row: row,
            });
        } else {
            self.left_out += 1;
        }
    }

    /// If most of the rows have the same error, something else helps. `rows`: the number of all rows.
    pub fn compare(&mut self, rows: u64) {
        for reason in self.found.iter_mut().filter(|reason| reason.rows >= MANY && reason.rows * 2 > rows) {
            if let Some(way_out) = reason.if_most.take() {
                reason.way_out = way_out;
            }
        }
    }

    /// Those that most rows have come first, and otherwise the file's order decides.
    #[must_use]
    pub fn most_frequent(&self) -> Vec<Reason> {
        let mut reasons = self.found.clone();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.rows));
        reasons
    }

    /// Errors that are not among the counted reasons.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Without the cell's text at the beginning, and without the other rows.
fn general(detail: &str) -> &str {
    if detail.starts_with(SAME_VALUE) {
        return SAME_VALUE;
    }
    detail.strip_prefix('"').and_then(|rest| rest.split_once("\" ")).map_or(detail, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rows::Original;

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

    fn reasons(errors: &[(u64, &str, &str)]) -> Vec<String> {
        let mut reasons = Reasons::default();
        for (number, detail, way_out) in errors {
            let original = Original::Line(String::new());
            let row = ChunkRow {
                number: *number,
                line: number + 1,
                original,
                errors: Vec::new(),
                skipped: Vec::new(),
                bad: Vec::new(),
            };
            reasons.add(&row, &RowError::of_column("X", *detail), (*way_out).to_owned().into());
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
                "2 rows: X: \"31.02.2024\" is not a date, for example row 2, line 3",
                "2 rows: X: has the same value in row 5, for example row 4, line 5",
                "row 1, line 2: X: is empty",
                "row 6, line 7: X: must be one of in_stock",
                "row 7, line 8: X: must be one of in_stock",
            ]
        );
    }
}
