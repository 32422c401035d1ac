//! The texts of a segment's rows in one string, which a search scans in sequence, and the words of a search. A search skips a
//! segment whose texts lack a trigram of its words.

use super::row::TEXT_END;
use crate::domain::values::natural_order::natural_cmp;
use crate::domain::values::text::fold;
use crate::store::lists::list_index::blocks::{Decoder, Encoder, to_u32};
use memchr::memmem::Finder;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// The growth of the string, in bytes. Doubling could waste half of the memory budget.
const GROWTH: usize = 512;

/// The growth of a column, in rows. Doubling could waste half of the memory budget.
const ROW_GROWTH: usize = 16;
/// The size of a set of trigrams, a power of two. With 256 rows of some 40 bytes, a quarter of the bits is set.
const BITS: usize = 8192;
const WORD_BITS: usize = u64::BITS as usize;

#[derive(Debug, Default)]
pub struct Texts {
    joined: String,
    /// The end of each row's text in the string.
    ends: Vec<u32>,
    /// By column, in the natural order. They are found for the first list that is sorted by text, until the next change.
    extremes: OnceLock<Vec<Extremes>>,
}

/// The rows with the least and the greatest text of a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extremes {
    pub least: u32,
    pub greatest: u32,
}

impl From<Extremes> for (u32, u32) {
    fn from(Extremes { least, greatest }: Extremes) -> Self {
        (least, greatest)
    }
}

/// Adds a value to a column.
pub fn insert<T>(column: &mut Vec<T>, at: usize, value: T) {
    if column.len() == column.capacity() {
        column.reserve_exact(ROW_GROWTH);
    }
    column.insert(at, value);
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

    /// The row, not before the row `first`, whose text has this byte of the string, and the end of its text.
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

    /// Replaces the text of the rows from `row` up to, not including, `next`. Returns its end.
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

    /// The texts of `rows` rows; `None` if [`Texts::encode`] can't have written them.
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

/// Words that must all occur in some text of a row, without regard to case.
#[derive(Debug, Clone, Default)]
pub struct SearchTerms {
    /// The longest word, which is likely to be the rarest.
    longest: Option<Finder<'static>>,
    others: Vec<Finder<'static>>,
    trigrams: Vec<Trigram>,
}

impl SearchTerms {
    pub fn of(search: Option<&str>) -> Self {
        let text = fold(search.unwrap_or_default());
        let mut words: Vec<&str> = text.split_whitespace().collect();
        words.sort_by_key(|word| word.len());
        let trigrams = words.iter().copied().flat_map(Trigram::all_of).collect();
        let longest = words.pop().map(|word| Finder::new(word).into_owned());
        Self { longest, others: words.into_iter().map(|word| Finder::new(word).into_owned()).collect(), trigrams }
    }

    /// Without words, every text matches.
    pub fn is_empty(&self) -> bool {
        self.longest.is_none()
    }

    /// For the word to search for first.
    pub fn finder(&self) -> Option<&Finder<'static>> {
        self.longest.as_ref()
    }

    /// False only if a word occurs in none of the texts that the set was made of.
    pub fn may_occur_in(&self, texts: &TrigramSet) -> bool {
        self.trigrams.iter().all(|trigram| texts.contains(*trigram))
    }

    /// Whether all words but the one of [`SearchTerms::finder`] do. `texts` must be case-folded.
    pub fn others_occur_in(&self, texts: &str) -> bool {
        self.others.iter().all(|word| word.find(texts.as_bytes()).is_some())
    }

    /// `texts` must be case-folded.
    pub fn occur_in(&self, texts: &str) -> bool {
        self.longest.iter().all(|word| word.find(texts.as_bytes()).is_some()) && self.others_occur_in(texts)
    }
}

/// The place of a trigram in a set. Others may share it.
#[derive(Debug, Clone, Copy)]
pub struct Trigram(u16);

impl Trigram {
    /// All trigrams of a text, none if it is shorter than three bytes.
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

/// A set that may also contain trigrams that were not added.
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

    /// Of [`TrigramSet::BYTES`] bytes.
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
