//! Bounds of dates and times in filters: a day, a time, or a day relative to today, such as `today-90d`. A day is in the
//! tenant's time zone.

use crate::assets::asset::CellBound;
use crate::tenants::time_zone::{LocalClock, TimeZone};
use crate::values::field_error::{ErrorCode, ValueError};
use crate::values::time::{Date, Timestamp};
use std::str::FromStr;
use utoipa::ToSchema;

const TODAY: &str = "today";
const DAY_FORM: &str = "must be a date, YYYY-MM-DD, or relative to today, such as today, today-90d or today+3m (d, w, m, y)";
const TIME_FORM: &str = "must be a date, YYYY-MM-DD, an RFC 3339 time between 1900 and 2199, such as 2026-11-21T08:30:00.000Z, or \
    relative to today, such as today, today-90d or today+3m (d, w, m, y)";
const CELL_FORM: &str =
    "must be a number, a date, YYYY-MM-DD, or relative to today, such as today, today-90d or today+3m (d, w, m, y)";
const MONTHS_PER_YEAR: i32 = 12;
/// Maximum number of years from today.
const MAX_YEARS: i32 = 100;

/// A day: `YYYY-MM-DD`, or relative to today in the tenant's time zone: `today`, `today-90d`, `today+3m`. Units are `d`, `w`, `m`
/// and `y`. Months end no later than their last day.
#[derive(ToSchema)]
#[schema(value_type = String, examples("2026-11-21", "today-90d"))]
#[schema(pattern = "^((19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}|today([ +-][0-9]{1,5}[dwmy])?)$")]
#[schema(as = DayBound)]
pub struct DayBoundText(());

/// A day like `DayBound`, which counts from its start, or an RFC 3339 time.
#[derive(ToSchema)]
#[schema(value_type = String, examples("2026-11-21T08:30:00.000Z", "today-90d"))]
#[schema(pattern = "^((19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}.*|today([ +-][0-9]{1,5}[dwmy])?)$")]
#[schema(as = TimeBound)]
pub struct TimeBoundText(());

/// Today in a tenant's time zone.
#[derive(Debug, Clone)]
pub struct Today {
    date: Date,
    clock: LocalClock,
}

impl Today {
    pub fn at(now: Timestamp, zone: &TimeZone) -> Self {
        let clock = LocalClock::from(zone);
        Self { date: Date::from(clock.local(now).date_time.date()), clock }
    }

    pub fn date(&self) -> Date {
        self.date
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayBound {
    Day(Date),
    /// Months and then days after today; before it if negative.
    Relative {
        months: i32,
        days: i32,
    },
}

impl DayBound {
    pub fn on(self, today: &Today) -> Date {
        match self {
            Self::Day(date) => date,
            Self::Relative { months, days } => today.date.plus(months, days),
        }
    }

    pub fn is_relative(self) -> bool {
        matches!(self, Self::Relative { .. })
    }

    /// Parses a day relative to today; `None` for any other text.
    fn relative(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(TODAY)?;
        if rest.is_empty() {
            return Some(Self::Relative { months: 0, days: 0 });
        }
        // In a query, a plus sign means a space.
        let (sign, rest) = rest.strip_prefix(['+', ' ']).map(|rest| (1, rest)).or_else(|| Some((-1, rest.strip_prefix('-')?)))?;
        let (number, unit) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
        let (months, days, most) = match unit {
            "d" => (0, 1, 366 * MAX_YEARS),
            "w" => (0, 7, 52 * MAX_YEARS),
            "m" => (1, 0, MONTHS_PER_YEAR * MAX_YEARS),
            "y" => (MONTHS_PER_YEAR, 0, MAX_YEARS),
            _ => return None,
        };
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number: &i32| is_number && *number <= most)?;
        Some(Self::Relative { months: sign * number * months, days: sign * number * days })
    }
}

impl FromStr for DayBound {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let date = || text.parse().ok().map(Self::Day);
        Self::relative(text).or_else(date).ok_or_else(|| ValueError::coded(ErrorCode::InvalidDate, DAY_FORM))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBound {
    Time(Timestamp),
    Day(DayBound),
}

impl TimeBound {
    /// Returns the time; for a day, its start.
    pub fn on(self, today: &Today) -> Timestamp {
        match self {
            Self::Time(at) => at,
            Self::Day(day) => today.clock.start_of(day.on(today)),
        }
    }

