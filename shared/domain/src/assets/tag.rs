//! Asset tags: generated from templates such as `{PREFIX}-{YYYY}-NNNN`, which gives `AST-2026-0001`, or chosen by clients.

use crate::values::field_error::{ErrorCode, ValueError, text_form};
use crate::values::text::{check_visible, composed};
use crate::values::time::Timestamp;
use chrono::Datelike;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Write};
use std::ops::Deref;
use std::str::FromStr;

/// Maximum length of a template in characters.
const MAX_TEMPLATE_CHARS: usize = 64;
/// Permitted number of consecutive `N`, which stand for the tag's number.
const SEQUENCE_WIDTHS: std::ops::RangeInclusive<usize> = 3..=12;
/// The type code of an asset without an asset type.
const NO_TYPE_CODE: &str = "GEN";
/// Maximum length in characters of a tag chosen by a client.
const MAX_CHARS: usize = 64;
/// Maximum length in characters of a tag in an import row, which can be a generated tag.
const MAX_MADE_CHARS: usize = 512;
const FORM: &str = "must be 1 to 64 visible ASCII characters without spaces";

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Prefix,
    TypeCode,
    LongYear,
    ShortYear,
    Month,
    /// The number, padded with zeros to this width.
    Sequence(usize),
}

/// A template such as `{PREFIX}-{YYYY}-NNNN`: text, the placeholders `{PREFIX}`, `{TYPE_CODE}`, `{YYYY}`, `{YY}` and
/// `{MM}`, and 3 to 12 consecutive `N` for the number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 64, examples("{PREFIX}-NNNNNN"))]
pub struct TagTemplate(Vec<TemplatePart>);

/// The text that replaces `{PREFIX}`: 1 to 16 letters, digits, `-`, `_` or `.`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 16, pattern = "^[A-Za-z0-9._-]{1,16}$", examples("AST"))]
pub struct TagPrefix(String);

/// A number range: a tag without its number. Each range has a separate counter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagRange {
    before: String,
    after: String,
    width: usize,
}

impl TagTemplate {
    /// Fills in everything except the number.
    pub fn range(&self, prefix: &TagPrefix, type_code: Option<&str>, at: Timestamp) -> TagRange {
        let date = at.date();
        let mut range = TagRange { before: String::new(), after: String::new(), width: 0 };
        for part in &self.0 {
            let text = if range.width == 0 { &mut range.before } else { &mut range.after };
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Prefix => text.push_str(&prefix.0),
                TemplatePart::TypeCode => text.push_str(type_code.unwrap_or(NO_TYPE_CODE)),
                TemplatePart::LongYear => push(text, format_args!("{:04}", date.year())),
                TemplatePart::ShortYear => push(text, format_args!("{:02}", date.year().rem_euclid(100))),
                TemplatePart::Month => push(text, format_args!("{:02}", date.month())),
                TemplatePart::Sequence(width) => range.width = *width,
            }
        }
        range
    }
}

fn push(text: &mut String, formatted: std::fmt::Arguments<'_>) {
    // Writing to a String never fails.
    let _ = text.write_fmt(formatted);
}

impl TagRange {
    /// Returns the tag with a number. A number wider than the range's width takes more digits.
    pub fn tag(&self, number: u64) -> String {
        format!("{}{number:0width$}{}", self.before, self.after, width = self.width)
    }

    /// Returns the number in a tag; `None` for tags of other ranges.
    pub fn number(&self, tag: &str) -> Option<u64> {
        let number = tag.strip_prefix(&self.before)?.strip_suffix(&self.after)?.parse().ok()?;
        (self.tag(number) == tag).then_some(number)
    }

    /// Returns the counter's name, such as `AST-{N}`. Tags contain no braces, so no two ranges share a counter. The width is not
    /// part of the name, so adding `N` to a template continues the sequence.
    pub fn counter(&self) -> String {
        format!("{}{{N}}{}", self.before, self.after)
    }

    pub fn width(&self) -> usize {
        self.width
    }
}

