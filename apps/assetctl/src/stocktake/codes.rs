//! Reads codes from the keyboard or a file: separated by line breaks of any kind, or by tabs.

use super::journal::{Journal, Scan};
use crate::error::{CliError, Result};
use crate::http::Client;
use crate::import::encoding::examine;
use encoding_rs::{Decoder, Encoding, UTF_8};
use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::time::Duration;
use terminal::print_note;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

/// Maximum number of codes per request.
const AT_ONCE: usize = 100;
/// Codes within this time after the first one are sent together.
const TOGETHER: Duration = Duration::from_millis(300);

pub enum Codes {
    Keyboard(UnboundedReceiver<Result<Scan>>),
    File(std::vec::IntoIter<String>),
}

impl Codes {
    /// Opens the file or, without one, reads from the keyboard. Codes from the keyboard are in the journal before anything else
    /// happens to them.
    pub fn open(file: Option<&Path>, journal: &Journal, client: &Client) -> Result<Self> {
        let Some(path) = file else {
            let (sender, scans) = unbounded_channel();
            let (mut writer, client) = (journal.writer()?, client.clone());
            // A thread that waits for input can't be stopped, so the program doesn't wait for it at the end.
            std::thread::spawn(move || {
                let (mut input, mut splitter) = (std::io::stdin().lock(), Splitter::new(UTF_8));
                loop {
                    let (codes, length) = match input.fill_buf() {
                        Ok(bytes) => (splitter.push(bytes, bytes.is_empty()), bytes.len()),
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                        Err(_) => (splitter.push(&[], true), 0),
                    };
                    input.consume(length);
                    for code in codes {
                        let scan = client.now().map(|at| Scan { code, at });
                        let kept = scan.and_then(|scan| writer.scan(&scan).map(|()| scan));
                        if sender.send(kept).is_err() {
                            return;
                        }
                    }
                    if length == 0 {
                        return;
                    }
                }
            });
            return Ok(Self::Keyboard(scans));
        };
        let failed = |error| CliError::Usage(format!("{}: {error}", path.display()));
        let bytes = fs::read(path).map_err(failed)?;
        let encoding = examine(bytes.as_slice(), None).map_err(failed)?.encoding;
        if encoding != UTF_8 {
            print_note(&format!("Reading {} as {}.", path.display(), encoding.name()));
        }
        Ok(Self::File(Splitter::new(encoding).push(&bytes, true).into_iter()))
    }

    /// Returns up to as many scans as fit in a request; `None` at the end. `is_wanted` selects codes of a file, which are kept in
    /// the journal.
    pub async fn next(
        &mut self,
        journal: &mut Journal,
        client: &Client,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<Vec<Scan>>> {
        let lines = match self {
            Self::File(codes) => {
                let (mut scans, at) = (Vec::new(), client.now()?);
                for code in codes.filter(|code| is_wanted(code)).take(AT_ONCE) {
                    let scan = Scan { code, at };
                    journal.scan(&scan)?;
                    scans.push(scan);
                }
                return Ok(Some(scans).filter(|scans| !scans.is_empty()));
            }
            Self::Keyboard(lines) => lines,
        };
        let Some(first) = lines.recv().await else { return Ok(None) };
        let mut scans = vec![first?];
        let end = Instant::now() + TOGETHER;
        while scans.len() < AT_ONCE
            && let Ok(Some(scan)) = timeout_at(end, lines.recv()).await
        {
            scans.push(scan?);
        }
        Ok(Some(scans))
    }
}

/// Splits scans of an earlier run into requests.
pub fn batches(scans: &[Scan]) -> impl Iterator<Item = &[Scan]> {
    scans.chunks(AT_ONCE)
}

/// Splits bytes into codes. A byte order mark at the start takes precedence over the encoding. Bytes that the encoding doesn't
/// define become U+FFFD, which codes can't contain.
struct Splitter {
    decoder: Decoder,
    /// The beginning of a code.
    rest: String,
}

impl Splitter {
    fn new(encoding: &'static Encoding) -> Self {
        Self { decoder: encoding.new_decoder(), rest: String::new() }
    }

    /// Returns the codes that end in these bytes.
    fn push(&mut self, bytes: &[u8], is_last: bool) -> Vec<String> {
        self.rest.reserve(self.decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
        // The reserved capacity is enough for all bytes.
        let _ = self.decoder.decode_to_string(bytes, &mut self.rest, is_last);
        let complete = match self.rest.rfind(is_separator) {
            _ if is_last => self.rest.len(),
            Some(last) => self.rest.ceil_char_boundary(last + 1),
            None => return Vec::new(),
        };
        self.rest.drain(..complete).collect::<String>().split(is_separator).filter_map(code).collect()
    }
}

/// Whether the character is a line break of any kind, or a tab.
fn is_separator(c: char) -> bool {
    matches!(c, '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the code on a line, without surrounding quotes.
fn code(line: &str) -> Option<String> {
    let line = line.trim();
    let code = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(line).trim();
    Some(code).filter(|code| !code.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_break_and_a_tab_separate_codes() {
        let text = "A-1\rA-2\r\nA-3\tA-4\n\n\u{b}A-5\u{c}A 6\u{85}\"A-7\"\u{2028}A-8\u{2029} \n\u{1d}A-9";
        let expected = ["A-1", "A-2", "A-3", "A-4", "A-5", "A 6", "A-7", "A-8", "\u{1d}A-9"];
        assert_eq!(Splitter::new(UTF_8).push(text.as_bytes(), true), expected);
        // However the bytes arrive.
        for utf16 in [false, true] {
            let marked = format!("\u{feff}{text}");
            let bytes: Vec<u8> = if utf16 { marked.encode_utf16().flat_map(u16::to_le_bytes).collect() } else { marked.into() };
            let mut splitter = Splitter::new(UTF_8);
            let mut codes: Vec<String> = bytes.iter().flat_map(|byte| splitter.push(&[*byte], false)).collect();
            codes.extend(splitter.push(&[], true));
            assert_eq!(codes, expected, "UTF-16: {utf16}");
        }
    }

    #[test]
    fn a_code_is_complete_before_the_input_ends() {
        let mut splitter = Splitter::new(UTF_8);
        assert_eq!(splitter.push(b"A-1\rA-", false), ["A-1"]);
        assert_eq!(splitter.push(b"2\t", false), ["A-2"]);
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_start() {
        let codes = Splitter::new(UTF_8).push(b"A-1\n\xff\xfeA-2\nA-3\n\xfe\xff\nA-4", true);
        assert_eq!(codes, ["A-1", "\u{fffd}\u{fffd}A-2", "A-3", "\u{fffd}\u{fffd}", "A-4"]);
    }
}
