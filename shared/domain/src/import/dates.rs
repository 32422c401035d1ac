//! Dates in the formats of files: `DD.MM.YYYY` or strftime, such as `%d.%m.%Y`.

use chrono::format::{Parsed, StrftimeItems, parse};
use chrono::{Datelike, Days, NaiveDate, NaiveTime};
use std::fmt::Write;
use std::str::FromStr;

/// Translates a format to strftime directives, the longest first.
const TOKENS: [(&str, &str); 12] = [
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%m"),
    ("DD", "%d"),
    ("D", "%d"),
    ("HH", "%H"),
    ("hh", "%H"),
    ("mm", "%M"),
    ("ss", "%S"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    given: String,
    strftime: String,
    /// Whether the format reads dates such as 2001-02-03, possibly with another meaning.
    reads_iso: bool,
}

impl FromStr for DateFormat {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let strftime = if given.contains('%') { given.to_owned() } else { to_strftime(given) };
        let mut format = Self { given: given.to_owned(), strftime, reads_iso: false };
        format.reads_iso = format.date("2001-02-03").is_some();
        let example = NaiveDate::from_ymd_opt(2024, 12, 31).ok_or("no such date")?;
        let mut text = String::new();
        // `write!` fails for an unknown directive.
        let written = write!(text, "{}", example.and_time(NaiveTime::MIN).format(&format.strftime));
        if written.is_ok() && format.date(&text) == Some(example) {
            Ok(format)
        } else {
            Err("must have day, month and year, as DD.MM.YYYY or %d.%m.%Y".to_owned())
        }
    }
}

impl DateFormat {
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Returns the date that the text is in this format. A year of two digits is a year only for `YY`.
    pub fn date(&self, text: &str) -> Option<NaiveDate> {
        let mut parsed = Parsed::new();
        parse(&mut parsed, text, StrftimeItems::new(&self.strftime)).ok()?;
        parsed.to_naive_date().ok().filter(|date| date.year() >= 1_000)
    }
}

fn to_strftime(given: &str) -> String {
    let (mut format, mut rest) = (String::new(), given);
    while let Some(first) = rest.chars().next() {
        let token = TOKENS.into_iter().find_map(|(token, directive)| Some((rest.strip_prefix(token)?, directive)));
        if let Some((after, directive)) = token {
            format.push_str(directive);
            rest = after;
        } else {
            format.push(first);
            rest = rest.strip_prefix(first).unwrap_or_default();
        }
    }
    format
}

/// Returns the date as `YYYY-MM-DD`. Dates such as 2024-3-9 are understood beside any format, unless a format reads them; and so is
/// midnight after a date. `None` without formats, if the text is no such date either: the service then checks it.
///
/// # Errors
///
/// Describes a date that no format reads, that two formats read differently, or that is a spreadsheet's number of a day.
pub fn read(formats: &[DateFormat], text: &str) -> Result<Option<String>, String> {
    let read = |text: &str| {
        let mut dates: Vec<NaiveDate> = formats.iter().filter_map(|format| format.date(text)).collect();
        dates.sort_unstable();
        dates.dedup();
        if dates.is_empty() && !formats.iter().any(|format| format.reads_iso) {
            dates.extend(iso(text));
        }
        dates
    };
    let mut dates = read(text);
    if dates.is_empty() {
        dates = without_midnight(text).map(read).unwrap_or_default();
    }
    match (dates.as_slice(), date_of_day_number(text)) {
        ([date], _) => Ok(Some(date.to_string())),
        ([one, other, ..], _) => Err(format!("{text:?} can be {one} and {other}")),
        ([], Some(date)) => Err(format!("{text:?} is a spreadsheet's day number for {date}")),
        ([], None) if formats.is_empty() => Ok(None),
        ([], None) => {
            let two_digits = |format: &DateFormat| format.strftime.contains("%Y") && has_short_year(format, text);
            if formats.iter().any(two_digits) {
                return Err(format!("{text:?} has a two-digit year: write YY in the date format"));
            }
            let given: Vec<&str> = formats.iter().map(DateFormat::given).collect();
            Err(format!("{text:?} is not a date of the form {}", given.join(" or ")))
        }
    }
}

fn has_short_year(format: &DateFormat, text: &str) -> bool {
    let short = DateFormat { strftime: format.strftime.replace("%Y", "%y"), ..format.clone() };
    short.date(text).is_some()
}

fn iso(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|date| (1_000..10_000).contains(&date.year()))
}

/// Returns the date before a midnight, as databases and spreadsheets write it: `2024-03-09 00:00:00`, `2024-03-09T00:00:00.000Z`.
fn without_midnight(text: &str) -> Option<&str> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let time = time.trim_end_matches(" UTC").trim_end_matches('Z').trim_end_matches("+00:00");
    let is_midnight = match time.strip_suffix(" AM") {
        Some(time) => ["12:00:00", "12:00"].contains(&time),
        None => {
            let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
            ["00:00:00", "0:00:00", "00:00", "0:00"].contains(&time) && fraction.bytes().all(|byte| byte == b'0')
        }
    };
    is_midnight.then_some(date)
}

