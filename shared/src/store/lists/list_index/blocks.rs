//! The body of a snapshot: values in blocks, each compressed with LZ4.
//!
//! Blocks are small, so that neither writing nor reading needs a second copy of a large index in memory.

use std::str::FromStr;
use uuid::Uuid;

/// At this size, a block is compressed and a new one starts.
const BLOCK_BYTES: usize = 256 * 1024;
/// Larger blocks are invalid. A segment's texts can make a block larger than [`BLOCK_BYTES`], but not this large.
const MAX_BLOCK_BYTES: usize = 64 * BLOCK_BYTES;
/// Bits of a number per byte. The eighth bit says that another byte follows.
const NUMBER_BITS: u32 = 7;

#[derive(Debug, Default)]
pub struct Encoder {
    block: Vec<u8>,
    body: Vec<u8>,
    raw_bytes: usize,
}

impl Encoder {
    /// The reader must know their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    pub fn byte(&mut self, byte: u8) {
        self.block.push(byte);
    }

    /// Adds a number with seven bits per byte, so that small numbers take one byte.
    pub fn number(&mut self, mut number: u64) {
        while number >> NUMBER_BITS > 0 {
            self.byte((number & 0x7F) as u8 | 0x80);
            number >>= NUMBER_BITS;
        }
        self.byte(number as u8);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub fn id(&mut self, id: Uuid) {
        self.bytes(id.as_bytes());
    }

    /// Adds a flag for the presence of a value, and then the value.
    pub fn option<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            encode(self, value);
        }
    }

    /// Ends the block here if it is large enough.
    pub fn may_end_block(&mut self) {
        if self.block.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let packed = lz4_flex::block::compress(&self.block);
        self.body.extend_from_slice(&to_u32(self.block.len()).to_le_bytes());
        self.body.extend_from_slice(&to_u32(packed.len()).to_le_bytes());
        self.body.extend_from_slice(&packed);
        self.raw_bytes += self.block.len();
        self.block.clear();
    }

    /// Returns the blocks, and their uncompressed size.
    pub fn finish(mut self) -> (Vec<u8>, usize) {
        if !self.block.is_empty() {
            self.end_block();
        }
        (self.body, self.raw_bytes)
    }
}

/// Reads values in the order in which they were written. Every method returns `None` if a value is invalid.
#[derive(Debug)]
pub struct Decoder<'a> {
    body: &'a [u8],
    block: Vec<u8>,
    /// The position of the next value in the block.
    at: usize,
    left: usize,
}

impl<'a> Decoder<'a> {
    /// `max_bytes` limits the uncompressed size of all blocks.
    pub fn new(body: &'a [u8], max_bytes: usize) -> Self {
        Self { body, block: Vec::new(), at: 0, left: max_bytes }
    }

    fn next_block(&mut self) -> Option<()> {
        let (raw, rest) = self.body.split_first_chunk()?;
        let (packed, rest) = rest.split_first_chunk()?;
        let raw = usize::try_from(u32::from_le_bytes(*raw)).ok().filter(|raw| *raw <= MAX_BLOCK_BYTES.min(self.left))?;
        let (packed, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*packed)).ok()?)?;
        self.block.clear();
        self.block.resize(raw, 0);
        let written = lz4_flex::block::decompress_into(packed, &mut self.block).ok()?;
        (written == raw).then_some(())?;
        (self.at, self.left, self.body) = (0, self.left - raw, rest);
        Some(())
    }

    pub fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        if count > 0 && self.at == self.block.len() {
            self.next_block()?;
        }
        let end = self.at.checked_add(count)?;
        let bytes = self.block.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn number(&mut self) -> Option<u64> {
        // Most numbers in an index take one byte.
        if let Some(byte) = self.block.get(self.at).filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Some(u64::from(*byte));
        }
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(NUMBER_BITS as usize) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            ((bits << shift) >> shift == bits).then_some(())?;
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of bytes or values.
    pub fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub fn text(&mut self) -> Option<&str> {
        let length = self.count()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    pub fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    pub fn option<T>(&mut self, decode: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => decode(self).map(Some),
            _ => None,
        }
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads a value that is written as text. An empty text means no value.
    pub fn parsed<T: FromStr>(&mut self) -> Option<Option<T>> {
        match self.text()? {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        }
    }

    /// `count` must be small, because memory is reserved for that many values.
    pub fn many<T>(&mut self, count: usize, mut decode: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(decode(self)?);
        }
        Some(values)
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.block.len() && self.body.is_empty()
    }
}

/// Converts an offset to the type used in rows. It fits, because a segment's texts are a few hundred times a few kilobytes.
pub fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_as_they_were_written(values in proptest::collection::vec((any::<u64>(), any::<Option<u64>>(), ".{0,40}"), 0..50)) {
            let mut encoder = Encoder::default();
            for (number, option, text) in &values {
                encoder.number(*number);
                encoder.option(*option, Encoder::number);
                encoder.text(text);
                encoder.end_block();
            }
            let (body, raw_bytes) = encoder.finish();
            let mut decoder = Decoder::new(&body, raw_bytes);
            for (number, option, text) in &values {
                prop_assert_eq!(decoder.number(), Some(*number));
                prop_assert_eq!(decoder.option(Decoder::number), Some(*option));
                prop_assert_eq!(decoder.text(), Some(text.as_str()));
            }
            prop_assert!(decoder.is_at_end());
            prop_assert_eq!(decoder.byte(), None);
        }

        /// No input makes the reader panic or exceed its memory limit.
        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::new(&body, 1000);
            while decoder.text().is_some() && decoder.number().is_some() && !decoder.is_at_end() {}
        }
    }

    #[test]
    fn a_block_that_is_larger_than_allowed_is_refused() {
        let mut encoder = Encoder::default();
        encoder.bytes(&[7; 1000]);
        let (body, raw_bytes) = encoder.finish();
        assert!(body.len() < 100 && raw_bytes == 1000);
        assert!(Decoder::new(&body, 1000).byte().is_some());
        assert!(Decoder::new(&body, 999).byte().is_none());
    }
}
