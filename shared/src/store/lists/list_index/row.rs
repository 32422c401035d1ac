//! Rows: one record each in a list index.

use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use uuid::Uuid;

/// Ends each text of a row. Searched texts contain no control characters and search words no white space, so no word
/// is found across two texts.
const TEXT_END: char = '\n';
/// Stands for an empty text, unlike none. Stored texts contain no control characters.
const EMPTY: &str = "\0";
/// The bits of a UUIDv7 that are the time (RFC 9562 §5.7).
const TIME_BITS: u32 = 48;

/// A row's position in the default order of lists: newest first, then by ascending id within a millisecond.
///
/// A record is created in the millisecond that its id names, so the id contains everything that the order needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey(pub(super) [u8; 16]);

impl SortKey {
    /// Inverts the time of an id, so that later ids sort first.
    const TIME_MASK: u128 = u128::MAX << (128 - TIME_BITS);

    pub fn of(id: Uuid) -> Self {
        Self((id.as_u128() ^ Self::TIME_MASK).to_be_bytes())
    }

    pub fn id(self) -> Uuid {
        Uuid::from_u128(u128::from_be_bytes(self.0) ^ Self::TIME_MASK)
    }

    pub fn created_at(self) -> Timestamp {
        EventId::from_uuid(self.id()).timestamp()
    }
}

/// One record as it is added to an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<C> {
    pub id: Uuid,
    pub version: u64,
    /// Values of fixed size.
    pub columns: C,
    /// Case-folded.
    pub searched: Vec<String>,
    /// Compared exactly.
    pub exact: Vec<String>,
}

/// The fixed-size part of a row in a segment. The texts of all rows are next to each other in the segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedRow<C> {
    pub(super) sort_key: SortKey,
    pub(super) version: u64,
    /// The end of the row's searched texts in the segment's.
    pub(super) searched_end: u32,
    /// The end of the row's exact texts in the segment's.
    pub(super) exact_end: u32,
    pub(super) columns: C,
}

#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a, C> {
    pub sort_key: SortKey,
    pub version: u64,
    pub columns: &'a C,
    pub(super) searched: &'a str,
    pub(super) exact: &'a str,
}

impl<'a, C> RowRef<'a, C> {
    pub fn searched_text(&self, column: usize) -> &'a str {
        self.searched.split(TEXT_END).nth(column).unwrap_or_default()
    }

    /// Returns a text that is compared exactly; `None` if the record has none.
    pub fn exact_text(&self, column: usize) -> Option<&'a str> {
        match self.exact.split(TEXT_END).nth(column)? {
            "" => None,
            EMPTY => Some(""),
            text => Some(text),
        }
    }

    /// One per line.
    pub fn searched_texts(&self) -> &'a str {
        self.searched
    }

    pub fn to_row(&self) -> Row<C>
    where
        C: Clone,
    {
        let texts = |text: &str| text.split_terminator(TEXT_END).map(str::to_owned).collect();
        Row {
            id: self.sort_key.id(),
            version: self.version,
            columns: self.columns.clone(),
            searched: texts(self.searched),
            exact: texts(self.exact),
        }
    }
}

/// Returns the exact text of a row for a record's text.
pub(super) fn exact(text: Option<&str>) -> String {
    text.map_or("", |text| if text.is_empty() { EMPTY } else { text }).to_owned()
}

/// Joins the texts of a row, each with its end.
pub(super) fn join_texts(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect()
}

/// Converts an offset to the type that rows have for it. A segment's texts are some hundred times some kilobytes.
pub(super) fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_sort_newest_first_and_then_by_id() {
        let id = |time: u128, rest: u128| Uuid::from_u128(time << 80 | rest);
        let mut keys: Vec<SortKey> = [id(5, 1), id(5, 0), id(6, 9), id(4, 0)].map(SortKey::of).into();
        keys.sort();
        assert_eq!(keys.iter().map(|key| key.id()).collect::<Vec<_>>(), [id(6, 9), id(5, 0), id(5, 1), id(4, 0)]);
        assert_eq!(keys.first().map(|key| key.created_at()), Some(Timestamp::from_millis(6)));
    }
}
