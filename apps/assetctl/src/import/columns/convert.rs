//! Dates and prices as people write them, converted to what the service reads.

use chrono::format::{Parsed, StrftimeItems, parse};
use chrono::{Datelike, Days, NaiveDate};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    given: String,
    strftime: String,
    /// It reads YYYY-MM-DD, perhaps as another date.
    reads_iso: bool,
}

impl DateFormat {
    /// `DD.MM.YYYY` or `%d.%m.%Y`.
    pub fn parse(given: &str) -> Result<Self, String> {
        let strftime = if given.contains('%') { given.to_owned() } else { to_strftime(given) };
        let mut format = Self { given: given.to_owned(), strftime, reads_iso: false };
        format.reads_iso = format.date("2001-02-03").is_ok();
        let example = NaiveDate::from_ymd_opt(2024, 12, 31).ok_or("no such date")?;
        let mut text = String::new();
        let is_complete = std::fmt::Write::write_fmt(
            &mut text,
            format_args!("{}", example.and_time(chrono::NaiveTime::MIN).format(&format.strftime)),
        )
        .is_ok()
            && format.date(&text).is_ok_and(|date| date == "2024-12-31");
        if is_complete { Ok(format) } else { Err("must have day, month and year, as DD.MM.YYYY or %d.%m.%Y".into()) }
    }

    /// Returns the date as YYYY-MM-DD, or the error for the row.
    pub fn date(&self, text: &str) -> Result<String, String> {
        let mut parsed = Parsed::new();
        let date = parse(&mut parsed, text, StrftimeItems::new(&self.strftime)).and_then(|()| parsed.to_naive_date());
        match date {
            Ok(date) if date.year() < 1_000 => Err(format!("{text:?} has a year of two digits: write YY in --date-format")),
            Ok(date) => Ok(date.to_string()),
            Err(_) => Err(format!("{text:?} is not a date of the form {}", self.given)),
        }
    }

    /// As [`DateFormat::date`]; YYYY-MM-DD is understood beside any other format.
    pub fn date_or_iso(&self, text: &str) -> Result<String, String> {
        let iso = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|date| date.to_string());
        let is_iso = || !self.reads_iso && iso().as_deref() == Some(text);
        self.date(text).or_else(|error| if is_iso() { Ok(text.to_owned()) } else { Err(error) })
    }

    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }
}

