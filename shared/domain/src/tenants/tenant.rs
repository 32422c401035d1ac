//! A tenant and its settings, including the locale: the language and the date format of human-readable pages.

use crate::assets::asset::Transitions;
use crate::assets::label::LabelUrlTemplate;
use crate::assets::tag::{TagPrefix, TagTemplate};
use crate::record::{Kind, Record, fields, record_change};
use crate::tenants::time_zone::{LocalTime, TimeZone};
use crate::values::field_error::ValueError;
use crate::values::id::TenantId;
use crate::values::string_enum::string_enum;
use crate::values::text::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::str::FromStr;

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
    fn tags_get_canonical_case() {
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
    fn anything_else_is_refused() {
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
}
