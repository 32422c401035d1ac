//! Converts values for the service: dates and prices in other formats, words such as `Lager` for `in_stock`, and constants for
//! all rows.

use crate::import::columns::{Kind, OWNER_NAME, Target, sent_name};
use crate::output::folded;
use chrono::format::{Parsed, StrftimeItems, parse};
use chrono::{Datelike, Days, NaiveDate, NaiveTime};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    given: String,
    strftime: String,
    /// Whether the format also matches dates such as YYYY-MM-DD, possibly with a different meaning.
    reads_iso: bool,
}

impl DateFormat {
    /// Parses `DD.MM.YYYY` or `%d.%m.%Y`.
    pub fn parse(given: &str) -> Result<Self, String> {
        let strftime = if given.contains('%') { given.to_owned() } else { to_strftime(given) };
        let mut format = Self { given: given.to_owned(), strftime, reads_iso: false };
        format.reads_iso = format.date("2001-02-03").is_ok();
        let example = NaiveDate::from_ymd_opt(2024, 12, 31).ok_or("no such date")?;
        let mut text = String::new();
        // `write!` fails for an unknown directive.
        let written = write!(text, "{}", example.and_time(NaiveTime::MIN).format(&format.strftime));
        if written.is_ok() && format.date(&text).as_deref() == Ok("2024-12-31") {
            Ok(format)
        } else {
            Err("must have day, month and year, as DD.MM.YYYY or %d.%m.%Y".into())
        }
    }

    /// Returns the date as YYYY-MM-DD, or the error for the row.
    pub fn date(&self, text: &str) -> Result<String, String> {
        let mut parsed = Parsed::new();
        let date = parse(&mut parsed, text, StrftimeItems::new(&self.strftime)).and_then(|()| parsed.to_naive_date());
        match date {
            Ok(date) if date.year() < 1_000 => Err(format!("{text:?} has a two-digit year: write YY in --date-format")),
            Ok(date) => Ok(date.to_string()),
            Err(_) => Err(format!("{text:?} is not a date of the form {}", self.given)),
        }
    }

    /// Like [`DateFormat::date`], but also accepts YYYY-MM-DD.
    pub fn date_or_iso(&self, text: &str) -> Result<String, String> {
        let iso = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|date| date.to_string());
        let is_iso = || !self.reads_iso && iso().as_deref() == Some(text);
        self.date(text).or_else(|error| if is_iso() { Ok(text.to_owned()) } else { Err(error) })
    }

    pub fn given(&self) -> &str {
        &self.given
    }
}

/// Translates `DD.MM.YYYY HH:mm:ss` to strftime directives. Other characters stay unchanged.
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

/// Converts a spreadsheet's date number, in days since 1899-12-30: 44606 is 2022-02-14. Accepts only five digits, optionally
/// with the time as a fraction, for the years 1990 to 2099.
pub fn date_of_day_number(text: &str) -> Option<String> {
    let (days, time) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let days = Some(days).filter(|days| days.len() == 5 && is_number(days) && is_number(time))?.parse::<u64>().ok()?;
    let date = NaiveDate::from_ymd_opt(1899, 12, 30)?.checked_add_days(Days::new(days))?;
    (1990..2100).contains(&date.year()).then(|| date.to_string())
}

/// Converts `$1,249.00` to `1249.00`. `None` if the text isn't a price, or is ambiguous: unless the decimal point `is_known`,
/// `1,249` could have a decimal comma.
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

/// Converts `1.249,00 €` to `1249.00`; `None` if the text isn't a price with a decimal comma.
pub fn price_with_comma(text: &str) -> Option<String> {
    let number = without_currency(text);
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once(',').unwrap_or((number, ""));
    let fraction = match fraction {
        // Round prices are often written as "1.249,-".
        "" | "-" | "--" | "–" | "—" => "00",
        digits if digits.len() <= 4 && is_number(digits) => digits,
        _ => return None,
    };
    let whole = without_groups(whole, '.')?;
    Some(format!("{sign}{whole}.{fraction:0<2}"))
}

/// Removes a currency sign or code, such as € or EUR.
fn without_currency(text: &str) -> &str {
    let is_currency =
        |character: char| character.is_whitespace() || character.is_alphabetic() || matches!(character, '€' | '$' | '£' | '¥');
    text.trim_matches(is_currency)
}

/// Removes thousands separators: `point`, spaces or apostrophes. `None` if they don't separate groups of three digits.
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

/// `--map-value "Status:Lager=in_stock"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMapping {
    /// `COLUMN:VALUE`. Both can contain colons, so the value can only be found with the file's columns.
    pub cell: String,
    /// If empty, the field stays unchanged.
    pub meaning: String,
}

impl FromStr for ValueMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cell, meaning) = text.rsplit_once('=').filter(|(cell, _)| cell.contains(':')).ok_or(
            "must be COLUMN:VALUE=MEANING, such as Status:Lager=in_stock, or COLUMN:VALUE= to treat the value as an empty cell",
        )?;
        Ok(Self { cell: cell.to_owned(), meaning: meaning.trim().to_owned() })
    }
}

impl ValueMapping {
    pub fn new(column: &str, value: &str, meaning: &str) -> Self {
        Self { cell: format!("{column}:{value}"), meaning: meaning.to_owned() }
    }

