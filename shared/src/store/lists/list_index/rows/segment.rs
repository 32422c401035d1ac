//! A segment: up to a few hundred rows, column by column, so that a query reads only the columns that it needs.

use super::row::{Columns, PackedRow, RowValues, SortKey};
use super::search_terms::SearchTerms;
use super::texts::{Texts, insert};
use super::trigrams::TrigramSet;
use crate::store::lists::list_index::blocks::{Decoder, Encoder};
use std::ops::ControlFlow;
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
    /// Those of the searched texts, and perhaps of earlier ones. They are collected for the first search.
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
        })
    }

    /// Adds a row, or replaces the row with the same key. Returns the facet of the replaced row.
    pub fn upsert(&mut self, row: PackedRow<C>) -> Option<u32> {
        let PackedRow { sort_key, version, facet, columns, searched, exact } = row;
        if let Some(trigrams) = self.trigrams.get_mut() {
            trigrams.add(&searched);
        }
        match self.find(sort_key) {
            Ok(at) => {
                self.searched.replace(at, &searched);
                self.exact.replace(at, &exact);
                self.versions.splice(at..=at, [version]);
                self.columns.splice(at..=at, [columns]);
                self.facets.splice(at..=at, [facet]).next()
            }
            Err(at) => {
                self.searched.insert(at, &searched);
                self.exact.insert(at, &exact);
                insert(&mut self.keys, at, sort_key);
                insert(&mut self.versions, at, version);
                insert(&mut self.facets, at, facet);
                insert(&mut self.columns, at, columns);
                None
            }
        }
    }

    /// Returns the facet of the row.
    pub fn remove(&mut self, row: usize) -> u32 {
        self.searched.remove(row);
        self.exact.remove(row);
        self.keys.remove(row);
        self.versions.remove(row);
        self.columns.remove(row);
        self.facets.remove(row)
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
    }

    /// Counts the trigrams also before they are collected, so that a search doesn't exceed the budget.
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
    /// Into a snapshot.
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
        Some(Self { keys, versions, facets, columns, searched, exact, trigrams })
    }
}
