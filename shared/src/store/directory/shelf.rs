//! Compact rows in the order of lists, with their texts side by side for searching.
//!
//! Rows stand in blocks of a few hundred. A block holds the texts of its rows in two arenas, so that a search runs
//! over long stretches of memory, and a change moves a few kilobytes whatever the tenant's size.

use super::search::Words;
use crate::domain::id::{EventId, Id};
use crate::domain::time::Timestamp;
use std::cmp::Ordering;
use uuid::Uuid;

/// By how many rows, and how many bytes of text, a block grows: doubling would waste half of what is budgeted.
const GROWTH: (usize, usize) = (16, 512);
/// A block with more rows is split in two.
const ROWS: usize = 256;
/// Ends each text of a row. No text that is searched holds a control character, and no word that is searched for a
/// blank, so no word is found across two texts.
const END: char = '\n';
/// How many of a UUIDv7's bits tell the time (RFC 9562 §5.7).
const TIME_BITS: u32 = 48;

/// A thing's place in lists: newest first, of one millisecond the smaller id first (contract 1, "Paging").
///
/// A thing is made in the millisecond that its id names, so the id is all that this takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place([u8; 16]);

impl Place {
    const LATER_FIRST: u128 = u128::MAX << (128 - TIME_BITS);

    pub fn of(id: Uuid) -> Self {
        Self((id.as_u128() ^ Self::LATER_FIRST).to_be_bytes())
    }

    pub fn id(self) -> Uuid {
        Uuid::from_u128(u128::from_be_bytes(self.0) ^ Self::LATER_FIRST)
    }

    /// When the thing was made.
    pub fn made_at(self) -> Timestamp {
        EventId::from_uuid(self.id()).made_at()
    }
}

/// One thing as a directory keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Card<F> {
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
pub struct View<'a, F> {
    pub place: Place,
    pub version: u64,
    pub facts: &'a F,
    searched: &'a str,
    exact: &'a str,
}

impl<'a, F> View<'a, F> {
    /// The folded text number `place`.
    pub fn searched(&self, place: usize) -> &'a str {
        self.searched.split(END).nth(place).unwrap_or_default()
    }

    /// The text number `place` as it is.
    pub fn exact(&self, place: usize) -> &'a str {
        self.exact.split(END).nth(place).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Row<F> {
    place: Place,
    version: u64,
    searched_end: u32,
    exact_end: u32,
    facts: F,
}

#[derive(Debug)]
struct Block<F> {
    rows: Vec<Row<F>>,
    searched: String,
    exact: String,
}

/// Where a row stands until the shelf changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    block: u32,
    row: u32,
}

/// Rows of one kind.
#[derive(Debug)]
pub struct Shelf<F> {
    blocks: Vec<Block<F>>,
    count: usize,
}

