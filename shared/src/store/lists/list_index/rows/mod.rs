//! The rows of a list index, one per record: queries that filter, search, sort, count and cut out a page; all rows of one kind,
//! in segments, newest first; and facets. Sort orders other than the default compare most rows just once and then drop them,
//! because a page needs only a few of a million rows.

mod coded;
#[cfg(test)]
mod properties;
mod segment;

pub use coded::CodedCondition;
pub(super) use segment::replace;
pub use segment::{ColumnVectors, narrow};

use crate::domain::assets::asset::Cell;
use crate::domain::record::Record;
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::natural_order::natural_cmp;
use crate::domain::values::text::fold;
use crate::domain::values::time::Timestamp;
use crate::store::keys::Section;
use crate::store::lists::indexed_lists::PageRequest;
use crate::store::lists::list_index::Inconsistent;
use crate::store::lists::list_index::snapshots::{Decoder, Encoder, to_u32};
use coded::{CodedColumns, SegmentColumn, Selected};
use memchr::memmem::Finder;
use segment::{Extremes, MAX_SEGMENT_ROWS, Segment, Trigram, TrigramSet};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;
use uuid::Uuid;

/// Ends each text of a row. Searched texts contain no control characters, and search words contain no white space, so no word
/// matches across two texts.
const TEXT_END: char = '\n';
/// An empty text, as opposed to a missing text. Stored texts contain no control characters.
const EMPTY: &str = "\0";
/// Number of bits of a UUIDv7 that are the time (RFC 9562 §5.7).
const TIME_BITS: u32 = 48;

/// A row's position in the default order of lists: newest first, then by ascending ID within a millisecond.
///
/// An ID contains the millisecond in which the record was created, so the order needs nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey([u8; 16]);

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
    /// Number of searched texts, which are case-insensitive.
    pub searched: usize,
    /// Number of texts that are compared exactly.
    pub exact: usize,
}

/// A row's fixed-size values, and the mapping of a record's fields to the row.
pub trait Columns: Debug + Clone + Default + Send + 'static {
    type Record: Record;
    type Facet: Facet;
    type Vectors: ColumnVectors<Self>;
    /// The sections of the secondary index that contain these rows.
    const SECTIONS: &'static [Section];
    const TEXT_COLUMNS: TextColumns;
    /// The coded columns that are kept even if memory is short.
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

    /// Notes when a field changed, if lists show it.
    fn note_change(&mut self, _field: &str, _at: Timestamp) {}

    /// Sets the times that a new record has.
    fn set_created_at(&mut self, _at: Timestamp) {}

    fn encode(&self, encoder: &mut Encoder);

    /// Reads columns from a snapshot; `None` if the bytes aren't output of [`Columns::encode`].
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// A record that is added to an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<C: Columns> {
    pub id: Uuid,
    pub version: u64,
    pub facet: C::Facet,
    pub columns: C,
    /// Case-folded.
    pub searched: Vec<String>,
    pub exact: Vec<String>,
    /// By column name.
    pub coded: Vec<(String, Cell)>,
}

/// A row in the form that segments store.
#[derive(Debug)]
pub struct PackedRow<C> {
    sort_key: SortKey,
    version: u64,
    facet: u32,
    columns: C,
    searched: String,
    exact: String,
    /// Column and number of each value.
    coded: Vec<(u32, u32)>,
}

/// A row of a segment, with just the number of its facet.
#[derive(Debug, Clone, Copy)]
pub struct RowValues<'a, C> {
    sort_key: SortKey,
    version: u64,
    facet: u32,
    columns: C,
    searched: &'a str,
    exact: &'a str,
    /// The segment's columns, and the row's position in them.
    coded: (&'a [SegmentColumn], usize),
}

#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a, C: Columns> {
    pub sort_key: SortKey,
    pub version: u64,
    pub facet: &'a C::Facet,
    pub columns: C,
    searched: &'a str,
    exact: &'a str,
    coded: (&'a [SegmentColumn], usize, &'a CodedColumns),
}

fn nth_text(joined: &str, column: usize) -> &str {
    joined.split(TEXT_END).nth(column).unwrap_or_default()
}

/// Returns one of a row's joined exact texts; `None` if the record has no such text.
fn nth_exact(joined: &str, column: usize) -> Option<&str> {
    match nth_text(joined, column) {
        "" => None,
        EMPTY => Some(""),
        text => Some(text),
    }
}

impl<'a, C: Columns> RowRef<'a, C> {
    /// Returns a text that searches find, in the form in which it is compared.
    pub fn searched_text(&self, column: usize) -> &'a str {
        nth_text(self.searched, column)
    }

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

/// Converts a record's text to a row's exact text: empty for a missing text, `EMPTY` for an empty text.
pub fn exact(text: Option<&str>) -> String {
    text.map_or("", |text| if text.is_empty() { EMPTY } else { text }).to_owned()
}

