//! The texts of a segment's rows in one string, which a search scans in sequence.

use super::row::TEXT_END;
use crate::domain::values::natural_order::natural_cmp;
use crate::store::lists::list_index::blocks::{Decoder, Encoder, to_u32};
use std::cmp::Ordering;
use std::sync::OnceLock;

/// The growth of the string, in bytes. Doubling could waste half of the memory budget.
const GROWTH: usize = 512;

/// The growth of a column, in rows. Doubling could waste half of the memory budget.
const ROW_GROWTH: usize = 16;

#[derive(Debug, Default)]
pub struct Texts {
    joined: String,
    /// The end of each row's text in the string.
    ends: Vec<u32>,
    /// By column, in the natural order. They are found for the first list that is sorted by text, until the next change.
    extremes: OnceLock<Vec<Extremes>>,
}

/// The rows with the least and the greatest text of a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extremes {
    pub least: u32,
    pub greatest: u32,
}

impl From<Extremes> for (u32, u32) {
    fn from(Extremes { least, greatest }: Extremes) -> Self {
        (least, greatest)
    }
}

/// Adds a value to a column.
pub fn insert<T>(column: &mut Vec<T>, at: usize, value: T) {
    if column.len() == column.capacity() {
        column.reserve_exact(ROW_GROWTH);
    }
    column.insert(at, value);
}

impl Texts {
    pub fn joined(&self) -> &str {
        &self.joined
    }

    fn end(&self, row: usize) -> usize {
        self.ends.get(row).map_or(self.joined.len(), |end| *end as usize)
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |previous| self.end(previous))
    }

    pub fn get(&self, row: usize) -> &str {
        self.joined.get(self.start(row)..self.end(row)).unwrap_or_default()
    }

    /// The row, not before the row `first`, whose text has this byte of the string, and the end of its text.
    pub fn row_at(&self, first: usize, byte: usize) -> Option<(usize, usize)> {
        let ends = self.ends.get(first..)?;
        let skipped = ends.iter().position(|end| *end as usize > byte)?;
        Some((first + skipped, *ends.get(skipped)? as usize))
    }

    pub fn extremes(&self, column: usize) -> Option<Extremes> {
        self.extremes.get_or_init(|| self.find_extremes()).get(column).copied()
    }

    fn find_extremes(&self) -> Vec<Extremes> {
        let mut found: Vec<[(&str, usize); 2]> = Vec::new();
        for row in 0..self.ends.len() {
            for (column, text) in self.get(row).split_terminator(TEXT_END).enumerate() {
                match found.get_mut(column) {
                    Some([least, greatest]) => {
                        if natural_cmp(text, least.0) == Ordering::Less {
                            *least = (text, row);
                        }
                        if natural_cmp(text, greatest.0) == Ordering::Greater {
                            *greatest = (text, row);
                        }
                    }
                    None => found.push([(text, row); 2]),
                }
            }
        }
        found
            .into_iter()
            .map(|rows| rows.map(|(_, row)| to_u32(row)))
            .map(|[least, greatest]| Extremes { least, greatest })
            .collect()
    }

    /// Replaces the text of the rows from `row` up to, not including, `next`. Returns its end.
    fn splice(&mut self, row: usize, next: usize, text: &str) -> u32 {
        self.extremes.take();
        let (from, to) = (self.start(row), self.start(next));
        if self.joined.capacity() - self.joined.len() < text.len() {
            self.joined.reserve_exact(text.len() + GROWTH);
        }
        self.joined.replace_range(from..to, text);
        for end in self.ends.iter_mut().skip(next) {
            *end = to_u32(*end as usize + text.len() + from - to);
        }
        to_u32(from + text.len())
    }

    pub fn insert(&mut self, row: usize, text: &str) {
        let end = self.splice(row, row, text);
        insert(&mut self.ends, row, end);
    }

    pub fn replace(&mut self, row: usize, text: &str) {
        let replaced = self.splice(row, row + 1, text);
        self.ends.get_mut(row).into_iter().for_each(|end| *end = replaced);
    }

    pub fn remove(&mut self, row: usize) {
        self.splice(row, row + 1, "");
        self.ends.remove(row);
    }

    pub fn split_off(&mut self, row: usize) -> Self {
        self.extremes.take();
        let start = self.start(row);
        let (joined, ends) = (self.joined.split_off(start), self.ends.split_off(row));
        let mut second = Self { joined, ends, extremes: OnceLock::new() };
        second.ends.iter_mut().for_each(|end| *end -= to_u32(start));
        second
    }

    pub fn shrink_to_fit(&mut self) {
        self.joined.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub fn bytes(&self) -> usize {
        self.joined.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.text(&self.joined);
        let mut start = 0;
        for end in &self.ends {
            encoder.number(u64::from(end - start));
            start = *end;
        }
    }

    /// The texts of `rows` rows; `None` if [`Texts::encode`] can't have written them.
    pub fn decode(decoder: &mut Decoder<'_>, rows: usize) -> Option<Self> {
        let joined = decoder.text()?.to_owned();
        let mut ends = Vec::with_capacity(rows);
        let mut end = 0_usize;
        for _ in 0..rows {
            end = end.checked_add(decoder.count()?).filter(|end| joined.is_char_boundary(*end))?;
            ends.push(to_u32(end));
        }
        (end == joined.len()).then_some(Self { joined, ends, extremes: OnceLock::new() })
    }
}