impl FromStr for TagTemplate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text.chars().count() > MAX_TEMPLATE_CHARS {
            let text = format!("must have at most {MAX_TEMPLATE_CHARS} characters");
            return Err(ValueError::limited(ErrorCode::TooLong, MAX_TEMPLATE_CHARS, text));
        }
        check_visible(text)?;
        Self::parse(&composed(text))
    }
}

impl TagTemplate {
    /// Parses a stored template, without the checks on length and invisible characters.
    fn parse(text: &str) -> Result<Self, ValueError> {
        if text != text.trim() || text.chars().any(char::is_control) {
            return Err(ValueError::new("must not start or end with whitespace, nor contain control characters"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            split_sequence(&rest[..open], &mut parts);
            let (placeholder, after) = rest[open..]
                .strip_prefix('{')
                .and_then(|inner| inner.split_once('}'))
                .ok_or_else(|| ValueError::new("must not contain an unmatched brace"))?;
            parts.push(match placeholder {
                "PREFIX" => TemplatePart::Prefix,
                "TYPE_CODE" => TemplatePart::TypeCode,
                "YYYY" => TemplatePart::LongYear,
                "YY" => TemplatePart::ShortYear,
                "MM" => TemplatePart::Month,
                _ => return Err(ValueError::form("must only use the placeholders {PREFIX}, {TYPE_CODE}, {YYYY}, {YY} and {MM}")),
            });
            rest = after;
        }
        split_sequence(rest, &mut parts);
        match parts.iter().filter(|part| matches!(part, TemplatePart::Sequence(_))).count() {
            1 => Ok(Self(parts)),
            0 => Err(ValueError::form("must contain 3 to 12 consecutive N for the number, with no other letter next to them")),
            _ => Err(ValueError::form("must contain 3 to 12 consecutive N only once")),
        }
    }
}

/// Splits literal text at the number's placeholder: 3 to 12 consecutive `N` with no other letter next to them.
fn split_sequence(text: &str, parts: &mut Vec<TemplatePart>) {
    let chars: Vec<char> = text.chars().collect();
    let mut literal = String::new();
    let mut at = 0;
    while at < chars.len() {
        let count = chars[at..].iter().take_while(|&&c| c == 'N').count();
        let is_letter = |index: Option<usize>| index.and_then(|i| chars.get(i)).is_some_and(|c| c.is_alphabetic());
        if SEQUENCE_WIDTHS.contains(&count) && !is_letter(at.checked_sub(1)) && !is_letter(Some(at + count)) {
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Sequence(count));
        } else {
            literal.extend(&chars[at..at + count.max(1)]);
        }
        at += count.max(1);
    }
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
}

impl Display for TagTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            TemplatePart::Literal(text) => f.write_str(text),
            TemplatePart::Prefix => f.write_str("{PREFIX}"),
            TemplatePart::TypeCode => f.write_str("{TYPE_CODE}"),
            TemplatePart::LongYear => f.write_str("{YYYY}"),
            TemplatePart::ShortYear => f.write_str("{YY}"),
            TemplatePart::Month => f.write_str("{MM}"),
            TemplatePart::Sequence(width) => f.write_str(&"N".repeat(*width)),
        })
    }
}

impl From<TagTemplate> for String {
    fn from(template: TagTemplate) -> Self {
        template.to_string()
    }
}

impl TryFrom<String> for TagTemplate {
    type Error = ValueError;
    fn try_from(text: String) -> Result<Self, ValueError> {
        Self::parse(&text)
    }
}

impl Default for TagTemplate {
    fn default() -> Self {
        Self(vec![TemplatePart::Prefix, TemplatePart::Literal("-".into()), TemplatePart::Sequence(6)])
    }
}

impl FromStr for TagPrefix {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let fits = (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        fits.then(|| Self(text.to_owned())).ok_or_else(|| ValueError::form("must be 1 to 16 letters, digits, '-', '_' or '.'"))
    }
}

text_form!(TagPrefix, |prefix| prefix.0);

impl Default for TagPrefix {
    fn default() -> Self {
        Self("AST".into())
    }
}

