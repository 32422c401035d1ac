//! A segment: up to a few hundred rows, column by column, so that a query reads only the columns that it needs.

use super::coded::{CodedColumns, NO_VALUE, SegmentColumn};
use super::row::{Columns, PackedRow, RowValues, SortKey};
use super::texts::{SearchTerms, Texts, TrigramSet, insert};
use crate::store::lists::list_index::blocks::{Decoder, Encoder};
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// A segment with more rows is split in two.
pub const MAX_SEGMENT_ROWS: usize = 256;
/// Rows in ascending order of their sort keys.
#[derive(Debug)]
pub struct Segment<C> {
    pub keys: Vec<SortKey>,
    versions: Vec<u64>,
    /// The numbers of the rows' facets.
    pub facets: Vec<u32>,
    pub columns: Vec<C>,
    pub searched: Texts,
    pub exact: Texts,
    /// In the order of their columns. A column of which no row has a value may be missing.
    pub coded: Vec<SegmentColumn>,
    /// Trigrams of the searched texts, and perhaps of earlier ones. They are collected for the first search.
    trigrams: OnceLock<TrigramSet>,
}

impl<C> Default for Segment<C> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            versions: Vec::new(),
            facets: Vec::new(),
            columns: Vec::new(),
            searched: Texts::default(),
            exact: Texts::default(),
            coded: Vec::new(),
            trigrams: OnceLock::new(),
        }
    }
}

impl<C> Segment<C> {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The number of a row in the segment, or the number that it would get.
    pub fn find(&self, key: SortKey) -> Result<usize, usize> {
        self.keys.binary_search(&key)
    }

    /// `row` is a number in the segment.
    pub fn row(&self, row: usize) -> Option<RowValues<'_, C>> {
        Some(RowValues {
            sort_key: *self.keys.get(row)?,
            version: *self.versions.get(row)?,
            facet: *self.facets.get(row)?,
            columns: self.columns.get(row)?,
            searched: self.searched.get(row),
            exact: self.exact.get(row),
            coded: (&self.coded, row),
        })
    }

    /// Column and number of each of the row's values.
    fn coded_of(&self, row: usize) -> Vec<(u32, u32)> {
        let numbers = self.coded.iter().map(|column| (column.column, column.get(row)));
        numbers.filter(|(_, number)| *number != NO_VALUE).collect()
    }

    fn set_coded(&mut self, row: usize, coded: &[(u32, u32)]) {
        let rows = self.keys.len();
        for (column, _) in coded {
            if let Err(place) = self.coded.binary_search_by_key(column, |it| it.column) {
                self.coded.insert(place, SegmentColumn::new(*column, vec![NO_VALUE; rows]));
            }
        }
        for column in &mut self.coded {
            let number = coded.iter().find(|(other, _)| *other == column.column).map_or(NO_VALUE, |(_, number)| *number);
            if number != column.get(row) {
                column.changed().get_mut(row).into_iter().for_each(|present| *present = number);
            }
        }
    }

    /// Adds a row, or replaces the row with the same key. Returns the facet and the coded values of the replaced row.
    pub fn upsert(&mut self, row: PackedRow<C>) -> Option<(u32, Vec<(u32, u32)>)> {
        let PackedRow { sort_key, version, facet, columns, searched, exact, coded } = row;
        if let Some(trigrams) = self.trigrams.get_mut() {
            trigrams.add(&searched);
        }
        match self.find(sort_key) {
            Ok(at) => {
                self.searched.replace(at, &searched);
                self.exact.replace(at, &exact);
                self.versions.splice(at..=at, [version]);
                self.columns.splice(at..=at, [columns]);
                let replaced = self.coded_of(at);
                self.set_coded(at, &coded);
                self.facets.splice(at..=at, [facet]).next().map(|facet| (facet, replaced))
            }
            Err(at) => {
                self.searched.insert(at, &searched);
                self.exact.insert(at, &exact);
                insert(&mut self.keys, at, sort_key);
                insert(&mut self.versions, at, version);
                insert(&mut self.facets, at, facet);
                insert(&mut self.columns, at, columns);
                self.coded.iter_mut().for_each(|column| insert(column.changed(), at, NO_VALUE));
                self.set_coded(at, &coded);
                None
            }
        }
    }

    /// Returns the facet and the coded values of the row.
    pub fn remove(&mut self, row: usize) -> (u32, Vec<(u32, u32)>) {
        let coded = self.coded_of(row);
        self.searched.remove(row);
        self.exact.remove(row);
        self.keys.remove(row);
        self.versions.remove(row);
        self.columns.remove(row);
        for column in &mut self.coded {
            column.changed().remove(row);
        }
        (self.facets.remove(row), coded)
    }

    pub fn split_off_half(&mut self) -> Self {
        let half = self.len() / 2;
        let second = Self {
            keys: self.keys.split_off(half),
            versions: self.versions.split_off(half),
            facets: self.facets.split_off(half),
            columns: self.columns.split_off(half),
            searched: self.searched.split_off(half),
            exact: self.exact.split_off(half),
            coded: self.coded.iter_mut().map(|it| SegmentColumn::new(it.column, it.changed().split_off(half))).collect(),
            trigrams: OnceLock::new(),
        };
        self.trigrams.take();
        self.shrink_to_fit();
        second
    }

    pub fn shrink_to_fit(&mut self) {
        self.keys.shrink_to_fit();
        self.versions.shrink_to_fit();
        self.facets.shrink_to_fit();
        self.columns.shrink_to_fit();
        self.searched.shrink_to_fit();
        self.exact.shrink_to_fit();
        self.coded.retain(|column| column.numbers.iter().any(|number| *number != NO_VALUE));
        self.coded.iter_mut().for_each(|column| column.numbers.shrink_to_fit());
        self.coded.shrink_to_fit();
    }

    /// Forgets all coded columns but the first `kept`.
    pub fn leave_out(&mut self, kept: usize) {
        self.coded.retain(|column| (column.column as usize) < kept);
        self.coded.shrink_to_fit();
    }

    /// Of the coded columns in this range.
    pub fn coded_bytes(&self, columns: &Range<usize>) -> usize {
        let bytes = |column: &SegmentColumn| size_of::<SegmentColumn>() + column.numbers.capacity() * size_of::<u32>();
        self.coded.iter().filter(|column| columns.contains(&(column.column as usize))).map(bytes).sum()
    }

    /// Without the coded columns. Counts the trigrams also before they are collected, so that a search doesn't exceed the budget.
    pub fn bytes(&self) -> usize {
        let row = size_of::<SortKey>() + size_of::<u64>() + size_of::<u32>() + size_of::<C>();
        let trigrams = if self.searched.joined().is_empty() { 0 } else { TrigramSet::BYTES };
        // All columns grow alike.
        self.keys.capacity() * row + self.searched.bytes() + self.exact.bytes() + trigrams
    }

    /// False only if no row has all of the words.
    pub fn may_have(&self, terms: &SearchTerms) -> bool {
        terms.is_empty() || terms.may_occur_in(self.trigrams.get_or_init(|| TrigramSet::of(self.searched.joined())))
    }

    /// Visits, in order, every row whose searched texts have all of the words.
    pub fn search(&self, terms: &SearchTerms, mut visit: impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(finder) = terms.finder() else { return (0..self.len()).try_for_each(visit) };
        let (mut row, mut from) = (0, 0);
        while let Some(hit) = self.searched.joined().as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let Some((found, end)) = self.searched.row_at(row, from + hit) else { break };
            if terms.others_occur_in(self.searched.get(found)) {
                visit(found)?;
            }
            // One hit in a row is enough: continue with the texts of the next row.
            (row, from) = (found + 1, end);
        }
        ControlFlow::Continue(())
    }
}

