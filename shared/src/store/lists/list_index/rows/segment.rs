//! A segment: up to a few hundred rows, stored by column, so that a query reads only the columns that it needs. The texts of its
//! rows are in one string, which a search scans sequentially. A search skips a segment whose texts lack a trigram of the search
//! words.

use super::coded::{CodedColumns, NO_VALUE, SegmentColumn};
use super::{Columns, PackedRow, RowValues, SearchTerms, SortKey, TEXT_END};
use crate::domain::values::natural_order::natural_cmp;
use crate::domain::values::time::Timestamp;
use crate::store::lists::list_index::snapshots::{Decoder, Encoder, to_u32};
use memchr::memmem;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::OnceLock;

/// A segment with more rows is split in two.
pub const MAX_SEGMENT_ROWS: usize = 256;
/// Rows, sorted by their keys in ascending order.
#[derive(Debug)]
pub struct Segment<C: Columns> {
    pub keys: Vec<SortKey>,
    versions: Vec<u64>,
    /// The numbers of the rows' facets.
    pub facets: Vec<u32>,
    pub columns: C::Vectors,
    pub searched: Texts,
    pub exact: Texts,
    /// Coded columns, in ascending order of their numbers. A column without values may be missing.
    pub coded: Vec<SegmentColumn>,
    /// Trigrams of the searched texts, and possibly of earlier texts. Collected by the first search.
    trigrams: OnceLock<TrigramSet>,
}

/// The fixed-size values of a segment's rows. With one vector per field, a scan reads only the fields that it needs.
pub trait ColumnVectors<C>: Debug + Default + From<Vec<C>> + Send + 'static {
    const ROW_BYTES: usize;

    fn row(&self, row: usize) -> Option<C>;

    /// Replaces the rows with `new`, or removes them.
    fn replace_rows(&mut self, rows: Range<usize>, new: Option<C>);

    /// Splits off the rows from position `first` on.
    fn split_off_rows(&mut self, first: usize) -> Self {
        let rest: Vec<C> = (first..).map_while(|row| self.row(row)).collect();
        self.replace_rows(first..first + rest.len(), None);
        Self::from(rest)
    }

    fn free_unused(&mut self);
}

impl<C: Debug + Clone + Send + 'static> ColumnVectors<C> for Vec<C> {
    const ROW_BYTES: usize = size_of::<C>();

    fn row(&self, row: usize) -> Option<C> {
        self.get(row).cloned()
    }

    fn replace_rows(&mut self, rows: Range<usize>, new: Option<C>) {
        replace(self, rows, new);
    }

    fn free_unused(&mut self) {
        self.shrink_to_fit();
    }
}

impl<C: Columns> Default for Segment<C> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            versions: Vec::new(),
            facets: Vec::new(),
            columns: C::Vectors::default(),
            searched: Texts::default(),
            exact: Texts::default(),
            coded: Vec::new(),
            trigrams: OnceLock::new(),
        }
    }
}

impl<C: Columns> Segment<C> {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the position of a row in the segment, or the position where it would be inserted.
    pub fn find(&self, key: SortKey) -> Result<usize, usize> {
        self.keys.binary_search(&key)
    }

