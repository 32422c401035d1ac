//! The rows of a file, as they are sent: the service reads them. Here, only what can't be sent is refused.

use crate::import::text::Text;
use csv::{StringRecord, WriterBuilder};
use domain::assets::csv_cell;
use domain::import::columns::{Column, Columns};
use domain::import::header::Header;
use domain::import::objects::{self, Members};
use domain::import::records::{Record, Records};
use domain::import::{CUSTOM_FIELD, Kind, MAX_ROW, REASONS, compared};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::rc::Rc;

/// Error of a cell with a replacement character.
const MISSING: &str = "has \u{fffd} where bytes can't be read in this encoding, or where text is missing";
/// Member name for a refused line that isn't a JSON object.
pub const UNREADABLE: &str = "unreadable";
/// Maximum number of rows to read at once.
const BATCH: usize = 200;

pub type Input = Box<dyn Read>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// Heading of the column or, if the file has none, the field; `None` if the error concerns the whole row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The heading, in a response of the service; `column` is then the field.
    #[serde(default, skip_serializing)]
    pub heading: Option<String>,
}

impl RowError {
    pub fn of_row(detail: impl Into<String>) -> Self {
        Self { column: None, detail: detail.into(), code: None, heading: None }
    }

    pub fn of_column(column: &str, detail: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), ..Self::of_row(detail) }
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(formatter, "{column}: {}", self.detail),
            None => formatter.write_str(&self.detail),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// The cells of a CSV row. The header can have more or fewer.
    Cells(StringRecord),
    Line(String),
}