/// Sets the value of a coded column; `None` removes it.
pub fn set_cell(cells: &mut Vec<(String, Cell)>, column: &str, cell: Option<Cell>) {
    cells.retain(|(name, _)| name != column);
    cells.extend(cell.map(|cell| (column.to_owned(), cell)));
}

/// Joins the texts of a row, each followed by [`TEXT_END`].
fn join_texts(texts: &[String]) -> String {
    texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect()
}

pub type Filter<'q, T> = Box<dyn Fn(&T) -> bool + Send + Sync + 'q>;

/// Unmarks rows whose fixed-size values don't match.
pub type ColumnFilter<'q, C> = Box<dyn Fn(&<C as Columns>::Vectors, &mut [bool]) + Send + Sync + 'q>;

/// Words that must all occur in a row's texts, case-insensitive.
#[derive(Debug, Clone, Default)]
pub struct SearchTerms {
    /// The longest word, which is likely to be the rarest.
    longest: Option<Finder<'static>>,
    others: Vec<Finder<'static>>,
    trigrams: Vec<Trigram>,
}

impl SearchTerms {
    pub fn of(search: Option<&str>) -> Self {
        Self::of_folded(&search.map(fold).unwrap_or_default())
    }

    /// Like [`of`](Self::of), for a search that has the form of the searched texts.
    pub fn of_folded(text: &str) -> Self {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        words.sort_by_key(|word| word.len());
        let trigrams = words.iter().copied().flat_map(Trigram::all_of).collect();
        let longest = words.pop().map(|word| Finder::new(word).into_owned());
        Self { longest, others: words.into_iter().map(|word| Finder::new(word).into_owned()).collect(), trigrams }
    }

    /// Whether there are no words, so that every text matches.
    pub fn is_empty(&self) -> bool {
        self.longest.is_none()
    }

    /// Returns the word to search for first; `None` if there are no words.
    pub fn finder(&self) -> Option<&Finder<'static>> {
        self.longest.as_ref()
    }

    /// Returns `false` only if some word occurs in none of the set's texts.
    pub fn may_occur_in(&self, texts: &TrigramSet) -> bool {
        self.trigrams.iter().all(|trigram| texts.contains(*trigram))
    }

    /// Whether `texts`, which must be case-folded, contain all words other than [`SearchTerms::finder`].
    pub fn others_occur_in(&self, texts: &str) -> bool {
        self.others.iter().all(|word| word.find(texts.as_bytes()).is_some())
    }

    /// Whether `texts`, which must be case-folded, contain all words.
    pub fn occur_in(&self, texts: &str) -> bool {
        self.longest.iter().all(|word| word.find(texts.as_bytes()).is_some()) && self.others_occur_in(texts)
    }
}

/// The conditions and the order of a list. A row matches if it meets all conditions.
pub struct RowQuery<'q, C: Columns> {
    pub terms: SearchTerms,
    /// Condition on the facet; `None` if every facet passes.
    pub facets: Option<Filter<'q, C::Facet>>,
    /// Condition on the fixed-size values; `None` if every row passes.
    pub columns: Option<ColumnFilter<'q, C>>,
    /// Required exact texts, by column.
    pub exact: Vec<(usize, String)>,
    pub coded: Vec<CodedCondition>,
    /// Conditions of which at least one must match, if there are any.
    pub either: Vec<CodedCondition>,
    /// Inclusive lower and exclusive upper bound of the creation time.
    pub created: (Option<Timestamp>, Option<Timestamp>),
    /// IDs of the permitted records; `None` if every record is permitted.
    pub ids: Option<BTreeSet<Uuid>>,
    /// Sort order; `None` for the default, newest first.
    pub order: Option<SortOrder<C>>,
}

/// The conditions of a query, evaluated for the facets and coded values of specific rows.
struct Selection {
    /// Whether each facet passes, by number, and the number of rows with a passing facet; `None` if all facets pass.
    facets: Option<(Vec<bool>, usize)>,
    coded: Vec<Selected>,
    either: Vec<Selected>,
}