    pub fn row(&self, row: usize) -> Option<RowValues<'_, C>> {
        Some(RowValues {
            sort_key: *self.keys.get(row)?,
            version: *self.versions.get(row)?,
            facet: *self.facets.get(row)?,
            columns: self.columns.row(row)?,
            searched: self.searched.get(row),
            exact: self.exact.get(row),
            coded: (&self.coded, row),
        })
    }

    /// Returns the column and the number of each coded value in the row.
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
                self.columns.replace_rows(at..at + 1, Some(columns));
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
                self.columns.replace_rows(at..at, Some(columns));
                self.coded.iter_mut().for_each(|column| insert(column.changed(), at, NO_VALUE));
                self.set_coded(at, &coded);
                None
            }
        }
    }

    /// Removes a row, and returns its facet and its coded values.
    pub fn remove(&mut self, row: usize) -> (u32, Vec<(u32, u32)>) {
        let coded = self.coded_of(row);
        self.searched.remove(row);
        self.exact.remove(row);
        self.keys.remove(row);
        self.versions.remove(row);
        self.columns.replace_rows(row..row + 1, None);
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
            columns: self.columns.split_off_rows(half),
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
        self.columns.free_unused();
        self.searched.shrink_to_fit();
        self.exact.shrink_to_fit();
        self.coded.retain(|column| column.numbers.iter().any(|number| *number != NO_VALUE));
        self.coded.iter_mut().for_each(|column| column.numbers.shrink_to_fit());
        self.coded.shrink_to_fit();
    }

    /// Drops all coded columns except the first `kept`.
    pub fn leave_out(&mut self, kept: usize) {
        self.coded.retain(|column| (column.column as usize) < kept);
        self.coded.shrink_to_fit();
    }

    pub fn coded_bytes(&self, columns: &Range<usize>) -> usize {
        let bytes = |column: &SegmentColumn| size_of::<SegmentColumn>() + column.numbers.capacity() * size_of::<u32>();
        self.coded.iter().filter(|column| columns.contains(&(column.column as usize))).map(bytes).sum()
    }

    /// Returns the size without the coded columns. Includes trigrams even before they are collected, so that collecting them for
    /// a search doesn't exceed the budget.
    pub fn bytes(&self) -> usize {
        let columns = <C::Vectors as ColumnVectors<C>>::ROW_BYTES;
        let row = size_of::<SortKey>() + size_of::<u64>() + size_of::<u32>() + columns;
        let trigrams = if self.searched.joined().is_empty() { 0 } else { TrigramSet::BYTES };
        // All columns grow at the same rate.
        self.keys.capacity() * row + self.searched.bytes() + self.exact.bytes() + trigrams
    }

    /// Returns `false` only if no row contains all of the words.
    pub fn may_have(&self, terms: &SearchTerms) -> bool {
        terms.is_empty() || terms.may_occur_in(self.trigrams.get_or_init(|| TrigramSet::of(self.searched.joined())))
    }

    /// Unmarks rows whose searched texts lack one of the words.
    pub fn search(&self, terms: &SearchTerms, matches: &mut [bool]) {
        let Some(finder) = terms.finder() else { return };
        let mut have_words = vec![false; self.len()];
        let (mut row, mut from) = (0, 0);
        while let Some(hit) = self.searched.joined().as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let Some((found, end)) = self.searched.row_at(row, from + hit) else { break };
            if let Some(has_words) = have_words.get_mut(found) {
                *has_words = terms.others_occur_in(self.searched.get(found));
            }
            // One hit in a row is enough: continue with the texts of the next row.
            (row, from) = (found + 1, end);
        }
        narrow(matches, &have_words, |has_words| *has_words);
    }

    /// Returns the positions of the rows that were created in a period. Newer rows come first.
    pub fn created_in(&self, (from, before): (Option<Timestamp>, Option<Timestamp>)) -> Range<usize> {
        let count_since = |time: Timestamp| self.keys.partition_point(|key| key.created_at() >= time);
        before.map_or(0, count_since)..from.map_or(self.len(), count_since)
    }

    /// Returns the numbers of the rows' values in a coded column; 0 means no value. Empty if no row has a value.
    pub fn numbers(&self, column: Option<u32>) -> &[u32] {
        self.coded.iter().find(|it| Some(it.column) == column).map_or(&[][..], |column| &column.numbers)
    }

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

    /// Adds the coded columns in this range from a snapshot, and counts their values. Returns `None` if the bytes aren't
    /// output of [`Segment::encode_coded`].
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

    /// Writes the segment to a snapshot, without the coded columns.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.len() as u64);
        self.keys.iter().for_each(|key| encoder.bytes(&key.0));
        self.versions.iter().for_each(|version| encoder.number(*version));
        self.facets.iter().for_each(|facet| encoder.number(u64::from(*facet)));
        (0..self.len()).filter_map(|row| self.columns.row(row)).for_each(|columns| columns.encode(encoder));
        self.searched.encode(encoder);
        self.exact.encode(encoder);
        if !self.searched.joined().is_empty() {
            encoder.bytes(&TrigramSet::of(self.searched.joined()).to_bytes());
        }
    }

    /// Reads a segment from a snapshot; `None` if the bytes aren't output of [`Segment::encode`].
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let count = decoder.count().filter(|count| (1..=MAX_SEGMENT_ROWS).contains(count))?;
        let (keys, _) = decoder.bytes(count * size_of::<SortKey>())?.as_chunks();
        let keys: Vec<SortKey> = keys.iter().copied().map(SortKey).collect();
        keys.is_sorted_by(|a, b| a < b).then_some(())?;
        let versions = decoder.many(count, Decoder::number)?;
        let facets = decoder.many(count, |decoder| u32::try_from(decoder.number()?).ok())?;
        let columns = C::Vectors::from(decoder.many(count, C::decode)?);
        let (searched, exact) = (Texts::decode(decoder, count)?, Texts::decode(decoder, count)?);
        let trigrams = OnceLock::new();
        if !searched.joined().is_empty() {
            trigrams.set(TrigramSet::from_bytes(decoder.bytes(TrigramSet::BYTES)?)).ok()?;
        }
        Some(Self { keys, versions, facets, columns, searched, exact, coded: Vec::new(), trigrams })
    }
}

