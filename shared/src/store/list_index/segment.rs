//! A few hundred rows and the texts of all of them in two arenas, so that a search runs over long stretches of memory.

use crate::domain::id::{EventId, Id};
use crate::domain::time::Timestamp;
use uuid::Uuid;

/// By how many rows, and how many bytes of text, a block grows: doubling would waste half of what is budgeted.
const GROWTH: (usize, usize) = (16, 512);
/// Ends each text of a row. No text that is searched holds a control character, and no word that is searched for a
/// blank, so no word is found across two texts.
const END: char = '\n';
/// How many of a UUIDv7's bits tell the time (RFC 9562 §5.7).
const TIME_BITS: u32 = 48;

/// A thing's place in lists: newest first, of one millisecond the smaller id first (contract 1, "Paging").
///
/// A thing is made in the millisecond that its id names, so the id is all that this takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey([u8; 16]);

impl SortKey {
    const LATER_FIRST: u128 = u128::MAX << (128 - TIME_BITS);

    pub fn of(id: Uuid) -> Self {
        Self((id.as_u128() ^ Self::LATER_FIRST).to_be_bytes())
    }

    pub fn id(self) -> Uuid {
        Uuid::from_u128(u128::from_be_bytes(self.0) ^ Self::LATER_FIRST)
    }

    /// When the thing was made.
    pub fn made_at(self) -> Timestamp {
        EventId::from_uuid(self.id()).timestamp()
    }
}

/// One thing as a directory keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<F> {
    pub id: Uuid,
    pub version: u64,
    /// What lists filter and sort by, texts aside.
    pub facts: F,
    /// Texts that are searched, folded.
    pub searched: Vec<String>,
    /// Texts that are compared as they are.
    pub exact: Vec<String>,
}

/// One thing as a block holds it.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a, F> {
    pub place: SortKey,
    pub version: u64,
    pub facts: &'a F,
    searched: &'a str,
    exact: &'a str,
}

impl<'a, F> RowRef<'a, F> {
    /// The folded text number `place`.
    pub fn searched(&self, place: usize) -> &'a str {
        self.searched.split(END).nth(place).unwrap_or_default()
    }

    /// The text number `place` as it is.
    pub fn exact(&self, place: usize) -> &'a str {
        self.exact.split(END).nth(place).unwrap_or_default()
    }

    /// All texts that are searched, one after the other.
    pub fn texts(&self) -> &'a str {
        self.searched
    }

    /// The thing as it was put.
    pub fn card(&self) -> Row<F>
    where
        F: Clone,
    {
        let texts = |text: &str| text.split_terminator(END).map(str::to_owned).collect();
        Row {
            id: self.place.id(),
            version: self.version,
            facts: self.facts.clone(),
            searched: texts(self.searched),
            exact: texts(self.exact),
        }
    }
}

#[derive(Debug)]
pub(super) struct PackedRow<F> {
    pub(super) place: SortKey,
    version: u64,
    pub(super) searched_end: u32,
    exact_end: u32,
    pub(super) facts: F,
}

#[derive(Debug)]
pub(super) struct Segment<F> {
    pub(super) rows: Vec<PackedRow<F>>,
    searched: String,
    exact: String,
}

/// `texts`, each with its end.
fn joined(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect()
}

/// Makes room in an arena for so many bytes more.
fn grow(arena: &mut String, more: usize) {
    if arena.capacity() - arena.len() < more {
        arena.reserve_exact(more + GROWTH.1);
    }
}

