//! Groups rows into requests. The same file with the same options always makes the same chunks.

use crate::import::rows::{CsvRows, LineRows, Row, RowError, Sendable};
use fields::same_value;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;

/// Maximum number of rows in a request.
pub const MAX_ROWS: usize = 200;
/// Maximum size of a request body, in bytes. The service accepts 1 MiB.
pub const MAX_BODY: usize = 1_000_000;

pub enum Rows {
    Csv(Box<CsvRows>),
    Ndjson(Box<LineRows>),
}

impl Rows {
    pub fn next(&mut self) -> io::Result<Option<Row>> {
        match self {
            Self::Csv(rows) => rows.next(),
            Self::Ndjson(rows) => rows.next(),
        }
    }

    fn header(&self) -> Vec<u8> {
        match self {
            Self::Csv(rows) => rows.header(),
            Self::Ndjson(_) => Vec::new(),
        }
    }

    fn raw_position(&self) -> u64 {
        match self {
            Self::Csv(rows) => rows.raw_position(),
            Self::Ndjson(rows) => rows.raw_position(),
        }
    }
}

/// Rows for one request. Broken rows among them are not sent.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Starts at 0.
    pub number: u64,
    /// Body of the request; empty if no row can be sent.
    pub body: Vec<u8>,
    /// All rows in file order, without their request bodies.
    pub rows: Vec<Row>,
    /// Hashes of values that could identify the same record in another chunk.
    pub keys: HashSet<u64>,
    /// Whether a sent row doesn't identify a record to update.
    pub has_unmatched: bool,
    /// Approximate size of the rows in the file, in bytes.
    pub raw_length: u64,
}

impl Chunk {
    pub fn sent(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.sendable.is_ok())
    }
}

/// Numbers of rows that identify the same record, by the hash of the identifying value.
#[derive(Debug, Default)]
pub struct Doubles(HashMap<u64, Vec<u64>>);

pub struct Chunks {
    rows: Rows,
    doubles: Rc<Doubles>,
    header: Vec<u8>,
    max_body: usize,
    next: Option<Row>,
    number: u64,
    position: u64,
}

impl Chunks {
    /// Requests get at most `max_body` bytes.
    pub fn new(rows: Rows, doubles: Rc<Doubles>, max_body: usize) -> Self {
        Self { header: rows.header(), rows, doubles, max_body, next: None, number: 0, position: 0 }
    }

    pub fn next(&mut self) -> io::Result<Option<Chunk>> {
        let mut chunk = Chunk { number: self.number, ..Chunk::default() };
        while chunk.rows.len() < MAX_ROWS {
            let row = match self.next.take() {
                Some(row) => Some(row),
                None => self.rows.next()?,
            };
            let Some(row) = row else { break };
            let length = row.sendable.as_ref().map_or(0, |sendable| sendable.bytes.len());
            if !chunk.body.is_empty() && chunk.body.len() + length > self.max_body {
                self.next = Some(row);
                break;
            }
            chunk.add(row, &self.header, self.max_body, &self.doubles);
        }
        let position = self.rows.raw_position();
        chunk.raw_length = position.saturating_sub(self.position);
        self.position = position;
        self.number += 1;
        Ok(if chunk.rows.is_empty() { None } else { Some(chunk) })
    }
}

impl Doubles {
    /// Reads all rows of the file.
    pub fn find(mut rows: Rows) -> io::Result<Self> {
        let (mut first, mut doubles) = (HashMap::new(), HashMap::new());
        while let Some(row) = rows.next()? {
            let Some((_, key)) = row.sendable.ok().and_then(|sendable| sendable.matched) else { continue };
            match first.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(row.number)),
                Entry::Occupied(entry) => doubles.entry(key).or_insert_with(|| vec![*entry.get()]).push(row.number),
            }
        }
        Ok(Self(doubles))
    }

    fn check(&self, number: u64, sendable: Sendable) -> Result<Sendable, Vec<RowError>> {
        match sendable.matched.as_ref().and_then(|(column, key)| Some((column, self.0.get(key)?))) {
            Some((column, rows)) => {
                let same = RowError::of_column(column, same_value(rows, number));
                Err(vec![same])
            }
            None => Ok(sendable),
        }
    }
}

impl Chunk {
    fn add(&mut self, row: Row, header: &[u8], max_body: usize, doubles: &Doubles) {
        let mut sendable = row.sendable.and_then(|sendable| doubles.check(row.number, sendable));
        if sendable.as_ref().is_ok_and(|sendable| header.len() + sendable.bytes.len() > max_body) {
            sendable = Err(vec![RowError::of_row("is longer than the maximum of 1 MB for a request")]);
        }
        if let Ok(sendable) = &mut sendable {
            if self.body.is_empty() {
                self.body.extend_from_slice(header);
            }
            self.body.append(&mut sendable.bytes);
            self.keys.extend(&sendable.keys);
            self.has_unmatched |= sendable.matched.is_none();
        }
        self.rows.push(Row { sendable, ..row });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rows::{Input, Shape};
    use crate::import::text::Text;
    use domain::import::Kind;
    use domain::import::columns::Columns;
    use domain::import::header::Header;
    use domain::import::parameters::{Delimiter, Reading};
    use encoding_rs::UTF_8;
    use std::io::Cursor;

    fn chunks(text: &str) -> Vec<Chunk> {
        let reading = Reading::default();
        let header = Header::read(text, &reading, Delimiter::Comma).unwrap();
        let columns = Columns::resolve(Kind::Assets, &header.names, &header.repeated, &reading, None).unwrap();
        let shape = Rc::new(Shape { columns, matched: Some("serial_number") });
        let input: Input = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut text = Text::new(input, UTF_8);
        text.ahead().unwrap();
        let mut chunks = Chunks::new(Rows::Csv(Box::new(CsvRows::new(text, header, shape))), Rc::default(), MAX_BODY);
        std::iter::from_fn(|| chunks.next().unwrap()).collect()
    }

    #[test]
    fn chunks_have_200_rows_broken_ones_included() {
        let mut text = String::from("name,serial_number\n");
        for row in 1..=401 {
            text.push_str(&match row {
                7 => "too few\n".to_owned(),
                400 => "Laptop,\n".to_owned(),
                _ => format!("Laptop,S{row}\n"),
            });
        }
        let chunks = chunks(&text);
        assert_eq!(chunks.iter().map(|chunk| chunk.rows.len()).collect::<Vec<_>>(), [200, 200, 1]);
        assert_eq!(chunks.iter().map(|chunk| chunk.sent().count()).collect::<Vec<_>>(), [199, 200, 1]);
        assert!(chunks.iter().all(|chunk| chunk.body.starts_with(b"name,serial_number\n")));
        assert_eq!(chunks.iter().map(|chunk| chunk.has_unmatched).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!((chunks[0].keys.len(), chunks[2].number, chunks[2].rows[0].number), (199, 2, 401));
    }

    #[test]
    fn chunks_stay_below_the_limit_of_a_request() {
        let row = format!("{},S\n", "x".repeat(300_000));
        let chunks = chunks(&format!("name,serial_number\n{}", row.repeat(7)));
        assert_eq!(chunks.iter().map(|chunk| chunk.rows.len()).collect::<Vec<_>>(), [3, 3, 1]);
        assert!(chunks.iter().all(|chunk| chunk.body.len() <= MAX_BODY));
    }
}