impl<F> Default for Shelf<F> {
    fn default() -> Self {
        Self { blocks: Vec::new(), count: 0 }
    }
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
fn offset(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl<F> Block<F> {
    /// Where the texts of row number `row` begin.
    fn start(&self, row: usize) -> (usize, usize) {
        let before = row.checked_sub(1).and_then(|before| self.rows.get(before));
        before.map_or((0, 0), |row| (row.searched_end as usize, row.exact_end as usize))
    }

    fn view(&self, row: usize) -> Option<View<'_, F>> {
        let (searched, exact) = self.start(row);
        let Row { place, version, searched_end, exact_end, facts } = self.rows.get(row)?;
        Some(View {
            place: *place,
            version: *version,
            facts,
            searched: self.searched.get(searched..*searched_end as usize)?,
            exact: self.exact.get(exact..*exact_end as usize)?,
        })
    }

    /// Puts texts where the rows from `row` to before `next` have theirs, and moves all rows from `next` on along.
    fn replace_texts(&mut self, row: usize, next: usize, searched: &str, exact: &str) {
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
    fn put(&mut self, card: Card<F>) -> bool {
        let place = Place::of(card.id);
        let (searched, exact) = (joined(&card.searched), joined(&card.exact));
        let found = self.rows.binary_search_by_key(&place, |row| row.place);
        let (at, next) = found.map_or_else(|at| (at, at), |at| (at, at + 1));
        let start = self.start(at);
        self.replace_texts(at, next, &searched, &exact);
        let row = Row {
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
    fn split(&mut self) -> Self {
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

    fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.searched.shrink_to_fit();
        self.exact.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row<F>>() + self.searched.capacity() + self.exact.capacity()
    }
}

impl<F> Shelf<F> {
    pub fn len(&self) -> usize {
        self.count
    }

    /// What it takes of memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block<F>>() + self.blocks.iter().map(Block::bytes).sum::<usize>()
    }

    /// How much of [`Shelf::bytes`] are texts.
    #[cfg(test)]
    fn text_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.searched.len() + block.exact.len()).sum()
    }

    /// Gives back what growing took too much.
    pub fn shrink(&mut self) {
        self.blocks.iter_mut().for_each(Block::shrink);
        self.blocks.shrink_to_fit();
    }

    /// The block that has `place`, or would.
    fn block_of(&self, place: Place) -> usize {
        let after = self.blocks.partition_point(|block| block.rows.first().is_some_and(|row| row.place <= place));
        after.saturating_sub(1)
    }

    /// Adds or replaces a thing.
    pub fn put(&mut self, card: Card<F>) {
        let at = self.block_of(Place::of(card.id));
        if self.blocks.is_empty() {
            self.blocks.push(Block { rows: Vec::new(), searched: String::new(), exact: String::new() });
        }
        let Some(block) = self.blocks.get_mut(at) else { return };
        self.count += usize::from(block.put(card));
        if block.rows.len() > ROWS {
            let later = block.split();
            self.blocks.insert(at + 1, later);
        }
    }

    fn spot(&self, id: Uuid) -> Option<Spot> {
        let place = Place::of(id);
        let block = self.block_of(place);
        let row = self.blocks.get(block)?.rows.binary_search_by_key(&place, |row| row.place).ok()?;
        Some(Spot { block: offset(block), row: offset(row) })
    }

    /// The row there.
    pub fn view(&self, spot: Spot) -> Option<View<'_, F>> {
        self.blocks.get(spot.block as usize)?.view(spot.row as usize)
    }

