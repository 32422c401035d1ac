//! The rows of a CSV or NDJSON file, checked and converted for the service. Numbers in NDJSON keep their digits.

pub mod decode;
pub mod encoding;
pub mod records;

use crate::import::columns::{Fields, Joined, Kind, Mapping, REASONS, Target, sent_name, target};
use csv::{StringRecord, WriterBuilder};
use decode::{MAX_ROW, Text};
use encoding::excel_separator;
use fields::CellType;
use records::{Record, Records, with_last};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// Error of a cell with a replacement character.
const MISSING: &str = "has \u{fffd} where bytes can't be read in this encoding, or where text is missing";
/// Member name for a refused line that isn't a JSON object.
pub const UNREADABLE: &str = "unreadable";
/// A value that the service rejects both as a date and as a number.
const REFUSED: &str = "?";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// Column name in the file; `None` if the error concerns the whole row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl RowError {
    pub fn of_row(detail: impl Into<String>) -> Self {
        Self { column: None, detail: detail.into(), code: None }
    }

    pub fn of_column(column: &str, detail: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), detail: detail.into(), code: None }
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
                serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
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
    /// The column that identifies the record to update, and the hash of its value.
    pub matched: Option<(String, u64)>,
    /// Errors of cells that are left out.
    pub skipped: Vec<RowError>,
    /// Errors in cells that are sent as [`REFUSED`], so that the service can find further errors in the row.
    pub bad: Vec<RowError>,
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

/// The result of checking and converting a row's cells.
#[derive(Default)]
struct Checked {
    sendable: Sendable,
    errors: Vec<RowError>,
}

impl Checked {
    /// Returns the text to send for a cell; empty if the cell is left out.
    fn text<'a>(&mut self, fields: &'a Fields, column: &str, field: &str, cell: &'a str) -> Cow<'a, str> {
        let value = fields.values.translate(column, cell);
        match value.and_then(|value| Ok((value, fields.convert(field, value)?))) {
            Ok((value, converted)) => {
                let key = fields.key(field, value);
                self.sendable.keys.extend(key);
                if let Some(key) = key.filter(|_| fields.match_column == Some(field)) {
                    self.sendable.matched = Some((column.to_owned(), key));
                }
                converted.map_or(Cow::Borrowed(value), Cow::Owned)
            }
            Err(detail) if fields.skip_bad.iter().any(|skipped| skipped == field) => {
                self.sendable.skipped.push(RowError::of_column(column, detail));
                "".into()
            }
            Err(detail) if fields.is_checked(field) => {
                self.sendable.bad.push(RowError::of_column(column, detail));
                REFUSED.into()
            }
            Err(detail) => {
                self.errors.push(RowError::of_column(column, detail));
                "".into()
            }
        }
    }

    fn finish(self, bytes: Vec<u8>) -> Result<Sendable, Vec<RowError>> {
        let Self { sendable, errors } = self;
        if errors.is_empty() { Ok(Sendable { bytes, ..sendable }) } else { Err([sendable.bad, errors].concat()) }
    }
}

pub struct CsvRows<R> {
    records: Records<R>,
    names: Vec<String>,
    targets: Vec<Target>,
    fields: Fields,
    number: u64,
}

/// Returns the header and the records. Skips the line `sep=;`, which Excel writes.
pub fn read_header<R: Read>(text: Text<R>, delimiter: u8) -> io::Result<(Vec<String>, Records<R>)> {
    let mut records = Records::new(text, delimiter);
    let mut header = records.next(None)?;
    let is_separator = |record: &Record| {
        let first = record.cells.get(0).unwrap_or_default();
        first == "sep=" || excel_separator(first).is_some()
    };
    if header.as_ref().is_some_and(is_separator) {
        header = records.next(None)?;
    }
    let names = header.map(|header| header.cells.iter().map(|name| name.trim().to_owned()).collect());
    Ok((names.unwrap_or_default(), records))
}

impl<R: Read> CsvRows<R> {
    pub fn new(names: Vec<String>, records: Records<R>, targets: Vec<Target>, fields: Fields) -> Self {
        Self { records, names, targets, fields, number: 0 }
    }