/// Tag chosen by the client: 1 to 64 visible ASCII characters. `.` and `..` are reserved: URL normalization removes them.
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
    pub(crate) fn check_new(&self) -> Result<(), ValueError> {
        let fits = (1..=MAX_CHARS).contains(&self.0.len()) && self.0.bytes().all(|byte| byte.is_ascii_graphic());
        match self.0.as_str() {
            "." | ".." => {
                let text = "must not be . or .., which URLs can't contain as a path segment";
                Err(ValueError::form(text))
            }
            _ if fits => Ok(()),
            _ => Err(ValueError::form(FORM)),
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

/// Asset tag in an import row. Unlike a new tag, it can have any characters, because the row can refer to an existing asset with
/// a generated tag.
#[derive(Debug, Clone, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = String)]
pub struct RowTag(pub AssetTag);

impl FromStr for RowTag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match composed(text.trim()).into_owned() {
            text if (1..=MAX_MADE_CHARS).contains(&text.chars().count()) => Ok(Self(AssetTag(text))),
            _ => Err(ValueError::form(FORM)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(template: &str, code: Option<&str>, number: u64) -> String {
        let at = "2026-03-05T00:00:00Z".parse().expect("a time");
        template.parse::<TagTemplate>().expect(template).range(&TagPrefix::default(), code, at).tag(number)
    }

    #[test]
    fn placeholders_and_number_are_filled_in() {
        assert_eq!(tag("{PREFIX}-NNNNNN", None, 7), "AST-000007");
        assert_eq!(tag("{TYPE_CODE}/{YYYY}/{MM}/NNN", Some("LAP"), 12), "LAP/2026/03/012");
        assert_eq!(tag("{TYPE_CODE}{YY}-NNNN#x", None, 1), "GEN26-0001#x");
        assert_eq!(tag("INVENTORY-NN-NNN", None, 5), "INVENTORY-NN-005");
    }

    #[test]
    fn a_wider_template_continues_the_sequence() {
        let at = "2026-03-05T00:00:00Z".parse().expect("a time");
        let counter = |t: &str| t.parse::<TagTemplate>().expect(t).range(&TagPrefix::default(), None, at).counter();
        assert_eq!(counter("A-NNN"), counter("A-NNNN"));
        assert_ne!(counter("A-NNN"), counter("A-NNN-"));
    }

    #[test]
    fn invalid_templates_are_refused() {
        for wrong in [
            "",
            "AST",
            "NN",
            "ANNN",
            "NNNA",
            "ÄNNN",
            "NNN-NNNN",
            "NNNNNNNNNNNNN",
            "{PREFIX",
            "PREFIX}NNN",
            "{FOO}-NNN",
            "{{PREFIX}}NNN",
            " NNN",
            "nnn",
            &format!("NNN{}", "-".repeat(62)),
        ] {
            assert!(wrong.parse::<TagTemplate>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_number_of_a_tag_can_be_read_from_it() {
        let at = "2026-03-05T00:00:00Z".parse().expect("a time");
        let range = "{PREFIX}-NNN/x".parse::<TagTemplate>().expect("a template").range(&TagPrefix::default(), None, at);
        for number in [0, 7, 999, 1000] {
            assert_eq!(range.number(&range.tag(number)), Some(number));
        }
        for foreign in ["AST-07/x", "AST-0007/x", "AST-007", "GEN-007/x", "AST-+07/x", ""] {
            assert_eq!(range.number(foreign), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn a_template_reads_back_as_it_was_written(text in "([a-zA-Z0-9 _./#-]|\\{PREFIX\\}|\\{TYPE_CODE\\}|\\{YYYY\\}|\\{YY\\}|\\{MM\\}|NNN){0,12}") {
            if let Ok(template) = text.parse::<TagTemplate>() {
                prop_assert_eq!(template.to_string(), text);
            }
        }

        #[test]
        fn numbers_of_one_range_give_different_tags(a in 0u64..10_000_000, b in 0u64..10_000_000) {
            prop_assert_eq!(tag("{PREFIX}-NNN", None, a) == tag("{PREFIX}-NNN", None, b), a == b);
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<TagTemplate>();
        }
    }

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
