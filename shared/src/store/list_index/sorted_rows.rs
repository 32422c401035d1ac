//! Compact rows in the order of lists, with their texts side by side for searching.
//!
//! Rows stand in blocks of a few hundred, so that a change moves a few kilobytes whatever the tenant's size.

use super::search_terms::SearchTerms;
use super::segment::{Row, RowRef, Segment, SortKey, offset};
use std::cmp::Ordering;
use uuid::Uuid;

/// A block with more rows is split in two.
const ROWS: usize = 256;
/// Where a row stands until the shelf changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPosition {
    block: u32,
    row: u32,
}

/// Rows of one kind.
#[derive(Debug)]
pub struct SortedRows<F> {
    blocks: Vec<Segment<F>>,
    count: usize,
}

impl<F> Default for SortedRows<F> {
    fn default() -> Self {
        Self { blocks: Vec::new(), count: 0 }
    }
}

impl<F> SortedRows<F> {
    pub fn len(&self) -> usize {
        self.count
    }

    /// What it takes of memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Segment<F>>() + self.blocks.iter().map(Segment::bytes).sum::<usize>()
    }

    /// How much of [`SortedRows::bytes`] are texts.
    #[cfg(test)]
    fn text_bytes(&self) -> usize {
        self.blocks.iter().map(Segment::text_bytes).sum()
    }

    /// Gives back what growing took too much.
    pub fn shrink(&mut self) {
        self.blocks.iter_mut().for_each(Segment::shrink);
        self.blocks.shrink_to_fit();
    }

    /// The block that has `place`, or would.
    fn block_of(&self, place: SortKey) -> usize {
        let after = self.blocks.partition_point(|block| block.rows.first().is_some_and(|row| row.place <= place));
        after.saturating_sub(1)
    }

    /// Adds or replaces a thing.
    pub fn put(&mut self, card: Row<F>) {
        let at = self.block_of(SortKey::of(card.id));
        if self.blocks.is_empty() {
            self.blocks.push(Segment::default());
        }
        let Some(block) = self.blocks.get_mut(at) else { return };
        self.count += usize::from(block.put(card));
        if block.rows.len() > ROWS {
            let later = block.split();
            self.blocks.insert(at + 1, later);
        }
    }

    fn spot(&self, id: Uuid) -> Option<RowPosition> {
        let place = SortKey::of(id);
        let block = self.block_of(place);
        let row = self.blocks.get(block)?.rows.binary_search_by_key(&place, |row| row.place).ok()?;
        Some(RowPosition { block: offset(block), row: offset(row) })
    }

    /// The row there.
    pub fn view(&self, spot: RowPosition) -> Option<RowRef<'_, F>> {
        self.blocks.get(spot.block as usize)?.view(spot.row as usize)
    }

    /// The thing's row.
    pub fn find(&self, id: Uuid) -> Option<RowRef<'_, F>> {
        self.view(self.spot(id)?)
    }

    /// Takes a thing out.
    pub fn remove(&mut self, id: Uuid) {
        let Some(spot) = self.spot(id) else { return };
        let (at, row) = (spot.block as usize, spot.row as usize);
        let Some(block) = self.blocks.get_mut(at) else { return };
        block.replace_texts(row, row + 1, "", "");
        block.rows.remove(row);
        self.count -= 1;
        if block.rows.is_empty() {
            self.blocks.remove(at);
        }
    }

    /// Visits every row that has the words and passes the test of its facts, in the order of lists.
    pub fn scan(&self, words: &SearchTerms, keeps: impl Fn(&F) -> bool, mut visit: impl FnMut(RowPosition)) {
        for (at, block) in self.blocks.iter().enumerate() {
            let spot = |row: usize| RowPosition { block: offset(at), row: offset(row) };
            let Some(finder) = words.finder() else {
                let kept = block.rows.iter().enumerate().filter(|(_, row)| keeps(&row.facts));
                kept.for_each(|(row, _)| visit(spot(row)));
                continue;
            };
            let (mut row, mut from) = (0, 0);
            while let Some(hit) = block.searched().as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
                let hit = from + hit;
                row += block.rows.get(row..).map_or(0, |rows| rows.partition_point(|row| row.searched_end as usize <= hit));
                if block.view(row).is_some_and(|view| keeps(view.facts) && words.occur_in(view.texts())) {
                    visit(spot(row));
                }
                // One hit is enough for a row: on with the next row's texts.
                row += 1;
                from = block.start(row).0;
            }
        }
    }

    /// The spots of so many rows, as they stand.
    pub fn window(&self, mut skip: usize, limit: usize) -> Vec<RowPosition> {
        let mut spots = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let rows = block.rows.len();
            let wanted = skip.min(rows)..skip.saturating_add(limit - spots.len()).min(rows);
            skip = skip.saturating_sub(rows);
            spots.extend(wanted.map(|row| RowPosition { block: offset(at), row: offset(row) }));
            if spots.len() == limit {
                break;
            }
        }
        spots
    }

    /// The spots of page's rows in an order of their own, out of `spots`.
    pub fn page(
        &self,
        mut spots: Vec<RowPosition>,
        skip: usize,
        limit: usize,
        compare: impl Fn(&RowRef<'_, F>, &RowRef<'_, F>) -> Ordering,
    ) -> Vec<RowPosition> {
        let order = |a: &RowPosition, b: &RowPosition| match (self.view(*a), self.view(*b)) {
            (Some(a), Some(b)) => compare(&a, &b),
            _ => Ordering::Equal,
        };
        if skip >= spots.len() {
            return Vec::new();
        }
        // What the page does not show need not be in order.
        if skip > 0 {
            spots.select_nth_unstable_by(skip - 1, order);
            spots.drain(..skip);
        }
        if limit < spots.len() {
            spots.select_nth_unstable_by(limit, order);
            spots.truncate(limit);
        }
        spots.sort_unstable_by(order);
        spots
    }
}