/// Converts a spreadsheet's date number, in days since 1899-12-30: 44606 is 2022-02-14. Accepts only five digits, optionally
/// with the time as a fraction, for the years 1990 to 2099.
pub fn date_of_day_number(text: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (days, time) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let days = Some(days).filter(|days| days.len() == 5 && is_number(days) && is_number(time))?.parse::<u64>().ok()?;
    let date = NaiveDate::from_ymd_opt(1899, 12, 30)?.checked_add_days(Days::new(days))?;
    (1990..2100).contains(&date.year()).then(|| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(formats: &[&str], text: &str) -> Result<Option<String>, String> {
        let formats: Vec<DateFormat> =
            formats.iter().map(|format| format.parse().unwrap_or_else(|_| panic!("{format}"))).collect();
        super::read(&formats, text)
    }

    #[test]
    fn dates_are_read_as_the_format_says() {
        for (format, text) in [
            ("DD.MM.YYYY", "09.03.2024"),
            ("DD.MM.YYYY", "9.3.2024"),
            ("D.M.YY", "9.3.24"),
            ("MM/DD/YYYY", "03/09/2024"),
            ("%d.%m.%Y", "09.03.2024"),
            ("YYYY-MM-DD", "2024-03-09"),
            ("DD MMM YYYY", "09 Mar 2024"),
            ("YYYY-MM-DD HH:mm:ss", "2024-03-09 10:30:00"),
            ("%Y-%m-%dT%H:%M:%SZ", "2024-03-09T10:30:00Z"),
        ] {
            assert_eq!(read(&[format], text), Ok(Some("2024-03-09".to_owned())), "{format} {text}");
        }
    }

    #[test]
    fn other_dates_are_refused_not_guessed() {
        for text in ["31.02.2024", "03/09/2024", "09.03.2024 10:00", "tomorrow", "09.13.2024", "09.03.24"] {
            assert!(read(&["DD.MM.YYYY"], text).is_err(), "{text}");
        }
        assert_eq!(
            read(&["DD.MM.YYYY"], "09.03.24"),
            Err("\"09.03.24\" has a two-digit year: write YY in the date format".into())
        );
        for format in ["DD.MM", "nonsense", "%d", "%Q", ""] {
            assert!(format.parse::<DateFormat>().is_err(), "{format}");
        }
    }

    #[test]
    fn iso_dates_and_midnight_are_understood_beside_any_format() {
        for formats in [&[][..], &["DD.MM.YYYY"], &["DD.MM.YYYY", "MM/DD/YYYY"]] {
            for text in ["2024-03-09", "2024-3-9", "2024-03-09 00:00:00", "2024-03-09T00:00:00.000Z", "2024-03-09 00:00:00 UTC"] {
                assert_eq!(read(formats, text), Ok(Some("2024-03-09".to_owned())), "{formats:?} {text}");
            }
        }
        assert_eq!(read(&["DD.MM.YYYY"], "09.03.2024 00:00"), Ok(Some("2024-03-09".to_owned())));
        assert_eq!(read(&["M/D/YYYY"], "3/9/2024 12:00:00 AM"), Ok(Some("2024-03-09".to_owned())));
        assert_eq!(read(&["YYYY-DD-MM"], "2024-03-09"), Ok(Some("2024-09-03".to_owned())), "the format is meant");
        for (formats, text) in
            [(&["DD.MM.YYYY"][..], "2024-02-30"), (&["YYYY-DD-MM"], "2024-12-31"), (&["DD.MM.YYYY"], "99999-01-01")]
        {
            assert!(read(formats, text).is_err(), "{formats:?} {text}");
        }
        assert_eq!(read(&[], "soon"), Ok(None));
    }

    #[test]
    fn several_formats_are_read_unless_they_contradict_each_other() {
        let formats = ["DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"];
        assert_eq!(read(&formats, "09.03.2024"), Ok(Some("2024-03-09".to_owned())));
        assert_eq!(read(&formats, "25/03/2024"), Ok(Some("2024-03-25".to_owned())));
        assert_eq!(read(&formats, "03/03/2024"), Ok(Some("2024-03-03".to_owned())));
        assert_eq!(read(&formats, "09/03/2024"), Err("\"09/03/2024\" can be 2024-03-09 and 2024-09-03".to_owned()));
        assert_eq!(read(&formats[..2], "x"), Err("\"x\" is not a date of the form DD.MM.YYYY or DD/MM/YYYY".to_owned()));
    }

    #[test]
    fn day_numbers_of_spreadsheets_have_a_date() {
        assert_eq!(date_of_day_number("44606").as_deref(), Some("2022-02-14"));
        assert_eq!(date_of_day_number("44606.5").as_deref(), Some("2022-02-14"));
        for text in ["4460", "446060", "20240309", "12345", "99999", "44606x", "44 606", "-44606"] {
            assert_eq!(date_of_day_number(text), None, "{text}");
        }
        for formats in [&[][..], &["DD.MM.YYYY"]] {
            assert_eq!(read(formats, "44606"), Err("\"44606\" is a spreadsheet's day number for 2022-02-14".to_owned()));
        }
    }
}
