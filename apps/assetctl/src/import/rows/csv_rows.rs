//! The rows of a CSV file, checked and converted.

use crate::import::columns::fields::Fields;
use crate::import::columns::{Joined, REASONS, Target, sent_name};
use crate::import::rows::decode::Text;
use crate::import::rows::encoding::excel_separator;
use crate::import::rows::records::{Record, Records};
use crate::import::rows::{Original, REFUSED, Row, RowError, Sendable};
use csv::{StringRecord, WriterBuilder};
use std::io::{self, Read};

/// The error of a cell with a replacement character.
const MISSING: &str = "has \u{fffd} where bytes can't be read in this encoding, or where text is missing";

pub struct CsvRows<R> {
    records: Records<R>,
    names: Vec<String>,
    targets: Vec<Target>,
    fields: Fields,
    number: u64,
}

/// Returns the header, and the records after it. The line `sep=;`, which Excel writes, is no header.
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

    /// The sent columns, as the first line of every request.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let fields = self.targets.iter().filter_map(|target| match target {
            Target::Field(field) => Some(sent_name(field)),
            Target::Ignored | Target::Nameless => None,
        });
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
            let original = Original::Cells(if is_cut_off { marked(&record.cells) } else { record.cells });
            return Ok(Some(Row { number: self.number, line: record.line, original, sendable }));
        }
        Ok(None)
    }

    fn sendable(&self, record: &Record) -> Result<Sendable, Vec<RowError>> {
        let mut errors: Vec<RowError> = record.broken.map(RowError::of_row).into_iter().collect();
        if errors.is_empty() {
            errors.extend(self.check_length(record));
        }
        let was_refused = self.names.iter().any(|name| name == REASONS);
        let (mut cells, mut keys, mut matched) = (StringRecord::new(), Vec::new(), None);
        let (mut skipped, mut bad) = (Vec::new(), Vec::new());
        for ((name, target), cell) in self.names.iter().zip(&self.targets).zip(&record.cells) {
            let joined = self.joined(name, cell, &record.cells);
            let cell = joined.as_deref().unwrap_or(cell);
            if (record.is_unreadable || was_refused) && cell.contains('\u{fffd}') && name != REASONS {
                errors.push(RowError::of_column(name, MISSING));
            }
            match target {
                Target::Field(field) => {
                    let value = self.fields.values.translate(name, cell);
                    match value.and_then(|value| Ok((value, self.fields.convert(field, value)?))) {
                        Ok((value, converted)) => {
                            keys.extend(self.fields.key(field, value));
                            matched = self.fields.match_key(field, value).map(|key| (name.clone(), key)).or(matched);
                            cells.push_field(converted.as_deref().unwrap_or(value));
                        }
                        Err(detail) if self.fields.skips_bad(field) => {
                            skipped.push(RowError::of_column(name, detail));
                            cells.push_field("");
                        }
                        Err(detail) if self.fields.is_checked(field) => {
                            bad.push(RowError::of_column(name, detail));
                            cells.push_field(REFUSED);
                        }
                        Err(detail) => errors.push(RowError::of_column(name, detail)),
                    }
                }
                Target::Nameless if !cell.trim().is_empty() => {
                    errors.push(RowError::of_row(format!("has the value {cell:?} in a column without a name")));
                }
                Target::Ignored | Target::Nameless => {}
            }
        }
        self.fields.constants.iter().for_each(|constant| cells.push_field(&constant.value));
        if errors.is_empty() {
            return Ok(Sendable { bytes: encode(&cells), keys, matched, skipped, bad });
        }
        bad.extend(errors);
        Err(bad)
    }

    /// The cell with those of the columns that are joined to its own; `None` if there are none.
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

/// Marks missing text, so that the row isn't taken for mended.
fn marked(cells: &StringRecord) -> StringRecord {
    let last = cells.len().saturating_sub(1);
    let mark = |index| if index == last { "\u{fffd}" } else { "" };
    cells.iter().enumerate().map(|(index, cell)| format!("{cell}{}", mark(index))).collect()
}

/// As the service reads it.
fn encode(cells: &StringRecord) -> Vec<u8> {
    let mut writer = WriterBuilder::new().buffer_capacity(512).from_writer(Vec::new());
    // Writing to memory can't fail, and a lost row would be noticed: the service counts rows.
    let _ = writer.write_record(cells);
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::columns::{Kind, resolve};
    use encoding_rs::UTF_8;
    use std::collections::BTreeSet;

    fn rows(text: &'static str) -> (String, Vec<Row>) {
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
        let (header, rows) = rows("sep=;\nname;OS;purchase_price;\nA, \"b\";mac;1.249,00 €;\n;;;\nC;;\\N;\n");
        assert_eq!(header, "name,purchase_price\n");
        let sent: Vec<_> = rows.iter().map(|row| String::from_utf8(row.sendable.clone().unwrap().bytes).unwrap()).collect();
        assert_eq!(sent, ["\"A, \"\"b\"\"\",1249.00\n", "C,\\N\n"]);
        assert_eq!(rows.iter().map(|row| (row.number, row.line)).collect::<Vec<_>>(), [(1, 3), (2, 5)]);
    }

    #[test]
    fn everything_wrong_with_a_row_is_told() {
        let (_, rows) = rows("name;OS;purchase_price;\nA;x;free;spare\nB;x\nC;x;1,00;;;\nD;x;1,00;;more\nE;x;1,0");
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

    #[test]
    fn a_row_with_a_bad_price_is_sent_as_one_that_the_service_refuses() {
        let (_, rows) = rows("name;OS;purchase_price;\nA;x;free;\n");
        assert_eq!(rows[0].sendable.as_ref().unwrap().bytes, b"A,?\n");
    }

    #[test]
    fn refused_rows_must_be_mended() {
        let (_, rows) = rows("reasons;name;OS\nname: bad;A\u{fffd};x\nname: bad;B;x\n");
        assert_eq!(rows.iter().map(|row| row.sendable.is_ok()).collect::<Vec<_>>(), [false, true]);
    }
}
