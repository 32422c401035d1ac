//! The locale of a tenant: the language and the format of dates of pages that people read.

use crate::tenants::time_zone::LocalTime;
use crate::values::field_error::ValueError;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::str::FromStr;

/// RFC 5646 §4.4.1 asks for at least 35 characters.
const MAX_CHARS: usize = 64;
/// Languages that write dates in digits with points, the day first. On a page in English, others get dates as in ISO 8601:
/// their own order of day and month could be taken for another.
const LANGUAGES_WITH_POINTS: [&str; 23] = [
    "az", "be", "bg", "cs", "da", "de", "et", "fi", "hy", "is", "ka", "kk", "lv", "mk", "nb", "nn", "no", "pl", "ro", "ru", "sk",
    "tr", "uk",
];

/// A language tag (BCP 47) in canonical case, such as `en` or `de-CH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, min_length = 2, max_length = 64, examples("en", "de-CH"))]
pub struct Locale(String);

/// A language of the pages that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    German,
    French,
    Spanish,
}

impl Language {
    pub const ALL: [Self; 4] = [Self::English, Self::German, Self::French, Self::Spanish];

    /// As in a language tag, and as the files of texts are named.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
        }
    }

    /// Of a language tag, whatever its region is. `None` if there are no texts in it.
    #[must_use]
    pub fn of(tag: &str) -> Option<Self> {
        let language = tag.split('-').next().unwrap_or_default();
        Self::ALL.into_iter().find(|known| known.code().eq_ignore_ascii_case(language))
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
        let tag = icu_locale_core::Locale::try_from_str(text).ok().filter(|_| text.len() <= MAX_CHARS);
        let tag = tag.filter(|_| !text.contains('_')).map(|tag| Self(tag.to_string()));
        tag.ok_or_else(|| {
            ValueError::new("must be a BCP 47 language tag of at most 64 characters, such as en, de-CH or zh-Hant-TW")
        })
    }
}

impl Display for Locale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Locale {
    /// English, if there are no texts in its language.
    #[must_use]
    pub fn language(&self) -> Language {
        Language::of(&self.0).unwrap_or(Language::English)
    }

    /// For a page in `language`: the date as that language writes it, the time of day in 24 hours, and the zone. A page in English
    /// has dates as the locale's own language writes them, unless they could be mistaken.
    #[must_use]
    pub fn format(&self, time: &LocalTime, language: Language) -> String {
        let own = self.0.split('-').next().unwrap_or_default();
        let pattern = match language {
            Language::German => "%d.%m.%Y %H:%M:%S",
            Language::French | Language::Spanish => "%d/%m/%Y %H:%M:%S",
            Language::English if LANGUAGES_WITH_POINTS.contains(&own) => "%d.%m.%Y %H:%M:%S",
            Language::English => "%Y-%m-%d %H:%M:%S",
        };
        format!("{} {}", time.date_time.format(pattern), time.zone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::time_zone::LocalClock;

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
        for language in [Language::French, Language::Spanish] {
            assert_eq!(shown("en-US", language), "03/04/2026 10:30:00 CEST (UTC+02:00)");
        }
    }

    #[test]
    fn a_locale_has_texts_in_its_language_or_in_english() {
        for (tag, code) in [("de-CH", "de"), ("fr", "fr"), ("es-419", "es"), ("en-GB", "en"), ("sv", "en"), ("den", "en")] {
            assert_eq!(tag.parse::<Locale>().expect(tag).language().code(), code);
        }
    }
}
