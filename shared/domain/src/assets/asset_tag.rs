//! Tags that things wore before they were entered.

use crate::values::field_error::{ValueError, text_form};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::str::FromStr;

pub(super) const MAX_CHARS: usize = 64;

/// A tag of the client's choice: 1 to 64 visible ASCII characters. `.` and `..` are reserved: URL normalization removes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[!-~]{1,64}$", examples("INV-0143"))]
pub struct AssetTag(String);

impl FromStr for AssetTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let text = text.trim();
        let fits = (1..=MAX_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let error = || ValueError::new(format!("must be 1 to {MAX_CHARS} visible ASCII characters without spaces"));
        if [".", ".."].contains(&text) {
            return Err(ValueError::new("must not be . or .., which URLs can't contain as a path segment"));
        }
        fits.then(|| Self(text.to_owned())).ok_or_else(error)
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
        for text in ["", " ", ".", " .. ", "two words", "Ä1", "a\u{7f}", &"x".repeat(65)] {
            assert!(text.parse::<AssetTag>().is_err(), "{text:?}");
        }
    }
}
