//! Reads the records of a CSV file, including broken ones, with their positions in the text.

use crate::import::rows::decode::{END_OF_TEXT, MAX_ROW, Text};
use csv::{Reader, ReaderBuilder, StringRecord};
use std::cell::{Ref, RefCell};
use std::io::{self, Read};
use std::rc::Rc;

pub struct Records<R> {
    text: Rc<RefCell<Text<R>>>,
    reader: Reader<SharedText<R>>,
    delimiter: u8,
    base: u64,
    /// Number of the line where the next record begins.
    line: u64,
    /// Line break of the file: files of old Macs have carriage returns.
    line_break: Option<u8>,
}

#[derive(Debug)]
pub struct Record {
    pub cells: StringRecord,
    pub line: u64,
    pub is_unreadable: bool,
    pub broken: Option<&'static str>,
}

/// The text, shared by the CSV reader and [`Records`].
struct SharedText<R>(Rc<RefCell<Text<R>>>);

impl<R: Read> Read for SharedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

impl<R: Read> Records<R> {
    /// `text` must have been created with `with_end`.
    pub fn new(text: Text<R>, delimiter: u8) -> Self {
        let text = Rc::new(RefCell::new(text));
        let reader = builder(delimiter).from_reader(SharedText(Rc::clone(&text)));
        Self { text, reader, delimiter, base: 0, line: 1, line_break: None }
    }

    pub fn text(&self) -> Ref<'_, Text<R>> {
        self.text.borrow()
    }

    /// Reads the next record. `expected` is the number of cells in the record, if known.
    pub fn next(&mut self, expected: Option<usize>) -> io::Result<Option<Record>> {
        let start = self.base + self.reader.position().byte();
        let mut cells = StringRecord::new();
        match self.reader.read_record(&mut cells) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(_) if self.text().after(start).len() > MAX_ROW => {
                return self.first_line(start, "is longer than 1 MiB; maybe a quote isn't closed").map(Some);
            }
            Err(error) => return Err(error.into()),
        }
        let end = self.base + self.reader.position().byte();
        if cells.len() == 1 && cells.get(0) == Some(END_OF_TEXT) {
            return Ok(None);
        }
        let is_open =
            cells.iter().next_back().and_then(|cell| cell.strip_suffix('\n')).is_some_and(|cell| cell.ends_with(END_OF_TEXT));
        let fits = expected.is_none_or(|expected| cells.len() == expected);
        let has_odd_quotes = || !quotes(self.text().between(start, end)).is_multiple_of(2);
        if (is_open || !fits || has_odd_quotes()) && self.has_swallowed_rows(start, end, expected) {
            return self.first_line(start, "has a quote that isn't closed").map(Some);
        }
        if is_open {
            cells = with_last(&cells, without_end);
        }
        let broken = is_open.then_some("is cut off: the file ends in the middle of a quoted cell");
        Ok(Some(self.finish(start, end, cells, broken)))
    }

    /// Whether the record contains several rows because a quote isn't closed: its second line is a valid row.
    fn has_swallowed_rows(&self, start: u64, end: u64, expected: Option<usize>) -> bool {
        let text = self.text();
        let raw = text.between(start, end).trim_start_matches(['\r', '\n']);
        let (Some(expected), Some((_, rest))) = (expected.filter(|expected| *expected > 1), raw.split_once('\n')) else {
            return false;
        };
        let mut second = StringRecord::new();
        let mut reader = builder(self.delimiter).from_reader(rest.as_bytes());
        let is_record = reader.read_record(&mut second).is_ok_and(|is_record| is_record);
        let length = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
        let is_balanced = rest.get(..length).is_some_and(|raw| quotes(raw).is_multiple_of(2));
        is_record && is_balanced && second.len() == expected
    }

    /// Returns only the first line of a record with an unclosed quote. The next record begins at the second line.
    fn first_line(&mut self, start: u64, broken: &'static str) -> io::Result<Record> {
        let (lead, line) = {
            let text = self.text();
            let raw = text.after(start);
            let body = raw.trim_start_matches(['\r', '\n']);
            (raw.len() - body.len(), body.split('\n').next().unwrap_or_default().to_owned())
        };
        let mut end = start + (lead + line.len()) as u64;
        let mut cells = StringRecord::new();
        builder(self.delimiter).quoting(false).from_reader(line.as_bytes()).read_record(&mut cells)?;
        let record = self.finish(start, end, cells, Some(broken));
        if line.len() >= MAX_ROW {
            end = self.text.borrow_mut().skip_line(end)?;
        }
        self.text.borrow_mut().rewind(end);
        self.reader = builder(self.delimiter).from_reader(SharedText(Rc::clone(&self.text)));
        self.base = end;
        Ok(record)
    }

    fn finish(&mut self, start: u64, end: u64, cells: StringRecord, broken: Option<&'static str>) -> Record {
        let mut text = self.text.borrow_mut();
        let line_break = *self.line_break.get_or_insert_with(|| line_break(text.after(start)));
        let breaks = |text: &str| text.bytes().filter(|byte| *byte == line_break).count() as u64;
        let raw = text.between(start, end);
        let (all, body) = (breaks(raw), breaks(raw.trim_start_matches(['\r', '\n'])));
        let line = self.line + all - body;
        self.line += all;
        let is_unreadable = text.take_unreadable(start, end);
        Record { cells, line, is_unreadable, broken }
    }
}

