//! Rows, one per record of a list index, and queries: filter, search, sort, count, and cut out a page.

use super::coded::{CodedColumns, SegmentColumn, Selected, Wanted};
use super::facets::Facet;
use super::segment::{ColumnVectors, SearchTerms, Segment, narrow};
use super::sorted_rows::{FirstRows, RowPosition, SortOrder, SortedRows};
use crate::domain::assets::asset::Cell;
use crate::domain::record::Record;
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::Section;
use crate::store::lists::indexed_lists::PageRequest;
use crate::store::lists::list_index::blocks::{Decoder, Encoder};
use crate::store::lists::list_index::change_event::Inconsistent;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Ends each text of a row. Searched texts contain no control characters and search words no white space, so no word matches
/// across two texts.
pub(super) const TEXT_END: char = '\n';
/// An empty text, as opposed to none. Stored texts contain no control characters.
const EMPTY: &str = "\0";
/// Number of bits of a UUIDv7 that are the time (RFC 9562 §5.7).
const TIME_BITS: u32 = 48;

/// A row's position in the default order of lists: newest first, then by ascending ID within a millisecond.
///
/// An ID contains the millisecond in which the record was created, so it has everything that the order needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey(pub(super) [u8; 16]);

impl SortKey {
    /// Inverts the time of an ID, so that later IDs sort first.
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
    /// Searched, case-insensitive.
    pub searched: usize,
    /// Compared exactly.
    pub exact: usize,
}

/// A row's values of fixed size, and the mapping of a record's fields to the row.
pub trait Columns: Debug + Clone + Default + Send + 'static {
    type Record: Record;
    /// Values that many rows share.
    type Facet: Facet;
    /// The values of fixed size of a segment's rows.
    type Vectors: ColumnVectors<Self>;
    /// The sections of the secondary index with these rows.
    const SECTIONS: &'static [Section];
    const TEXT_COLUMNS: TextColumns;
    /// The coded columns that are never dropped for lack of memory.
    const KEPT_COLUMNS: &'static [&'static str] = &[];

    /// Sets a field of the row. Ignores fields that lists don't need.
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

    /// Reads columns from a snapshot; `None` if [`Columns::encode`] can't have written it.
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// A record that is added to an index.
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
    /// Values in coded columns, by column name.
    pub coded: Vec<(String, Cell)>,
}

/// A row in the form that segments store.
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

/// A row of a segment, with just the number of its facet.
#[derive(Debug, Clone, Copy)]
pub struct RowValues<'a, C> {
    pub(super) sort_key: SortKey,
    pub(super) version: u64,
    pub(super) facet: u32,
    pub(super) columns: C,
    pub(super) searched: &'a str,
    pub(super) exact: &'a str,
    /// The segment's columns, and the row's position in them.
    pub(super) coded: (&'a [SegmentColumn], usize),
}

#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a, C: Columns> {
    pub sort_key: SortKey,
    pub version: u64,
    pub facet: &'a C::Facet,
    pub columns: C,
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

/// Converts a record's text to a row's exact text.
pub fn exact(text: Option<&str>) -> String {
    text.map_or("", |text| if text.is_empty() { EMPTY } else { text }).to_owned()
}

/// Sets the value of a coded column.
pub fn set_cell(cells: &mut Vec<(String, Cell)>, column: &str, cell: Option<Cell>) {
    cells.retain(|(name, _)| name != column);
    cells.extend(cell.map(|cell| (column.to_owned(), cell)));
}

/// Joins the texts of a row, each followed by [`TEXT_END`].
pub(super) fn join_texts(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect()
}

pub type Filter<'q, T> = Box<dyn Fn(&T) -> bool + Send + Sync + 'q>;

/// Leaves out matches whose values of fixed size don't match.
pub type ColumnFilter<'q, C> = Box<dyn Fn(&<C as Columns>::Vectors, &mut [bool]) + Send + Sync + 'q>;

/// The conditions and the order of a list. A row matches if all conditions hold.
pub struct RowQuery<'q, C: Columns> {
    /// Words that the searched texts must contain.
    pub terms: SearchTerms,
    /// `None` if every facet passes.
    pub facets: Option<Filter<'q, C::Facet>>,
    /// `None` if every row passes.
    pub columns: Option<ColumnFilter<'q, C>>,
    /// Required exact texts, by column.
    pub exact: Vec<(usize, String)>,
    /// Required values in coded columns.
    pub coded: Vec<Wanted>,
    /// Inclusive lower and exclusive upper bound of the creation time.
    pub created: (Option<Timestamp>, Option<Timestamp>),
    /// `None` for the default, newest first.
    pub order: Option<SortOrder<C>>,
}

/// The conditions of a query, evaluated for the facets and coded values of specific rows.
struct Selection {
    /// Whether each facet passes, by number, and the number of rows with a passing one; `None` if all pass.
    facets: Option<(Vec<bool>, usize)>,
    coded: Vec<Selected>,
}

impl<C: Columns> Default for RowQuery<'_, C> {
    fn default() -> Self {
        Self {
            terms: SearchTerms::default(),
            facets: None,
            columns: None,
            exact: Vec::new(),
            coded: Vec::new(),
            created: (None, None),
            order: None,
        }
    }
}

