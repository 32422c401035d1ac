//! Texts with a length and a shape (contract 1, "Size"). Lengths count characters, not bytes.

use super::field_error::ValueError;

/// Characters that a text may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// No control characters at all.
    One,
    /// Line breaks and tabs, but no other control characters.
    Many,
}

fn check(text: &str, lengths: std::ops::RangeInclusive<usize>, lines: Lines) -> Result<String, ValueError> {
    let text = if lines == Lines::One { text.trim() } else { text };
    if text.chars().any(|c| c.is_control() && !(lines == Lines::Many && matches!(c, '\n' | '\r' | '\t'))) {
        return Err(ValueError::new("must not contain control characters"));
    }
    let length = text.chars().count();
    if length < *lengths.start() {
        return Err(ValueError::new("must not be empty"));
    }
    if length > *lengths.end() {
        return Err(ValueError::new(format!("must have at most {} characters; this has {length}", lengths.end())));
    }
    Ok(text.to_owned())
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $min:tt ..= $max:tt $lines:ident $pattern:tt,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(try_from = "String", into = "String")]
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
        impl TryFrom<String> for $name {
            type Error = ValueError;
            fn try_from(text: String) -> Result<Self, ValueError> { text.parse() }
        }
    )*};
}

texts! {
    /// What a thing is called; the blanks around it are cut off.
    Name: 1 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// A serial number, a manufacturer, a model: one line, perhaps empty.
    Line: 0 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
    /// Internal notes: any text of several lines.
    Notes: 0 ..= 10_000 Many r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$",
    /// What a list is searched for.
    SearchText: 0 ..= 255 One r"^[\t-\r \u0085]*[^\u0000-\u001f\u007f-\u009f]*[\t-\r \u0085]*$",
}

impl Default for Notes {
    /// Nothing noted.
    fn default() -> Self {
        Self(String::new())
    }
}

/// Folds case for searching: `Straße`, `STRASSE` and `strasse` are one.
///
/// By way of upper case, because that is where Unicode's many-to-one pairs meet (ß, ς); and lower case before that, for
/// the capital ẞ, which is its own upper case.
#[must_use]
pub fn fold(text: &str) -> String {
    let chars = text.chars().flat_map(char::to_lowercase);
    chars.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_has_one_to_255_characters() {
        assert_eq!("  Dell XPS  ".parse::<Name>().as_deref(), Ok("Dell XPS"));
        assert!("ä".repeat(255).parse::<Name>().is_ok());
        for wrong in ["", " \t ", "a\0b", "a\nb", &"ä".repeat(256)] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn notes_keep_their_lines() {
        assert_eq!(" a\r\n\tb ".parse::<Notes>().as_deref(), Ok(" a\r\n\tb "));
        assert!("a\u{7}".parse::<Notes>().is_err());
    }

    #[test]
    fn folding_knows_more_than_ascii() {
        assert_eq!(fold("STRASSE"), fold("straße"));
        assert_eq!(fold("GROẞ"), fold("groß"));
        assert_eq!(fold("ΟΔΟΣ"), fold("οδος"));
        assert_eq!(fold("Ünal"), fold("ÜNAL"));
    }
}
