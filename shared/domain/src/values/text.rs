//! Texts with limits on length and characters, in Unicode normalization form C (NFC). Lengths count characters, not bytes. Lines
//! must not contain invisible characters, which could disguise them, and have single spaces, except serial numbers. Also has
//! locations with levels, such as site, floor and room.

use crate::values::field_error::{ErrorCode, ValueError, text_form};
pub use fields::compared::{fold, single_spaced};
use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub const NUL: &str = "must not contain the NUL character U+0000";
const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// The flag emoji that is followed by the letters of a region as tags, as in Scotland's flag.
const BLACK_FLAG: char = '\u{1f3f4}';
/// Maximum number of tags after a flag: five for the region, one that ends the flag, and one to spare.
const MAX_TAGS: usize = 7;

const MAX_LOCATION_LEVELS: usize = 8;
const MAX_LOCATION_CHARS: usize = 255;
/// Separates the levels of a location.
const SEPARATOR: &str = " / ";

/// The invisible characters that a text can contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// Only what [`check_visible`] permits. Each run of white space is stored as one space.
    One,
    /// Only what [`check_visible`] permits, with its white space.
    AsSent,
    /// Line breaks, tabs, and everything except control characters.
    Many,
    /// Line breaks, tabs, and what [`check_visible`] permits.
    Shown,
    /// Everything except control characters, to find texts stored under other rules.
    Searched,
}

fn check(text: &str, lengths: std::ops::RangeInclusive<usize>, lines: Lines) -> Result<String, ValueError> {
    let has_lines = matches!(lines, Lines::Many | Lines::Shown);
    let text = composed(if lines == Lines::Many { text } else { text.trim() });
    if text.chars().any(|c| c.is_control() && !(has_lines && matches!(c, '\n' | '\r' | '\t'))) {
        return Err(ValueError::coded(ErrorCode::InvalidCharacter, "must not contain control characters"));
    }
    if matches!(lines, Lines::One | Lines::AsSent | Lines::Shown) {
        check_visible(&text)?;
    }
    let text = if lines == Lines::One { single_spaced(&text) } else { text };
    let length = text.chars().count();
    if length < *lengths.start() {
        return Err(ValueError::coded(ErrorCode::Required, "must not be empty"));
    }
    if length > *lengths.end() {
        let text = format!("must have at most {} characters; this has {length}", lengths.end());
        return Err(ValueError::limited(ErrorCode::TooLong, *lengths.end(), text));
    }
    Ok(text.into_owned())
}

/// Compares lines that were stored with other white space as if they were stored now, so that sending them back changes nothing.
fn are_equal(lines: Lines, a: &str, b: &str) -> bool {
    a == b || lines == Lines::One && single_spaced(a) == single_spaced(b)
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $min:tt ..= $max:tt $lines:ident $pattern:tt,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, min_length = $min, max_length = $max, pattern = $pattern)]
        pub struct $name(String);

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool { are_equal(Lines::$lines, &self.0, &other.0) }
        }
        impl std::ops::Deref for $name {
            type Target = str;
            fn deref(&self) -> &str { &self.0 }
        }
        impl From<$name> for String {
            fn from(text: $name) -> Self { text.0 }
        }
        impl std::str::FromStr for $name {
            type Err = ValueError;
            fn from_str(text: &str) -> Result<Self, ValueError> { check(text, $min..=$max, Lines::$lines).map(Self) }
        }
        impl $name {
            /// Skips the checks: the text was checked when it was stored, possibly under other rules.
            pub fn from_stored(text: String) -> Self { Self(text) }
        }
    )*};
}

texts! {
    /// Display name. Surrounding whitespace is removed; other runs of whitespace become one space.
    Name: 1 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// One line of text. Can be empty. Surrounding whitespace is removed; other runs of whitespace become one space.
    Line: 0 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// Serial number. Can be empty; surrounding whitespace is removed.
    SerialNumber: 0 ..= 255 AsSent r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// Multi-line text, such as internal notes.
    Notes: 0 ..= 10_000 Many r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$",
    /// Sentence that a signer confirms. It can have several lines. Surrounding whitespace is removed.
    Statement: 1 ..= 500 Shown r"^[\t-\r \u0085]*[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// Text to search a list for.
    SearchText: 0 ..= 255 Searched r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
}

impl Default for Notes {
    /// Returns an empty text. Other kinds of text have no default.
    fn default() -> Self {
        Self(String::new())
    }
}

