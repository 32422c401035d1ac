//! The rows of an NDJSON file, checked and converted. Numbers keep their digits.

use crate::import::columns::fields::Fields;
use crate::import::columns::{Kind, Mapping, REASONS, Target, sent_name, target};
use crate::import::rows::decode::{MAX_ROW, Text};
use crate::import::rows::{Original, REFUSED, Row, RowError, Sendable};
use ::fields::CellType;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// The member for a refused line that is no JSON object.
pub const UNREADABLE: &str = "unreadable";

pub struct NdjsonRows<R> {
    input: BufReader<Text<R>>,
    mappings: Vec<Mapping>,
    fields: Fields,
    position: u64,
    line: u64,
    number: u64,
}

/// The members of an object in order, each as it is written.
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
            // Text refuses to go on when a line is longer than a row may be.
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
                (_, true) => Err(vec![RowError::of_row("has bytes that are no text in this encoding, shown as \u{fffd}")]),
                _ => self.sendable(&line),
            };
            let original = Original::Line(line.trim().to_owned());
            return Ok(Some(Row { number: self.number, line: self.line, original, sendable }));
        }
    }

    fn skip_line(&mut self, read: u64) -> io::Result<()> {
        // All that was read has been consumed, so the buffer is empty.
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
        let (mut errors, mut sent, mut keys, mut matched) = (Vec::new(), Vec::<(String, Box<RawValue>)>::new(), Vec::new(), None);
        let (mut skipped, mut bad) = (Vec::new(), Vec::new());
        for (name, value) in members {
            if name == UNREADABLE {
                errors.push(RowError::of_column(&name, "replace this line by the object that it should be"));
                continue;
            }
            let mut unknown = Vec::new();
            let Target::Field(field) = target(self.fields.kind, name.trim(), &self.mappings, &mut unknown) else {
                errors.extend(unknown.into_iter().map(RowError::of_row));
                continue;
            };
            let sent_field = sent_name(&field).to_owned();
            if sent.iter().any(|(earlier, _)| *earlier == sent_field) {
                errors.push(RowError::of_column(&name, "occurs twice"));
                continue;
            }
            let Ok(text) = serde_json::from_str::<String>(value.get()) else {
                sent.push((sent_field, value));
                continue;
            };
            let meaning = self.fields.values.translate(name.trim(), &text);
            match meaning.and_then(|meaning| Ok((meaning, self.fields.convert(&field, meaning)?))) {
                Ok((meaning, converted)) => {
                    keys.extend(self.fields.key(&field, meaning));
                    matched = self.fields.match_key(&field, meaning).map(|key| (name.clone(), key)).or(matched);
                    match converted {
                        Some(converted) => sent.push((sent_field, raw(&converted))),
                        None if meaning == text => sent.push((sent_field, value)),
                        None => sent.extend(member(self.fields.kind, sent_field, meaning)),
                    }
                }
                Err(detail) if self.fields.skips_bad(&field) => skipped.push(RowError::of_column(&name, detail)),
                Err(detail) if self.fields.is_checked(&field) => {
                    bad.push(RowError::of_column(&name, detail));
                    sent.push((sent_field, raw(REFUSED)));
                }
                Err(detail) => errors.push(RowError::of_column(&name, detail)),
            }
        }
        let constants = self.fields.constants.iter();
        sent.extend(constants.filter_map(|constant| member(self.fields.kind, constant.field.clone(), &constant.value)));
        if errors.is_empty() {
            return Ok(Sendable { bytes: encode(&sent), keys, matched, skipped, bad });
        }
        bad.extend(errors);
        Err(bad)
    }
}

/// A member with the value of a cell, which the command line has; `None` if it leaves the field alone.
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

fn encode(members: &[(String, Box<RawValue>)]) -> Vec<u8> {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{}:{}", raw(name).get(), value.get())).collect();
    format!("{{{}}}\n", members.join(",")).into_bytes()
}

/// Names of members; none if the line is no object.
#[must_use]
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
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::UTF_8;

    fn rows(text: &str) -> Vec<Row> {
        let fields = Fields { decimal_comma: true, match_column: Some("serial_number"), ..Fields::new(Kind::Assets) };
        let mappings = vec!["Serial No=serial_number".parse().unwrap()];
        let mut rows = NdjsonRows::new(Text::new(text.as_bytes(), UTF_8, false), mappings, fields);
        std::iter::from_fn(|| rows.next().unwrap()).collect()
    }

    #[test]
    fn members_are_renamed_and_numbers_keep_their_digits() {
        let rows =
            rows("{\"Serial No\": \"X1\", \"purchase_price\": 1249.00, \"notes\": null}\n\n{\"purchase_price\": \"1,50\"}");
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
        let rows = rows(&format!("[1]\n{{\"name\": \"A\", \"name\": \"B\"}}\n{long}\n{{\"name\": \"C\"}}\n{{\"name\": \"D"));
        let reasons: Vec<String> =
            rows.iter().map(|row| row.sendable.as_ref().err().map_or(String::new(), |errors| errors[0].to_string())).collect();
        assert!(reasons[0].starts_with("is not a JSON object"), "{reasons:?}");
        assert_eq!(reasons[1..4], ["name: occurs twice", "is longer than 1 MiB", ""]);
        assert!(reasons[4].starts_with("is cut off"), "{reasons:?}");
        assert_eq!(rows[4].line, 5);
    }
}