impl<C: Columns> Default for RowQuery<'_, C> {
    fn default() -> Self {
        Self {
            terms: SearchTerms::default(),
            facets: None,
            columns: None,
            exact: Vec::new(),
            coded: Vec::new(),
            either: Vec::new(),
            created: (None, None),
            ids: None,
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
        let has_texts = !self.terms.is_empty() || !self.exact.is_empty();
        let has_others = self.columns.is_some() || !self.either.is_empty() || self.ids.is_some();
        !has_texts && !has_others && self.created == (None, None)
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
            either: self.either.iter().map(|wanted| rows.coded().select(wanted)).collect(),
        }
    }

    /// Returns whether each row of the segment matches; `None` if no row does. Checks one condition after the other, each for all
    /// rows, which is fast no matter how many rows match. The conditions that read texts come last.
    fn matches(&self, segment: &Segment<C>, Selection { facets, coded, either }: &Selection) -> Option<Vec<bool>> {
        let coded: Vec<_> = coded.iter().map(|selected| selected.in_segment(segment)).collect::<Option<_>>()?;
        let may_have_texts = segment.may_have(&self.terms) && self.exact.iter().all(|(_, text)| segment.exact.contain(text));
        may_have_texts.then_some(())?;
        let mut matches = vec![false; segment.len()];
        matches.get_mut(segment.created_in(self.created))?.fill(true);
        if let Some(ids) = &self.ids {
            narrow(&mut matches, &segment.keys, |key| ids.contains(&key.id()));
            matches.contains(&true).then_some(())?;
        }
        if let Some((facets, _)) = facets {
            narrow(&mut matches, &segment.facets, |facet| facets.get(*facet as usize) == Some(&true));
        }
        for (numbers, are_selected) in coded {
            narrow(&mut matches, numbers, |number| are_selected.get(*number as usize) == Some(&true));
        }
        if !either.is_empty() {
            let mut any = vec![false; segment.len()];
            for (numbers, are_selected) in either.iter().filter_map(|selected| selected.in_segment(segment)) {
                let is_selected =
                    |row: usize| are_selected.get(numbers.get(row).copied().unwrap_or_default() as usize) == Some(&true);
                any.iter_mut().enumerate().for_each(|(row, is_match)| *is_match = *is_match || is_selected(row));
            }
            narrow(&mut matches, &any, |is_match| *is_match);
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

    /// Returns the number of matching rows, if counting them reads no rows: facets and the values of a coded column have row
    /// counts.
    fn known_total(&self, rows: &SortedRows<C>, selection: &Selection) -> Option<usize> {
        match (&selection.facets, selection.coded.as_slice()) {
            _ if !self.is_of_facets_and_coded() => None,
            (None, []) => Some(rows.len()),
            (Some((_, count)), []) => Some(*count),
            (None, [selected]) => Some(rows.coded().count_selected(selected, rows.len())),
            _ => None,
        }
    }

    /// Returns the number of matching rows, and the rows of the page.
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

    /// Returns `limit` matching rows after the first `skip`, and the total number of matches. If the caller knows the total, the
    /// scan ends with the page or the last match.
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

pub fn rows_of(matches: &[bool]) -> impl Iterator<Item = usize> {
    matches.iter().enumerate().filter(|(_, is_match)| **is_match).map(|(row, _)| row)
}

fn count(matches: &[bool]) -> usize {
    matches.iter().filter(|is_match| **is_match).count()
}

/// The position of a row, valid until the next change to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPosition {
    segment: u32,
    row: u32,
}

impl RowPosition {
    pub fn new(segment: usize, row: usize) -> Self {
        Self { segment: to_u32(segment), row: to_u32(row) }
    }
}

/// The rows of one kind, sorted by their keys in ascending order.
#[derive(Debug)]
pub struct SortedRows<C: Columns> {
    segments: Vec<Segment<C>>,
    facets: Facets<C::Facet>,
    coded: CodedColumns,
    len: usize,
    /// Computed for the first list, because computing the size visits every segment, and dropped at the next change.
    bytes: OnceLock<usize>,
}

impl<C: Columns> Default for SortedRows<C> {
    fn default() -> Self {
        let coded = CodedColumns::new(C::KEPT_COLUMNS);
        Self { segments: Vec::new(), facets: Facets::default(), coded, len: 0, bytes: OnceLock::new() }
    }
}

impl<C: Columns> SortedRows<C> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> usize {
        *self.bytes.get_or_init(|| self.count_bytes())
    }

    fn count_bytes(&self) -> usize {
        // Includes extremes even before they are computed, so that a list doesn't exceed the budget.
        let extremes = (C::TEXT_COLUMNS.searched + C::TEXT_COLUMNS.exact) * size_of::<Extremes>();
        let segments = self.segments.capacity() * (size_of::<Segment<C>>() + extremes);
        let coded = self.coded_bytes(0..self.coded.len());
        segments + self.segments.iter().map(Segment::bytes).sum::<usize>() + self.facets.bytes() + coded
    }

    /// Returns the part of [`SortedRows::bytes`] that is optional.
    pub fn optional_bytes(&self) -> usize {
        self.coded_bytes(self.optional_columns())
    }

    fn optional_columns(&self) -> Range<usize> {
        C::KEPT_COLUMNS.len()..self.coded.len()
    }

    fn coded_bytes(&self, columns: Range<usize>) -> usize {
        let segments: usize = self.segments.iter().map(|segment| segment.coded_bytes(&columns)).sum();
        segments + self.coded.bytes(columns)
    }

    /// Drops the optional columns, and ignores their values in later rows. Returns whether there were any optional columns.
    pub fn leave_out(&mut self) -> bool {
        if self.coded.is_left_out() || self.optional_columns().is_empty() {
            return false;
        }
        self.bytes.take();
        let kept = C::KEPT_COLUMNS.len();
        self.segments.iter_mut().for_each(|segment| segment.leave_out(kept));
        self.coded.leave_out(kept);
        true
    }

    /// Returns the part of [`SortedRows::bytes`] that the texts take.
    #[cfg(test)]
    fn text_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.searched.joined().len() + segment.exact.joined().len()).sum()
    }

    pub fn shrink_to_fit(&mut self) {
        self.bytes.take();
        self.segments.iter_mut().for_each(Segment::shrink_to_fit);
        self.segments.shrink_to_fit();
        self.facets.shrink_to_fit();
        self.coded.shrink_to_fit();
    }

    pub fn coded(&self) -> &CodedColumns {
        &self.coded
    }

    pub fn facets(&self) -> &Facets<C::Facet> {
        &self.facets
    }

    pub fn segments(&self) -> &[Segment<C>] {
        &self.segments
    }

    /// Returns the position of the segment that contains this key, or would contain it.
    fn segment_of(&self, key: SortKey) -> usize {
        let starts_before = |segment: &Segment<C>| segment.keys.first().is_some_and(|first| *first <= key);
        self.segments.partition_point(starts_before).saturating_sub(1)
    }

    /// Adds a row, or replaces the row with the same ID.
    pub fn upsert(&mut self, row: Row<C>) {
        self.bytes.take();
        let sort_key = SortKey::of(row.id);
        let at = self.segment_of(sort_key);
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let Some(segment) = self.segments.get_mut(at) else { return };
        let replaced = segment.upsert(PackedRow {
            sort_key,
            version: row.version,
            facet: self.facets.add(row.facet),
            columns: row.columns,
            searched: join_texts(&row.searched),
            exact: join_texts(&row.exact),
            coded: self.coded.add(row.coded, C::KEPT_COLUMNS.len()),
        });
        match replaced {
            Some((facet, coded)) => {
                self.facets.remove(facet);
                self.coded.remove(&coded);
            }
            None => self.len += 1,
        }
        if segment.len() > MAX_SEGMENT_ROWS {
            let second_half = segment.split_off_half();
            self.segments.insert(at + 1, second_half);
        }
    }

    fn position(&self, id: Uuid) -> Option<RowPosition> {
        let key = SortKey::of(id);
        let segment = self.segment_of(key);
        let row = self.segments.get(segment)?.find(key).ok()?;
        Some(RowPosition::new(segment, row))
    }

    pub fn row(&self, position: RowPosition) -> Option<RowRef<'_, C>> {
        self.row_ref(self.segments.get(position.segment as usize)?.row(position.row as usize)?)
    }

    fn row_ref<'r>(&'r self, row: RowValues<'r, C>) -> Option<RowRef<'r, C>> {
        let RowValues { sort_key, version, facet, columns, searched, exact, coded: (coded, row) } = row;
        let coded = (coded, row, &self.coded);
        Some(RowRef { sort_key, version, facet: self.facets.get(facet)?, columns, searched, exact, coded })
    }

    pub fn sort_key(&self, position: RowPosition) -> Option<SortKey> {
        self.segments.get(position.segment as usize)?.keys.get(position.row as usize).copied()
    }

    /// Returns the value by which `order` sorts the row. Reads only the value's column.
    pub fn sort_value(&self, position: RowPosition, order: &RowOrder<'_, C>) -> Option<SortValue<'_>> {
        let (segment, row) = (self.segments.get(position.segment as usize)?, position.row as usize);
        Some(match order.sort_by {
            SortBy::CreatedAt => SortValue::Number(segment.keys.get(row)?.created_at().millis()),
            SortBy::Number(number) => number(&segment.columns, row).map_or(SortValue::Missing, SortValue::Number),
            SortBy::Facet(text) => SortValue::Text(text(self.facets.get(*segment.facets.get(row)?)?)),
            SortBy::Searched(column) => SortValue::Text(nth_text(segment.searched.get(row), *column)),
            SortBy::Exact(column) => SortValue::Text(nth_exact(segment.exact.get(row), *column).unwrap_or_default()),
            SortBy::Coded(_) => {
                let number = segment.numbers(order.column).get(row);
                let cell = number.and_then(|number| self.coded.cell(order.column?, *number));
                cell.map_or(SortValue::Missing, SortValue::Cell)
            }
        })
    }

    /// Returns segments with their positions and first values, in the sort order of these values. Among segments with equal
    /// first values, the segment with the oldest row comes first, because a page sorts rows with equal values oldest first. So a
    /// page needs only a few segments, and none after the first segment that it doesn't need.
    pub fn segments_by(&self, order: &RowOrder<'_, C>) -> Vec<(usize, &Segment<C>, Option<SortValue<'_>>)> {
        let segments = self.segments.iter().enumerate();
        let mut segments: Vec<_> = segments.map(|(at, segment)| (at, segment, self.first_value(at, order))).collect();
        segments.sort_by(|(newer_a, _, a), (newer_b, _, b)| match (a, b) {
            (Some(a), Some(b)) => order.compare_values(a, b).then(newer_b.cmp(newer_a)),
            _ => b.is_none().cmp(&a.is_none()),
        });
        segments
    }

    /// Returns the value of the segment's first row in the sort order, ignoring filters; `None` if rows have no such text.
    fn first_value(&self, segment: usize, order: &RowOrder<'_, C>) -> Option<SortValue<'_>> {
        let values = self.segments.get(segment)?;
        let first = |Extremes { least, greatest }: Extremes| if order.descending { greatest } else { least };
        let row = match order.sort_by {
            SortBy::CreatedAt => first(Extremes { least: to_u32(values.len()).checked_sub(1)?, greatest: 0 }),
            SortBy::Number(number) => {
                let numbers = (0..values.len()).filter_map(|row| number(&values.columns, row));
                let first = if order.descending { numbers.max() } else { numbers.min() };
                return Some(first.map_or(SortValue::Missing, SortValue::Number));
            }
            SortBy::Facet(_) => {
                let rank = |row: &u32| values.facets.get(*row as usize).and_then(|facet| order.ranks.get(*facet as usize));
                let rows = 0..to_u32(values.len());
                let first = if order.descending { rows.max_by_key(rank) } else { rows.min_by_key(rank) };
                first?
            }
            SortBy::Searched(column) => first(values.searched.extremes(*column)?),
            SortBy::Exact(column) => first(values.exact.extremes(*column)?),
            SortBy::Coded(_) => {
                let column = values.coded.iter().find(|it| Some(it.column) == order.column);
                let number = column.and_then(|column| Some((column.column, first(column.extremes(&self.coded)?))));
                let cell = number.and_then(|(column, number)| self.coded.cell(column, number));
                return Some(cell.map_or(SortValue::Missing, SortValue::Cell));
            }
        };
        self.sort_value(RowPosition { segment: to_u32(segment), row }, order)
    }

    pub fn find(&self, id: Uuid) -> Option<RowRef<'_, C>> {
        self.row(self.position(id)?)
    }

    pub fn get(&self, id: Uuid) -> Option<Row<C>> {
        self.find(id).map(|row| row.to_row())
    }

    pub fn remove(&mut self, id: Uuid) {
        let Some(position) = self.position(id) else { return };
        self.bytes.take();
        let at = position.segment as usize;
        let Some(segment) = self.segments.get_mut(at) else { return };
        let (facet, coded) = segment.remove(position.row as usize);
        self.facets.remove(facet);
        self.coded.remove(&coded);
        self.len -= 1;
        if segment.len() == 0 {
            self.segments.remove(at);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = RowRef<'_, C>> {
        let rows = self.segments.iter().flat_map(|segment| (0..segment.len()).filter_map(|row| segment.row(row)));
        rows.filter_map(|row| self.row_ref(row))
    }

    /// Returns the positions of `limit` rows after the first `skip`.
    pub fn slice(&self, mut skip: usize, limit: usize) -> Vec<RowPosition> {
        let mut positions = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            let rows = segment.len();
            let selected = skip.min(rows)..skip.saturating_add(limit - positions.len()).min(rows);
            skip = skip.saturating_sub(rows);
            positions.extend(selected.map(|row| RowPosition::new(at, row)));
            if positions.len() == limit {
                break;
            }
        }
        positions
    }

    pub fn encode(&self, encoder: &mut Encoder) {
        self.facets.encode(encoder);
        encoder.number(self.segments.len() as u64);
        for segment in &self.segments {
            segment.encode(encoder);
            encoder.may_end_block();
        }
        self.encode_coded(0..C::KEPT_COLUMNS.len(), encoder);
        // Write the optional columns last, because a reader may not have enough memory for them.
        encoder.byte(self.coded.is_left_out().into());
        self.encode_coded(self.optional_columns(), encoder);
    }

    fn encode_coded(&self, columns: Range<usize>, encoder: &mut Encoder) {
        self.coded.encode(columns.clone(), encoder);
        for segment in &self.segments {
            segment.encode_coded(&columns, encoder);
            encoder.may_end_block();
        }
    }

    /// Reads further coded columns, and counts the rows' values.
    fn decode_coded(&mut self, decoder: &mut Decoder<'_>) -> Option<()> {
        let first = self.coded.len();
        self.coded.decode_more(decoder)?;
        let columns = first..self.coded.len();
        for segment in &mut self.segments {
            segment.decode_coded(&columns, decoder, &mut self.coded)?;
        }
        self.coded.finish(columns)
    }

    /// Reads rows from a snapshot; `None` if the rows are out of order or can't form segments. Without `with_optional`, omits
    /// optional columns, and doesn't read the rest of the snapshot.
    pub fn decode(decoder: &mut Decoder<'_>, with_optional: bool) -> Option<Self> {
        let mut facets = Facets::decode(decoder)?;
        let (mut segments, mut len) = (Vec::new(), 0);
        let mut last = None;
        for _ in 0..decoder.number()? {
            let segment = Segment::decode(decoder)?;
            segment.facets.iter().try_for_each(|facet| facets.count(*facet))?;
            (last < segment.keys.first().copied()).then_some(())?;
            last = segment.keys.last().copied();
            len += segment.len();
            segments.push(segment);
        }
        let (facets, coded) = (facets.finish()?, CodedColumns::default());
        let mut rows = Self { segments, facets, coded, len, bytes: OnceLock::new() };
        rows.decode_coded(decoder)?;
        let mut names = C::KEPT_COLUMNS.iter().enumerate();
        let are_kept = names.all(|(at, name)| rows.coded.name(to_u32(at)) == Some(*name));
        (are_kept && rows.coded.len() == C::KEPT_COLUMNS.len()).then_some(())?;
        let is_left_out = decoder.flag()?;
        if with_optional {
            rows.decode_coded(decoder)?;
        }
        if is_left_out || !with_optional {
            rows.coded.set_left_out();
        }
        Some(rows)
    }
}

