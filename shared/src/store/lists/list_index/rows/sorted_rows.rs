//! All rows of one kind, in segments, newest first. Other sort orders compare most rows just once and drop them, because a page
//! needs few of a million rows.

use super::coded::CodedColumns;
use super::facets::Facets;
use super::row::{Columns, PackedRow, Row, RowRef, RowValues, SortKey, join_texts, nth_exact, nth_text};
use super::segment::{Extremes, MAX_SEGMENT_ROWS, Segment};
use crate::domain::assets::asset::Cell;
use crate::domain::values::natural_order::natural_cmp;
use crate::store::lists::list_index::blocks::{Decoder, Encoder, to_u32};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::OnceLock;
use uuid::Uuid;

/// The position of a row, valid until the next change of the rows.
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
    /// The size, which takes a visit to each segment. Computed by the first list, and dropped at the next change.
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

    pub(super) fn count_bytes(&self) -> usize {
        // Includes extremes even before they are computed, so that a list doesn't exceed the budget.
        let extremes = (C::TEXT_COLUMNS.searched + C::TEXT_COLUMNS.exact) * size_of::<Extremes>();
        let segments = self.segments.capacity() * (size_of::<Segment<C>>() + extremes);
        let coded = self.coded_bytes(0..self.coded.len());
        segments + self.segments.iter().map(Segment::bytes).sum::<usize>() + self.facets.bytes() + coded
    }

    /// The part of [`SortedRows::bytes`] that is optional.
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

    /// Drops the optional columns, and ignores their values in later rows. Returns whether there were any.
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

    /// The part of [`SortedRows::bytes`] that texts take.
    #[cfg(test)]
    fn text_bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.searched.joined().len() + segment.exact.joined().len()).sum()
    }

    /// Frees unused reserved memory.
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

    /// Position of the segment that has this key, or would get it.
    fn segment_of(&self, key: SortKey) -> usize {
        let starts_before = |segment: &Segment<C>| segment.keys.first().is_some_and(|first| *first <= key);
        self.segments.partition_point(starts_before).saturating_sub(1)
    }

    /// Adds a row, or replaces the row with the same id.
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

    /// Reads only the column to sort by.
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

    /// Segments with their positions and first values. The ones with the first values come first, and of equal values the
    /// oldest, as in the page, so that a page needs few segments, and none after the first one that it doesn't need.
    pub fn segments_by(&self, order: &RowOrder<'_, C>) -> Vec<(usize, &Segment<C>, Option<SortValue<'_>>)> {
        let segments = self.segments.iter().enumerate();
        let mut segments: Vec<_> = segments.map(|(at, segment)| (at, segment, self.first_value(at, order))).collect();
        segments.sort_by(|(newer_a, _, a), (newer_b, _, b)| match (a, b) {
            (Some(a), Some(b)) => order.compare_values(a, b).then(newer_b.cmp(newer_a)),
            _ => b.is_none().cmp(&a.is_none()),
        });
        segments
    }

    /// The value of the segment's first row, ignoring filters. `None` if rows have no such text.
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

    /// A copy of a row.
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

    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = RowRef<'_, C>> {
        let rows = self.segments.iter().flat_map(|segment| (0..segment.len()).filter_map(|row| segment.row(row)));
        rows.filter_map(|row| self.row_ref(row))
    }

    /// The positions of `limit` rows after the first `skip`.
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

    /// Writes the rows to a snapshot.
    pub fn encode(&self, encoder: &mut Encoder) {
        self.facets.encode(encoder);
        encoder.number(self.segments.len() as u64);
        for segment in &self.segments {
            segment.encode(encoder);
            encoder.may_end_block();
        }
        self.encode_coded(0..C::KEPT_COLUMNS.len(), encoder);
        // Last, because a reader may not have enough memory for them.
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

    /// Reads rows from a snapshot; `None` if the rows are not in order, or impossible in segments. Without `with_optional`, omits
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

/// Keeps the first `limit` of the offered rows, in a sort order.
pub struct FirstRows<'r, C: Columns> {
    rows: &'r SortedRows<C>,
    order: &'r RowOrder<'r, C>,
    limit: usize,
    /// At most twice the limit. Candidates beyond the limit were offered since the last selection.
    candidates: Vec<Candidate<'r>>,
    /// After a selection, the candidate at the limit is the last one in the order. Rows that sort after it are dropped.
    is_selected: bool,
}

impl<'r, C: Columns> FirstRows<'r, C> {
    pub fn new(rows: &'r SortedRows<C>, order: &'r RowOrder<'r, C>, limit: usize) -> Self {
        Self { rows, order, limit, candidates: Vec::new(), is_selected: false }
    }

    /// False only if no row of the segment, whose first value is `first`, sorts before the last candidate.
    pub fn may_take_from(&self, segment: &Segment<C>, first: Option<&SortValue<'_>>) -> bool {
        let (Some((last, position)), Some(first)) = (self.last().filter(|_| self.is_selected), first) else { return true };
        match self.order.compare_values(first, last) {
            Ordering::Less => true,
            // Of equal values, older rows come first.
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

    /// The rows in order, without the first `skip`.
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
    /// By a number of the row at this position in its segment.
    Number(fn(&C::Vectors, usize) -> Option<i64>),
    Facet(fn(&C::Facet) -> &'static str),
    /// By one of the searched texts.
    Searched(usize),
    /// By one of the exact texts.
    Exact(usize),
    /// By the coded column of this name.
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
    pub(super) sort_by: &'q SortBy<C>,
    pub(super) descending: bool,
    /// The number of the coded column, if the rows have it.
    pub(super) column: Option<u32>,
    /// When sorting by facet: by the number of a facet, its place in ascending order, shared by equal texts.
    pub(super) ranks: Vec<usize>,
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
            // All values in one order have the same variant.
            _ => Ordering::Equal,
        };
        if self.descending { ascending.reverse() } else { ascending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::text::fold;
    use crate::store::lists::list_index::MovementColumns;

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
