//! The parts of an export from the service, and the table that is made of CSV parts.

use csv::{ByteRecord, Reader, StringRecord, Terminator, WriterBuilder};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};

/// The prefix of columns with a custom field.
const CUSTOM_FIELD: &str = "custom_fields.";

/// The parts so far. Only their columns and lengths stay in memory.
#[derive(Debug, Default)]
pub struct Parts {
    lengths: Vec<u64>,
    /// The columns that every part has, in their order.
    fields: Vec<String>,
    /// Other columns, of which each part has those that its rows need.
    custom_fields: BTreeSet<String>,
}

impl Parts {
    /// Returns the number of rows. Fails if the part isn't CSV.
    pub fn add(&mut self, part: &[u8]) -> csv::Result<u64> {
        let mut reader = Reader::from_reader(part);
        for name in reader.headers()? {
            if name.starts_with(CUSTOM_FIELD) {
                self.custom_fields.insert(name.to_owned());
            } else if !self.fields.iter().any(|field| field == name) {
                self.fields.push(name.to_owned());
            }
        }
        let (mut rows, mut record) = (0, ByteRecord::new());
        while reader.read_byte_record(&mut record)? {
            rows += 1;
        }
        self.lengths.push(part.len() as u64);
        Ok(rows)
    }

    /// Writes all parts, which `input` has one after another, as one table. Cells stay as they are; where a part lacks a column,
    /// they are empty.
    pub fn write_table(&self, mut input: impl Read, output: impl Write, delimiter: u8) -> io::Result<()> {
        let columns: Vec<&String> = self.fields.iter().chain(&self.custom_fields).collect();
        let mut writer = WriterBuilder::new().delimiter(delimiter).terminator(Terminator::CRLF).from_writer(output);
        writer.write_record(&columns)?;
        for length in &self.lengths {
            let mut reader = Reader::from_reader(input.by_ref().take(*length));
            let places = places(&columns, reader.headers()?);
            let mut record = ByteRecord::new();
            while reader.read_byte_record(&mut record)? {
                writer.write_record(places.iter().map(|place| place.and_then(|place| record.get(place)).unwrap_or_default()))?;
            }
        }
        writer.flush()
    }
}

fn places(columns: &[&String], header: &StringRecord) -> Vec<Option<usize>> {
    columns.iter().map(|column| header.iter().position(|name| name == column.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(texts: &[&str], delimiter: u8) -> (Vec<u64>, String) {
        let mut parts = Parts::default();
        let rows = texts.iter().map(|text| parts.add(text.as_bytes()).unwrap()).collect();
        let mut output = Vec::new();
        parts.write_table(texts.concat().as_bytes(), &mut output, delimiter).unwrap();
        (rows, String::from_utf8(output).unwrap())
    }

    #[test]
    fn the_table_has_the_columns_of_all_parts_and_their_cells() {
        let parts = [
            "id,name,custom_fields.b\r\n1,'=A,\"\"\"16\"\"\"\r\n",
            "id,name\r\n",
            "id,name,custom_fields.a,custom_fields.b,custom_fields.c\r\n2,\"B, \"\"C\"\"\r\nD\",-5,,null\r\n3,\" \",\\N,,\r\n",
        ];
        let (rows, table) = table(&parts, b',');
        assert_eq!(rows, [1, 0, 2]);
        assert_eq!(
            table,
            "id,name,custom_fields.a,custom_fields.b,custom_fields.c\r\n1,'=A,,\"\"\"16\"\"\",\r\n\
             2,\"B, \"\"C\"\"\r\nD\",-5,,null\r\n3, ,\\N,,\r\n"
        );
    }

    #[test]
    fn a_part_alone_stays_as_it_is() {
        let part = "id,name,custom_fields.a\r\n1,\"a\n\",\"x,\"\"\"\r\n2,,\r\n";
        assert_eq!(table(&[part], b',').1, part);
        let semicolons = "id;name;custom_fields.a\r\n1;\"a\n\";\"x,\"\"\"\r\n2;;\r\n";
        assert_eq!(table(&[part], b';').1, semicolons);
    }
}
