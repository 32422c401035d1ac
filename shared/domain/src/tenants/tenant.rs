//! A tenant and its settings: templates of asset tags, such as `{PREFIX}-{YYYY}-NNNN`, which gives `AST-2026-0001`; and the
//! locale, the language and the date format of human-readable pages.

use crate::assets::asset::Transitions;
use crate::assets::label::LabelUrlTemplate;
use crate::record::{Kind, Record, fields, record_change};
use crate::tenants::time_zone::{LocalTime, TimeZone};
use crate::values::field_error::{ErrorCode, ValueError, text_form};
use crate::values::id::TenantId;
use crate::values::string_enum::string_enum;
use crate::values::text::{Name, check_visible, composed};
use crate::values::time::Timestamp;
use chrono::Datelike;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt::{Display, Write};
use std::str::FromStr;

/// Maximum length of a template in characters.
const MAX_TEMPLATE_CHARS: usize = 64;
/// Permitted number of consecutive `N`, which stand for the tag's number.
const SEQUENCE_WIDTHS: std::ops::RangeInclusive<usize> = 3..=12;
/// The type code of an asset without an asset type.
const NO_TYPE_CODE: &str = "GEN";
/// Maximum length of a locale in characters. RFC 5646 §4.4.1 requires at least 35.
const MAX_LOCALE_CHARS: usize = 64;
/// Languages that write numeric dates with points, the day first. On English pages, other locales get ISO 8601 dates, because
/// their order of day and month could be misread.
const LANGUAGES_WITH_POINTS: [&str; 23] = [
    "az", "be", "bg", "cs", "da", "de", "et", "fi", "hy", "is", "ka", "kk", "lv", "mk", "nb", "nn", "no", "pl", "ro", "ru", "sk",
    "tr", "uk",
];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub id: TenantId,
    pub name: Name,
    /// Replaces `{PREFIX}` in asset tags.
    pub asset_tag_prefix: TagPrefix,
    pub asset_tag_template: TagTemplate,
    /// Status changes that a PATCH of an asset can make; `None` permits all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_transitions: Option<Transitions>,
    /// Time zone of human-readable pages.
    pub time_zone: TimeZone,
    /// Language and date format of human-readable pages.
    pub locale: Locale,
    /// URL template for the codes on labels. If `None`, a code contains the asset tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_url_template: Option<LabelUrlTemplate>,
}

record_change! {
    TenantChange of pub Tenant::changed {
        set name: Name,
        set asset_tag_prefix: TagPrefix,
        set asset_tag_template: TagTemplate,
        set_or_clear status_transitions: Transitions,
        set time_zone: TimeZone,
        set locale: Locale,
        set_or_clear label_url_template: LabelUrlTemplate,
    }
}

impl Tenant {
    pub fn new(id: TenantId, name: Name) -> Self {
        Self {
            id,
            name,
            asset_tag_prefix: TagPrefix::default(),
            asset_tag_template: TagTemplate::default(),
            status_transitions: None,
            time_zone: TimeZone::default(),
            locale: Locale::default(),
            label_url_template: None,
        }
    }
}

impl Record for Tenant {
    const KIND: Kind = Kind::Tenant;
    type Id = TenantId;

    fn id(&self) -> TenantId {
        self.id
    }

    fn history_fields(&self) -> Map<String, Value> {
        let Self { id: _, name, asset_tag_prefix, asset_tag_template, status_transitions, time_zone, locale, label_url_template } =
            self;
        fields([
            ("name", json!(name)),
            ("asset_tag_prefix", json!(asset_tag_prefix)),
            ("asset_tag_template", json!(asset_tag_template)),
            ("status_transitions", json!(status_transitions)),
            ("time_zone", json!(time_zone)),
            ("locale", json!(locale)),
            ("label_url_template", json!(label_url_template)),
        ])
    }
}

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRange {
    /// The tag with `{N}` instead of the number.
    pub pattern: String,
    pub last_number: u64,
    /// The minimum number of digits.
    pub width: u64,
}

impl NumberRange {
    /// Returns the number of tags that fit `width` digits. Further tags take more digits.
    pub fn capacity(&self) -> u64 {
        10u64.saturating_pow(u32::try_from(self.width).unwrap_or(u32::MAX)).saturating_sub(1)
    }

    /// Returns the used fraction of the capacity; above 1 once numbers take more digits.
    pub fn fill_level(&self) -> f64 {
        self.last_number as f64 / self.capacity().max(1) as f64
    }
}

/// Returns the `most` ranges with the highest fill level, in their original order.
pub fn fullest(ranges: Vec<NumberRange>, most: usize) -> Vec<NumberRange> {
    let mut ranked: Vec<(usize, NumberRange)> = ranges.into_iter().enumerate().collect();
    ranked.sort_by(|(_, a), (_, b)| b.fill_level().total_cmp(&a.fill_level()));
    ranked.truncate(most);
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, range)| range).collect()
}

/// A language tag (BCP 47) in canonical case, such as `en` or `de-CH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, min_length = 2, max_length = 64, examples("en", "de-CH"))]
pub struct Locale(String);

