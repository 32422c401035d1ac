//! All rows of one kind, in segments: newest first, searchable.

use super::blocks::{Decoder, Encoder};
use super::columns::Columns;
use super::row::{Row, RowRef, SortKey, to_u32};
use super::search_terms::SearchTerms;
use super::segment::{MAX_SEGMENT_ROWS, Segment};
use std::cmp::Ordering;
use uuid::Uuid;

/// The position of a row until the next change of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPosition {
    segment: u32,
    row: u32,
}

impl RowPosition {
    fn new(segment: usize, row: usize) -> Self {
        Self { segment: to_u32(segment), row: to_u32(row) }
    }
}

/// The rows of one kind, in ascending order of their sort keys.
#[derive(Debug)]
pub struct SortedRows<C> {
    segments: Vec<Segment<C>>,
    len: usize,
}

impl<C> Default for SortedRows<C> {
    fn default() -> Self {
        Self { segments: Vec::new(), len: 0 }
    }
}

impl<C> SortedRows<C> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> usize {
        self.segments.capacity() * size_of::<Segment<C>>() + self.segments.iter().map(Segment::bytes).sum::<usize>()
    }

    /// The text's part of [`SortedRows::bytes`].
    #[cfg(test)]
    fn text_bytes(&self) -> usize {
        self.segments.iter().map(Segment::text_bytes).sum()
    }

    /// Frees memory that is reserved and not used.
    pub fn shrink_to_fit(&mut self) {
        self.segments.iter_mut().for_each(Segment::shrink_to_fit);
        self.segments.shrink_to_fit();
    }

    /// The number of the segment that has this key, or gets it.
    fn segment_of(&self, key: SortKey) -> usize {
        let starts_before = |segment: &Segment<C>| segment.rows.first().is_some_and(|row| row.sort_key <= key);
        self.segments.partition_point(starts_before).saturating_sub(1)
    }

    /// Adds a row, or replaces the row with the same id.
    pub fn upsert(&mut self, row: Row<C>) {
        let at = self.segment_of(SortKey::of(row.id));
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let Some(segment) = self.segments.get_mut(at) else { return };
        self.len += usize::from(segment.upsert(row));
        if segment.rows.len() > MAX_SEGMENT_ROWS {
            let second_half = segment.split_off_half();
            self.segments.insert(at + 1, second_half);
        }
    }

    fn position(&self, id: Uuid) -> Option<RowPosition> {
        let key = SortKey::of(id);
        let segment = self.segment_of(key);
        let row = self.segments.get(segment)?.rows.binary_search_by_key(&key, |row| row.sort_key).ok()?;
        Some(RowPosition::new(segment, row))
    }

    pub fn row(&self, position: RowPosition) -> Option<RowRef<'_, C>> {
        self.segments.get(position.segment as usize)?.row(position.row as usize)
    }

    pub fn find(&self, id: Uuid) -> Option<RowRef<'_, C>> {
        self.row(self.position(id)?)
    }

    pub fn remove(&mut self, id: Uuid) {
        let Some(position) = self.position(id) else { return };
        let (at, row) = (position.segment as usize, position.row as usize);
        let Some(segment) = self.segments.get_mut(at) else { return };
        segment.replace_texts(row, row + 1, "", "");
        segment.rows.remove(row);
        self.len -= 1;
        if segment.rows.is_empty() {
            self.segments.remove(at);
        }
    }

    /// Visits, in order, every row that contains the search terms and whose columns pass `filter`.
    pub fn scan(&self, terms: &SearchTerms, filter: impl Fn(&C) -> bool, mut visit: impl FnMut(RowPosition)) {
        for (at, segment) in self.segments.iter().enumerate() {
            let Some(finder) = terms.finder() else {
                let matching = segment.rows.iter().enumerate().filter(|(_, row)| filter(&row.columns));
                matching.for_each(|(row, _)| visit(RowPosition::new(at, row)));
                continue;
            };
            let (mut row, mut from) = (0, 0);
            while let Some(hit) = segment.searched().as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
                let hit = from + hit;
                row += segment.rows.get(row..).map_or(0, |rows| rows.partition_point(|row| row.searched_end as usize <= hit));
                if segment.row(row).is_some_and(|row| filter(row.columns) && terms.occur_in(row.searched_texts())) {
                    visit(RowPosition::new(at, row));
                }
                // One hit in a row is enough: continue with the texts of the next row.
                row += 1;
                from = segment.text_start(row).0;
            }
        }
    }

    /// The positions of `limit` rows after the first `skip`.
    pub fn slice(&self, mut skip: usize, limit: usize) -> Vec<RowPosition> {
        let mut positions = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            let rows = segment.rows.len();
            let selected = skip.min(rows)..skip.saturating_add(limit - positions.len()).min(rows);
            skip = skip.saturating_sub(rows);
            positions.extend(selected.map(|row| RowPosition::new(at, row)));
            if positions.len() == limit {
                break;
            }
        }
        positions
    }

    /// Sorts `positions` by `compare`, and returns `limit` of them after the first `skip`.
    pub fn sorted_slice(
        &self,
        mut positions: Vec<RowPosition>,
        skip: usize,
        limit: usize,
        compare: impl Fn(&RowRef<'_, C>, &RowRef<'_, C>) -> Ordering,
    ) -> Vec<RowPosition> {
        let order = |a: &RowPosition, b: &RowPosition| match (self.row(*a), self.row(*b)) {
            (Some(a), Some(b)) => compare(&a, &b),
            _ => Ordering::Equal,
        };
        if skip >= positions.len() {
            return Vec::new();
        }
        // Only what is returned needs to be sorted.
        if skip > 0 {
            positions.select_nth_unstable_by(skip - 1, order);
            positions.drain(..skip);
        }
        if limit < positions.len() {
            positions.select_nth_unstable_by(limit, order);
            positions.truncate(limit);
        }
        positions.sort_unstable_by(order);
        positions
    }
}