/// Converts a string to Unicode normalization form C (NFC), in which each character has only one encoding.
pub fn composed(text: &str) -> Cow<'_, str> {
    const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
    NFC.normalize(text)
}

/// Rejects invisible characters that no script or emoji needs: bidirectional controls, and zero-width characters other than
/// joiners in scripts that use them.
///
/// # Errors
///
/// Returns an error with the first invisible character and its position.
pub fn check_visible(line: &str) -> Result<(), ValueError> {
    let Some((place, c)) = hidden_character(line) else { return Ok(()) };
    let text = format!("must not contain the invisible character U+{:04X}, at position {}", u32::from(c), place + 1);
    Err(ValueError::coded(ErrorCode::InvalidCharacter, text))
}

fn hidden_character(line: &str) -> Option<(usize, char)> {
    if line.is_ascii() {
        return None;
    }
    let chars: Vec<char> = line.chars().collect();
    let is_hidden = |(index, c): (usize, &char)| {
        let before = index.checked_sub(1).and_then(|index| chars.get(index)).copied();
        match *c {
            ZERO_WIDTH_NON_JOINER | ZERO_WIDTH_JOINER => !joins(*c, before, chars.get(index + 1).copied()),
            '\u{e0020}'..='\u{e007f}' => !is_in_flag(&chars, index),
            '\u{fe00}'..='\u{fe0f}' => !before.is_some_and(has_variants),
            '\u{180b}'..='\u{180d}' | '\u{180f}' => !matches!(before, Some('\u{1800}'..='\u{18af}')),
            '\u{e0100}'..='\u{e01ef}' => !before.is_some_and(is_ideograph),
            c => is_never_seen(c),
        }
    };
    chars.iter().enumerate().find(|(index, c)| is_hidden((*index, *c))).map(|(index, c)| (index, *c))
}

/// Whether a tag belongs to a flag: a black flag, followed by tags up to the cancel tag (Unicode Technical Standard 51).
fn is_in_flag(chars: &[char], index: usize) -> bool {
    let is_tag = |c: &&char| matches!(c, '\u{e0020}'..='\u{e007f}');
    let before = chars.get(..index).unwrap_or_default().iter().rev().take_while(is_tag).count();
    let after = chars.get(index..).unwrap_or_default().iter().take_while(is_tag).count();
    let begins_with_flag = index.checked_sub(before + 1).and_then(|start| chars.get(start)) == Some(&BLACK_FLAG);
    let last = (index + after).checked_sub(1).and_then(|last| chars.get(last));
    begins_with_flag && before + after <= MAX_TAGS && last == Some(&'\u{e007f}')
}

/// Whether a variation selector has a meaning after a character: an emoji or another symbol, an ideograph, a keycap character, or
/// a character of the Myanmar script.
fn has_variants(c: char) -> bool {
    let is_keycap = matches!(c, '0'..='9' | '#' | '*');
    let is_symbol = !c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace();
    is_keycap || is_symbol || is_ideograph(c) || matches!(c, '\u{1000}'..='\u{109f}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a character is always invisible: bidirectional marks, embeddings, overrides and isolates, line separators, and
/// zero-width characters.
pub(crate) fn is_never_seen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{2800}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fffe}'
            | '\u{ffff}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a joiner has a meaning between two characters: joining letters, or emoji. In Persian, a non-joiner also separates a
/// suffix from a word in another script; in Persian and Malayalam, a joiner can also end a word.
fn joins(joiner: char, before: Option<char>, after: Option<char>) -> bool {
    let (joins_before, joins_after) = (before.is_some_and(has_joining_letters), after.is_some_and(has_joining_letters));
    match joiner {
        ZERO_WIDTH_NON_JOINER => joins_after && before.is_some_and(|before| !before.is_whitespace()),
        _ => joins_before || before.is_some_and(|c| is_emoji(c) || c == '\u{fe0f}') && after.is_some_and(is_emoji),
    }
}

/// Whether a character belongs to a script that uses joiners: Arabic and similar scripts, the scripts of India and its
/// neighbours, and Mongolian.
fn has_joining_letters(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{8ff}'
            | '\u{900}'..='\u{dff}'
            | '\u{f00}'..='\u{109f}'
            | '\u{1780}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}'
            | '\u{a800}'..='\u{abff}'
            | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefe}'
            | '\u{10a00}'..='\u{10fff}'
            | '\u{11000}'..='\u{11fff}'
            | '\u{1e900}'..='\u{1e95f}'
    )
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Levels separated by ` / `, the largest first: `Berlin / 3rd floor / 3.14`. Whitespace around levels is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 255, examples("Berlin / 3rd floor / 3.14"))]
#[schema(pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+(/[^/\u0000-\u001f\u007f-\u009f]+){0,7}$")]
pub struct Location(String);