    /// Whether the time depends on the time zone.
    pub fn is_day(self) -> bool {
        matches!(self, Self::Day(_))
    }
}

impl FromStr for TimeBound {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let day = text.parse().map(Self::Day);
        day.or_else(|_| text.parse().map(Self::Time)).map_err(|_| ValueError::coded(ErrorCode::InvalidDate, TIME_FORM))
    }
}

/// A bound of a custom field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldBound {
    Number(f64),
    Day(DayBound),
}

impl FieldBound {
    pub fn on(self, today: &Today) -> CellBound {
        match self {
            Self::Number(number) => CellBound::Number(number),
            Self::Day(day) => CellBound::Day(day.on(today)),
        }
    }

    pub fn is_relative(self) -> bool {
        matches!(self, Self::Day(day) if day.is_relative())
    }
}

impl FromStr for FieldBound {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = || text.parse::<serde_json::Number>().ok()?.as_f64().map(Self::Number);
        let day = || text.parse().ok().map(Self::Day);
        number().or_else(day).ok_or_else(|| ValueError::form(CELL_FORM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn today(zone: &str, now: &str) -> Today {
        Today::at(now.parse().expect(now), &zone.parse().expect(zone))
    }

    #[test]
    fn a_relative_day_counts_from_the_day_in_the_time_zone() {
        let (berlin, utc) = (today("Europe/Berlin", "2026-03-30T22:30:00Z"), today("UTC", "2026-03-30T22:30:00Z"));
        for (text, in_berlin, in_utc) in [
            ("today", "2026-03-31", "2026-03-30"),
            ("today-90d", "2025-12-31", "2025-12-30"),
            ("today+2w", "2026-04-14", "2026-04-13"),
            ("today 3m", "2026-06-30", "2026-06-30"),
            ("today-1m", "2026-02-28", "2026-02-28"),
            ("today+1y", "2027-03-31", "2027-03-30"),
            ("2026-01-02", "2026-01-02", "2026-01-02"),
        ] {
            let bound: DayBound = text.parse().expect(text);
            assert_eq!((bound.on(&berlin).to_string(), bound.on(&utc).to_string()), (in_berlin.into(), in_utc.into()), "{text}");
        }
    }

    #[test]
    fn a_day_begins_when_its_first_moment_does() {
        for (zone, day, start) in [
            ("UTC", "2026-03-31", "2026-03-31T00:00:00.000Z"),
            ("Europe/Berlin", "2026-03-31", "2026-03-30T22:00:00.000Z"),
            // The clocks were put forward at midnight, and back from midnight.
            ("America/Santiago", "2026-09-06", "2026-09-06T04:00:00.000Z"),
            ("America/Havana", "2026-11-01", "2026-11-01T04:00:00.000Z"),
        ] {
            let bound: TimeBound = day.parse().expect(day);
            assert_eq!(bound.on(&today(zone, "2026-03-30T22:30:00Z")).to_string(), start, "{zone}");
        }
        let time: TimeBound = "2026-03-30T22:30:00+02:00".parse().expect("a time");
        assert_eq!(time.on(&today("Asia/Tokyo", "2026-03-30T22:30:00Z")).to_string(), "2026-03-30T20:30:00.000Z");
    }

    #[test]
    fn texts_that_are_neither_days_nor_times_are_refused_as_bounds() {
        for wrong in [
            "",
            "now",
            "Today",
            "today-",
            "today3d",
            "today+d",
            "today+3",
            "today+3h",
            "today++3d",
            "today-101y",
            "today+99999d",
            "today+3.5d",
            "2026-02-30",
            "2026-1-1",
            "today-é",
        ] {
            assert!(wrong.parse::<DayBound>().is_err() && wrong.parse::<TimeBound>().is_err(), "{wrong}");
            assert!(wrong.parse::<FieldBound>().is_err(), "{wrong}");
        }
        assert!("2026-03-30T22:30:00Z".parse::<DayBound>().is_err() && "2026-03-30T22:30:00".parse::<TimeBound>().is_err());
        assert_eq!("1e1".parse(), Ok(FieldBound::Number(10.0)));
    }
}
