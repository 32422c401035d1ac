//! The template of the address that a label's code holds.

use crate::values::field_error::{ValueError, text_form};
use crate::values::hidden_characters::check_visible;
use crate::values::id::AssetId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

const MAX_CHARS: usize = 255;
const TAG: &str = "{asset_tag}";
const ID: &str = "{id}";
/// Everything but the unreserved characters of a URL (RFC 3986 §2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An http or https address with `{asset_tag}` or `{id}` in it, such as `https://example.com/a/{asset_tag}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 255, examples("https://example.com/a/{asset_tag}"))]
pub struct LabelUrlTemplate(String);

impl LabelUrlTemplate {
    /// The tag is percent-encoded as UTF-8.
    #[must_use]
    pub fn url(&self, asset_tag: &str, id: AssetId) -> String {
        // The ID first: a tag may contain braces only in encoded form, so it never looks like a placeholder.
        let tag = utf8_percent_encode(asset_tag, ENCODED).to_string();
        self.0.replace(ID, &id.to_string()).replace(TAG, &tag)
    }
}

impl FromStr for LabelUrlTemplate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let length = text.chars().count();
        if length > MAX_CHARS {
            return Err(ValueError::new(format!("must have at most {MAX_CHARS} characters; this has {length}")));
        }
        check_visible(text)?;
        let after_scheme = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        let host = after_scheme.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        if host.is_none_or(|host| host.is_empty() || host.contains(['{', '}'])) {
            return Err(ValueError::new("must begin with https:// or http:// and a host"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ValueError::new("must contain only the characters of a URL; percent-encode others"));
        }
        if !text.contains(TAG) && !text.contains(ID) {
            return Err(ValueError::new("must contain {asset_tag} or {id}"));
        }
        if [TAG, ID].iter().any(|placeholder| text.matches(placeholder).count() > 1) {
            return Err(ValueError::new("must contain each placeholder only once"));
        }
        if text.replace(ID, "").replace(TAG, "").contains(['{', '}']) {
            return Err(ValueError::new("may only use the placeholders {asset_tag} and {id}"));
        }
        Ok(Self(text.to_owned()))
    }
}

text_form!(LabelUrlTemplate, |template| template.0);

#[cfg(test)]
mod tests {
    use super::*;

    fn url(template: &str, tag: &str) -> String {
        let id = "0190d5b0-0000-7000-8000-000000000000".parse().expect("an ID");
        template.parse::<LabelUrlTemplate>().expect(template).url(tag, id)
    }

    #[test]
    fn placeholders_are_filled_in_and_encoded() {
        assert_eq!(url("https://example.com/a/{asset_tag}", "AST-000001"), "https://example.com/a/AST-000001");
        assert_eq!(
            url("http://h:8080?t={asset_tag}&i={id}", "a/b c&#{id}%ä"),
            "http://h:8080?t=a%2Fb%20c%26%23%7Bid%7D%25%C3%A4&i=0190d5b0-0000-7000-8000-000000000000"
        );
    }

    #[test]
    fn other_templates_are_refused() {
        let long = format!("https://e.com/{{id}}{}", "x".repeat(238));
        for wrong in [
            "",
            "{id}",
            "https://",
            "https:///{id}",
            "ftp://e.com/{id}",
            "javascript:alert('{id}')",
            "HTTPS://e.com/{id}",
            "https://e.com/",
            "https://{id}/",
            "https://e.com/{id}/{id}",
            "https://e.com/{id}{name}",
            "https://e.com/{id}}",
            "https://e.com/{id} x",
            " https://e.com/{id}",
            "https://e.com/ä{id}",
            "https://e.com/{id}\n",
            &long,
        ] {
            assert!(wrong.parse::<LabelUrlTemplate>().is_err(), "{wrong}");
        }
        assert!(long[..255].parse::<LabelUrlTemplate>().is_ok());
    }
}