impl<C: Clone> SortedRows<C> {
    /// A copy.
    pub fn get(&self, id: Uuid) -> Option<Row<C>> {
        self.find(id).map(|row| row.to_row())
    }
}

impl<C: Columns> SortedRows<C> {
    /// Into a snapshot.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.segments.len() as u64);
        for segment in &self.segments {
            segment.encode(encoder);
            encoder.may_end_block();
        }
    }

    /// From a snapshot; `None` if the rows are not in order, or impossible in segments.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let mut rows = Self::default();
        let mut last = None;
        for _ in 0..decoder.number()? {
            let segment = Segment::decode(decoder, &mut last)?;
            rows.len += segment.rows.len();
            rows.segments.push(segment);
        }
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::PackedRow;
    use super::*;
    use crate::domain::values::text::fold;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn row(id: Uuid, version: u64, name: &str, exact: &str) -> Row<u8> {
        Row { id, version, columns: 0, searched: vec![fold(name), fold(exact)], exact: vec![exact.to_owned()] }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Upsert(u8, String, String),
        Remove(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let upsert = (any::<u8>(), "[abß]{0,6}", "[aB]{0,3}").prop_map(|(n, name, exact)| Step::Upsert(n, name, exact));
        proptest::collection::vec(prop_oneof![3 => upsert, 1 => any::<u8>().prop_map(Step::Remove)], 0..1500)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        /// After any changes, the rows are those of a map, and a search finds what a plain search of the map finds.
        #[test]
        fn sorted_rows_equal_a_map_that_can_be_searched(steps in steps(), search in "[abs]{1,2}( b)?") {
            let id = |n: u8| Uuid::from_u128(u128::from(n / 3) << 80 | u128::from(n));
            let (mut rows, mut map) = (SortedRows::default(), BTreeMap::new());
            for (version, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Upsert(n, name, exact) => {
                        let row = row(id(n), version as u64, &name, &exact);
                        rows.upsert(row.clone());
                        map.insert(SortKey::of(id(n)), row);
                    }
                    Step::Remove(n) => {
                        rows.remove(id(n));
                        map.remove(&SortKey::of(id(n)));
                    }
                }
            }
            prop_assert_eq!(rows.len(), map.len());
            for n in 0..=u8::MAX {
                prop_assert_eq!(rows.get(id(n)), map.get(&SortKey::of(id(n))).cloned());
            }
            let terms = SearchTerms::of(Some(&search));
            let mut found = Vec::new();
            rows.scan(&terms, |_| true, |position| found.extend(rows.row(position).map(|row| row.sort_key)));
            let expected = map.iter().filter(|(_, row)| {
                search.split(' ').all(|word| row.searched.iter().any(|text| text.contains(word)))
            });
            prop_assert_eq!(found, expected.map(|(key, _)| *key).collect::<Vec<_>>());
            let mut all = Vec::new();
            rows.scan(&SearchTerms::default(), |_| true, |position| all.push(position));
            prop_assert_eq!(all.len(), map.len());
            for (skip, limit) in [(0, 3), (50, 20), (map.len(), 5), (usize::MAX, 5)] {
                let expected: Vec<RowPosition> = all.iter().copied().skip(skip).take(limit).collect();
                prop_assert_eq!(rows.slice(skip, limit), expected);
            }
            let by_name = |a: &RowRef<'_, u8>, b: &RowRef<'_, u8>| (a.searched_text(0), a.sort_key).cmp(&(b.searched_text(0), b.sort_key));
            let page = rows.sorted_slice(all, 3, 5, by_name);
            let mut sorted: Vec<_> = map.values().map(|row| (row.searched[0].clone(), SortKey::of(row.id))).collect();
            sorted.sort();
            let expected: Vec<SortKey> = sorted.into_iter().skip(3).take(5).map(|(_, key)| key).collect();
            prop_assert_eq!(page.into_iter().filter_map(|position| rows.row(position)).map(|row| row.sort_key).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_row_needs_little_memory_besides_its_texts() {
        let mut rows = SortedRows::default();
        for n in 0..5000u128 {
            rows.upsert(row(Uuid::from_u128((n * 7919 % 5000) << 80), 1, "a name", "a tag"));
        }
        rows.shrink_to_fit();
        assert_eq!(rows.len(), 5000);
        let limit = 5000 * (size_of::<PackedRow<u8>>() + 8);
        assert!(rows.bytes() - rows.text_bytes() < limit, "{} bytes", rows.bytes());
    }
}