impl Original {
    /// Returns the text in a column, without surrounding white space. In NDJSON, values that aren't strings count as their JSON.
    pub fn text(&self, names: &[String], column: &str) -> Option<String> {
        let text = match self {
            Self::Cells(cells) => cells.get(names.iter().position(|name| name == column)?)?.to_owned(),
            Self::Line(line) => {
                let Members(members) = serde_json::from_str(line).ok()?;
                let (_, value) = members.into_iter().find(|(name, _)| name.trim() == column)?;
                objects::text(&value)
            }
        };
        Some(text.trim().to_owned())
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sendable {
    /// A line of CSV or NDJSON.
    pub bytes: Vec<u8>,
    /// Hashes of values that could identify the same record as another row.
    pub keys: Vec<u64>,
    /// The heading of the column that identifies the record to update, and the hash of its value.
    pub matched: Option<(String, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Number of the data row, from 1.
    pub number: u64,
    pub line: u64,
    pub original: Original,
    /// The encoded row, or its errors.
    pub sendable: Result<Sendable, Vec<RowError>>,
}

/// How the rows of a file identify records.
#[derive(Debug)]
pub struct Shape {
    pub columns: Columns,
    pub matched: Option<&'static str>,
}

impl Shape {
    fn sendable<'t>(&self, bytes: Vec<u8>, cell: impl Fn(usize) -> Option<&'t str>) -> Sendable {
        let unique = if self.columns.kind == Kind::Assets { "asset_tag" } else { "email" };
        let mut sendable = Sendable { bytes, ..Sendable::default() };
        for column in &self.columns.columns {
            let is_match = self.matched == Some(column.field.as_str());
            if !is_match && ![unique, "id"].contains(&column.field.as_str()) {
                continue;
            }
            let Some(key) = self.columns.text(column, &cell).and_then(|text| self.key(column, text)) else { continue };
            sendable.keys.push(key);
            if is_match {
                sendable.matched = Some((column.heading.clone(), key));
            }
        }
        sendable
    }

    /// Returns the hash of a value that could identify the same record in another row.
    ///
    /// A collision only costs time: the rows wait for each other.
    fn key(&self, column: &Column, text: Cow<'_, str>) -> Option<u64> {
        let value = self.columns.convert(column, text).ok()?;
        // The service removes a leading apostrophe.
        let value = value.trim().trim_start_matches('\'').trim();
        if value.is_empty() || value == "\\N" {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        column.field.hash(&mut hasher);
        compared(&column.field, value).hash(&mut hasher);
        Some(hasher.finish())
    }
}

pub struct CsvRows {
    text: Text<Input>,
    header: Header,
    shape: Rc<Shape>,
    line: u64,
    number: u64,
    read: VecDeque<(Record, bool, bool)>,
}

impl CsvRows {
    /// `text` begins with the header.
    pub fn new(mut text: Text<Input>, header: Header, shape: Rc<Shape>) -> Self {
        text.advance(header.end);
        Self { text, line: header.next_line, header, shape, number: 0, read: VecDeque::new() }
    }

    pub fn raw_position(&self) -> u64 {
        self.text.raw_position()
    }

    /// Returns the header, the first line of every request.
    pub fn header(&self) -> Vec<u8> {
        let name = |name: &String| match name.starts_with(CUSTOM_FIELD) {
            true => csv_cell::from_text(name).into_owned(),
            false => name.clone(),
        };
        encode(&self.header.names.iter().map(name).collect())
    }

    pub fn next(&mut self) -> io::Result<Option<Row>> {
        loop {
            if self.read.is_empty() {
                self.read_more()?;
            }
            let Some((record, is_unreadable, is_open)) = self.read.pop_front() else { return Ok(None) };
            if record.broken.is_none() && record.cells.iter().all(|cell| cell.trim().is_empty()) {
                continue;
            }
            self.number += 1;
            let sendable = self.sendable(&record, is_unreadable, is_open);
            // The replacement character makes a new import of the row fail unless the cell is corrected.
            let is_cut_off = record.broken.is_some() || (sendable.is_err() && is_open);
            let original = Original::Cells(if is_cut_off { marked(&record.cells) } else { record.cells });
            return Ok(Some(Row { number: self.number, line: record.line, original, sendable }));
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        self.text.ahead()?;
        let safe = self.text.safe_length();
        let text = self.text.ahead()?;
        let mut records = Records::new(text, self.header.delimiter, self.line);
        let mut read = Vec::new();
        while read.len() < BATCH && (records.position() < safe || safe == text.len()) {
            let Some(record) = records.next(Some(self.header.names.len())) else { break };
            let is_open = safe == text.len() && records.ends_openly(&record);
            read.push((record, is_open));
        }
        let end = records.position();
        self.line = records.line();
        let with_readability = |(record, is_open): (Record, bool)| {
            let is_unreadable = self.text.is_unreadable(record.start, record.end);
            (record, is_unreadable, is_open)
        };
        self.read = read.into_iter().map(with_readability).collect();
        self.text.advance(end);
        Ok(())
    }

    fn sendable(&self, record: &Record, is_unreadable: bool, is_open: bool) -> Result<Sendable, Vec<RowError>> {
        let (cells, names) = (&record.cells, &self.header.names);
        let mut errors: Vec<RowError> = record.broken.map(RowError::of_row).into_iter().collect();
        if record.broken.is_none()
            && (cells.len() < names.len() || cells.iter().skip(names.len()).any(|cell| !cell.trim().is_empty()))
        {
            let cut_off = if is_open { "; the file ends in the middle of this row" } else { "" };
            errors.push(RowError::of_row(format!("has {} cells, but the header has {}{cut_off}", cells.len(), names.len())));
        }
        let was_refused = names.iter().any(|name| name == REASONS);
        for (name, cell) in names.iter().zip(cells) {
            if (is_unreadable || was_refused) && cell.contains(char::REPLACEMENT_CHARACTER) && name != REASONS {
                errors.push(RowError::of_column(name, MISSING));
            }
        }
        for cell in
            self.shape.columns.nameless.iter().filter_map(|index| cells.get(*index)).filter(|cell| !cell.trim().is_empty())
        {
            errors.push(RowError::of_row(format!("has the value {cell:?} in a column without a name")));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let sent = cells.iter().take(names.len()).collect();
        Ok(self.shape.sendable(encode(&sent), |index| cells.get(index)))
    }
}

/// Marks the last cell as incomplete.
fn marked(cells: &StringRecord) -> StringRecord {
    let last = cells.len().saturating_sub(1);
    let cell = |(index, cell): (usize, &str)| if index == last { format!("{cell}\u{fffd}") } else { cell.to_owned() };
    cells.iter().enumerate().map(cell).collect()
}

pub fn encode(cells: &StringRecord) -> Vec<u8> {
    let mut writer = WriterBuilder::new().buffer_capacity(512).from_writer(Vec::new());
    // Writing to memory can't fail, and the service counts rows.
    let _ = writer.write_record(cells);
    writer.into_inner().unwrap_or_default()
}

pub struct LineRows {
    text: Text<Input>,
    names: Rc<Vec<String>>,
    shape: Rc<Shape>,
    line: u64,
    number: u64,
}

impl LineRows {
    pub fn new(text: Text<Input>, names: Rc<Vec<String>>, shape: Rc<Shape>) -> Self {
        Self { text, names, shape, line: 0, number: 0 }
    }

    pub fn raw_position(&self) -> u64 {
        self.text.raw_position()
    }

    pub fn next(&mut self) -> io::Result<Option<Row>> {
        while let Some((line, is_whole, is_unreadable)) = self.next_line()? {
            self.line += 1;
            if line.trim().is_empty() {
                continue;
            }
            self.number += 1;
            let sendable = match (is_whole, is_unreadable) {
                (false, _) => Err(vec![RowError::of_row("is longer than 1 MiB")]),
                (_, true) => Err(vec![RowError::of_row("has bytes that are not text in this encoding, shown as \u{fffd}")]),
                _ => self.sendable(&line),
            };
            let original = Original::Line(line.trim().to_owned());
            return Ok(Some(Row { number: self.number, line: self.line, original, sendable }));
        }
        Ok(None)
    }

    /// Returns the next line, or the beginning of one that is too long, and whether bytes in it couldn't be decoded.
    fn next_line(&mut self) -> io::Result<Option<(String, bool, bool)>> {
        let ahead = self.text.ahead()?;
        if ahead.is_empty() {
            return Ok(None);
        }
        if let Some(line) = ahead.split_inclusive('\n').next().filter(|line| line.len() <= MAX_ROW) {
            let (line, length) = (line.to_owned(), line.len());
            let is_unreadable = self.text.is_unreadable(0, length);
            self.text.advance(length);
            return Ok(Some((line, true, is_unreadable)));
        }
        let beginning: String = ahead.chars().take(100).collect();
        // Skips the rest of the line.
        loop {
            let ahead = self.text.ahead()?;
            let end = ahead.find('\n').map(|place| place + 1);
            let length = end.unwrap_or(ahead.len());
            self.text.advance(length);
            if end.is_some() || length == 0 {
                return Ok(Some((beginning, false, false)));
            }
        }
    }

    fn sendable(&self, line: &str) -> Result<Sendable, Vec<RowError>> {
        let Members(members) = serde_json::from_str(line).map_err(|error| {
            let detail = if !line.ends_with('\n') && error.is_eof() {
                "is cut off: the file ends in the middle of this line".to_owned()
            } else {
                format!("is not a JSON object: {error}")
            };
            vec![RowError::of_row(detail)]
        })?;
        if members.iter().any(|(name, _)| name == UNREADABLE) {
            return Err(vec![RowError::of_column(UNREADABLE, "replace this line with a valid JSON object")]);
        }
        let texts: Vec<(&str, String)> = members.iter().map(|(name, value)| (name.trim(), objects::text(value))).collect();
        let cell = |index: usize| {
            let name = self.names.get(index)?;
            texts.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
        };
        let line = line.trim();
        Ok(self.shape.sendable(format!("{line}\n").into_bytes(), cell))
    }
}

/// Returns the names of the members; none if the line isn't an object.
pub fn member_names(line: &str) -> Vec<String> {
    let members = serde_json::from_str(line).map_or(Vec::new(), |Members(members)| members);
    members.into_iter().map(|(name, _)| name).filter(|name| name != REASONS && name != UNREADABLE).collect()
}