impl Location {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a place contains another place, ignoring case. A place contains itself.
    pub fn contains(&self, other: &Self) -> bool {
        is_at_or_below(&fold(&self.0), &fold(&other.0))
    }
}

impl std::ops::Deref for Location {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// Whether a location is at or below a place. Both must be case-folded.
pub fn is_at_or_below(place: &str, location: &str) -> bool {
    location.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATOR))
}

pub fn upper_levels(location: &str, depth: usize) -> &str {
    let end = location.match_indices(SEPARATOR).nth(depth.saturating_sub(1)).map(|(end, _)| end);
    end.and_then(|end| location.get(..end)).unwrap_or(location)
}

impl std::str::FromStr for Location {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let line: Line = text.parse()?;
        let levels: Vec<&str> = line.split('/').map(str::trim).collect();
        if line.is_empty() {
            return Err(ValueError::coded(ErrorCode::Required, "must not be empty"));
        }
        if levels.iter().any(|level| level.is_empty()) {
            let detail = "must not have an empty level, such as between two slashes";
            return Err(ValueError::coded(ErrorCode::EmptyLevel, detail));
        }
        if levels.len() > MAX_LOCATION_LEVELS {
            let detail = format!("must have at most {MAX_LOCATION_LEVELS} levels; this has {}", levels.len());
            return Err(ValueError::limited(ErrorCode::TooManyLevels, MAX_LOCATION_LEVELS, detail));
        }
        let text = levels.join(SEPARATOR);
        let length = text.chars().count();
        if length > MAX_LOCATION_CHARS {
            let detail =
                format!("must have at most {MAX_LOCATION_CHARS} characters, with ' / ' between levels; this has {length}");
            return Err(ValueError::limited(ErrorCode::TooLong, MAX_LOCATION_CHARS, detail));
        }
        Ok(Self(text))
    }
}

