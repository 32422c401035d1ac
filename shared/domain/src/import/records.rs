//! The records of a CSV file (RFC 4180), broken ones included: an open quote costs only its row.

use crate::import::MAX_ROW;
use csv::{Reader, ReaderBuilder, StringRecord};
use std::io::{Chain, Read};

/// A line after the text: a reader that finds it in a cell knows that a quote wasn't closed.
const END: &str = "\n\u{1}end of text\u{1}\n";

pub struct Records<'a> {
    text: &'a str,
    reader: Reader<Chain<&'a [u8], &'static [u8]>>,
    delimiter: u8,
    /// Where the reader started, in bytes.
    base: usize,
    /// Number of the line where the next record begins.
    line: u64,
    /// Files of old Macs have carriage returns.
    line_break: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub cells: StringRecord,
    /// Number of the line where the record begins, from 1.
    pub line: u64,
    /// Where the record begins and ends in the text, in bytes.
    pub start: usize,
    pub end: usize,
    /// What is wrong with the whole record.
    pub broken: Option<&'static str>,
}

impl<'a> Records<'a> {
    /// Reads the records of a text that begins at this line of its file.
    pub fn new(text: &'a str, delimiter: u8, line: u64) -> Self {
        let line_break = if text.contains('\r') && !text.contains('\n') { b'\r' } else { b'\n' };
        Self { text, reader: reader(text, delimiter), delimiter, base: 0, line, line_break }
    }

    /// Returns where the next record begins, in bytes.
    pub fn position(&self) -> usize {
        let read = usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX);
        self.base.saturating_add(read).min(self.text.len())
    }

    /// Returns the number of the line where the next record begins.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the last line has no line break, and the record ends there: the file can be cut off.
    pub fn ends_openly(&self, record: &Record) -> bool {
        !self.text.ends_with(['\n', '\r']) && self.text.get(record.end..).is_none_or(str::is_empty)
    }

    /// Reads the next record; `None` at the end. `expected` is the number of its cells, if known.
    pub fn next(&mut self, expected: Option<usize>) -> Option<Record> {
        let start = self.position();
        let mut cells = StringRecord::new();
        // Reading UTF-8 text from memory can't fail.
        if !self.reader.read_record(&mut cells).unwrap_or_default()
            || cells.get(0) == Some(END.trim_matches('\n')) && cells.len() == 1
        {
            return None;
        }
        let end = self.position();
        let last = cells.iter().next_back().unwrap_or_default();
        let is_open = last.ends_with(END);
        let fits = expected.is_none_or(|expected| cells.len() == expected);
        let raw = self.text.get(start..end).unwrap_or_default();
        let has_odd_quotes = || !quotes(raw).is_multiple_of(2);
        if raw.len() > MAX_ROW {
            let broken = "is longer than 1 MiB; maybe a quote isn't closed";
            return Some(self.first_line(start, end, broken));
        }
        if (is_open || !fits || has_odd_quotes()) && self.has_swallowed_rows(start, end, expected) {
            return Some(self.first_line(start, end, "has a quote that isn't closed"));
        }
        if is_open {
            let without_end = |cell: &str| cell.strip_suffix(END).unwrap_or(cell).to_owned();
            cells = cells.iter().map(without_end).collect();
        }
        let broken = is_open.then_some("is cut off: the file ends in the middle of a quoted cell");
        Some(self.finish(start, end, cells, broken))
    }

    /// Whether the record contains several rows because a quote isn't closed: its second line is a valid row.
    fn has_swallowed_rows(&self, start: usize, end: usize, expected: Option<usize>) -> bool {
        let raw = self.text.get(start..end).unwrap_or_default().trim_start_matches(['\r', '\n']);
        let (Some(expected), Some((_, rest))) = (expected.filter(|expected| *expected > 1), raw.split_once('\n')) else {
            return false;
        };
        let mut second = StringRecord::new();
        let mut reader = builder(self.delimiter).from_reader(rest.as_bytes());
        let is_record = reader.read_record(&mut second).unwrap_or_default();
        let length = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
        let is_balanced = rest.get(..length).is_some_and(|raw| quotes(raw).is_multiple_of(2));
        is_record && is_balanced && second.len() == expected
    }

    /// Returns only the first line of a record with an open quote. The next record begins at the second line.
    fn first_line(&mut self, start: usize, end: usize, broken: &'static str) -> Record {
        let raw = self.text.get(start..end).unwrap_or_default();
        let body = raw.trim_start_matches(['\r', '\n']);
        let line = body.split('\n').next().unwrap_or_default();
        let end = start + (raw.len() - body.len()) + line.len();
        let mut cells = StringRecord::new();
        // Reading UTF-8 text from memory can't fail.
        let _ = builder(self.delimiter).quoting(false).from_reader(line.as_bytes()).read_record(&mut cells);
        let record = self.finish(start, end, cells, Some(broken));
        self.reader = reader(self.text.get(end..).unwrap_or_default(), self.delimiter);
        self.base = end;
        record
    }

    fn finish(&mut self, start: usize, end: usize, cells: StringRecord, broken: Option<&'static str>) -> Record {
        let breaks = |text: &str| text.bytes().filter(|byte| *byte == self.line_break).count() as u64;
        let raw = self.text.get(start..end).unwrap_or_default();
        let (all, body) = (breaks(raw), breaks(raw.trim_start_matches(['\r', '\n'])));
        let line = self.line + all - body;
        self.line += all;
        Record { cells, line, start, end, broken }
    }
}

