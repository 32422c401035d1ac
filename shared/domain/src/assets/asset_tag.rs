//! Tags that things wore before they were entered.

use crate::values::field_error::{ValueError, text_form};
use crate::values::text::composed;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::str::FromStr;

const MAX_CHARS: usize = 64;
/// More than a template makes of its placeholders.
const MAX_MADE_CHARS: usize = 512;
const FORM: &str = "must be 1 to 64 visible ASCII characters without spaces";

/// A tag that a client sends. An asset can bring 1 to 64 visible ASCII characters, see [`AssetTag::check_new`]. An existing asset may
/// have another tag, made by a template, and keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[!-~]{1,64}$", examples("INV-0143"))]
pub struct AssetTag(String);

impl FromStr for AssetTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match composed(text.trim()).into_owned() {
            text if (1..=MAX_MADE_CHARS).contains(&text.chars().count()) => Ok(Self(text)),
            _ => Err(ValueError::new(FORM)),
        }
    }
}

impl AssetTag {
    /// `.` and `..` are reserved: URL normalization removes them.
    ///
    /// # Errors
    ///
    /// Says why no new asset can bring it.
    pub fn check_new(&self) -> Result<(), ValueError> {
        let fits = self.0.len() <= MAX_CHARS && self.0.bytes().all(|byte| byte.is_ascii_graphic());
        match self.0.as_str() {
            "." | ".." => Err(ValueError::new("must not be . or .., which URLs can't contain as a path segment")),
            _ if fits => Ok(()),
            _ => Err(ValueError::new(FORM)),
        }
    }
}

text_form!(AssetTag, |tag| tag.0);

impl Deref for AssetTag {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_visible_and_short() {
        let longest = "x".repeat(64);
        for text in ["1", "...", ".a", "INV/0143#b", " padded ", &longest] {
            let tag = text.parse::<AssetTag>().expect(text);
            assert_eq!((&*tag, tag.check_new()), (text.trim(), Ok(())));
        }
        for text in [".", " .. ", "two words", "Ä1", "a\u{7f}", &"x".repeat(65)] {
            let tag = text.parse::<AssetTag>().expect(text);
            assert!(tag.check_new().is_err(), "{text:?}");
        }
        for text in ["", " "] {
            assert!(text.parse::<AssetTag>().is_err(), "{text:?}");
        }
    }
}
