//! The text of a file, decoded part by part: the memory doesn't depend on the size of the file.

use domain::import::MAX_ROW;
use encoding_rs::{CoderResult, Decoder, DecoderResult, Encoding};
use std::collections::VecDeque;
use std::io::{self, Read};

const BLOCK: usize = 64 << 10;
/// A record that begins further from the end of the decoded part is known whole, even if it has an open quote.
const AHEAD: usize = 2 * MAX_ROW;

pub struct Text<R> {
    input: R,
    decoder: Decoder,
    /// Bytes that are not decoded yet.
    raw: Vec<u8>,
    raw_length: u64,
    decoded_length: u64,
    /// The decoded part; what lies before `start` is no longer needed.
    text: String,
    start: usize,
    /// Where bytes couldn't be decoded: offsets in `text`.
    invalid: VecDeque<usize>,
    is_at_end: bool,
}

impl<R: Read> Text<R> {
    /// Decodes `input`, without its byte order mark.
    pub fn new(input: R, encoding: &'static Encoding) -> Self {
        Self {
            input,
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: Vec::new(),
            raw_length: 0,
            decoded_length: 0,
            text: String::new(),
            start: 0,
            invalid: VecDeque::new(),
            is_at_end: false,
        }
    }

    /// Returns the text from here on, at least as much as a record and its surroundings can have.
    pub fn ahead(&mut self) -> io::Result<&str> {
        if self.start > AHEAD {
            self.text.drain(..self.start);
            self.invalid.iter_mut().for_each(|place| *place -= self.start);
            self.start = 0;
        }
        while !self.is_at_end && self.text.len() - self.start <= AHEAD + BLOCK {
            self.decode_more()?;
        }
        Ok(self.text.get(self.start..).unwrap_or_default())
    }

    /// Returns how many bytes of the text from here on can begin a record: the rest only shows where it ends.
    pub fn safe_length(&self) -> usize {
        let length = self.text.len() - self.start;
        if self.is_at_end { length } else { length.saturating_sub(AHEAD) }
    }

    /// Whether bytes between the offsets from here on couldn't be decoded.
    pub fn is_unreadable(&self, from: usize, to: usize) -> bool {
        self.invalid.iter().any(|place| (self.start + from..self.start + to).contains(place))
    }

    /// Goes on.
    pub fn advance(&mut self, length: usize) {
        self.start += length;
        while self.invalid.pop_front_if(|place| *place < self.start).is_some() {}
    }

    /// Returns the approximate position in the file.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
    pub fn raw_position(&self) -> u64 {
        let passed = self.decoded_length - (self.text.len() - self.start) as u64;
        (self.raw_length as f64 * passed as f64 / self.decoded_length.max(1) as f64) as u64
    }

    fn decode_more(&mut self) -> io::Result<()> {
        let mut block = vec![0; BLOCK];
        let read = self.input.read(&mut block)?;
        block.truncate(read);
        self.raw_length += read as u64;
        self.raw.extend_from_slice(&block);
        self.is_at_end = read == 0;
        let (mut taken, before) = (0, self.text.len());
        loop {
            let pending = self.raw.get(taken..).unwrap_or_default();
            let needed = self.decoder.max_utf8_buffer_length_without_replacement(pending.len()).unwrap_or(4 * BLOCK);
            self.text.reserve(needed + char::REPLACEMENT_CHARACTER.len_utf8());
            let (result, consumed) = self.decoder.decode_to_string_without_replacement(pending, &mut self.text, self.is_at_end);
            taken += consumed;
            match result {
                DecoderResult::Malformed(..) => {
                    self.invalid.push_back(self.text.len());
                    self.text.push(char::REPLACEMENT_CHARACTER);
                }
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
            }
        }
        self.raw.drain(..taken);
        self.decoded_length += (self.text.len() - before) as u64;
        Ok(())
    }
}

/// Decodes the start of a file, except a character that is cut off at its end.
pub fn decode_sample(sample: &[u8], encoding: &'static Encoding) -> String {
    let mut decoder = encoding.new_decoder_with_bom_removal();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(sample.len()).unwrap_or(sample.len() * 3));
    let (result, _, _) = decoder.decode_to_string(sample, &mut text, false);
    debug_assert_eq!(result, CoderResult::InputEmpty);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{UTF_8, UTF_16LE};

    #[test]
    fn unreadable_bytes_are_marked_where_they_are() {
        let mut text = Text::new(&b"ab\xFFcd\xC3"[..], UTF_8);
        assert_eq!(text.ahead().unwrap(), "ab\u{fffd}cd\u{fffd}");
        assert!(text.is_unreadable(0, 3) && !text.is_unreadable(3, 7) && text.is_unreadable(3, 8));
        text.advance(5);
        assert!(!text.is_unreadable(0, 2) && text.is_unreadable(0, 3));
        let mut text = Text::new("real \u{fffd}".as_bytes(), UTF_8);
        assert!(text.ahead().is_ok() && !text.is_unreadable(0, 8));
        let mut text = Text::new(&b"a\0b"[..], UTF_16LE);
        assert!(text.ahead().is_ok() && text.is_unreadable(1, 2));
    }

    #[test]
    fn only_a_part_of_a_long_text_is_kept() {
        let long = "äöü€".repeat(1 << 20);
        let mut text = Text::new(long.as_bytes(), UTF_8);
        let mut read = String::new();
        loop {
            let length = {
                let ahead = text.ahead().unwrap();
                assert!(ahead.len() <= AHEAD + 5 * BLOCK);
                ahead.char_indices().nth(10_000).map_or(ahead.len(), |(place, _)| place)
            };
            read.push_str(&text.ahead().unwrap()[..length]);
            text.advance(length);
            if length == 0 {
                break;
            }
        }
        assert!(read == long, "the text is the same");
        assert_eq!(text.raw_position(), long.len() as u64);
    }
}