/// Detects the line break at the start of the text.
fn line_break(beginning: &str) -> u8 {
    let text = beginning.split(END_OF_TEXT).next().unwrap_or_default().trim_end_matches('\n');
    if text.contains('\r') && !text.contains('\n') { b'\r' } else { b'\n' }
}

fn quotes(raw: &str) -> usize {
    raw.bytes().filter(|byte| *byte == b'"').count()
}

fn builder(delimiter: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true);
    builder
}

/// Removes [`END_OF_TEXT`] from a cell.
fn without_end(cell: &str) -> String {
    let text = cell.trim_end_matches('\n').trim_end_matches(END_OF_TEXT);
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

pub fn with_last(cells: &StringRecord, change: impl Fn(&str) -> String) -> StringRecord {
    let last = cells.len().saturating_sub(1);
    cells.iter().enumerate().map(|(index, cell)| if index == last { change(cell) } else { cell.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{UTF_8, UTF_16LE};
    use proptest::prelude::*;

    /// Reads rows of two cells: line number, cells and the error about quotes.
    fn rows(text: &str) -> Vec<(u64, Vec<String>, Option<&'static str>)> {
        let mut records = Records::new(Text::new(text.as_bytes(), UTF_8, true), b',');
        let mut rows = Vec::new();
        while let Some(record) = records.next(Some(2)).unwrap() {
            assert!(!record.is_unreadable);
            rows.push((record.line, record.cells.iter().map(str::to_owned).collect(), record.broken));
        }
        rows
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
            assert!(rows[1].2.unwrap().contains("isn't closed"));
            assert_eq!(rows[2..], [good(3, ["e", "f"]), good(4, ["g", "h"])], "{end}");
        }
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
        assert!(rows[1].2.unwrap().contains("1 MiB"));
        assert_eq!((rows.len(), &rows[2]), (3, &good(3, ["c", "d"])));
    }

    proptest! {
        #[test]
        fn good_files_are_read_as_they_were_written(
            rows in prop::collection::vec(prop::array::uniform3("[a;,\"\t\r\n 'ü€😀]{0,8}"), 1..20),
            delimiter in prop::sample::select(vec![b',', b';', b'\t']),
            with_crlf: bool,
            in_utf16: bool,
        ) {
            let terminator = if with_crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer = csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).from_writer(Vec::new());
            for row in &rows {
                writer.write_record(row).unwrap();
            }
            let written = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let (bytes, encoding) = if in_utf16 {
                (written.encode_utf16().flat_map(u16::to_le_bytes).collect(), UTF_16LE)
            } else {
                (written.into_bytes(), UTF_8)
            };
            let mut records = Records::new(Text::new(bytes.as_slice(), encoding, true), delimiter);
            for row in &rows {
                let record = records.next(Some(3)).unwrap().unwrap();
                prop_assert_eq!(record.broken, None);
                prop_assert!(record.cells.iter().eq(row.iter().map(String::as_str)));
            }
            prop_assert!(records.next(Some(3)).unwrap().is_none());
        }
    }
}
