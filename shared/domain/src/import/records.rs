//! The records of a CSV file (RFC 4180), broken ones included: an open quote costs only its row.

use crate::import::MAX_ROW;
use csv::StringRecord;

/// Maximum number of cells of a record.
const MAX_CELLS: usize = 10_000;
const TOO_MANY: &str = "has more than 10,000 cells";
const NOT_CLOSED: &str = "has a quote that isn't closed";
const NOT_DOUBLED: &str = "has text after a closing quote; inside a quoted cell, write each quote twice";

pub struct Records<'a> {
    text: &'a str,
    delimiter: u8,
    /// Where the next record begins, in bytes.
    position: usize,
    /// Number of the line where the next record begins.
    line: u64,
    /// Files of old Macs have carriage returns.
    line_break: char,
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
        let line_break = if text.contains('\r') && !text.contains('\n') { '\r' } else { '\n' };
        Self { text, delimiter, position: 0, line, line_break }
    }

    /// Returns where the next record begins, in bytes.
    pub fn position(&self) -> usize {
        self.position
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
        let rest = self.text.get(self.position..).unwrap_or_default();
        let body = rest.trim_start_matches(['\r', '\n']);
        if body.is_empty() {
            return None;
        }
        let mut parsed = Parsed::of(body, self.delimiter, true);
        let raw = body.get(..parsed.length).unwrap_or_default();
        let fits = expected.is_none_or(|expected| parsed.cells.len() == expected);
        let mut broken = parsed.fault;
        let mut is_one_line = false;
        if raw.len() > MAX_ROW {
            (broken, is_one_line) = (Some("is longer than 1 MiB; maybe a quote isn't closed"), true);
        } else if (broken.is_some() || !fits || !is_balanced(raw)) && self.has_swallowed_rows(raw, expected) {
            (broken, is_one_line) = (Some(NOT_CLOSED), true);
        } else if broken == Some(NOT_CLOSED) {
            broken = Some("is cut off: the file ends in the middle of a quoted cell");
        }
        if is_one_line {
            // The next record begins at the second line.
            let line = raw.split_once(self.line_break).map_or(raw, |(line, _)| line);
            let length = raw.len().min(line.len() + 1);
            parsed = Parsed { length, ..Parsed::of(line, self.delimiter, false) };
        }
        let (start, body_start) = (self.position, self.text.len() - body.len());
        self.position = body_start + parsed.length;
        let breaks = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default().matches(self.line_break).count() as u64;
        let line = self.line + breaks(start, body_start);
        self.line = line + breaks(body_start, self.position);
        Some(Record { cells: parsed.cells, line, start, end: self.position, broken })
    }

    /// Whether the record contains several rows because a quote isn't closed: its second line is a valid row.
    fn has_swallowed_rows(&self, raw: &str, expected: Option<usize>) -> bool {
        let (Some(expected), Some((_, rest))) = (expected.filter(|expected| *expected > 1), raw.split_once(self.line_break))
        else {
            return false;
        };
        let rest = rest.trim_start_matches(['\r', '\n']);
        let second = Parsed::of(rest, self.delimiter, true);
        second.fault.is_none() && second.cells.len() == expected && rest.get(..second.length).is_some_and(is_balanced)
    }
}

fn is_balanced(raw: &str) -> bool {
    raw.matches('"').count().is_multiple_of(2)
}

/// A record at the beginning of a text.
struct Parsed {
    cells: StringRecord,
    /// Number of its bytes, with its line break.
    length: usize,
    fault: Option<&'static str>,
}

impl Parsed {
    fn of(text: &str, delimiter: u8, with_quotes: bool) -> Self {
        let (mut cells, mut cell, mut fault, mut rest) = (StringRecord::new(), String::new(), None, text);
        loop {
            cell.clear();
            let quoted = rest.strip_prefix('"').filter(|_| with_quotes);
            if let Some(quoted) = quoted {
                rest = quoted;
                fault = unquote(&mut rest, &mut cell).or(fault);
            }
            let is_end = |byte: &u8| *byte == delimiter || *byte == b'\n' || *byte == b'\r';
            let (unquoted, after) = rest.split_at(rest.bytes().position(|byte| is_end(&byte)).unwrap_or(rest.len()));
            if quoted.is_some() && !unquoted.trim().is_empty() {
                fault = fault.or(Some(NOT_DOUBLED));
            }
            cell.push_str(unquoted);
            if cells.len() < MAX_CELLS {
                cells.push_field(&cell);
            } else {
                fault = Some(TOO_MANY);
            }
            if after.as_bytes().first() != Some(&delimiter) {
                let length = if after.starts_with("\r\n") { 2 } else { after.len().min(1) };
                return Self { cells, length: text.len() - after.len() + length, fault };
            }
            rest = after.get(1..).unwrap_or_default();
        }
    }
}

/// Moves the text before the closing quote to `cell`. Returns what is wrong if there is none.
fn unquote(rest: &mut &str, cell: &mut String) -> Option<&'static str> {
    loop {
        let Some((text, after)) = rest.split_once('"') else {
            cell.push_str(std::mem::take(rest));
            return Some(NOT_CLOSED);
        };
        cell.push_str(text);
        *rest = after;
        // A quote after the quote is one of the text; otherwise, the cell ends.
        *rest = after.strip_prefix('"')?;
        cell.push('"');
    }
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
    fn text_after_a_closing_quote_is_refused_and_not_changed() {
        for (text, rest) in [("\"24\" Monitor\",Q3\nd,e\n", 1), ("a,\"5\" disk\nd,e\n", 1), ("a,\"b\nc,\"d\"\n", 1)] {
            let rows = rows(text);
            assert!(rows[0].2.is_some(), "{text:?}: {rows:?}");
            assert!(rows.len() == 1 + rest && rows[1].2.is_none(), "{text:?}: {rows:?}");
        }
        assert_eq!(rows("\"a\" ,\"b\"\n"), [good(1, ["a ", "b"])]);
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

    #[test]
    fn a_row_with_endless_cells_is_refused() {
        let rows = rows(&format!("{}\nd,e\n", ",".repeat(20_000)));
        assert_eq!((rows[0].1.len(), rows[0].2, &rows[1]), (MAX_CELLS, Some(TOO_MANY), &good(2, ["d", "e"])));
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
