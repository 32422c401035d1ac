//! Serial numbers: comparison, placeholders, and numbers rounded by spreadsheets.

use crate::compared::compatible;

/// Placeholders typed by people or left in firmware (as shown by `dmidecode` and Intune), without spaces and punctuation.
const PLACEHOLDERS: &str = "na none null nil no unknown unbekannt keine kein ohne tbd todo missing notavailable notapplicable notspecified \
    noserial noserialnumber serialnumber defaultstring systemserialnumber chassisserialnumber tobefilledbyoem oem so ka nv keineangabe \
    nichtvorhanden nichtbekannt entfällt sans sansobjet aucun inconnu néant sinnúmero desconocido ninguno invalid empty leer vide vacío \
    noassettag assettag undefined ungültig";
/// Spreadsheet errors that don't end with `!` or `?`.
const OTHER_ERRORS: [&str; 3] = ["#n/a", "#nv", "#n/d"];
/// Minimum length of a run of one character, or of ascending digits, that counts as a placeholder.
const MIN_PATTERN: usize = 6;

const PLACEHOLDER: &str = "is a placeholder, not a serial number; create the asset without one";
/// Error for a serial number or tag rounded by a spreadsheet.
pub const SHORTENED: &str =
    "was rounded to scientific notation by a spreadsheet; export it again with this column formatted as text";

/// Returns why a serial number can't identify an asset; `None` if it can.
pub fn fault(serial: &str) -> Option<&'static str> {
    if is_placeholder(serial) { Some(PLACEHOLDER) } else { is_shortened(serial).then_some(SHORTENED) }
}

/// Normalizes a serial number for comparisons: ignores case, width (Unicode's NFKC) and whitespace.
pub fn key(serial: &str) -> String {
    compatible(serial).split_whitespace().collect()
}

/// Whether the text stands for an unknown serial number, such as `n/a`, `-`, `0`, `#REF!` or `To Be Filled By O.E.M.`
pub fn is_placeholder(serial: &str) -> bool {
    let text = key(serial);
    let bare: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    // Hexadecimal placeholders, such as `0x0` and `0xFFFFFFFF`.
    let digits = bare.strip_prefix("0x").filter(|digits| !digits.is_empty()).unwrap_or(&bare);
    is_spreadsheet_error(&text)
        || is_repetition(digits)
        || is_ascending(digits)
        || PLACEHOLDERS.split(' ').any(|placeholder| placeholder == bare)
}

/// Whether the text is empty, one character repeated at least `MIN_PATTERN` times, or only zeros or only `x`.
fn is_repetition(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_none_or(|first| {
        let is_meaningless = "0x".contains(first) || text.chars().nth(MIN_PATTERN - 1).is_some();
        is_meaningless && chars.all(|c| c == first)
    })
}

/// Whether the digits ascend, as in `123456` and `1234567890`.
fn is_ascending(text: &str) -> bool {
    let follows = |pair: (u8, u8)| pair.0.is_ascii_digit() && pair.1 == if pair.0 == b'9' { b'0' } else { pair.0 + 1 };
    text.len() >= MIN_PATTERN && text.bytes().zip(text.bytes().skip(1)).all(follows)
}

/// Whether a string is a spreadsheet error, such as `#REF!`, `#WERT!`, `#¿NOMBRE?` and `#N/A`.
fn is_spreadsheet_error(text: &str) -> bool {
    let is_named = || {
        let name = text.strip_prefix('#').and_then(|rest| rest.strip_suffix(['!', '?']));
        name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_alphabetic() || "/0¡¿".contains(c)))
    };
    OTHER_ERRORS.contains(&text) || is_named()
}

/// Whether a spreadsheet rounded the number, such as `1.23E+12` or `1,23E+12`: one digit, a point or comma, digits, `E+`, and at
/// least two digits.
pub fn is_shortened(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((mantissa, exponent)) = text.trim().split_once("E+") else { return false };
    let Some((whole, fraction)) = mantissa.split_once(['.', ',']) else { return false };
    whole.len() == 1 && [whole, fraction, exponent].into_iter().all(is_number) && exponent.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_recognized_however_they_are_written() {
        for text in [
            "n/a",
            "N.A.",
            "none",
            "Unknown",
            "-",
            "--",
            "?",
            "0",
            "0000",
            "xxx",
            "To Be Filled By O.E.M.",
            "Default string",
            "1111111",
            "123456789",
            "1234567890",
            "FFFFFFFF",
            "INVALID",
            "No Asset Tag",
            "OEM",
            "Empty",
            "Ｎ／Ａ",
            "#REF!",
            "#WERT!",
            "#N/A",
            "#NAME?",
            "#¡VALOR!",
            "#DIV/0!",
            "0x0",
            "0x00000000",
            "0xFFFFFFFF",
            "aaaaaa",
            "123456",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in [
            "S1", "PF3XK201", "0001", "X1", "NA-4711", "none1", "Ω7", "11111", "12345", "1234568", "123457", "FFFFFFFE",
            "#4711!", "0x1F", "987654", "100E10", "1E5", "00012345",
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }

    #[test]
    fn serial_numbers_are_the_same_in_another_case_and_width_and_with_spaces() {
        for text in ["PF3 XK011", "pf3xk011", "ＰＦ３ＸＫ０１１", " PF3\u{a0}XK\u{2009}011\t"] {
            assert_eq!(key(text), "pf3xk011", "{text}");
        }
        assert_ne!(key("PF3-XK011"), key("PF3XK011"));
        for text in ["Straße ﬁ İ ΐ", "ǰ\u{323}", "\u{1e9e}"] {
            assert_eq!(key(&key(text)), key(text), "{text}");
        }
    }

    #[test]
    fn shortened_numbers_are_recognized_by_their_form() {
        for text in ["8.93901E+18", "1,23E+12", "3.56938E+14", " 1.2E+10 "] {
            assert!(is_shortened(text), "{text}");
        }
        for text in [
            "100E10",
            "1E5",
            "00012345",
            "1E+12",
            "12.3E+12",
            "1.2E+9",
            "1.E+12",
            ".2E+12",
            "1.2e+12",
            "1.2E-12",
            "1.2.3E+12",
            "",
        ] {
            assert!(!is_shortened(text), "{text}");
        }
    }
}
