//! Detects a file's encoding and size.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, Read};

/// Size of the start that is searched for a byte order mark and UTF-16, and shows the delimiter, in bytes.
const SAMPLE: usize = 64 << 10;

/// Bytes that windows-1252 doesn't define.
const UNDEFINED: [u8; 5] = [0x81, 0x8D, 0x8F, 0x90, 0x9D];

/// The result of one pass over a file.
pub struct Examination {
    pub encoding: &'static Encoding,
    /// How the encoding was detected, in words.
    pub how: &'static str,
    pub doubt: Option<Doubt>,
    /// Size in bytes.
    pub size: u64,
    pub sample: Vec<u8>,
}

/// A sign that the file is being read in the wrong encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The file is UTF-8 with characters beyond ASCII.
    IsUtf8,
    /// The file has bytes that windows-1252 doesn't define.
    UndefinedBytes,
    /// The letters suggest an encoding other than windows-1252, which can be wrong.
    Guessed,
}

pub fn examine(mut input: impl Read, given: Option<&'static Encoding>) -> io::Result<Examination> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (mut utf8, mut sample, mut size) = (Utf8Statistics::default(), Vec::new(), 0);
    let mut has_undefined = false;
    let mut buffer = vec![0; SAMPLE];
    loop {
        let read = input.read(&mut buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        detector.feed(bytes, read == 0);
        utf8.feed(bytes);
        has_undefined |= bytes.iter().any(|byte| UNDEFINED.contains(byte));
        size += read as u64;
        let missing = SAMPLE.saturating_sub(sample.len()).min(read);
        sample.extend(bytes.iter().take(missing));
        if read == 0 {
            break;
        }
    }
    let (encoding, how) = match (Encoding::for_bom(&sample), given, utf16(&sample)) {
        (Some((encoding, _)), ..) => (encoding, "by its byte order mark"),
        (None, Some(encoding), _) => (encoding, "as given"),
        (None, None, Some(encoding)) => (encoding, "detected"),
        // Text in other encodings hardly ever contains valid UTF-8 sequences, so a few bad bytes don't rule out UTF-8.
        _ if utf8.invalid == 0 || utf8.valid > utf8.invalid => (UTF_8, "detected"),
        _ => (detector.guess(None, Utf8Detection::Deny), "detected"),
    };
    let doubt = match given {
        Some(given) if given == encoding && encoding != UTF_8 && utf8.is_utf8() => Some(Doubt::IsUtf8),
        _ if encoding == WINDOWS_1252 && has_undefined => Some(Doubt::UndefinedBytes),
        None if ![UTF_8, UTF_16LE, UTF_16BE, WINDOWS_1252].contains(&encoding) => Some(Doubt::Guessed),
        _ => None,
    };
    Ok(Examination { encoding, how, doubt, size, sample })
}

/// Recognizes UTF-16 without a byte order mark: in tables, most characters are ASCII, whose second byte is 0.
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

/// Counts valid and invalid UTF-8 sequences beyond ASCII.
#[derive(Debug, Default)]
struct Utf8Statistics {
    valid: u64,
    invalid: u64,
    incomplete: Vec<u8>,
}

impl Utf8Statistics {
    /// Whether the text is probably UTF-8. Plain ASCII doesn't count: its encoding doesn't matter.
    fn is_utf8(&self) -> bool {
        self.valid > 0 && self.invalid == 0 && self.incomplete.is_empty()
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut text = std::mem::take(&mut self.incomplete);
        text.extend_from_slice(bytes);
        let mut rest = text.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, after) = rest.split_at(error.valid_up_to());
            self.count(valid);
            let Some(length) = error.error_len() else {
                // The next bytes can complete this character, unless the file ends here.
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

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn the_encoding_is_detected() {
        let text = "name\tserial\nGerät\tX1\n";
        for (bytes, encoding) in [
            // A byte order mark decides.
            (&b"\xEF\xBB\xBFname"[..], "UTF-8"),
            (b"\xFF\xFEn\0", "UTF-16LE"),
            (b"\xFE\xFF\0n", "UTF-16BE"),
            // Without a byte order mark, the zeros reveal UTF-16.
            (&utf16(text, u16::to_le_bytes), "UTF-16LE"),
            (&utf16(text, u16::to_be_bytes), "UTF-16BE"),
            (b"Name;Preis\nGer\xE4t;1.249,00 \x80\n", "windows-1252"),
            (b"M\xFCller", "windows-1252"),
            (b"B\xFCro K\xF6ln;Stra\xDFe", "windows-1252"),
            (b"plain", "UTF-8"),
            ("Müller, Köln".as_bytes(), "UTF-8"),
            (b"M\xC3\xBCller, K\xC3\xB6ln, \xFF", "UTF-8"),
            (b"cut off \xC3", "UTF-8"),
        ] {
            assert_eq!(examine(bytes, None).unwrap().encoding.name(), encoding, "{bytes:?}");
        }
        let marked = examine(&b"\xFF\xFEn\0"[..], Some(UTF_8)).unwrap();
        assert_eq!((marked.encoding.name(), marked.how), ("UTF-16LE", "by its byte order mark"));
    }

    #[test]
    fn a_wrong_encoding_is_doubted() {
        let doubt = |bytes: &[u8], given| examine(bytes, Some(given)).unwrap().doubt;
        assert_eq!(doubt("Müller".as_bytes(), WINDOWS_1252), Some(Doubt::IsUtf8));
        assert_eq!(doubt("Müller".as_bytes(), UTF_8), None);
        assert_eq!(doubt(b"M\xFCller", WINDOWS_1252), None);
        assert_eq!(doubt(b"Miller", WINDOWS_1252), None);
        // `Müller` in cp850.
        assert_eq!(doubt(b"M\x81ller", WINDOWS_1252), Some(Doubt::UndefinedBytes));
        assert_eq!(examine(&b"M\xC3\xBCller"[..], None).unwrap().doubt, None);
        let guess = examine(&b"Name;Seriennummer\nGer\x84t M\x81ller;CP1\nB\x81ro;CP2\n"[..], None).unwrap();
        assert!(guess.doubt.is_some(), "{}", guess.encoding.name());
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
    fn the_size_and_the_start_of_the_file_are_known() {
        let examination = examine(&b"abc"[..], None).unwrap();
        assert_eq!((examination.size, examination.sample.as_slice()), (3, &b"abc"[..]));
    }
}