type Candidate<'r> = (SortValue<'r>, RowPosition);

/// Collects rows, and keeps the first `limit` of them in a sort order.
pub struct FirstRows<'r, C: Columns> {
    rows: &'r SortedRows<C>,
    order: &'r RowOrder<'r, C>,
    limit: usize,
    /// At most twice as many as the limit. Candidates beyond the limit were offered since the last selection.
    candidates: Vec<Candidate<'r>>,
    /// After a selection, the candidate at the limit is the last one in the order. Rows that sort after it are dropped.
    is_selected: bool,
}

impl<'r, C: Columns> FirstRows<'r, C> {
    pub fn new(rows: &'r SortedRows<C>, order: &'r RowOrder<'r, C>, limit: usize) -> Self {
        Self { rows, order, limit, candidates: Vec::new(), is_selected: false }
    }

    /// Returns `false` only if no row of the segment, whose first value is `first`, sorts before the last candidate.
    pub fn may_take_from(&self, segment: &Segment<C>, first: Option<&SortValue<'_>>) -> bool {
        let (Some((last, position)), Some(first)) = (self.last().filter(|_| self.is_selected), first) else { return true };
        match self.order.compare_values(first, last) {
            Ordering::Less => true,
            // Rows with equal values are sorted oldest first.
            Ordering::Equal => {
                segment.keys.last().map(|key| key.created_at()) <= self.rows.sort_key(*position).map(|key| key.created_at())
            }
            Ordering::Greater => false,
        }
    }

