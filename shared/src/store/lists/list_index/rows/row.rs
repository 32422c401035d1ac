//! Rows: one record each in a list index.

use super::coded::{CodedColumns, SegmentColumn};
use super::facets::Facet;
use crate::domain::assets::listed::Cell;
use crate::domain::record::Record;
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::Section;
use crate::store::lists::list_index::blocks::{Decoder, Encoder};
use crate::store::lists::list_index::change_event::Inconsistent;
use serde_json::{Map, Value};
use std::fmt::Debug;
use uuid::Uuid;

/// Ends each text of a row. Searched texts contain no control characters and search words no white space, so no word
/// is found across two texts.
pub(super) const TEXT_END: char = '\n';
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

#[derive(Debug, Clone, Copy)]
pub struct TextColumns {
    /// Searched without regard to case.
    pub searched: usize,
    /// Compared exactly.
    pub exact: usize,
}

/// The values of fixed size in which each row differs, and the mapping of a record's fields to the row.
pub trait Columns: Debug + Clone + Default + Send + 'static {
    type Record: Record;
    /// The values that many rows share.
    type Facet: Facet;
    /// The sections of the secondary index with these rows.
    const SECTIONS: &'static [Section];
    const TEXT_COLUMNS: TextColumns;
    /// The coded columns that are never left out for want of memory.
    const KEPT_COLUMNS: &'static [&'static str] = &[];

    /// Fields that lists don't need are ignored.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when this version of the service can't read the value.
    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent>;

    /// Sets the record's custom fields, if it has any.
    fn set_custom_fields(_row: &mut Row<Self>, _fields: &Map<String, Value>) {}

    /// Sets the time of the last change, if lists sort by it.
    fn set_updated_at(&mut self, _at: Timestamp) {}

    fn encode(&self, encoder: &mut Encoder);

    /// From a snapshot; `None` if [`Columns::encode`] can't have written it.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// One record as it is added to an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<C: Columns> {
    pub id: Uuid,
    pub version: u64,
    pub facet: C::Facet,
    /// Values of fixed size.
    pub columns: C,
    /// Case-folded.
    pub searched: Vec<String>,
    /// Compared exactly.
    pub exact: Vec<String>,
    /// The values in coded columns, by the columns' names.
    pub coded: Vec<(String, Cell)>,
}

/// A row as segments store it.
#[derive(Debug)]
pub struct PackedRow<C> {
    pub(super) sort_key: SortKey,
    pub(super) version: u64,
    pub(super) facet: u32,
    pub(super) columns: C,
    pub(super) searched: String,
    pub(super) exact: String,
    /// Column and number of each value.
    pub(super) coded: Vec<(u32, u32)>,
}

/// A row of a segment, which doesn't know the facet of its number.
#[derive(Debug, Clone, Copy)]
pub struct RowValues<'a, C> {
    pub(super) sort_key: SortKey,
    pub(super) version: u64,
    pub(super) facet: u32,
    pub(super) columns: &'a C,
    pub(super) searched: &'a str,
    pub(super) exact: &'a str,
    /// The segment's columns, and the row's place in them.
    pub(super) coded: (&'a [SegmentColumn], usize),
}

#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a, C: Columns> {
    pub sort_key: SortKey,
    pub version: u64,
    pub facet: &'a C::Facet,
    pub columns: &'a C,
    pub(super) searched: &'a str,
    pub(super) exact: &'a str,
    pub(super) coded: (&'a [SegmentColumn], usize, &'a CodedColumns),
}

/// One of a row's joined texts.
pub(super) fn nth_text(joined: &str, column: usize) -> &str {
    joined.split(TEXT_END).nth(column).unwrap_or_default()
}

/// One of a row's joined exact texts; `None` if the record has none.
pub(super) fn nth_exact(joined: &str, column: usize) -> Option<&str> {
    match nth_text(joined, column) {
        "" => None,
        EMPTY => Some(""),
        text => Some(text),
    }
}

impl<'a, C: Columns> RowRef<'a, C> {
    /// Returns a text that is compared exactly; `None` if the record has none.
    pub fn exact_text(&self, column: usize) -> Option<&'a str> {
        nth_exact(self.exact, column)
    }

    pub fn to_row(&self) -> Row<C> {
        let texts = |text: &str| text.split_terminator(TEXT_END).map(str::to_owned).collect();
        let (columns, place, coded) = self.coded;
        let cell = |column: &SegmentColumn| {
            let cell = coded.cell(column.column, column.get(place))?.clone();
            Some((coded.name(column.column)?.to_owned(), cell))
        };
        Row {
            id: self.sort_key.id(),
            version: self.version,
            facet: self.facet.clone(),
            columns: self.columns.clone(),
            searched: texts(self.searched),
            exact: texts(self.exact),
            coded: columns.iter().filter_map(cell).collect(),
        }
    }
}

/// Returns the exact text of a row for a record's text.
pub fn exact(text: Option<&str>) -> String {
    text.map_or("", |text| if text.is_empty() { EMPTY } else { text }).to_owned()
}

/// Sets the value of a coded column.
pub fn set_cell(cells: &mut Vec<(String, Cell)>, column: &str, cell: Option<Cell>) {
    cells.retain(|(name, _)| name != column);
    cells.extend(cell.map(|cell| (column.to_owned(), cell)));
}

/// Joins the texts of a row, each with its end.
pub(super) fn join_texts(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect()
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