/// Number of bytes by which a segment's string of texts grows at a time. Doubling could waste half of the memory budget.
const GROWTH: usize = 512;

/// Number of rows by which a column grows at a time. Doubling could waste half of the memory budget.
const ROW_GROWTH: usize = 16;
/// Number of bits in a trigram set. Must be a power of two. With 256 rows of about 40 bytes, a quarter of the bits are set.
const BITS: usize = 8192;
const WORD_BITS: usize = u64::BITS as usize;

#[derive(Debug, Default)]
pub struct Texts {
    joined: String,
    /// The end of each row's text in the string.
    ends: Vec<u32>,
    /// The extremes of each column, in natural order. Computed for the first list sorted by text, and dropped at the next change.
    extremes: OnceLock<Vec<Extremes>>,
}

/// The least and the greatest value of a column: for texts, the positions of their rows; for coded values, their numbers.
#[derive(Debug, Clone, Copy)]
pub struct Extremes {
    pub least: u32,
    pub greatest: u32,
}

/// Unmarks rows whose value in the column doesn't match.
pub fn narrow<T>(matches: &mut [bool], column: &[T], is_match: impl Fn(&T) -> bool) {
    matches.iter_mut().zip(column).for_each(|(is_left, value)| *is_left &= is_match(value));
}

pub fn insert<T>(column: &mut Vec<T>, at: usize, value: T) {
    replace(column, at..at, Some(value));
}

/// Replaces the rows of a column with `new`, or removes them.
pub fn replace<T>(column: &mut Vec<T>, rows: Range<usize>, new: Option<T>) {
    if rows.is_empty() && column.len() == column.capacity() {
        column.reserve_exact(ROW_GROWTH);
    }
    column.splice(rows, new);
}

impl Texts {
    pub fn joined(&self) -> &str {
        &self.joined
    }