/// An arena's length as rows keep it: a block's texts are some hundred times some kilobytes.
pub(super) fn offset(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl<F> Default for Segment<F> {
    fn default() -> Self {
        Self { rows: Vec::new(), searched: String::new(), exact: String::new() }
    }
}

impl<F> Segment<F> {
    /// The searched texts of all rows.
    pub(super) fn searched(&self) -> &str {
        &self.searched
    }

    /// How much of [`Segment::bytes`] are texts.
    #[cfg(test)]
    pub(super) fn text_bytes(&self) -> usize {
        self.searched.len() + self.exact.len()
    }

    /// Where the texts of row number `row` begin.
    pub(super) fn start(&self, row: usize) -> (usize, usize) {
        let before = row.checked_sub(1).and_then(|before| self.rows.get(before));
        before.map_or((0, 0), |row| (row.searched_end as usize, row.exact_end as usize))
    }

    pub(super) fn view(&self, row: usize) -> Option<RowRef<'_, F>> {
        let (searched, exact) = self.start(row);
        let PackedRow { place, version, searched_end, exact_end, facts } = self.rows.get(row)?;
        Some(RowRef {
            place: *place,
            version: *version,
            facts,
            searched: self.searched.get(searched..*searched_end as usize)?,
            exact: self.exact.get(exact..*exact_end as usize)?,
        })
    }

    /// Puts texts where the rows from `row` to before `next` have theirs, and moves all rows from `next` on along.
    pub(super) fn replace_texts(&mut self, row: usize, next: usize, searched: &str, exact: &str) {
        let (from, to) = (self.start(row), self.start(next));
        grow(&mut self.searched, searched.len());
        grow(&mut self.exact, exact.len());
        self.searched.replace_range(from.0..to.0, searched);
        self.exact.replace_range(from.1..to.1, exact);
        for row in self.rows.iter_mut().skip(next) {
            row.searched_end = offset(row.searched_end as usize + searched.len() + from.0 - to.0);
            row.exact_end = offset(row.exact_end as usize + exact.len() + from.1 - to.1);
        }
    }

    /// Adds or replaces a row; tells whether it is new.
    pub(super) fn put(&mut self, card: Row<F>) -> bool {
        let place = SortKey::of(card.id);
        let (searched, exact) = (joined(&card.searched), joined(&card.exact));
        let found = self.rows.binary_search_by_key(&place, |row| row.place);
        let (at, next) = found.map_or_else(|at| (at, at), |at| (at, at + 1));
        let start = self.start(at);
        self.replace_texts(at, next, &searched, &exact);
        let row = PackedRow {
            place,
            version: card.version,
            searched_end: offset(start.0 + searched.len()),
            exact_end: offset(start.1 + exact.len()),
            facts: card.facts,
        };
        match self.rows.get_mut(at) {
            Some(present) if found.is_ok() => *present = row,
            _ => {
                if self.rows.len() == self.rows.capacity() {
                    self.rows.reserve_exact(GROWTH.0);
                }
                self.rows.insert(at, row);
            }
        }
        found.is_err()
    }

    /// The second half, which leaves this block.
    pub(super) fn split(&mut self) -> Self {
        let half = self.rows.len() / 2;
        let (searched, exact) = self.start(half);
        let mut later = Self {
            rows: self.rows.split_off(half),
            searched: self.searched.split_off(searched),
            exact: self.exact.split_off(exact),
        };
        for row in &mut later.rows {
            row.searched_end -= offset(searched);
            row.exact_end -= offset(exact);
        }
        self.shrink();
        later
    }

    pub(super) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.searched.shrink_to_fit();
        self.exact.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<PackedRow<F>>() + self.searched.capacity() + self.exact.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_sort_newest_first_and_then_by_id() {
        let id = |time: u128, rest: u128| Uuid::from_u128(time << 80 | rest);
        let mut places: Vec<SortKey> = [id(5, 1), id(5, 0), id(6, 9), id(4, 0)].map(SortKey::of).into();
        places.sort();
        assert_eq!(places.iter().map(|place| place.id()).collect::<Vec<_>>(), [id(6, 9), id(5, 0), id(5, 1), id(4, 0)]);
        assert_eq!(places.first().map(|place| place.made_at()), Some(Timestamp::from_millis(6)));
    }
}