    pub fn text(&self) -> std::cell::Ref<'_, Text<R>> {
        self.records.text()
    }

    /// Returns the header of the sent columns, the first line of every request.
    pub fn header(&self) -> Vec<u8> {
        let fields = self.targets.iter().filter_map(Target::field).map(sent_name);
        encode(&fields.chain(self.fields.constants.iter().map(|constant| constant.field.as_str())).collect())
    }

    pub fn next(&mut self) -> io::Result<Option<Row>> {
        while let Some(record) = self.records.next(Some(self.names.len()))? {
            if record.broken.is_none() && record.cells.iter().all(|cell| cell.trim().is_empty()) {
                continue;
            }
            self.number += 1;
            let sendable = self.sendable(&record);
            let is_good = sendable.as_ref().is_ok_and(|sendable| sendable.bad.is_empty());
            let is_cut_off = record.broken.is_some() || (!is_good && self.text().is_last_line_open());
            // The replacement character makes a new import of the row fail unless the cell is corrected.
            let marked = |cell: &str| format!("{cell}\u{fffd}");
            let original = Original::Cells(if is_cut_off { with_last(&record.cells, marked) } else { record.cells });
            return Ok(Some(Row { number: self.number, line: record.line, original, sendable }));
        }
        Ok(None)
    }

    fn sendable(&self, record: &Record) -> Result<Sendable, Vec<RowError>> {
        let mut checked = Checked::default();
        checked.errors.extend(record.broken.map(RowError::of_row).or_else(|| self.check_length(record)));
        let was_refused = self.names.iter().any(|name| name == REASONS);
        let mut cells = StringRecord::new();
        for ((name, target), cell) in self.names.iter().zip(&self.targets).zip(&record.cells) {
            let joined = self.joined(name, cell, &record.cells);
            let cell = joined.as_deref().unwrap_or(cell);
            if (record.is_unreadable || was_refused) && cell.contains('\u{fffd}') && name != REASONS {
                checked.errors.push(RowError::of_column(name, MISSING));
            }
            match target {
                Target::Field(field) => cells.push_field(&checked.text(&self.fields, name, field, cell)),
                Target::Nameless if !cell.trim().is_empty() => {
                    checked.errors.push(RowError::of_row(format!("has the value {cell:?} in a column without a name")));
                }
                Target::Ignored | Target::Nameless => {}
            }
        }
        self.fields.constants.iter().for_each(|constant| cells.push_field(&constant.value));
        checked.finish(encode(&cells))
    }

    /// Returns the cell, joined with the cells of other columns; `None` if it isn't joined.
    fn joined(&self, name: &str, cell: &str, cells: &StringRecord) -> Option<String> {
        let Joined { columns, separator } = self.fields.joined.get(name)?;
        let place = |other: &String| self.names.iter().position(|name| name == other);
        let others = columns.iter().filter_map(|other| cells.get(place(other)?));
        let all = std::iter::once(cell).chain(others).map(str::trim).filter(|cell| !cell.is_empty());
        Some(all.collect::<Vec<_>>().join(separator))
    }

    fn check_length(&self, record: &Record) -> Option<RowError> {
        let (cells, columns) = (record.cells.len(), self.names.len());
        let has_more = record.cells.iter().skip(columns).any(|cell| !cell.trim().is_empty());
        let cut_off = if self.text().is_last_line_open() { "; the file ends in the middle of this row" } else { "" };
        (cells < columns || has_more)
            .then(|| RowError::of_row(format!("has {cells} cells, but the header has {columns}{cut_off}")))
    }
}

pub fn encode(cells: &StringRecord) -> Vec<u8> {
    let mut writer = WriterBuilder::new().buffer_capacity(512).from_writer(Vec::new());
    // Writing to memory can't fail, and the service counts rows.
    let _ = writer.write_record(cells);
    writer.into_inner().unwrap_or_default()
}

pub struct NdjsonRows<R> {
    input: BufReader<Text<R>>,
    mappings: Vec<Mapping>,
    fields: Fields,
    position: u64,
    line: u64,
    number: u64,
}

/// The members of an object in order, with their values as written.
pub struct Members(pub Vec<(String, Box<RawValue>)>);

impl<R: Read> NdjsonRows<R> {
    pub fn new(text: Text<R>, mappings: Vec<Mapping>, fields: Fields) -> Self {
        Self { input: BufReader::new(text), mappings, fields, position: 0, line: 0, number: 0 }
    }