impl<C: Columns> RowQuery<'_, C> {
    /// Whether every row matches.
    pub fn is_everything(&self) -> bool {
        self.facets.is_none() && self.coded.is_empty() && self.is_of_facets_and_coded()
    }

    /// Whether a match depends only on the facet and coded values.
    fn is_of_facets_and_coded(&self) -> bool {
        self.terms.is_empty() && self.columns.is_none() && self.exact.is_empty() && self.created == (None, None)
    }

    /// Visits the segments that can have matching rows, in the default order, until `visit` breaks. Passes the segment's position
    /// and, for each row, whether it matches.
    pub fn scan(&self, rows: &SortedRows<C>, visit: impl FnMut(usize, &Segment<C>, &[bool]) -> ControlFlow<()>) {
        self.scan_selected(rows, &self.selection(rows), visit);
    }

    fn scan_selected(
        &self,
        rows: &SortedRows<C>,
        selection: &Selection,
        mut visit: impl FnMut(usize, &Segment<C>, &[bool]) -> ControlFlow<()>,
    ) {
        let mut segments = rows.segments().iter().enumerate();
        let _ = segments.try_for_each(|(at, segment)| match self.matches(segment, selection) {
            Some(matches) => visit(at, segment, &matches),
            None => ControlFlow::Continue(()),
        });
    }

    fn selection(&self, rows: &SortedRows<C>) -> Selection {
        Selection {
            facets: self.facets.as_ref().map(|filter| rows.facets().select(filter)),
            coded: self.coded.iter().map(|wanted| rows.coded().select(wanted)).collect(),
        }
    }

    /// Whether each row of the segment matches; `None` if none does. Checks one condition after the other, each for all rows:
    /// that is fast however many rows match. The conditions that read texts come last.
    fn matches(&self, segment: &Segment<C>, Selection { facets, coded }: &Selection) -> Option<Vec<bool>> {
        let coded: Vec<_> = coded.iter().map(|selected| selected.in_segment(segment)).collect::<Option<_>>()?;
        let may_have_texts = segment.may_have(&self.terms) && self.exact.iter().all(|(_, text)| segment.exact.contain(text));
        may_have_texts.then_some(())?;
        let mut matches = vec![false; segment.len()];
        matches.get_mut(segment.created_in(self.created))?.fill(true);
        if let Some((facets, _)) = facets {
            narrow(&mut matches, &segment.facets, |facet| facets.get(*facet as usize) == Some(&true));
        }
        for (numbers, are_selected) in coded {
            narrow(&mut matches, numbers, |number| are_selected.get(*number as usize) == Some(&true));
        }
        matches.contains(&true).then_some(())?;
        if let Some(filter) = &self.columns {
            filter(&segment.columns, &mut matches);
        }
        for (column, text) in &self.exact {
            let has_text = |row| nth_exact(segment.exact.get(row), *column) == Some(text);
            matches.iter_mut().enumerate().for_each(|(row, is_match)| *is_match = *is_match && has_text(row));
        }
        segment.search(&self.terms, &mut matches);
        matches.contains(&true).then_some(matches)
    }

    /// The number of matching rows, if counting them reads no rows: facets and the values of a coded column have row counts.
    fn known_total(&self, rows: &SortedRows<C>, selection: &Selection) -> Option<usize> {
        match (&selection.facets, selection.coded.as_slice()) {
            _ if !self.is_of_facets_and_coded() => None,
            (None, []) => Some(rows.len()),
            (Some((_, count)), []) => Some(*count),
            (None, [selected]) => Some(rows.coded().count_selected(selected, rows.len())),
            _ => None,
        }
    }

    /// The number of matching rows, and the rows of the page.
    pub fn select<'r>(&self, rows: &'r SortedRows<C>, page: PageRequest) -> (usize, Vec<RowRef<'r, C>>) {
        let (skip, limit) = (page.skip(), page.limit as usize);
        let selection = self.selection(rows);
        let known_total = self.known_total(rows, &selection);
        let (total, positions) = match &self.order {
            _ if known_total.is_some_and(|total| total <= skip) => (0, Vec::new()),
            None if known_total == Some(rows.len()) => (0, rows.slice(skip, limit)),
            None => self.first_in_order(rows, &selection, (skip, limit), known_total),
            Some(order) => {
                let order = &order.of_rows(rows);
                let mut first = FirstRows::new(rows, order, skip.saturating_add(limit));
                let (mut total, mut is_complete) = (0, false);
                // Counting matches requires all segments. Otherwise, the segments that come first in the order may be enough.
                for (at, segment, value) in rows.segments_by(order) {
                    is_complete = is_complete || !first.may_take_from(segment, value.as_ref());
                    if is_complete && known_total.is_some() {
                        break;
                    }
                    let Some(matches) = self.matches(segment, &selection) else { continue };
                    total += count(&matches);
                    if !is_complete {
                        rows_of(&matches).for_each(|row| first.offer(RowPosition::new(at, row)));
                    }
                }
                (total, first.finish(skip))
            }
        };
        let rows = positions.into_iter().filter_map(|position| rows.row(position)).collect();
        (known_total.unwrap_or(total), rows)
    }

    /// `limit` matching rows after the first `skip`, and the total number of matches. If the caller knows the total, the scan
    /// ends with the page or the last match.
    fn first_in_order(
        &self,
        rows: &SortedRows<C>,
        selection: &Selection,
        (skip, limit): (usize, usize),
        known_total: Option<usize>,
    ) -> (usize, Vec<RowPosition>) {
        let (mut total, mut positions) = (0, Vec::new());
        self.scan_selected(rows, selection, |at, _, matches| {
            let of_page = rows_of(matches).skip(skip.saturating_sub(total)).take(limit - positions.len());
            positions.extend(of_page.map(|row| RowPosition::new(at, row)));
            total += count(matches);
            let is_last = known_total.is_some_and(|known| positions.len() == limit || total == known);
            if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (total, positions)
    }
}

/// The positions of matching rows.
pub fn rows_of(matches: &[bool]) -> impl Iterator<Item = usize> {
    matches.iter().enumerate().filter(|(_, is_match)| **is_match).map(|(row, _)| row)
}

fn count(matches: &[bool]) -> usize {
    matches.iter().filter(|is_match| **is_match).count()
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
