//! A segment: up to a few hundred rows, with the texts of all of them in two strings that a search scans in sequence.

use super::row::{PackedRow, Row, RowRef, SortKey, join_texts};

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

/// Converts an offset to the type that rows have for it. A segment's texts are some hundred times some kilobytes.
pub(super) fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl<C> Default for Segment<C> {
    fn default() -> Self {
        Self { rows: Vec::new(), searched: String::new(), exact: String::new() }
    }
}

impl<C> Segment<C> {
    /// Of all rows.
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
