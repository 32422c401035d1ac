//! The trigrams of a segment's texts: a search skips a segment that lacks one of its words'.

/// A power of two. With 256 rows of some 40 bytes, a quarter of the bits is set.
const BITS: usize = 8192;
const WORD_BITS: usize = u64::BITS as usize;

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
