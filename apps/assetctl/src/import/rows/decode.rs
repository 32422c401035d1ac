//! Decodes a file to UTF-8 text while it is read.
//!
//! Keeps decoded text until it is [forgotten](Text::forget), so that a reader can go back to the start of a row. Remembers the
//! positions of invalid bytes, because the text contains only a replacement character for them.

use encoding_rs::{CoderResult, Decoder, DecoderResult, Encoding};
use std::collections::VecDeque;
use std::io::{self, Read};

/// Optional marker at the end of the text: a reader that finds it in a cell knows that a quote was not closed.
pub const END_OF_TEXT: &str = "\u{1}end of text\u{1}";
/// Maximum size of a row, in bytes: the size limit of a request.
pub const MAX_ROW: usize = 1 << 20;
const BLOCK: usize = 16 << 10;

pub struct Text<R> {
    input: R,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_position: u64,
    /// The text from `start` on; the part before `kept` is no longer needed.
    text: String,
    start: u64,
    kept: usize,
    cursor: usize,
    unreadable: VecDeque<u64>,
    with_end: bool,
    is_at_end: bool,
    ends_with_newline: bool,
}

impl<R: Read> Text<R> {
    /// Decodes `input`, without its byte order mark. Appends [`END_OF_TEXT`] as a line if `with_end`.
    pub fn new(input: R, encoding: &'static Encoding, with_end: bool) -> Self {
        Self {
            input,
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: Vec::new(),
            raw_position: 0,
            text: String::new(),
            start: 0,
            kept: 0,
            cursor: 0,
            unreadable: VecDeque::new(),
            with_end,
            is_at_end: false,
            ends_with_newline: true,
        }
    }

    /// Returns the approximate position in the file of the kept text.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
    pub fn raw_position(&self) -> u64 {
        let decoded = self.start + self.text.len() as u64;
        let forgotten = self.start + self.kept as u64;
        (self.raw_position as f64 * forgotten as f64 / decoded.max(1) as f64) as u64
    }

    /// Whether the line that was just read is the last one, and has no line break.
    pub fn is_last_line_open(&self) -> bool {
        let rest = self.text.get(self.kept..).unwrap_or_default().trim_start_matches(['\r', '\n']);
        self.is_at_end && !self.ends_with_newline && (rest.is_empty() || rest.starts_with(END_OF_TEXT))
    }

    /// Returns the text between two offsets. The text must not have been forgotten.
    pub fn between(&self, from: u64, to: u64) -> &str {
        self.text.get(self.index(from)..self.index(to)).unwrap_or_default()
    }

    /// Returns the text from an offset up to the current position.
    pub fn after(&self, from: u64) -> &str {
        self.text.get(self.index(from)..self.cursor).unwrap_or_default()
    }

    /// Returns whether bytes between the offsets couldn't be decoded. Forgets all text before `to`.
    pub fn take_unreadable(&mut self, from: u64, to: u64) -> bool {
        let mut found = false;
        while let Some(offset) = self.unreadable.pop_front_if(|offset| *offset < to) {
            found |= offset >= from;
        }
        self.forget(to);
        found
    }

    /// Goes back to an offset. The text there must not have been forgotten.
    pub fn rewind(&mut self, to: u64) {
        self.cursor = self.index(to);
    }

    /// Skips the rest of a line that is too long to keep. Returns the offset of its end.
    pub fn skip_line(&mut self, from: u64) -> io::Result<u64> {
        self.rewind(from);
        loop {
            let rest = self.text.get(self.cursor..).unwrap_or_default();
            let found = rest.find('\n');
            self.cursor += found.unwrap_or(rest.len());
            let position = self.start + self.cursor as u64;
            self.take_unreadable(position, position);
            if found.is_some() || self.is_at_end {
                return Ok(position);
            }
            self.decode_more()?;
        }
    }

    fn forget(&mut self, before: u64) {
        self.kept = self.index(before);
        while !self.text.is_char_boundary(self.kept) {
            self.kept -= 1;
        }
        if self.kept > 4 * BLOCK {
            self.text.drain(..self.kept);
            self.start += self.kept as u64;
            self.cursor = self.cursor.saturating_sub(self.kept);
            self.kept = 0;
        }
    }

    fn index(&self, offset: u64) -> usize {
        usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.text.len())
    }

    fn decode_more(&mut self) -> io::Result<()> {
        let mut block = vec![0; BLOCK];
        let read = self.input.read(&mut block)?;
        block.truncate(read);
        self.raw_position += read as u64;
        self.raw.extend_from_slice(&block);
        self.is_at_end = read == 0;
        let mut taken = 0;
        loop {
            let pending = self.raw.get(taken..).unwrap_or_default();
            let needed = self.decoder.max_utf8_buffer_length_without_replacement(pending.len()).unwrap_or(4 * BLOCK);
            self.text.reserve(needed + END_OF_TEXT.len());
            let (result, consumed) = self.decoder.decode_to_string_without_replacement(pending, &mut self.text, self.is_at_end);
            taken += consumed;
            match result {
                DecoderResult::Malformed(..) => {
                    self.unreadable.push_back(self.start + self.text.len() as u64);
                    self.text.push('\u{fffd}');
                }
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
            }
        }
        self.raw.drain(..taken);
        if self.is_at_end {
            self.ends_with_newline = self.text.ends_with(['\n', '\r']) || (self.text.is_empty() && self.start == 0);
            if self.with_end {
                let line_break = if self.ends_with_newline { "" } else { "\n" };
                self.text.push_str(line_break);
                self.text.push_str(END_OF_TEXT);
                self.text.push('\n');
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cursor - self.kept > MAX_ROW {
            return Err(io::Error::other(format!("a row is longer than {MAX_ROW} bytes")));
        }
        while self.cursor == self.text.len() && !self.is_at_end {
            self.decode_more()?;
        }
        let available = self.text.as_bytes().get(self.cursor..).unwrap_or_default();
        let length = available.len().min(buffer.len());
        if let (Some(target), Some(bytes)) = (buffer.get_mut(..length), available.get(..length)) {
            target.copy_from_slice(bytes);
        }
        self.cursor += length;
        Ok(length)
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

    fn read(bytes: &[u8], encoding: &'static Encoding) -> (String, VecDeque<u64>) {
        let mut text = Text::new(bytes, encoding, false);
        let mut output = String::new();
        text.read_to_string(&mut output).unwrap();
        (output, text.unreadable)
    }

    #[test]
    fn unreadable_bytes_are_marked_where_they_are() {
        let (text, unreadable) = read(b"ab\xFFcd\xC3", UTF_8);
        assert_eq!(text, "ab\u{fffd}cd\u{fffd}");
        assert_eq!(unreadable, [2, 7]);
        assert!(read("real \u{fffd}".as_bytes(), UTF_8).1.is_empty());
        assert_eq!(read(b"a\0b", UTF_16LE).1, [1]);
    }

    #[test]
    fn characters_across_block_boundaries_are_decoded() {
        let long = "äöü€".repeat(BLOCK);
        let mut text = Text::new(long.as_bytes(), UTF_8, false);
        let (mut output, mut buffer) = (Vec::new(), vec![0; 1000]);
        loop {
            let length = text.read(&mut buffer).unwrap();
            output.extend(&buffer[..length]);
            let _ = text.take_unreadable(0, output.len() as u64 / 2);
            if length == 0 {
                break;
            }
        }
        assert_eq!(String::from_utf8(output).unwrap(), long);
        assert_eq!(text.raw_position(), long.len() as u64 / 2);
    }
}