    /// The thing's row.
    pub fn find(&self, id: Uuid) -> Option<View<'_, F>> {
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
    pub fn scan(&self, words: &Words, keeps: impl Fn(&F) -> bool, mut visit: impl FnMut(Spot)) {
        for (at, block) in self.blocks.iter().enumerate() {
            let spot = |row: usize| Spot { block: offset(at), row: offset(row) };
            let Some(finder) = words.finder() else {
                let kept = block.rows.iter().enumerate().filter(|(_, row)| keeps(&row.facts));
                kept.for_each(|(row, _)| visit(spot(row)));
                continue;
            };
            let (mut row, mut from) = (0, 0);
            while let Some(hit) = block.searched.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
                let hit = from + hit;
                row += block.rows.get(row..).map_or(0, |rows| rows.partition_point(|row| row.searched_end as usize <= hit));
                if block.view(row).is_some_and(|view| keeps(view.facts) && words.occur_in(view.searched)) {
                    visit(spot(row));
                }
                // One hit is enough for a row: on with the next row's texts.
                row += 1;
                from = block.start(row).0;
            }
        }
    }

    /// The spots of so many rows, as they stand.
    pub fn window(&self, mut skip: usize, limit: usize) -> Vec<Spot> {
        let mut spots = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let rows = block.rows.len();
            let wanted = skip.min(rows)..skip.saturating_add(limit - spots.len()).min(rows);
            skip = skip.saturating_sub(rows);
            spots.extend(wanted.map(|row| Spot { block: offset(at), row: offset(row) }));
            if spots.len() == limit {
                break;
            }
        }
        spots
    }

    /// The spots of page's rows in an order of their own, out of `spots`.
    pub fn page(
        &self,
        mut spots: Vec<Spot>,
        skip: usize,
        limit: usize,
        compare: impl Fn(&View<'_, F>, &View<'_, F>) -> Ordering,
    ) -> Vec<Spot> {
        let order = |a: &Spot, b: &Spot| match (self.view(*a), self.view(*b)) {
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

impl<F: Clone> Shelf<F> {
    /// The thing as it was put.
    pub fn get(&self, id: Uuid) -> Option<Card<F>> {
        let view = self.find(id)?;
        let texts = |text: &str| text.split_terminator(END).map(str::to_owned).collect();
        Some(Card {
            id,
            version: view.version,
            facts: view.facts.clone(),
            searched: texts(view.searched),
            exact: texts(view.exact),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::fold;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn card(id: Uuid, version: u64, name: &str, exact: &str) -> Card<u8> {
        Card { id, version, facts: 0, searched: vec![fold(name), fold(exact)], exact: vec![exact.to_owned()] }
    }

    #[test]
    fn places_sort_newest_first_and_then_by_id() {
        let id = |time: u128, rest: u128| Uuid::from_u128(time << 80 | rest);
        let mut places: Vec<Place> = [id(5, 1), id(5, 0), id(6, 9), id(4, 0)].map(Place::of).into();
        places.sort();
        assert_eq!(places.iter().map(|place| place.id()).collect::<Vec<_>>(), [id(6, 9), id(5, 0), id(5, 1), id(4, 0)]);
        assert_eq!(places.first().map(|place| place.made_at()), Some(Timestamp::from_millis(6)));
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
            let (mut shelf, mut map) = (Shelf::default(), BTreeMap::new());
            for (version, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Put(n, name, exact) => {
                        let card = card(id(n), version as u64, &name, &exact);
                        shelf.put(card.clone());
                        map.insert(Place::of(id(n)), card);
                    }
                    Step::Remove(n) => {
                        shelf.remove(id(n));
                        map.remove(&Place::of(id(n)));
                    }
                }
            }
            prop_assert_eq!(shelf.len(), map.len());
            for n in 0..=u8::MAX {
                prop_assert_eq!(shelf.get(id(n)), map.get(&Place::of(id(n))).cloned());
            }
            let words = Words::of(Some(&word));
            let mut found = Vec::new();
            shelf.scan(&words, |_| true, |spot| found.extend(shelf.view(spot).map(|view| view.place)));
            let plain = map.iter().filter(|(_, card)| {
                word.split(' ').all(|word| card.searched.iter().any(|text| text.contains(word)))
            });
            prop_assert_eq!(found, plain.map(|(place, _)| *place).collect::<Vec<_>>());
            let mut all = Vec::new();
            shelf.scan(&Words::default(), |_| true, |spot| all.push(spot));
            prop_assert_eq!(all.len(), map.len());
            for (skip, limit) in [(0, 3), (50, 20), (map.len(), 5), (usize::MAX, 5)] {
                let expected: Vec<Spot> = all.iter().copied().skip(skip).take(limit).collect();
                prop_assert_eq!(shelf.window(skip, limit), expected);
            }
            let by_name = |a: &View<'_, u8>, b: &View<'_, u8>| (a.searched(0), a.place).cmp(&(b.searched(0), b.place));
            let page = shelf.page(all, 3, 5, by_name);
            let mut sorted: Vec<_> = map.values().map(|card| (card.searched[0].clone(), Place::of(card.id))).collect();
            sorted.sort();
            let expected: Vec<Place> = sorted.into_iter().skip(3).take(5).map(|(_, place)| place).collect();
            prop_assert_eq!(page.into_iter().filter_map(|spot| shelf.view(spot)).map(|view| view.place).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_row_takes_little_beside_its_texts() {
        let mut shelf = Shelf::default();
        for n in 0..5000u128 {
            shelf.put(card(Uuid::from_u128((n * 7919 % 5000) << 80), 1, "a name", "a tag"));
        }
        shelf.shrink();
        let row = size_of::<Row<u8>>();
        assert_eq!(shelf.len(), 5000);
        assert!(shelf.bytes() - shelf.text_bytes() < 5000 * (row + 8), "{} bytes", shelf.bytes());
    }
}
