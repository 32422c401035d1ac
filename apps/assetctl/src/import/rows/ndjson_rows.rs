//! The rows of an NDJSON file, checked and converted. Numbers keep their digits.

use crate::import::columns::fields::Fields;
use crate::import::columns::{Mapping, REASONS, Target, target, trimmed};
use crate::import::rows::decode::{MAX_ROW, Text};
use crate::import::rows::{Original, Row, RowError, Sendable};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
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
        for (name, value) in members {
            if name == UNREADABLE {
                errors.push(RowError::of_column(&name, "replace this line by the object that it should be"));
                continue;
            }
            let mut unknown = Vec::new();
            let Target::Field(field) = target(self.fields.kind, trimmed(&name), &self.mappings, &mut unknown) else {
                errors.extend(unknown.into_iter().map(RowError::of_row));
                continue;
            };
            if sent.iter().any(|(earlier, _)| *earlier == field) {
                errors.push(RowError::of_column(&name, "occurs twice"));
                continue;
            }
            let text = serde_json::from_str::<String>(value.get()).ok();
            keys.extend(text.as_deref().and_then(|text| self.fields.key(&field, text)));
            let match_key = text.as_deref().and_then(|text| self.fields.match_key(&field, text));
            matched = match_key.map(|key| (name.clone(), key)).or(matched);
            match text.map_or(Ok(None), |text| self.fields.convert(&field, &text)) {
                Ok(None) => sent.push((field, value)),
                Ok(Some(converted)) => sent.push((field, raw(&converted))),
                Err(detail) => errors.push(RowError::of_column(&name, detail)),
            }
        }
        if errors.is_empty() { Ok(Sendable { bytes: encode(&sent), keys, matched }) } else { Err(errors) }
    }
}

fn raw(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
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
    use crate::import::columns::Kind;
    use encoding_rs::UTF_8;

    fn rows(text: &str) -> Vec<Row> {
        let fields = Fields { kind: Kind::Assets, date_format: None, decimal_comma: true, match_column: Some("serial_number") };
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
