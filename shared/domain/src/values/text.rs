//! Texts with bounds on their length and characters, in Unicode's composed form (NFC). Lengths count characters, not bytes.

use crate::values::field_error::ValueError;
use crate::values::hidden_characters::check_visible;
pub use fields::compared::fold;
use icu_normalizer::ComposingNormalizerBorrowed;
use std::borrow::Cow;

/// The invisible characters that a text may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// None that [`check_visible`] finds.
    One,
    /// Line breaks and tabs, and all that are no control characters.
    Many,
    /// Line breaks and tabs, and none that [`check_visible`] finds.
    Shown,
    /// All but control characters, to find texts that were stored by other rules.
    Searched,
}

fn check(text: &str, lengths: std::ops::RangeInclusive<usize>, lines: Lines) -> Result<String, ValueError> {
    let has_lines = matches!(lines, Lines::Many | Lines::Shown);
    let text = composed(if lines == Lines::Many { text } else { text.trim() });
    if text.chars().any(|c| c.is_control() && !(has_lines && matches!(c, '\n' | '\r' | '\t'))) {
        return Err(ValueError::new("must not contain control characters"));
    }
    if matches!(lines, Lines::One | Lines::Shown) {
        check_visible(&text)?;
    }
    let length = text.chars().count();
    if length < *lengths.start() {
        return Err(ValueError::new("must not be empty"));
    }
    if length > *lengths.end() {
        return Err(ValueError::new(format!("must have at most {} characters; this has {length}", lengths.end())));
    }
    Ok(text.into_owned())
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $min:tt ..= $max:tt $lines:ident $pattern:tt,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, min_length = $min, max_length = $max, pattern = $pattern)]
        pub struct $name(String);

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
            /// The text was checked when it was stored, perhaps by other rules.
            #[must_use]
            pub fn from_stored(text: String) -> Self { Self(text) }
        }
    )*};
}

texts! {
    /// A display name. Surrounding white space is removed.
    Name: 1 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// One line of text, such as a serial number. May be empty; surrounding white space is removed.
    Line: 0 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// Text of any number of lines, such as internal notes.
    Notes: 0 ..= 10_000 Many r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$",
    /// The sentence that a signer confirms, of any number of lines. Surrounding white space is removed.
    Statement: 1 ..= 500 Shown r"^[\t-\r \u0085]*[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// The text that a list is searched for.
    SearchText: 0 ..= 255 Searched r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
}

impl Default for Notes {
    /// The other texts have no default.
    fn default() -> Self {
        Self(String::new())
    }
}

/// What is wrong with a text that has U+0000.
pub const NUL: &str = "must not contain U+0000, which no text has";

/// Unicode's composed form (NFC), in which a character has one spelling.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
    NFC.normalize(text)
}

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
    fn texts_are_composed() {
        assert_eq!("Ju\u{308}rgen".parse::<Name>().as_deref(), Ok("J\u{fc}rgen"));
        assert_eq!("e\u{301}\n".parse::<Notes>().as_deref(), Ok("\u{e9}\n"));
        assert!("e\u{301}".repeat(255).parse::<Name>().is_ok(), "lengths are those of the composed text");
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
    fn what_was_stored_by_other_rules_can_be_read_and_searched() {
        let name: Name = serde_json::from_str("\"a\\u202eb\"").expect("a stored name");
        assert_eq!(&*name, "a\u{202e}b");
        assert!("a\u{202e}b".parse::<SearchText>().is_ok() && "a\nb".parse::<SearchText>().is_err());
    }

    #[test]
    fn a_composed_text_has_one_spelling() {
        assert_eq!(composed("Ju\u{308}rgen"), "Jürgen");
        assert_eq!(composed("Jürgen"), "Jürgen");
    }
}