impl<F: Clone> SortedRows<F> {
    /// The thing as it was put.
    pub fn get(&self, id: Uuid) -> Option<Row<F>> {
        self.find(id).map(|view| view.card())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::fold;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn card(id: Uuid, version: u64, name: &str, exact: &str) -> Row<u8> {
        Row { id, version, facts: 0, searched: vec![fold(name), fold(exact)], exact: vec![exact.to_owned()] }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8, String, String),
        Remove(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let put = (any::<u8>(), "[abß]{0,6}", "[aB]{0,3}").prop_map(|(n, name, exact)| Step::Put(n, name, exact));
        proptest::collection::vec(prop_oneof![3 => put, 1 => any::<u8>().prop_map(Step::Remove)], 0..1500)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        /// After any puts and removals a shelf holds what a map would, and finds what a plain search finds.
        #[test]
        fn a_shelf_is_a_map_that_can_be_searched(steps in steps(), word in "[abs]{1,2}( b)?") {
            let id = |n: u8| Uuid::from_u128(u128::from(n / 3) << 80 | u128::from(n));
            let (mut shelf, mut map) = (SortedRows::default(), BTreeMap::new());
            for (version, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Put(n, name, exact) => {
                        let card = card(id(n), version as u64, &name, &exact);
                        shelf.put(card.clone());
                        map.insert(SortKey::of(id(n)), card);
                    }
                    Step::Remove(n) => {
                        shelf.remove(id(n));
                        map.remove(&SortKey::of(id(n)));
                    }
                }
            }
            prop_assert_eq!(shelf.len(), map.len());
            for n in 0..=u8::MAX {
                prop_assert_eq!(shelf.get(id(n)), map.get(&SortKey::of(id(n))).cloned());
            }
            let words = SearchTerms::of(Some(&word));
            let mut found = Vec::new();
            shelf.scan(&words, |_| true, |spot| found.extend(shelf.view(spot).map(|view| view.place)));
            let plain = map.iter().filter(|(_, card)| {
                word.split(' ').all(|word| card.searched.iter().any(|text| text.contains(word)))
            });
            prop_assert_eq!(found, plain.map(|(place, _)| *place).collect::<Vec<_>>());
            let mut all = Vec::new();
            shelf.scan(&SearchTerms::default(), |_| true, |spot| all.push(spot));
            prop_assert_eq!(all.len(), map.len());
            for (skip, limit) in [(0, 3), (50, 20), (map.len(), 5), (usize::MAX, 5)] {
                let expected: Vec<RowPosition> = all.iter().copied().skip(skip).take(limit).collect();
                prop_assert_eq!(shelf.window(skip, limit), expected);
            }
            let by_name = |a: &RowRef<'_, u8>, b: &RowRef<'_, u8>| (a.searched(0), a.place).cmp(&(b.searched(0), b.place));
            let page = shelf.page(all, 3, 5, by_name);
            let mut sorted: Vec<_> = map.values().map(|card| (card.searched[0].clone(), SortKey::of(card.id))).collect();
            sorted.sort();
            let expected: Vec<SortKey> = sorted.into_iter().skip(3).take(5).map(|(_, place)| place).collect();
            prop_assert_eq!(page.into_iter().filter_map(|spot| shelf.view(spot)).map(|view| view.place).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_row_takes_little_beside_its_texts() {
        let mut shelf = SortedRows::default();
        for n in 0..5000u128 {
            shelf.put(card(Uuid::from_u128((n * 7919 % 5000) << 80), 1, "a name", "a tag"));
        }
        shelf.shrink();
        let row = size_of::<super::super::segment::PackedRow<u8>>();
        assert_eq!(shelf.len(), 5000);
        assert!(shelf.bytes() - shelf.text_bytes() < 5000 * (row + 8), "{} bytes", shelf.bytes());
    }
}