    pub fn offer(&mut self, position: RowPosition) {
        let Some(value) = self.rows.sort_value(position, self.order) else { return };
        let candidate = (value, position);
        if self.is_selected
            && self.last().is_some_and(|last| compare(self.rows, self.order, &candidate, last) == Ordering::Greater)
        {
            return;
        }
        self.candidates.push(candidate);
        if self.candidates.len() >= self.limit.saturating_mul(2) {
            self.select();
        }
    }

    fn last(&self) -> Option<&Candidate<'r>> {
        self.candidates.get(self.limit.checked_sub(1)?)
    }

    /// Drops the candidates that are not among the first `limit`.
    fn select(&mut self) {
        let (rows, order) = (self.rows, self.order);
        if let Some(last) = self.limit.checked_sub(1).filter(|last| *last < self.candidates.len()) {
            self.candidates.select_nth_unstable_by(last, |a, b| compare(rows, order, a, b));
            self.is_selected = true;
        }
        self.candidates.truncate(self.limit);
    }

    /// Returns the rows in order, without the first `skip`.
    pub fn finish(mut self, skip: usize) -> Vec<RowPosition> {
        self.select();
        let (rows, order) = (self.rows, self.order);
        if skip >= self.candidates.len() {
            return Vec::new();
        }
        let (_, first, rest) = self.candidates.select_nth_unstable_by(skip, |a, b| compare(rows, order, a, b));
        rest.sort_unstable_by(|a, b| compare(rows, order, a, b));
        std::iter::once(&*first).chain(&*rest).map(|(_, position)| *position).collect()
    }
}