/// Translates `DD.MM.YYYY HH:mm:ss` to strftime's directives. Everything else stands for itself.
fn to_strftime(given: &str) -> String {
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

/// The date of a number with which spreadsheets count days from 1899-12-30: 44606 is 2022-02-14. Only of years from 1990 to 2099,
/// with five digits and perhaps the time as a fraction.
#[must_use]
pub fn date_of_day_number(text: &str) -> Option<String> {
    let (days, time) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let days = Some(days).filter(|days| days.len() == 5 && is_number(days) && is_number(time))?.parse::<u64>().ok()?;
    let date = NaiveDate::from_ymd_opt(1899, 12, 30)?.checked_add_days(Days::new(days))?;
    (1990..2100).contains(&date.year()).then(|| date.to_string())
}

/// `$1,249.00` becomes `1249.00`. `None` for what is no price with a decimal point and, unless that `is_known`, for `1,249`, whose
/// comma can be a decimal one.
#[must_use]
pub fn price_with_point(text: &str, is_known: bool) -> Option<String> {
    let number = without_currency(text);
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let has_doubt = !is_known && fraction.is_none() && whole.matches(',').count() == 1;
    if has_doubt || fraction.is_some_and(|digits| digits.len() > 4 || !is_number(digits)) {
        return None;
    }
    let whole = without_groups(whole, ',')?;
    Some(fraction.map_or_else(|| format!("{sign}{whole}"), |fraction| format!("{sign}{whole}.{fraction}")))
}

/// `1.249,00 €` becomes `1249.00`.
pub fn price_with_comma(text: &str) -> Result<String, String> {
    price(text).ok_or_else(|| format!("{text:?} is not a price with a decimal comma, such as 1.249,00 €"))
}

fn price(text: &str) -> Option<String> {
    let number = without_currency(text);
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once(',').unwrap_or((number, ""));
    let fraction = match fraction {
        // "1.249,-" is how round prices are written.
        "" | "-" | "--" | "–" | "—" => "00",
        digits if digits.len() <= 4 && is_number(digits) => digits,
        _ => return None,
    };
    let whole = without_groups(whole, '.')?;
    Some(format!("{sign}{whole}.{fraction:0<2}"))
}

/// Removes the text around the number: a sign such as €, or letters such as EUR.
fn without_currency(text: &str) -> &str {
    let is_currency =
        |character: char| character.is_whitespace() || character.is_alphabetic() || matches!(character, '€' | '$' | '£' | '¥');
    text.trim_matches(is_currency)
}

/// Removes the separators of thousands, `point` or others; `None` if they don't stand before groups of three digits.
fn without_groups(whole: &str, point: char) -> Option<String> {
    let mut groups = whole.split([point, ' ', '\u{a0}', '\u{202f}', '\'', '’']);
    let first = groups.next().filter(|first| is_number(first))?;
    let rest: Vec<&str> = groups.collect();
    let is_grouped = rest.is_empty() || (first.len() <= 3 && rest.iter().all(|group| group.len() == 3 && is_number(group)));
    is_grouped.then(|| format!("{first}{}", rest.concat()))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(format: &str, text: &str) -> Result<String, String> {
        DateFormat::parse(format).unwrap().date(text)
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
            assert_eq!(date(format, text).as_deref(), Ok("2024-03-09"), "{format} {text}");
        }
    }

    #[test]
    fn other_dates_are_refused_not_guessed() {
        for text in ["31.02.2024", "2024-03-09", "03/09/2024", "09.03.2024 10:00", "tomorrow", "09.13.2024", "09.03.24"] {
            assert!(date("DD.MM.YYYY", text).is_err(), "{text}");
        }
        for format in ["DD.MM", "nonsense", "%d", "%Q", ""] {
            assert!(DateFormat::parse(format).is_err(), "{format}");
        }
    }

    #[test]
    fn prices_lose_currency_and_groups() {
        for (text, price) in [
            ("1.249,00 €", "1249.00"),
            ("€ 1.249,00", "1249.00"),
            ("1249,5", "1249.50"),
            ("1.249", "1249.00"),
            ("12.345.678,90 EUR", "12345678.90"),
            ("CHF 1'249,00", "1249.00"),
            ("1\u{a0}249,00\u{a0}€", "1249.00"),
            ("0,99", "0.99"),
            ("1.249,- €", "1249.00"),
            ("-5,00", "-5.00"),
        ] {
            assert_eq!(price_with_comma(text).as_deref(), Ok(price), "{text}");
        }
    }

    #[test]
    fn iso_dates_are_read_beside_any_format() {
        let or_iso = |format: &str, text: &str| DateFormat::parse(format).unwrap().date_or_iso(text).ok();
        assert_eq!(or_iso("DD.MM.YYYY", "2024-03-09").as_deref(), Some("2024-03-09"));
        assert_eq!(or_iso("DD.MM.YYYY", "09.03.2024").as_deref(), Some("2024-03-09"));
        for (format, text) in [("DD.MM.YYYY", "2024-3-9"), ("DD.MM.YYYY", "2024-02-30"), ("YYYY-DD-MM", "2024-12-31")] {
            assert_eq!(or_iso(format, text), None, "{format} {text}");
        }
        assert_eq!(or_iso("YYYY-DD-MM", "2024-03-09").as_deref(), Some("2024-09-03"));
    }

    #[test]
    fn day_numbers_of_spreadsheets_have_a_date() {
        assert_eq!(date_of_day_number("44606").as_deref(), Some("2022-02-14"));
        assert_eq!(date_of_day_number("44606.5").as_deref(), Some("2022-02-14"));
        for text in ["4460", "446060", "20240309", "12345", "99999", "44606x", "44 606", "-44606"] {
            assert_eq!(date_of_day_number(text), None, "{text}");
        }
    }

    #[test]
    fn prices_with_a_point_are_read_where_there_is_no_doubt() {
        for (text, price) in [
            ("$12.58", "12.58"),
            ("1,249.00", "1249.00"),
            ("USD 1,249,000", "1249000"),
            ("12.5 €", "12.5"),
            ("-5.00", "-5.00"),
            ("1249", "1249"),
            ("1'249.50", "1249.50"),
        ] {
            assert_eq!(price_with_point(text, false).as_deref(), Some(price), "{text}");
        }
        assert_eq!(price_with_point("$1,249", true).as_deref(), Some("1249"));
        for text in ["1,249", "12,58", "1.249,00", "12.58.1", "1,24.00", "free", "$", "", "1.23456"] {
            assert_eq!(price_with_point(text, false), None, "{text}");
        }
    }

    #[test]
    fn ambiguous_prices_are_refused() {
        for text in ["1,249.00", "12.49", "1249.00", "1.24.9", "free", "€", "", "1,2,3", "1.2490,00", "10 or 12"] {
            assert!(price_with_comma(text).is_err(), "{text}");
        }
    }
}