    /// Returns the index of the column with the longest name that the cell begins with, and the value.
    fn split<'a>(&'a self, names: &[String]) -> Option<(usize, &'a str)> {
        let places = self.cell.match_indices(':').map(|(place, _)| (&self.cell[..place], &self.cell[place + 1..]));
        let column = |name: &str| names.iter().position(|known| known.trim() == name.trim());
        places.filter_map(|(name, value)| Some((column(name)?, value.trim()))).next_back()
    }
}

/// `--set asset_type_code=LAP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    pub field: String,
    pub value: String,
}

impl FromStr for Constant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = text.split_once('=').filter(|(_, value)| !value.trim().is_empty()).ok_or("must be FIELD=VALUE")?;
        Ok(Self { field: field.trim().to_owned(), value: value.trim().to_owned() })
    }
}

/// Adds a problem for each invalid constant.
pub fn check_constants(kind: Kind, constants: &[Constant], targets: &[Target], names: &[String], problems: &mut Vec<String>) {
    for (index, Constant { field, .. }) in constants.iter().enumerate() {
        let is_mapped = |target: &Target| target.field().is_some_and(|mapped| sent_name(mapped) == field);
        if field == OWNER_NAME {
            problems.push(format!("--set {field}: give the user of all rows with --set assigned_to_email=ADDRESS"));
        } else if !kind.has_column(field) {
            problems.push(format!("--set {field}: {field:?} is not a field of {}", kind.path()));
        } else if let Some((_, name)) = targets.iter().zip(names).find(|(target, _)| is_mapped(target)) {
            problems.push(format!("--set {field}: the column {name:?} is {field} already; ignore it with --map \"{name}=\""));
        } else if constants.iter().take(index).any(|earlier| earlier.field == *field) {
            problems.push(format!("--set {field}: is given twice"));
        }
    }
}

/// Values with their meanings, in the order of the options, by column name.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, Vec<(String, String)>>);

impl Values {
    /// Adds a problem for each mapping without an imported column.
    pub fn resolve(mappings: &[ValueMapping], names: &[String], targets: &[Target], problems: &mut Vec<String>) -> Self {
        let mut values = Self::default();
        for mapping in mappings {
            let mut problem = |detail: &str| problems.push(format!("--map-value {:?}: {detail}", mapping.cell));
            let Some((index, value)) = mapping.split(names) else {
                problem("the file has no such column; name it as the file does, not by its field");
                continue;
            };
            if targets.get(index).and_then(Target::field).is_none() {
                problem("the column is not imported");
                continue;
            }
            let meanings = values.0.entry(names.get(index).cloned().unwrap_or_default()).or_default();
            if meanings.iter().any(|(known, _)| known == value) {
                problem("is given twice");
            }
            meanings.push((value.to_owned(), mapping.meaning.clone()));
        }
        values
    }

    /// Returns the meaning given for a cell's exact value or, without one, the only meaning given for values that differ from it
    /// in case. Returns the cell itself if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error for the row if several values with different meanings differ from the cell only in case.
    pub fn translate<'a>(&'a self, column: &str, cell: &'a str) -> Result<&'a str, String> {
        let Some(meanings) = self.0.get(column) else { return Ok(cell) };
        let value = cell.trim();
        if let Some((_, meaning)) = meanings.iter().find(|(known, _)| known == value) {
            return Ok(meaning);
        }
        let folded = folded(value);
        let mut similar = meanings.iter().filter(|(known, _)| crate::output::folded(known) == folded);
        match similar.next() {
            None => Ok(cell),
            Some((_, meaning)) if similar.all(|(_, other)| other == meaning) => Ok(meaning),
            Some((first, _)) => {
                Err(format!("{value:?} differs only in case from {first:?} and from another value of --map-value"))
            }
        }
    }
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
            assert_eq!(price_with_comma(text).as_deref(), Some(price), "{text}");
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
            assert_eq!(price_with_comma(text), None, "{text}");
        }
    }

    fn resolve(texts: &[&str]) -> Result<Values, Vec<String>> {
        let names = ["Status", "Status: Ort", "Farbe"].map(str::to_owned);
        let targets = [Target::Field("status".into()), Target::Field("notes".into()), Target::Ignored];
        let mappings: Vec<ValueMapping> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let mut problems = Vec::new();
        let values = Values::resolve(&mappings, &names, &targets, &mut problems);
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    #[test]
    fn values_have_their_meaning_in_any_case() {
        let values = resolve(&[
            "Status:Lager=in_stock",
            "Status: Ort:a=b=Köln",
            "Status:=preparing",
            "Status:n/a=",
            "Status:Zurück=returned",
        ])
        .unwrap();
        for (column, cell, meaning) in [
            ("Status", " LAGER ", "in_stock"),
            ("Status", "Lager 2", "Lager 2"),
            ("Status", " ", "preparing"),
            ("Status", "N/A", ""),
            ("Status", "zuru\u{308}ck", "returned"),
            ("Status: Ort", "a=b", "Köln"),
            ("Farbe", "Lager", "Lager"),
        ] {
            assert_eq!(values.translate(column, cell), Ok(meaning), "{column} {cell}");
        }
    }

    #[test]
    fn an_ambiguous_case_is_refused_and_an_exact_value_is_not() {
        let values = resolve(&["Status:Ab=in_stock", "Status:aB=returned", "Status:Cd=in_use", "Status:cD=in_use"]).unwrap();
        assert_eq!((values.translate("Status", "aB"), values.translate("Status", "CD")), (Ok("returned"), Ok("in_use")));
        assert!(values.translate("Status", "AB").is_err_and(|error| error.contains("differs only in case")));
    }
}