    pub fn text(&self) -> &Text<R> {
        self.input.get_ref()
    }

    pub fn next(&mut self) -> io::Result<Option<Row>> {
        loop {
            let mut bytes = Vec::new();
            // Reading fails if a line is longer than a row can be.
            let read = self.input.read_until(b'\n', &mut bytes);
            let is_too_long = read.is_err() && bytes.len() >= MAX_ROW;
            if is_too_long {
                self.skip_line(bytes.len() as u64)?;
            } else if read? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let start = self.position;
            self.position += bytes.len() as u64;
            let is_unreadable = self.input.get_mut().take_unreadable(start, self.position);
            let line = String::from_utf8_lossy(&bytes);
            if line.trim().is_empty() {
                continue;
            }
            self.number += 1;
            let sendable = match (is_too_long, is_unreadable) {
                (true, _) => Err(vec![RowError::of_row("is longer than 1 MiB")]),
                (_, true) => Err(vec![RowError::of_row("has bytes that are not text in this encoding, shown as \u{fffd}")]),
                _ => self.sendable(&line),
            };
            let original = Original::Line(line.trim().to_owned());
            return Ok(Some(Row { number: self.number, line: self.line, original, sendable }));
        }
    }

    fn skip_line(&mut self, read: u64) -> io::Result<()> {
        // Everything read has been consumed, so the buffer is empty.
        let text = self.input.get_mut();
        let next_line = text.skip_line(self.position + read)? + 1;
        text.rewind(next_line);
        self.position = next_line - read;
        Ok(())
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
        let (mut checked, mut sent) = (Checked::default(), Vec::<(String, Box<RawValue>)>::new());
        for (name, value) in members {
            if name == UNREADABLE {
                checked.errors.push(RowError::of_column(&name, "replace this line with a valid JSON object"));
                continue;
            }
            let mut unknown = Vec::new();
            let Target::Field(field) = target(self.fields.kind, name.trim(), &self.mappings, &mut unknown) else {
                checked.errors.extend(unknown.into_iter().map(RowError::of_row));
                continue;
            };
            let sent_field = sent_name(&field).to_owned();
            if sent.iter().any(|(earlier, _)| *earlier == sent_field) {
                checked.errors.push(RowError::of_column(&name, "occurs twice"));
                continue;
            }
            let Ok(text) = serde_json::from_str::<String>(value.get()) else {
                sent.push((sent_field, value));
                continue;
            };
            let shown = checked.text(&self.fields, name.trim(), &field, &text);
            if shown == text {
                sent.push((sent_field, value));
            } else {
                sent.extend(member(self.fields.kind, sent_field, &shown));
            }
        }
        let constants = self.fields.constants.iter();
        sent.extend(constants.filter_map(|constant| member(self.fields.kind, constant.field.clone(), &constant.value)));
        let members: Vec<String> = sent.iter().map(|(name, value)| format!("{}:{}", raw(name).get(), value.get())).collect();
        checked.finish(format!("{{{}}}\n", members.join(",")).into_bytes())
    }
}

/// Returns a member with the cell's value; `None` if the field stays unchanged.
fn member(kind: Kind, field: String, cell: &str) -> Option<(String, Box<RawValue>)> {
    let is_boolean = kind.import_column(&field).is_some_and(|column| column.cell == CellType::Boolean);
    let value = match cell {
        "" => return None,
        "\\N" => RawValue::NULL.to_owned(),
        "true" | "false" if is_boolean => to_raw_value(&(cell == "true")).ok()?,
        _ => raw(cell),
    };
    Some((field, value))
}

