//! A segment: up to a few hundred rows, with the texts of all of them in two strings that a search scans in sequence.

use super::blocks::{Decoder, Encoder};
use super::columns::Columns;
use super::row::{PackedRow, Row, RowRef, SortKey, join_texts, to_u32};

/// A segment with more rows is split in two.
pub(super) const MAX_SEGMENT_ROWS: usize = 256;
/// The growth of a segment, in rows. Doubling could waste half of the memory budget.
const ROW_GROWTH: usize = 16;
/// The growth of a segment's texts, in bytes.
const TEXT_GROWTH: usize = 512;

/// Rows in ascending order of their sort keys.
#[derive(Debug)]
pub(super) struct Segment<C> {
    pub(super) rows: Vec<PackedRow<C>>,
    pub(super) searched: String,
    pub(super) exact: String,
}

fn reserve(texts: &mut String, more: usize) {
    if texts.capacity() - texts.len() < more {
        texts.reserve_exact(more + TEXT_GROWTH);
    }
}

impl<C> Default for Segment<C> {
    fn default() -> Self {
        Self { rows: Vec::new(), searched: String::new(), exact: String::new() }
    }
}

impl<C> Segment<C> {
    pub(super) fn searched(&self) -> &str {
        &self.searched
    }

    /// The text's part of [`Segment::bytes`].
    #[cfg(test)]
    pub(super) fn text_bytes(&self) -> usize {
        self.searched.len() + self.exact.len()
    }

    /// The beginnings of the row's searched and exact texts.
    pub(super) fn text_start(&self, row: usize) -> (usize, usize) {
        let previous = row.checked_sub(1).and_then(|previous| self.rows.get(previous));
        previous.map_or((0, 0), |row| (row.searched_end as usize, row.exact_end as usize))
    }

    /// `row` is a number in the segment.
    pub(super) fn row(&self, row: usize) -> Option<RowRef<'_, C>> {
        let (searched, exact) = self.text_start(row);
        let PackedRow { sort_key, version, searched_end, exact_end, columns } = self.rows.get(row)?;
        Some(RowRef {
            sort_key: *sort_key,
            version: *version,
            columns,
            searched: self.searched.get(searched..*searched_end as usize)?,
            exact: self.exact.get(exact..*exact_end as usize)?,
        })
    }

    /// Replaces the texts of the rows from `row` up to, not including, `next`, and moves the texts of all later rows.
    pub(super) fn replace_texts(&mut self, row: usize, next: usize, searched: &str, exact: &str) {
        let (from, to) = (self.text_start(row), self.text_start(next));
        reserve(&mut self.searched, searched.len());
        reserve(&mut self.exact, exact.len());
        self.searched.replace_range(from.0..to.0, searched);
        self.exact.replace_range(from.1..to.1, exact);
        for row in self.rows.iter_mut().skip(next) {
            row.searched_end = to_u32(row.searched_end as usize + searched.len() + from.0 - to.0);
            row.exact_end = to_u32(row.exact_end as usize + exact.len() + from.1 - to.1);
        }
    }

    /// Adds a row, or replaces the row with the same id. Returns whether it was added.
    pub(super) fn upsert(&mut self, row: Row<C>) -> bool {
        let sort_key = SortKey::of(row.id);
        let (searched, exact) = (join_texts(&row.searched), join_texts(&row.exact));
        let found = self.rows.binary_search_by_key(&sort_key, |row| row.sort_key);
        let (at, next) = found.map_or_else(|at| (at, at), |at| (at, at + 1));
        let start = self.text_start(at);
        self.replace_texts(at, next, &searched, &exact);
        let packed = PackedRow {
            sort_key,
            version: row.version,
            searched_end: to_u32(start.0 + searched.len()),
            exact_end: to_u32(start.1 + exact.len()),
            columns: row.columns,
        };
        match self.rows.get_mut(at) {
            Some(present) if found.is_ok() => *present = packed,
            _ => {
                if self.rows.len() == self.rows.capacity() {
                    self.rows.reserve_exact(ROW_GROWTH);
                }
                self.rows.insert(at, packed);
            }
        }
        found.is_err()
    }

    pub(super) fn split_off_half(&mut self) -> Self {
        let half = self.rows.len() / 2;
        let (searched, exact) = self.text_start(half);
        let mut second = Self {
            rows: self.rows.split_off(half),
            searched: self.searched.split_off(searched),
            exact: self.exact.split_off(exact),
        };
        for row in &mut second.rows {
            row.searched_end -= to_u32(searched);
            row.exact_end -= to_u32(exact);
        }
        self.shrink_to_fit();
        second
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.rows.shrink_to_fit();
        self.searched.shrink_to_fit();
        self.exact.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<PackedRow<C>>() + self.searched.capacity() + self.exact.capacity()
    }
}

impl<C: Columns> Segment<C> {
    /// Into a snapshot, as it is in memory.
    pub(super) fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.rows.len() as u64);
        encoder.text(&self.searched);
        encoder.text(&self.exact);
        let (mut searched, mut exact) = (0, 0);
        for PackedRow { sort_key, version, searched_end, exact_end, columns } in &self.rows {
            encoder.bytes(&sort_key.0);
            encoder.number(*version);
            encoder.number(u64::from(searched_end - searched));
            encoder.number(u64::from(exact_end - exact));
            columns.encode(encoder);
            (searched, exact) = (*searched_end, *exact_end);
        }
    }

    /// From a snapshot; `None` if [`Segment::encode`] can't have written it. All rows must come after the row `last`.
    pub(super) fn decode(decoder: &mut Decoder<'_>, last: &mut Option<SortKey>) -> Option<Self> {
        let count = decoder.count().filter(|count| (1..=MAX_SEGMENT_ROWS).contains(count))?;
        let (searched, exact) = (decoder.text()?.to_owned(), decoder.text()?.to_owned());
        let mut rows = Vec::with_capacity(count);
        let (mut searched_end, mut exact_end) = (0, 0);
        for _ in 0..count {
            let sort_key = Some(SortKey(decoder.array()?)).filter(|key| last.is_none_or(|last| last < *key))?;
            let version = decoder.number()?;
            searched_end = text_end(&searched, searched_end, decoder.count()?)?;
            exact_end = text_end(&exact, exact_end, decoder.count()?)?;
            let columns = C::decode(decoder)?;
            rows.push(PackedRow { sort_key, version, searched_end: to_u32(searched_end), exact_end: to_u32(exact_end), columns });
            *last = Some(sort_key);
        }
        (searched_end == searched.len() && exact_end == exact.len()).then_some(Self { rows, searched, exact })
    }
}

/// The end of a text of this length; `None` if that is no position in the texts.
fn text_end(texts: &str, start: usize, length: usize) -> Option<usize> {
    start.checked_add(length).filter(|end| texts.is_char_boundary(*end))
}