text_form!(Location, |location| location.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_has_one_to_255_characters() {
        assert_eq!("  Dell XPS  ".parse::<Name>().as_deref(), Ok("Dell XPS"));
        assert!("ä".repeat(255).parse::<Name>().is_ok());
        for wrong in ["", " \t ", "a\0b", "a\nb", "a\u{202e}b", "a\u{200b}b", &"ä".repeat(256)] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_serial_numbers_keep_the_white_space_within_a_line() {
        for text in ["3rd  floor", "3rd\u{a0}floor", " 3rd\u{2009}\u{3000}floor"] {
            assert_eq!(text.parse::<Name>().as_deref(), Ok("3rd floor"), "{text:?}");
            assert_eq!(text.parse::<Line>().as_deref(), Ok("3rd floor"), "{text:?}");
            assert_eq!(location(text).as_str(), "3rd floor", "{text:?}");
            assert_eq!(text.parse::<SerialNumber>().as_deref(), Ok(text.trim()), "{text:?}");
            assert_eq!(Name::from_stored(text.to_owned()), location(text).parse().expect("a name"), "{text:?}");
        }
        assert!(format!("{}a", "a\u{a0} ".repeat(127)).parse::<Name>().is_ok(), "the stored characters are counted");
        assert_ne!("a  b".parse::<SerialNumber>(), "a b".parse());
    }

    #[test]
    fn texts_are_composed() {
        assert_eq!("Ju\u{308}rgen".parse::<Name>().as_deref(), Ok("J\u{fc}rgen"));
        assert_eq!("e\u{301}\n".parse::<Notes>().as_deref(), Ok("\u{e9}\n"));
        assert!("e\u{301}".repeat(255).parse::<Name>().is_ok(), "the composed characters are counted");
    }

    #[test]
    fn notes_keep_their_lines_and_white_space() {
        assert_eq!(" a\r\n\tb ".parse::<Notes>().as_deref(), Ok(" a\r\n\tb "));
        assert!("a\u{7}".parse::<Notes>().is_err());
    }

    #[test]
    fn a_statement_has_lines_and_nothing_that_cannot_be_seen() {
        assert_eq!(" I got it.\n\tAll of it. ".parse::<Statement>().as_deref(), Ok("I got it.\n\tAll of it."));
        assert!("ä".repeat(500).parse::<Statement>().is_ok());
        for wrong in ["", " \n ", "a\u{7}", "a\u{202e}b", "a\u{200b}b", &"ä".repeat(501)] {
            assert!(wrong.parse::<Statement>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn texts_stored_under_older_rules_can_be_read_and_searched() {
        let name: Name = serde_json::from_str("\"a\\u202eb\"").expect("a stored name");
        assert_eq!(&*name, "a\u{202e}b");
        assert!("a\u{202e}b".parse::<SearchText>().is_ok() && "a\nb".parse::<SearchText>().is_err());
    }

    #[test]
    fn texts_of_all_scripts_have_no_hidden_characters() {
        for line in [
            "Ada Lovelace",
            "Jürgen Ö",
            "Ju\u{308}rgen",
            "\u{5d0}\u{5d1} 12",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{1f469}\u{200d}\u{1f4bb}",
            "\u{1f469}\u{1f3fd}\u{200d}\u{2764}\u{fe0f}\u{200d}\u{1f468}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "日本",
            "PDF\u{200c}\u{647}\u{627}",
            "\u{647}\u{200d}.\u{642}",
            "\u{d05}\u{d35}\u{d28}\u{d4d}\u{200d}",
            "\u{8fbb}\u{e0100}さん",
            "1\u{fe0f}\u{20e3} \u{2764}\u{fe0f} \u{1820}\u{180b}",
        ] {
            assert_eq!(check_visible(line), Ok(()), "{line:?}");
        }
    }

    #[test]
    fn characters_that_reorder_or_hide_text_are_recognized() {
        let controls = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        let widthless = "\u{ad}\u{200b}\u{2060}\u{2064}\u{feff}\u{180e}\u{2028}\u{2029}\u{e0001}\u{e0041}";
        for hidden in controls.chars().chain(widthless.chars()) {
            assert!(check_visible(&format!("a{hidden}b")).is_err(), "{hidden:?}");
        }
        let flag = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}";
        let endless = format!("\u{1f3f4}{}\u{e007f}", "\u{e0061}".repeat(20));
        for line in ["ada\u{fe0f}", "ada\u{e0100}", "\u{645}\u{180b}", flag, &endless] {
            assert!(check_visible(line).is_err(), "{line:?}");
        }
        for line in
            ["ad\u{200d}a", "ad\u{200c}a", "\u{200c}\u{645}", "\u{200d}\u{645}", "\u{645}\u{200c}", "\u{645} \u{200c}\u{645}"]
        {
            assert!(check_visible(line).is_err(), "{line:?}");
        }
        let error = check_visible("Charger\u{200b}").expect_err("hidden");
        assert_eq!(error.to_string(), "must not contain the invisible character U+200B, at position 8");
    }

    fn location(text: &str) -> Location {
        text.parse().expect(text)
    }

    #[test]
    fn spellings_of_a_place_have_one_form() {
        for text in ["Berlin/3rd floor/3.14", "Berlin / 3rd floor / 3.14", "  Berlin /3rd floor/\u{a0}3.14 "] {
            assert_eq!(&*location(text), "Berlin / 3rd floor / 3.14", "{text}");
        }
        assert_eq!(&*location("Ju\u{308}lich"), "Jülich");
        assert_eq!(location("1/2/3/4/5/6/7/8").split(SEPARATOR).count(), MAX_LOCATION_LEVELS);
    }

    #[test]
    fn levels_are_few_and_not_empty() {
        let long = format!("{}/{}", "a".repeat(126), "b".repeat(127));
        for wrong in ["", " ", "/", "Berlin/", "/Berlin", "a//b", "a/ /b", "a\nb", "1/2/3/4/5/6/7/8/9", &"a".repeat(256), &long] {
            assert!(wrong.parse::<Location>().is_err(), "{wrong}");
        }
        assert!(format!("{}/{}", "a".repeat(126), "b".repeat(126)).parse::<Location>().is_ok());
    }

    #[test]
    fn a_place_contains_itself_and_what_is_below() {
        let berlin = location("Berlin");
        for (other, is_inside) in
            [("berlin", true), ("BERLIN/3", true), ("Berlin / 3 / 14", true), ("Berlin-Mitte", false), ("Bonn", false)]
        {
            assert_eq!(berlin.contains(&location(other)), is_inside, "{other}");
        }
        assert!(!location("Berlin/3").contains(&berlin) && location("STRASSE/1").contains(&location("Straße / 1 / 2")));
    }

    #[test]
    fn the_upper_levels_of_a_place_are_a_place() {
        for (depth, upper) in [(1, "a"), (2, "a / b"), (3, "a / b / c"), (8, "a / b / c")] {
            assert_eq!(upper_levels("a / b / c", depth), upper);
        }
    }
}
