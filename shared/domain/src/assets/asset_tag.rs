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

/// A tag of the client's choice: 1 to 64 visible ASCII characters. `.` and `..` are reserved: URL normalization removes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[!-~]{1,64}$", examples("INV-0143"))]
pub struct AssetTag(String);

impl FromStr for AssetTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let tag = Self(text.trim().to_owned());
        tag.check_new().map(|()| tag)
    }
}

impl AssetTag {
    /// # Errors
    ///
    /// Says why no new asset can bring it.
    pub fn check_new(&self) -> Result<(), ValueError> {
        let fits = (1..=MAX_CHARS).contains(&self.0.len()) && self.0.bytes().all(|byte| byte.is_ascii_graphic());
        match self.0.as_str() {
            "." | ".." => Err(ValueError::new("must not be . or .., which URLs can't contain as a path segment")),
            _ if fits => Ok(()),
            _ => Err(ValueError::new(FORM)),
        }
    }
}

/// The tag in a row of an import. The row may be about an existing asset, whose template can make tags with any letters.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = String)]
pub struct RowTag(pub AssetTag);

impl FromStr for RowTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match composed(text.trim()).into_owned() {
            text if (1..=MAX_MADE_CHARS).contains(&text.chars().count()) => Ok(Self(AssetTag(text))),
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
            assert_eq!(text.parse::<AssetTag>().as_deref(), Ok(text.trim()));
        }
        for text in [".", " .. ", "two words", "Ä1", "a\u{7f}", &"x".repeat(65)] {
            let RowTag(tag) = text.parse().expect(text);
            assert!(text.parse::<AssetTag>().is_err() && tag.check_new().is_err(), "{text:?}");
        }
        for text in ["", " "] {
            assert!(text.parse::<AssetTag>().is_err() && text.parse::<RowTag>().is_err(), "{text:?}");
        }
    }
}