    fn end(&self, row: usize) -> usize {
        self.ends.get(row).map_or(self.joined.len(), |end| *end as usize)
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |previous| self.end(previous))
    }

    pub fn get(&self, row: usize) -> &str {
        self.joined.get(self.start(row)..self.end(row)).unwrap_or_default()
    }

    pub fn contain(&self, text: &str) -> bool {
        memmem::find(self.joined.as_bytes(), text.as_bytes()).is_some()
    }

    /// Returns the row, from `first` on, whose text contains the byte at position `byte` of the string, and the end of that text.
    pub fn row_at(&self, first: usize, byte: usize) -> Option<(usize, usize)> {
        let ends = self.ends.get(first..)?;
        let skipped = ends.iter().position(|end| *end as usize > byte)?;
        Some((first + skipped, *ends.get(skipped)? as usize))
    }

    pub fn extremes(&self, column: usize) -> Option<Extremes> {
        self.extremes.get_or_init(|| self.find_extremes()).get(column).copied()
    }

    fn find_extremes(&self) -> Vec<Extremes> {
        let mut found: Vec<[(&str, usize); 2]> = Vec::new();
        for row in 0..self.ends.len() {
            for (column, text) in self.get(row).split_terminator(TEXT_END).enumerate() {
                match found.get_mut(column) {
                    Some([least, greatest]) => {
                        if natural_cmp(text, least.0) == Ordering::Less {
                            *least = (text, row);
                        }
                        if natural_cmp(text, greatest.0) == Ordering::Greater {
                            *greatest = (text, row);
                        }
                    }
                    None => found.push([(text, row); 2]),
                }
            }
        }
        found
            .into_iter()
            .map(|rows| rows.map(|(_, row)| to_u32(row)))
            .map(|[least, greatest]| Extremes { least, greatest })
            .collect()
    }

    /// Replaces the text of the rows `row..next`. Returns the end of the new text.
    fn splice(&mut self, row: usize, next: usize, text: &str) -> u32 {
        self.extremes.take();
        let (from, to) = (self.start(row), self.start(next));
        if self.joined.capacity() - self.joined.len() < text.len() {
            self.joined.reserve_exact(text.len() + GROWTH);
        }
        self.joined.replace_range(from..to, text);
        for end in self.ends.iter_mut().skip(next) {
            *end = to_u32(*end as usize + text.len() + from - to);
        }
        to_u32(from + text.len())
    }

    pub fn insert(&mut self, row: usize, text: &str) {
        let end = self.splice(row, row, text);
        insert(&mut self.ends, row, end);
    }

    pub fn replace(&mut self, row: usize, text: &str) {
        let replaced = self.splice(row, row + 1, text);
        self.ends.get_mut(row).into_iter().for_each(|end| *end = replaced);
    }

    pub fn remove(&mut self, row: usize) {
        self.splice(row, row + 1, "");
        self.ends.remove(row);
    }

    pub fn split_off(&mut self, row: usize) -> Self {
        self.extremes.take();
        let start = self.start(row);
        let (joined, ends) = (self.joined.split_off(start), self.ends.split_off(row));
        let mut second = Self { joined, ends, extremes: OnceLock::new() };
        second.ends.iter_mut().for_each(|end| *end -= to_u32(start));
        second
    }

    pub fn shrink_to_fit(&mut self) {
        self.joined.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub fn bytes(&self) -> usize {
        self.joined.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.text(&self.joined);
        let mut start = 0;
        for end in &self.ends {
            encoder.number(u64::from(end - start));
            start = *end;
        }
    }

    /// Reads the texts of `rows` rows from a snapshot; `None` if the bytes aren't output of [`Texts::encode`].
    pub fn decode(decoder: &mut Decoder<'_>, rows: usize) -> Option<Self> {
        let joined = decoder.text()?.to_owned();
        let mut ends = Vec::with_capacity(rows);
        let mut end = 0_usize;
        for _ in 0..rows {
            end = end.checked_add(decoder.count()?).filter(|end| joined.is_char_boundary(*end))?;
            ends.push(to_u32(end));
        }
        (end == joined.len()).then_some(Self { joined, ends, extremes: OnceLock::new() })
    }
}

/// The bit of a trigram in a set. Several trigrams can share a bit.
#[derive(Debug, Clone, Copy)]
pub struct Trigram(u16);

impl Trigram {
    /// Returns all trigrams of a string; none if it is shorter than three bytes.
    pub fn all_of(text: &str) -> impl Iterator<Item = Self> {
        text.as_bytes().array_windows().map(|[a, b, c]| {
            // Fibonacci hashing: the upper bits of the product depend on all three bytes.
            let hash = u32::from_le_bytes([*a, *b, *c, 0]).wrapping_mul(0x9E37_79B1);
            Self((hash >> (u32::BITS - BITS.ilog2())) as u16)
        })
    }

    fn place(self) -> (usize, u64) {
        let bit = usize::from(self.0);
        (bit / WORD_BITS, 1 << (bit % WORD_BITS))
    }
}

/// A set with false positives: it can also contain trigrams that were not added.
#[derive(Debug)]
pub struct TrigramSet(Box<[u64; BITS / WORD_BITS]>);

impl TrigramSet {
    pub const BYTES: usize = BITS / 8;

    pub fn of(text: &str) -> Self {
        let mut set = Self(Box::new([0; BITS / WORD_BITS]));
        set.add(text);
        set
    }

    pub fn add(&mut self, text: &str) {
        for trigram in Trigram::all_of(text) {
            let (word, bit) = trigram.place();
            self.0.get_mut(word).into_iter().for_each(|word| *word |= bit);
        }
    }

    pub fn contains(&self, trigram: Trigram) -> bool {
        let (word, bit) = trigram.place();
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut set = Self(Box::new([0; BITS / WORD_BITS]));
        let (words, _) = bytes.as_chunks();
        set.0.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::text::fold;

    #[test]
    fn every_word_must_occur_in_some_text() {
        let texts = fold("Dell XPS 13\nSN-äß");
        let set = TrigramSet::of(&texts);
        for words in ["xps DELL", "ÄSS 13", "  "] {
            let terms = SearchTerms::of(Some(words));
            assert!(terms.occur_in(&texts) && terms.may_occur_in(&set), "{words}");
        }
        assert!(SearchTerms::of(Some(" ")).is_empty());
        let terms = SearchTerms::of(Some("dell mac"));
        assert!(!terms.occur_in(&texts) && !terms.may_occur_in(&set));
    }
}