string_enum! {
    /// A language of human-readable pages, with the code in language tags and in the names of text files.
    Language {
        English = "en",
        German = "de",
        French = "fr",
        Spanish = "es",
    }
}

impl Language {
    /// Returns the language of a tag, regardless of its region. `None` if there are no texts in this language.
    pub fn of(tag: &str) -> Option<Self> {
        let language = tag.split('-').next().unwrap_or_default();
        Self::ALL.iter().copied().find(|known| known.as_str().eq_ignore_ascii_case(language))
    }
}

impl Default for Locale {
    fn default() -> Self {
        Self("en".to_owned())
    }
}

impl FromStr for Locale {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let tag = icu_locale_core::Locale::try_from_str(text).ok().filter(|_| text.len() <= MAX_LOCALE_CHARS);
        let tag = tag.filter(|_| !text.contains('_')).map(|tag| Self(tag.to_string()));
        tag.ok_or_else(|| {
            ValueError::form("must be a BCP 47 language tag of at most 64 characters, such as en, de-CH or zh-Hant-TW")
        })
    }
}

impl Display for Locale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Locale {
    /// Returns the locale's language, or English if there are no texts in it.
    pub fn language(&self) -> Language {
        Language::of(&self.0).unwrap_or(Language::English)
    }

    /// Formats the date for a page in `language`. On an English page, it has the format of the locale's language, or ISO 8601 if
    /// that format could be misread.
    pub fn date(&self, time: &LocalTime, language: Language) -> String {
        let own = self.0.split('-').next().unwrap_or_default();
        let pattern = match language {
            Language::German => "%d.%m.%Y",
            Language::French | Language::Spanish => "%d/%m/%Y",
            Language::English if LANGUAGES_WITH_POINTS.contains(&own) => "%d.%m.%Y",
            Language::English => "%Y-%m-%d",
        };
        time.date_time.format(pattern).to_string()
    }

    /// Formats the [date](Self::date), the time of day in 24 hours, and the zone.
    pub fn format(&self, time: &LocalTime, language: Language) -> String {
        format!("{} {} {}", self.date(time, language), time.date_time.format("%H:%M:%S"), time.zone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::time_zone::LocalClock;
    use proptest::prelude::*;

    #[test]
    fn the_fullest_ranges_keep_their_order() {
        let range = |pattern: &str, last_number, width| NumberRange { pattern: pattern.to_owned(), last_number, width };
        let ranges = vec![range("a", 5, 3), range("b", 900, 3), range("c", 900, 6), range("d", 998, 3)];
        let shown = |most| fullest(ranges.clone(), most).into_iter().map(|range| range.pattern).collect::<String>();
        assert_eq!(
            (shown(0), shown(1), shown(2), shown(3), shown(9)),
            ("".into(), "d".into(), "bd".into(), "abd".into(), "abcd".into())
        );
    }

    #[test]
    fn locales_get_canonical_case() {
        for (typed, canonical) in [
            ("en", "en"),
            ("DE-ch", "de-CH"),
            ("ZH-hant-tw", "zh-Hant-TW"),
            ("sr-LATN-rs", "sr-Latn-RS"),
            ("es-419", "es-419"),
            ("de-1996", "de-1996"),
            ("ar-EG-U-NU-ARAB", "ar-EG-u-nu-arab"),
        ] {
            assert_eq!(typed.parse::<Locale>().map(|tag| tag.to_string()), Ok(canonical.to_owned()));
        }
    }

    #[test]
    fn invalid_locales_are_refused() {
        for wrong in
            ["", "e", "en_US", "en-", "-en", "english language", "en-US-US", "de-DE.UTF-8", "1", "en\n", &"en-x-aaa".repeat(9)]
        {
            assert!(wrong.parse::<Locale>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn dates_are_as_the_language_writes_them_and_unambiguous() {
        let time =
            LocalClock::from(&"Europe/Berlin".parse().expect("a zone")).local("2026-04-03T08:30:00Z".parse().expect("a time"));
        let shown = |tag: &str, language: Language| tag.parse::<Locale>().expect(tag).format(&time, language);
        for tag in ["de-AT", "cs"] {
            assert_eq!(shown(tag, Language::English), "03.04.2026 10:30:00 CEST (UTC+02:00)", "{tag}");
        }
        for tag in ["en", "en-US", "fr", "sv"] {
            assert_eq!(shown(tag, Language::English), "2026-04-03 10:30:00 CEST (UTC+02:00)", "{tag}");
        }
        assert_eq!(shown("en", Language::German), "03.04.2026 10:30:00 CEST (UTC+02:00)");
        assert_eq!("en".parse::<Locale>().expect("a locale").date(&time, Language::Spanish), "03/04/2026");
        for language in [Language::French, Language::Spanish] {
            assert_eq!(shown("en-US", language), "03/04/2026 10:30:00 CEST (UTC+02:00)");
        }
    }

    #[test]
    fn a_locale_has_texts_in_its_language_or_in_english() {
        for (tag, code) in [("de-CH", "de"), ("fr", "fr"), ("es-419", "es"), ("en-GB", "en"), ("sv", "en"), ("den", "en")] {
            assert_eq!(tag.parse::<Locale>().expect(tag).language().as_str(), code);
        }
    }

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
}
