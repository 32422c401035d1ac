//! Groups rows into requests. The same file with the same options always makes the same chunks.

use crate::import::rows::csv_rows::CsvRows;
use crate::import::rows::ndjson_rows::NdjsonRows;
use crate::import::rows::{Original, Row, RowError, Sendable};
use fields::same_value;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::rc::Rc;

/// Rows of a request.
pub const MAX_ROWS: usize = 200;
/// The service accepts 1 MiB.
const MAX_BODY: usize = 1_000_000;

pub enum Rows<R> {
    Csv(Box<CsvRows<R>>),
    Ndjson(Box<NdjsonRows<R>>),
}

impl<R: Read> Rows<R> {
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
            Self::Csv(rows) => rows.text().raw_position(),
            Self::Ndjson(rows) => rows.text().raw_position(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ChunkRow {
    /// Counts data rows of the file from 1.
    pub number: u64,
    pub line: u64,
    pub original: Original,
    /// Empty if the row is sent.
    pub errors: Vec<RowError>,
    /// The errors of cells without which it is sent.
    pub skipped: Vec<RowError>,
    /// The errors of cells for which the service refuses it.
    pub bad: Vec<RowError>,
}

/// Rows that are sent in one request, and broken rows among them that are not.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Counts from 0.
    pub number: u64,
    /// The body of the request; empty if no row can be sent.
    pub body: Vec<u8>,
    /// All rows in the file's order.
    pub rows: Vec<ChunkRow>,
    /// Hashes of the values by which its rows could touch the same record as those of another chunk.
    pub keys: HashSet<u64>,
    /// A row is sent that names nothing to update.
    pub has_unmatched: bool,
    /// The approximate bytes of the rows in the file.
    pub raw_length: u64,
}

impl Chunk {
    pub fn sent(&self) -> impl Iterator<Item = &ChunkRow> {
        self.rows.iter().filter(|row| row.errors.is_empty())
    }
}

/// Numbers of the rows that name the same thing to update, by the hash of the value.
#[derive(Debug, Default)]
pub struct Doubles(HashMap<u64, Vec<u64>>);

pub struct Chunks<R> {
    rows: Rows<R>,
    doubles: Rc<Doubles>,
    header: Vec<u8>,
    next: Option<Row>,
    number: u64,
    position: u64,
}

impl<R: Read> Chunks<R> {
    pub fn new(rows: Rows<R>, doubles: Rc<Doubles>) -> Self {
        Self { header: rows.header(), rows, doubles, next: None, number: 0, position: 0 }
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
            if !chunk.body.is_empty() && chunk.body.len() + length > MAX_BODY {
                self.next = Some(row);
                break;
            }
            chunk.add(row, &self.header, &self.doubles);
        }
        let position = self.rows.raw_position();
        chunk.raw_length = position.saturating_sub(self.position);
        self.position = position;
        self.number += 1;
        Ok(if chunk.rows.is_empty() { None } else { Some(chunk) })
    }
}

impl Doubles {
    /// Reads all rows.
    pub fn find<R: Read>(mut rows: Rows<R>) -> io::Result<Self> {
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
                Err(sendable.bad.into_iter().chain([same]).collect())
            }
            None => Ok(sendable),
        }
    }
}

impl Chunk {
    fn add(&mut self, row: Row, header: &[u8], doubles: &Doubles) {
        let (mut skipped, mut bad) = (Vec::new(), Vec::new());
        let errors = match row.sendable.and_then(|sendable| doubles.check(row.number, sendable)) {
            Ok(sendable) if header.len() + sendable.bytes.len() > MAX_BODY => {
                vec![RowError::of_row("is longer than a request may be, 1 MB")]
            }
            Ok(sendable) => {
                if self.body.is_empty() {
                    self.body.extend_from_slice(header);
                }
                self.body.extend_from_slice(&sendable.bytes);
                self.keys.extend(sendable.keys);
                self.has_unmatched |= sendable.matched.is_none();
                (skipped, bad) = (sendable.skipped, sendable.bad);
                Vec::new()
            }
            Err(errors) => errors,
        };
        self.rows.push(ChunkRow { number: row.number, line: row.line, original: row.original, errors, skipped, bad });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::columns::fields::Fields;
    use crate::import::columns::{Kind, resolve};
    use crate::import::rows::csv_rows::read_header;
    use crate::import::rows::decode::Text;
    use encoding_rs::UTF_8;
    use std::collections::BTreeSet;

    fn chunks(text: &str) -> Vec<Chunk> {
        let (names, records) = read_header(Text::new(text.as_bytes(), UTF_8, true), b',').unwrap();
        let targets = resolve(Kind::Assets, &names, &BTreeSet::new(), &[]).unwrap();
        let fields = Fields { match_column: Some("serial_number"), ..Fields::new(Kind::Assets) };
        let mut chunks = Chunks::new(Rows::Csv(Box::new(CsvRows::new(names, records, targets, fields))), Rc::default());
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