fn compare<C: Columns>(rows: &SortedRows<C>, order: &RowOrder<'_, C>, a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
    let id = |position| rows.sort_key(position).map(|key| key.id());
    order.compare_values(&a.0, &b.0).then_with(|| id(a.1).cmp(&id(b.1)))
}

#[derive(Debug, Clone)]
pub enum SortValue<'a> {
    Number(i64),
    /// Runs of digits compare as numbers.
    Text(&'a str),
    Cell(&'a Cell),
    /// Comes last, even in descending order.
    Missing,
}

#[derive(Debug)]
pub enum SortBy<C: Columns> {
    CreatedAt,
    /// Returns the number by which the row at this position in its segment is sorted.
    Number(fn(&C::Vectors, usize) -> Option<i64>),
    Facet(fn(&C::Facet) -> &'static str),
    /// The column among the searched texts.
    Searched(usize),
    /// The column among the exact texts.
    Exact(usize),
    /// The name of the coded column.
    Coded(String),
}

/// An order other than the default.
#[derive(Debug)]
pub struct SortOrder<C: Columns> {
    pub sort_by: SortBy<C>,
    pub descending: bool,
}

/// A sort order, resolved for specific rows.
#[derive(Debug)]
pub struct RowOrder<'q, C: Columns> {
    sort_by: &'q SortBy<C>,
    descending: bool,
    /// The number of the coded column, if the rows have it.
    column: Option<u32>,
    /// When sorting by facet: for each facet's number, its rank in ascending order. Equal texts share a rank.
    ranks: Vec<usize>,
}

impl<C: Columns> SortOrder<C> {
    pub fn of_rows(&self, rows: &SortedRows<C>) -> RowOrder<'_, C> {
        let column = if let SortBy::Coded(name) = &self.sort_by { rows.coded.column(name) } else { None };
        let ranks = if let SortBy::Facet(text) = self.sort_by { rows.facets.ranks(text) } else { Vec::new() };
        RowOrder { sort_by: &self.sort_by, descending: self.descending, column, ranks }
    }
}