fn quotes(raw: &str) -> usize {
    raw.bytes().filter(|byte| *byte == b'"').count()
}

fn reader(text: &str, delimiter: u8) -> Reader<Chain<&[u8], &'static [u8]>> {
    builder(delimiter).from_reader(text.as_bytes().chain(END.as_bytes()))
}

fn builder(delimiter: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Rows = Vec<(u64, Vec<String>, Option<&'static str>)>;

    /// Reads rows of two cells: line number, cells and the error about quotes.
    fn rows(text: &str) -> Rows {
        let mut records = Records::new(text, b',', 1);
        std::iter::from_fn(|| records.next(Some(2)))
            .map(|record| (record.line, record.cells.iter().map(str::to_owned).collect(), record.broken))
            .collect()
    }

    fn good(line: u64, cells: [&str; 2]) -> (u64, Vec<String>, Option<&'static str>) {
        (line, cells.map(str::to_owned).to_vec(), None)
    }

    #[test]
    fn lines_are_counted_as_in_an_editor() {
        for line_break in ["\n", "\r\n", "\r"] {
            let text = ["a,b", "c,\"two", "lines\"", "", "d,e", "f,g"].join(line_break);
            let lines: Vec<u64> = rows(&text).iter().map(|(line, _, _)| *line).collect();
            assert_eq!(lines, [1, 2, 5, 6], "{line_break:?}");
        }
    }

    #[test]
    fn an_open_quote_costs_only_its_row() {
        for end in ["e,f\ng,h\n", "e,f\ng,\"h\"\n", "e,f\ng,h"] {
            let rows = rows(&format!("a,b\nc,\"24 inch\n{end}"));
            assert_eq!(rows[0], good(1, ["a", "b"]));
            assert_eq!(rows[1].1, ["c", "\"24 inch"]);
            assert!(rows[1].2.is_some_and(|broken| broken.contains("isn't closed")));
            assert_eq!(rows[2..], [good(3, ["e", "f"]), good(4, ["g", "h"])], "{end}");
        }
        let rows = rows("a,b\nc,\"24 inch");
        assert_eq!((&rows[1].1[1], rows[1].2.is_some()), (&"24 inch".to_owned(), true));
    }

    #[test]
    fn a_long_note_with_a_cell_too_many_stays_one_row() {
        let rows = rows("a,\"first line\nsecond line\",c\nd,e\n");
        assert_eq!(rows[0].1.len(), 3);
        assert_eq!(rows[1], good(3, ["d", "e"]));
    }

    #[test]
    fn endless_rows_cost_only_themselves() {
        let line = format!("x,\"{}\n", "y,z\n".repeat(300_000));
        let rows = rows(&format!("a,b\n{line}"));
        assert_eq!(rows.len(), 300_001);
        assert!(rows[1].2.is_some());
        let long = format!("a,b\nx,{}\nc,d\n", "y".repeat(3 << 20));
        let rows = self::rows(&long);
        assert!(rows[1].2.is_some_and(|broken| broken.contains("1 MiB")));
        assert_eq!((rows.len(), &rows[2]), (3, &good(3, ["c", "d"])));
    }

    proptest! {
        #[test]
        fn good_files_are_read_as_they_were_written(
            rows in prop::collection::vec(prop::array::uniform3("[a;,\"\t\r\n 'ü€😀]{0,8}"), 1..20),
            delimiter in prop::sample::select(vec![b',', b';', b'\t']),
            with_crlf: bool,
        ) {
            let terminator = if with_crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer = csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).from_writer(Vec::new());
            for row in &rows {
                writer.write_record(row).map_err(|error| TestCaseError::fail(error.to_string()))?;
            }
            let written = writer.into_inner().map_err(|error| TestCaseError::fail(error.to_string()))?;
            let written = String::from_utf8(written).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let mut records = Records::new(&written, delimiter, 1);
            for row in &rows {
                let Some(record) = records.next(Some(3)) else { return Err(TestCaseError::fail("a row is missing")) };
                prop_assert_eq!(record.broken, None);
                prop_assert!(record.cells.iter().eq(row.iter().map(String::as_str)));
            }
            prop_assert!(records.next(Some(3)).is_none());
        }
    }
}
