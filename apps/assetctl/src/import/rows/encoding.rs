//! Finds out a file's encoding and hash in one pass.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// The part of the file's start that is searched for a byte order mark, the bytes of UTF-16 and the delimiter.
const SAMPLE: usize = 64 << 10;

/// The result of one pass over a file.
pub struct Examination {
    pub encoding: &'static Encoding,
    pub source: EncodingSource,
    /// In hexadecimal.
    pub sha256: String,
    /// In bytes.
    pub size: u64,
    pub sample: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodingSource {
    /// The file begins with a byte order mark, which outranks `--encoding`.
    ByteOrderMark,
    Given,
    /// The file's bytes look like it.
    Detected,
}

pub fn examine(mut input: impl Read, given: Option<&'static Encoding>) -> io::Result<Examination> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (mut hash, mut utf8, mut sample, mut size) = (Sha256::new(), Utf8Statistics::default(), Vec::new(), 0);
    let mut buffer = vec![0; SAMPLE];
    loop {
        let read = input.read(&mut buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        hash.update(bytes);
        detector.feed(bytes, read == 0);
        utf8.feed(bytes);
        size += read as u64;
        let missing = SAMPLE.saturating_sub(sample.len()).min(read);
        sample.extend(bytes.iter().take(missing));
        if read == 0 {
            break;
        }
    }
    let (encoding, source) = choose(&sample, given, &utf8, || detector.guess(None, Utf8Detection::Deny));
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Examination { encoding, source, sha256, size, sample })
}

fn choose(
    start: &[u8],
    given: Option<&'static Encoding>,
    utf8: &Utf8Statistics,
    guess: impl FnOnce() -> &'static Encoding,
) -> (&'static Encoding, EncodingSource) {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return (encoding, EncodingSource::ByteOrderMark);
    }
    if let Some(encoding) = given {
        return (encoding, EncodingSource::Given);
    }
    let detected = match utf16(start) {
        Some(encoding) => encoding,
        // Text in another encoding hardly ever has valid sequences of UTF-8: a few bad bytes don't make it something else.
        None if utf8.invalid == 0 || utf8.valid > utf8.invalid => UTF_8,
        None => guess(),
    };
    (detected, EncodingSource::Detected)
}

/// Recognizes UTF-16 without a byte order mark: in tables, most characters are ASCII, whose other byte is 0.
fn utf16(start: &[u8]) -> Option<&'static Encoding> {
    let zeros = |first: usize| start.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, enough) = (zeros(0), zeros(1), start.len() / 6);
    match start.len() {
        0..4 => None,
        _ if odd > enough && odd > 4 * even => Some(UTF_16LE),
        _ if even > enough && even > 4 * odd => Some(UTF_16BE),
        _ => None,
    }
}

/// Counts valid and invalid sequences of UTF-8 beyond ASCII.
#[derive(Debug, Default)]
struct Utf8Statistics {
    valid: u64,
    invalid: u64,
    incomplete: Vec<u8>,
}

impl Utf8Statistics {
    fn feed(&mut self, bytes: &[u8]) {
        let mut text = std::mem::take(&mut self.incomplete);
        text.extend_from_slice(bytes);
        let mut rest = text.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, after) = rest.split_at(error.valid_up_to());
            self.count(valid);
            let Some(length) = error.error_len() else {
                // A character that the next bytes may complete; at the end of the file, one that was cut off.
                self.incomplete = after.to_vec();
                return;
            };
            self.invalid += 1;
            rest = after.get(length..).unwrap_or_default();
        }
        self.count(rest);
    }

    fn count(&mut self, valid: &[u8]) {
        self.valid += valid.iter().filter(|byte| **byte >= 0b1100_0000).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(bytes: &[u8]) -> &'static str {
        examine(bytes, None).unwrap().encoding.name()
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn a_byte_order_mark_decides() {
        assert_eq!(detect(b"\xEF\xBB\xBFname"), "UTF-8");
        assert_eq!(detect(b"\xFF\xFEn\0"), "UTF-16LE");
        assert_eq!(detect(b"\xFE\xFF\0n"), "UTF-16BE");
        let marked = examine(&b"\xFF\xFEn\0"[..], Some(UTF_8)).unwrap();
        assert_eq!((marked.encoding.name(), marked.source), ("UTF-16LE", EncodingSource::ByteOrderMark));
    }

    #[test]
    fn utf16_without_a_mark_shows_by_its_zeros() {
        let text = "name\tserial\nGerät\tX1\n";
        assert_eq!(detect(&utf16(text, u16::to_le_bytes)), "UTF-16LE");
        assert_eq!(detect(&utf16(text, u16::to_be_bytes)), "UTF-16BE");
    }

    #[test]
    fn german_text_in_one_byte_per_character_is_windows_1252() {
        for text in ["Name;Preis\nGer\u{e4}t;1.249,00 \u{80}\n", "M\u{fc}ller", "B\u{fc}ro K\u{f6}ln;Stra\u{df}e"] {
            let bytes: Vec<u8> = text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect();
            assert_eq!(detect(&bytes), "windows-1252", "{text}");
        }
    }

    #[test]
    fn a_few_bad_bytes_are_still_utf8() {
        assert_eq!(detect("plain".as_bytes()), "UTF-8");
        assert_eq!(detect("Müller, Köln".as_bytes()), "UTF-8");
        assert_eq!(detect(b"M\xC3\xBCller, K\xC3\xB6ln, \xFF"), "UTF-8");
        assert_eq!(detect(b"cut off \xC3"), "UTF-8");
    }

    #[test]
    fn characters_may_span_two_reads() {
        let mut statistics = Utf8Statistics::default();
        for byte in "€ü".as_bytes() {
            statistics.feed(&[*byte]);
        }
        assert_eq!((statistics.valid, statistics.invalid), (2, 0));
    }

    #[test]
    fn hash_and_size_are_those_of_the_file() {
        let examination = examine(&b"abc"[..], None).unwrap();
        assert_eq!(examination.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((examination.size, examination.sample.as_slice()), (3, &b"abc"[..]));
    }
}