impl<C: Columns> Segment<C> {
    /// The coded columns in this range, into a snapshot.
    pub fn encode_coded(&self, columns: &Range<usize>, encoder: &mut Encoder) {
        let has_values = |column: &&SegmentColumn| {
            columns.contains(&(column.column as usize)) && column.numbers.iter().any(|number| *number != NO_VALUE)
        };
        encoder.number(self.coded.iter().filter(has_values).count() as u64);
        for column in self.coded.iter().filter(has_values) {
            encoder.number(u64::from(column.column));
            column.numbers.iter().for_each(|number| encoder.number(u64::from(*number)));
        }
    }

    /// Adds the coded columns in this range from a snapshot, and counts their values; `None` if [`Segment::encode_coded`] can't have
    /// written them.
    pub fn decode_coded(&mut self, columns: &Range<usize>, decoder: &mut Decoder<'_>, coded: &mut CodedColumns) -> Option<()> {
        let count = decoder.count().filter(|count| *count <= columns.len())?;
        for _ in 0..count {
            let column = u32::try_from(decoder.number()?).ok().filter(|column| columns.contains(&(*column as usize)))?;
            (self.coded.last().is_none_or(|last| last.column < column)).then_some(())?;
            let numbers = decoder.many(self.len(), |decoder| u32::try_from(decoder.number()?).ok())?;
            coded.count(column, &numbers)?;
            self.coded.push(SegmentColumn::new(column, numbers));
        }
        Some(())
    }

    /// Into a snapshot, without the coded columns.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.len() as u64);
        self.keys.iter().for_each(|key| encoder.bytes(&key.0));
        self.versions.iter().for_each(|version| encoder.number(*version));
        self.facets.iter().for_each(|facet| encoder.number(u64::from(*facet)));
        self.columns.iter().for_each(|columns| columns.encode(encoder));
        self.searched.encode(encoder);
        self.exact.encode(encoder);
        if !self.searched.joined().is_empty() {
            encoder.bytes(&TrigramSet::of(self.searched.joined()).to_bytes());
        }
    }

    /// From a snapshot; `None` if [`Segment::encode`] can't have written it.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let count = decoder.count().filter(|count| (1..=MAX_SEGMENT_ROWS).contains(count))?;
        let (keys, _) = decoder.bytes(count * size_of::<SortKey>())?.as_chunks();
        let keys: Vec<SortKey> = keys.iter().copied().map(SortKey).collect();
        keys.is_sorted_by(|a, b| a < b).then_some(())?;
        let versions = decoder.many(count, Decoder::number)?;
        let facets = decoder.many(count, |decoder| u32::try_from(decoder.number()?).ok())?;
        let columns = decoder.many(count, C::decode)?;
        let (searched, exact) = (Texts::decode(decoder, count)?, Texts::decode(decoder, count)?);
        let trigrams = OnceLock::new();
        if !searched.joined().is_empty() {
            trigrams.set(TrigramSet::from_bytes(decoder.bytes(TrigramSet::BYTES)?)).ok()?;
        }
        Some(Self { keys, versions, facets, columns, searched, exact, coded: Vec::new(), trigrams })
    }
}