impl<C: Columns> RowOrder<'_, C> {
    pub fn compare_values(&self, a: &SortValue<'_>, b: &SortValue<'_>) -> Ordering {
        let ascending = match (a, b) {
            (SortValue::Missing, SortValue::Missing) => return Ordering::Equal,
            (SortValue::Missing, _) => return Ordering::Greater,
            (_, SortValue::Missing) => return Ordering::Less,
            (SortValue::Number(a), SortValue::Number(b)) => a.cmp(b),
            (SortValue::Text(a), SortValue::Text(b)) => natural_cmp(a, b),
            (SortValue::Cell(a), SortValue::Cell(b)) => a.compare(b),
            // All values in one sort order have the same variant.
            _ => Ordering::Equal,
        };
        if self.descending { ascending.reverse() } else { ascending }
    }
}

/// A combination of values that many rows share. Each facet is stored once, with its row count, so that counting by facet reads
/// no rows.
pub trait Facet: Debug + Clone + Default + Eq + Hash + Send + Sync + 'static {
    /// Returns the size of the facet's texts.
    fn text_bytes(&self) -> usize {
        0
    }

    fn encode(&self, encoder: &mut Encoder);

    /// Reads a facet from a snapshot; `None` if the bytes aren't output of [`Facet::encode`].
    fn decode(decoder: &mut Decoder<'_>) -> Option<Self>;
}

/// The facets of an index. Each row contains the number of its facet.
#[derive(Debug)]
pub struct Facets<F> {
    /// Facets with their row counts. An entry without rows is free.
    entries: Vec<(F, usize)>,
    numbers: HashMap<F, u32>,
    free: Vec<u32>,
    text_bytes: usize,
}

impl<F> Default for Facets<F> {
    fn default() -> Self {
        Self { entries: Vec::new(), numbers: HashMap::new(), free: Vec::new(), text_bytes: 0 }
    }
}

impl<F: Facet> Facets<F> {
    pub fn get(&self, number: u32) -> Option<&F> {
        self.entries.get(number as usize).map(|(facet, _)| facet)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&F, usize)> {
        self.entries.iter().filter(|(_, rows)| *rows > 0).map(|(facet, rows)| (facet, *rows))
    }

    /// Returns row counts by facet number.
    pub fn counts(&self) -> Vec<u64> {
        self.entries.iter().map(|(_, rows)| *rows as u64).collect()
    }

    /// Returns the rank of each facet's text among all texts, by facet number. Equal texts have the same rank.
    pub fn ranks(&self, text: fn(&F) -> &'static str) -> Vec<usize> {
        let mut texts: Vec<_> = self.entries.iter().map(|(facet, _)| text(facet)).collect();
        texts.sort_by(|a, b| natural_cmp(a, b));
        let rank = |facet: &F| texts.partition_point(|other| natural_cmp(other, text(facet)) == Ordering::Less);
        self.entries.iter().map(|(facet, _)| rank(facet)).collect()
    }

    /// Returns whether each facet passes the filter, by number, and how many rows have a passing facet.
    pub fn select(&self, filter: impl Fn(&F) -> bool) -> (Vec<bool>, usize) {
        let selected: Vec<bool> = self.entries.iter().map(|(facet, rows)| *rows > 0 && filter(facet)).collect();
        let rows = self.entries.iter().zip(&selected).filter(|(_, is_selected)| **is_selected).map(|((_, rows), _)| rows);
        let count = rows.sum();
        (selected, count)
    }