fn raw(text: &str) -> Box<RawValue> {
    to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the names of the members; none if the line isn't an object.
pub fn member_names(line: &str) -> Vec<String> {
    let members = serde_json::from_str(line).map_or(Vec::new(), |Members(members)| members);
    members.into_iter().map(|(name, _)| name).filter(|name| name != REASONS && name != UNREADABLE).collect()
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Members)
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::columns::resolve;
    use encoding_rs::UTF_8;
    use std::collections::BTreeSet;

    fn csv_rows(text: &'static str) -> (String, Vec<Row>) {
        let (names, records) = read_header(Text::new(text.as_bytes(), UTF_8, true), b';').unwrap();
        let targets = resolve(Kind::Assets, &names, &BTreeSet::new(), &["OS=".parse().unwrap()]).unwrap();
        let fields = Fields { decimal_comma: true, ..Fields::new(Kind::Assets) };
        let mut rows = CsvRows::new(names, records, targets, fields);
        let header = String::from_utf8(rows.header()).unwrap();
        (header, std::iter::from_fn(|| rows.next().unwrap()).collect())
    }

    fn reasons(row: &Row) -> Vec<String> {
        let errors = row.sendable.as_ref().map_or_else(Vec::as_slice, |sendable| sendable.bad.as_slice());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_are_sent_with_commas_and_without_ignored_columns() {
        let (header, rows) = csv_rows("sep=;\nname;OS;purchase_price;\nA, \"b\";mac;1.249,00 €;\n;;;\nC;;\\N;\n");
        assert_eq!(header, "name,purchase_price\n");
        let sent: Vec<_> = rows.iter().map(|row| String::from_utf8(row.sendable.clone().unwrap().bytes).unwrap()).collect();
        assert_eq!(sent, ["\"A, \"\"b\"\"\",1249.00\n", "C,\\N\n"]);
        assert_eq!(rows.iter().map(|row| (row.number, row.line)).collect::<Vec<_>>(), [(1, 3), (2, 5)]);
    }

    #[test]
    fn all_errors_of_a_row_are_told() {
        let (_, rows) = csv_rows("name;OS;purchase_price;\nA;x;free;spare\nB;x\nC;x;1,00;;;\nD;x;1,00;;more\nE;x;1,0");
        let reasons: Vec<_> = rows.iter().map(reasons).collect();
        assert_eq!(
            reasons,
            [
                vec![
                    "purchase_price: \"free\" is not a price with a decimal comma, such as 1.249,00 €",
                    "has the value \"spare\" in a column without a name"
                ],
                vec!["has 2 cells, but the header has 4"],
                vec![],
                vec!["has 5 cells, but the header has 4"],
                vec!["has 3 cells, but the header has 4; the file ends in the middle of this row"],
            ]
        );
    }

    fn ndjson_rows(text: &str) -> Vec<Row> {
        let fields = Fields { decimal_comma: true, match_column: Some("serial_number"), ..Fields::new(Kind::Assets) };
        let mappings = vec!["Serial No=serial_number".parse().unwrap()];
        let mut rows = NdjsonRows::new(Text::new(text.as_bytes(), UTF_8, false), mappings, fields);
        std::iter::from_fn(|| rows.next().unwrap()).collect()
    }

    #[test]
    fn members_are_renamed_and_numbers_keep_their_digits() {
        let rows = ndjson_rows(
            "{\"Serial No\": \"X1\", \"purchase_price\": 1249.00, \"notes\": null}\n\n{\"purchase_price\": \"1,50\"}",
        );
        let sent: Vec<_> = rows.iter().map(|row| String::from_utf8(row.sendable.clone().unwrap().bytes).unwrap()).collect();
        assert_eq!(
            sent,
            ["{\"serial_number\":\"X1\",\"purchase_price\":1249.00,\"notes\":null}\n", "{\"purchase_price\":\"1.50\"}\n"]
        );
        assert_eq!(rows.iter().map(|row| (row.number, row.line)).collect::<Vec<_>>(), [(1, 1), (2, 3)]);
        assert_eq!(rows[0].sendable.clone().unwrap().keys.len(), 1);
    }

    #[test]
    fn broken_lines_cost_only_themselves() {
        let long = format!("{{\"notes\": \"{}\"}}", "x".repeat(3 << 20));
        let rows =
            ndjson_rows(&format!("[1]\n{{\"name\": \"A\", \"name\": \"B\"}}\n{long}\n{{\"name\": \"C\"}}\n{{\"name\": \"D"));
        let reasons: Vec<String> =
            rows.iter().map(|row| row.sendable.as_ref().err().map_or(String::new(), |errors| errors[0].to_string())).collect();
        assert!(reasons[0].starts_with("is not a JSON object"), "{reasons:?}");
        assert_eq!(reasons[1..4], ["name: occurs twice", "is longer than 1 MiB", ""]);
        assert!(reasons[4].starts_with("is cut off"), "{reasons:?}");
        assert_eq!(rows[4].line, 5);
    }
}
