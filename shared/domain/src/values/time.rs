//! Times and dates in the API's format.

use crate::values::field_error::{ErrorCode, ValueError, text_form};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::str::FromStr;

/// Permitted years of dates and times in requests. Other years are typos.
const YEARS: std::ops::RangeInclusive<i32> = 1900..=2199;

/// Time with millisecond precision, as RFC 3339 in UTC with `Z`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, format = DateTime, pattern = "^(19|20|21)[0-9]{2}-", examples("2026-11-21T08:30:00.000Z"))]
pub struct Timestamp(i64);

impl Timestamp {
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns Unix time in milliseconds.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Adds a duration, which can be negative.
    #[must_use]
    pub fn plus(self, delta: TimeDelta) -> Self {
        Self(self.0.saturating_add(delta.num_milliseconds()))
    }

    /// Returns the time since `earlier`; negative if `self` is earlier.
    pub fn since(self, earlier: Self) -> TimeDelta {
        TimeDelta::milliseconds(self.0.saturating_sub(earlier.0))
    }

    #[must_use]
    pub fn plus_seconds(self, seconds: u32) -> Self {
        self.plus(TimeDelta::seconds(seconds.into()))
    }

    pub fn date(self) -> NaiveDate {
        self.to_chrono().date_naive()
    }

    pub(crate) fn naive(self) -> NaiveDateTime {
        self.to_chrono().naive_utc()
    }

    fn parse(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|time| Self::from(time.to_utc()))
    }

    fn to_chrono(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_millis())
    }
}

impl Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_chrono().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl FromStr for Timestamp {
    type Err = ValueError;

    /// Parses a time with any RFC 3339 offset. Truncates to milliseconds, and reads a leap second as the first second of the next
    /// minute.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        Self::parse(text)
            // Check the converted time: a leap second at the end of a year is in the next one.
            .filter(|time| YEARS.contains(&time.to_chrono().year()))
            .ok_or_else(|| {
                let text = "must be an RFC 3339 time between 1900 and 2199, such as 2026-11-21T08:30:00.000Z";
                ValueError::coded(ErrorCode::InvalidDate, text)
            })
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = ValueError;

    /// Parses a stored time, which can have any year.
    fn try_from(text: String) -> Result<Self, ValueError> {
        Self::parse(&text).ok_or_else(|| ValueError::coded(ErrorCode::InvalidDate, "must be an RFC 3339 time"))
    }
}

/// Calendar date, `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, format = Date, pattern = "^(19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}$", examples("2026-11-21"))]
#[schema(as = CalendarDate)]
pub struct Date(NaiveDate);

impl Date {
    /// Returns the day's number: 1 January of year 1 is day 1.
    pub fn days(self) -> i32 {
        self.0.num_days_from_ce()
    }

    /// Returns the date after a number of months, which end no later than their last day, and then of days. Negative numbers go
    /// back. Stays within the years of the calendar.
    #[must_use]
    pub fn plus(self, months: i32, days: i32) -> Self {
        let distance = Months::new(months.unsigned_abs());
        let date = if months < 0 { self.0.checked_sub_months(distance) } else { self.0.checked_add_months(distance) };
        let date = date.and_then(|date| date.checked_add_signed(TimeDelta::days(days.into())));
        date.map_or(self, Self)
    }

    /// Returns the number of months since the first month of the permitted years; 0 for an earlier date.
    pub fn months_of_calendar(self) -> usize {
        let year = usize::try_from(self.0.year() - YEARS.start()).unwrap_or_default();
        12 * year + self.0.month0() as usize
    }

    /// Returns the year and the month, such as `2026-11`.
    pub fn month(self) -> String {
        self.0.format("%Y-%m").to_string()
    }

    pub(crate) fn naive(self) -> NaiveDate {
        self.0
    }

    /// Returns the date of a day's number; `None` outside the permitted years.
    pub fn from_days(days: i32) -> Option<Self> {
        NaiveDate::from_num_days_from_ce_opt(days).filter(|date| YEARS.contains(&date.year())).map(Self)
    }
}

impl From<NaiveDate> for Date {
    fn from(date: NaiveDate) -> Self {
        Self(date)
    }
}

impl Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d"))
    }
}

impl FromStr for Date {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d")
            .map(Self)
            .ok()
            .filter(|date| date.to_string() == text)
            .ok_or_else(|| ValueError::coded(ErrorCode::InvalidDate, "must be a date, YYYY-MM-DD"))?;
        if !YEARS.contains(&date.0.year()) {
            return Err(ValueError::coded(ErrorCode::InvalidDate, "must be a date between 1900-01-01 and 2199-12-31"));
        }
        Ok(date)
    }
}

text_form!(Date, |date| date.to_string());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_800_000_000_000).to_string(), "2027-01-15T08:00:00.000Z");
        let time: Timestamp = "2026-11-21T10:30:00.1239+02:00".parse().expect("a time");
        assert_eq!(time.to_string(), "2026-11-21T08:30:00.123Z");
    }

    #[test]
    fn every_time_that_is_accepted_can_be_read_from_the_table() {
        for accepted in ["2199-12-31T23:59:59.999Z", "1900-01-01T00:00:00Z", "2016-12-31T23:59:60Z", "2200-01-01T00:30:00+01:00"]
        {
            let time: Timestamp = accepted.parse().expect(accepted);
            assert_eq!(Timestamp::try_from(String::from(time)), Ok(time), "{accepted}");
            assert_eq!(time.to_string().parse(), Ok(time), "{accepted}");
        }
        for refused in ["2199-12-31T23:59:60Z", "2199-12-31T23:59:60.999Z", "2200-01-01T00:59:60+01:00", "2200-01-01T00:00:00Z"] {
            assert!(refused.parse::<Timestamp>().is_err(), "{refused}");
        }
        // Stored times can be outside the permitted years.
        assert!(Timestamp::try_from("2200-01-01T00:00:00.000Z".to_owned()).is_ok());
    }

    #[test]
    fn months_end_no_later_than_their_last_day() {
        let date = |text: &str| text.parse::<Date>().expect(text);
        for (months, days, expected) in
            [(1, 0, "2026-02-28"), (-2, 0, "2025-11-30"), (0, -31, "2025-12-31"), (12, 1, "2027-02-01")]
        {
            assert_eq!(date("2026-01-31").plus(months, days), date(expected), "{months} {days}");
        }
        assert_eq!((date("1900-01-01").months_of_calendar(), date("1901-03-31").months_of_calendar()), (0, 14));
        assert_eq!(date("2026-11-21").month(), "2026-11");
    }

    #[test]
    fn a_date_has_one_form() {
        assert_eq!("2024-02-29".parse::<Date>().map(|d| d.to_string()), Ok("2024-02-29".into()));
        for wrong in [
            "2023-02-29",
            "2024-2-9",
            "24-02-09",
            "2024-02-09T00:00:00Z",
            "+2024-02-09",
            "2326-01-01",
            "12024-01-01",
            "0300-01-01",
            "",
        ] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }
}