    /// Counts a row. Returns the number of its facet.
    pub fn add(&mut self, facet: F) -> u32 {
        let number = self.numbers.get(&facet).copied().unwrap_or_else(|| self.insert(facet));
        self.entries.get_mut(number as usize).into_iter().for_each(|(_, rows)| *rows += 1);
        number
    }

    fn insert(&mut self, facet: F) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| to_u32(self.entries.len()));
        // Each text is stored twice: in the list and in the map.
        self.text_bytes += 2 * facet.text_bytes();
        self.numbers.insert(facet.clone(), number);
        match self.entries.get_mut(number as usize) {
            Some(entry) => *entry = (facet, 0),
            None => self.entries.push((facet, 0)),
        }
        number
    }

    /// Removes a row from its facet's count. Drops a facet without rows.
    pub fn remove(&mut self, number: u32) {
        let Some((facet, rows)) = self.entries.get_mut(number as usize) else { return };
        *rows = rows.saturating_sub(1);
        if *rows == 0 {
            let facet = std::mem::take(facet);
            self.text_bytes -= 2 * facet.text_bytes();
            self.numbers.remove(&facet);
            self.free.push(number);
        }
    }

    pub fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
        self.numbers.shrink_to_fit();
    }

    pub fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<(F, usize)>();
        entries + self.numbers.capacity() * size_of::<(F, u32)>() + self.free.capacity() * size_of::<u32>() + self.text_bytes
    }

    /// Writes the facets to a snapshot, without the row counts, which can be derived from the rows.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.entries.len() as u64);
        for (facet, _) in &self.entries {
            facet.encode(encoder);
            encoder.may_end_block();
        }
    }

    /// Reads facets from a snapshot; `None` if the bytes aren't output of [`Facets::encode`]. Afterwards, count every row with
    /// [`Facets::count`], and then call [`Facets::finish`].
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let (mut facets, count) = (Self::default(), decoder.number()?);
        // Facets without values take no bytes, so the snapshot's size doesn't limit their number. But all of them are equal, so
        // at most one is valid.
        (size_of::<F>() > 0 || count <= 1).then_some(())?;
        for _ in 0..count {
            facets.entries.push((F::decode(decoder)?, 0));
        }
        Some(facets)
    }

    /// Counts a row of a snapshot; `None` if there is no such facet.
    pub fn count(&mut self, number: u32) -> Option<()> {
        self.entries.get_mut(number as usize)?.1 += 1;
        Some(())
    }

    /// Completes the facets read from a snapshot; `None` if a facet occurs twice.
    pub fn finish(mut self) -> Option<Self> {
        for (number, (facet, rows)) in self.entries.iter().enumerate() {
            if *rows == 0 {
                self.free.push(to_u32(number));
                continue;
            }
            self.text_bytes += 2 * facet.text_bytes();
            self.numbers.insert(facet.clone(), to_u32(number)).is_none().then_some(())?;
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::text::fold;
    use crate::store::lists::list_index::MovementColumns;

    #[test]
    fn rows_sort_newest_first_and_then_by_id() {
        let id = |time: u128, rest: u128| Uuid::from_u128(time << 80 | rest);
        let mut keys: Vec<SortKey> = [id(5, 1), id(5, 0), id(6, 9), id(4, 0)].map(SortKey::of).into();
        keys.sort();
        assert_eq!(keys.iter().map(|key| key.id()).collect::<Vec<_>>(), [id(6, 9), id(5, 0), id(5, 1), id(4, 0)]);
        assert_eq!(keys.first().map(|key| key.created_at()), Some(Timestamp::from_millis(6)));
    }

    type Rows = SortedRows<MovementColumns>;

    fn row(n: u128, name: &str, exact: &str) -> Row<MovementColumns> {
        let searched = vec![fold(name), fold(exact)];
        let id = Uuid::from_u128(n << 80);
        Row { id, version: 1, facet: (), columns: MovementColumns, searched, exact: vec![exact.to_owned()], coded: Vec::new() }
    }

    #[test]
    fn a_row_needs_little_memory_besides_its_texts() {
        let mut rows = Rows::default();
        for n in 0..5000 {
            rows.upsert(row(n * 7919 % 5000, "a name", "a tag"));
        }
        rows.shrink_to_fit();
        assert_eq!(rows.len(), 5000);
        let (key_version_and_facet, ends) = (16 + 8 + 4, 2 * 4);
        // Segments are half full after rows were added in any order.
        let (segment, trigrams) = (size_of::<Segment<MovementColumns>>() / 128, 1024 / 128);
        let limit = 5000 * (key_version_and_facet + ends + segment + trigrams + 2);
        assert!(rows.bytes() - rows.text_bytes() < limit, "{} bytes", rows.bytes());
    }
}
