//! What the cells of a file are: dates and their formats, prices, addresses, names, identifiers.

use super::{HOLDER, MAX_VALUES, OWNERS, words};
use crate::assets::csv_cell::CLEAR;
use crate::import::dates::{self, DateFormat, date_of_day_number};
use crate::import::prices::{Decimal, price_with_comma, price_with_point};
use crate::import::{OWNER_NAME, compared};
use crate::values::id::AssetId;
use fields::CellType;
use fields::compared::lower;
use fields::serial_number::is_placeholder;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

/// The service's format comes first.
const FORMATS: [&str; 22] = [
    "YYYY-MM-DD",
    "DD.MM.YYYY",
    "DD.MM.YY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "DD/MM/YY",
    "MM/DD/YY",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY/MM/DD",
    "DD MMM YYYY",
    "YYYY-MM-DD HH:mm:ss",
    "YYYY-MM-DD HH:mm:ss UTC",
    "YYYY-MM-DD HH:mm",
    "YYYY-MM-DDTHH:mm:ssZ",
    "DD.MM.YYYY HH:mm",
    "DD.MM.YYYY HH:mm:ss",
    "DD/MM/YYYY HH:mm",
    "MM/DD/YYYY HH:mm",
    "DD/MM/YYYY HH:mm:ss",
    "MM/DD/YYYY HH:mm:ss",
    "YYYY/MM/DD HH:mm:ss",
];

/// Number of cells that show what a column is.
const MAX_FITTED: usize = 200;
/// Maximum number of different values in a column of words.
const MAX_WORDS: usize = 12;

/// What the cells of a column are.
#[derive(Debug, Default)]
pub struct Surveyed {
    /// Number of cells with text.
    pub filled: usize,
    pub example: Option<String>,
    /// The first different texts.
    pub values: BTreeSet<String>,
    /// Whether there are more different texts than `values`.
    pub has_more_values: bool,
    /// Number of cells with an e-mail address.
    addresses: usize,
    /// The first cell whose letters are garbled.
    pub garbled: Option<String>,
}

impl Surveyed {
    pub fn of<'a>(cells: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for cell in cells.filter(|cell| is_filled(cell)) {
            found.filled += 1;
            found.example.get_or_insert_with(|| cell.to_owned());
            if found.values.len() < MAX_VALUES {
                found.values.insert(cell.to_owned());
            } else {
                found.has_more_values |= !found.values.contains(cell);
            }
            found.addresses += usize::from(cell.contains('@'));
            if found.garbled.is_none() && is_garbled(cell) {
                found.garbled = Some(cell.to_owned());
            }
        }
        found
    }

    /// Returns the different values, ignoring case.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        self.values.iter().map(String::as_str).filter(move |value| seen.insert(lower(value)))
    }

    pub fn are_addresses(&self) -> bool {
        self.addresses == self.filled && self.addresses > 1
    }

    /// Whether all values are words for values of a field with a fixed vocabulary.
    pub fn are_words_of(&self, field: &str) -> bool {
        (2..=MAX_WORDS).contains(&self.values.len()) && self.values.iter().all(|value| words::meaning(field, value).is_some())
    }
}

pub fn is_filled(cell: &str) -> bool {
    !cell.is_empty() && cell != CLEAR
}

/// Whether a text stands for an unknown value, such as `n/a`, `-` or `#REF!`. Numbers and single letters only do as serial numbers.
pub fn is_unknown(cell: &str) -> bool {
    let mut bare = cell.chars().filter(|character| character.is_alphanumeric());
    let first = bare.next();
    let has_words = !cell.contains(|character: char| character.is_numeric()) && bare.any(|other| Some(other) != first);
    (first.is_none() || has_words || cell.starts_with('#')) && is_placeholder(cell)
}

/// Whether a cell says something: it is neither empty nor a placeholder.
pub fn is_value(cell: &str) -> bool {
    is_filled(cell) && !is_unknown(cell)
}

/// Returns the field that a column can be by its cells, if its heading says `field`: holders are given by names or by addresses.
/// `None` if most cells can't be its values.
pub fn fitting<'a>(field: &'static str, cell: Option<CellType>, cells: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let cells: Vec<&str> = cells.filter(|cell| is_filled(cell)).take(MAX_FITTED).filter(|cell| !is_unknown(cell)).collect();
    let most = |is_one: fn(&str) -> bool| cells.iter().filter(|cell| is_one(cell)).count() * 2 > cells.len();
    let is_date =
        |cell: &str| date_of_day_number(cell).is_some() || dates::read(&[], cell) != Ok(None) || formats(cell).next().is_some();
    let is_price = |cell: &str| price_with_comma(cell).is_some() || price_with_point(cell, true).is_some();
    let is_holder = field == HOLDER || OWNERS.contains(&field);
    match cell {
        _ if cells.is_empty() => Some(field),
        Some(CellType::Date) => Some(field).filter(|_| most(is_date)),
        Some(CellType::Number) => Some(field).filter(|_| most(is_price)),
        _ if field == HOLDER && most(|cell| cell.parse::<AssetId>().is_ok()) => Some(field),
        _ if is_holder && most(|cell| cell.contains('@')) => Some("assigned_to_email"),
        _ if is_holder => Some(OWNER_NAME).filter(|_| most(|cell| cell.contains([' ', ',']))),
        _ => Some(field),
    }
}

/// Whether a text is UTF-8 that was read as Windows-1252, such as `BÃ¼ro`.
pub fn is_garbled(text: &str) -> bool {
    let mut pairs = text.chars().zip(text.chars().skip(1));
    pairs.any(|(first, second)| {
        (matches!(first, 'Ã' | 'Â') && ('\u{80}'..='\u{bf}').contains(&second))
            || (first == 'â' && matches!(second, '€' | '\u{80}'))
    })
}

/// Counts the different and the repeated values of an identifier.
#[derive(Debug, Default)]
pub struct Identifiers {
    seen: HashSet<String>,
    pub repeated: usize,
}

impl Identifiers {
    pub fn of<'a>(field: &str, cells: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Self::default();
        for cell in cells.filter(|cell| is_filled(cell) && (field != "serial_number" || !is_placeholder(cell))) {
            found.repeated += usize::from(!found.seen.insert(compared(field, cell)));
        }
        found
    }

    pub fn distinct(&self) -> usize {
        self.seen.len()
    }
}

/// Returns the formats that match a date, except the service's.
pub fn formats_of(cell: &str) -> Vec<&'static str> {
    formats(cell).filter(|format| FORMATS.first() != Some(format)).collect()
}

fn formats(cell: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    static PARSED: LazyLock<Vec<(&str, DateFormat)>> =
        LazyLock::new(|| FORMATS.into_iter().filter_map(|format| Some((format, format.parse().ok()?))).collect());
    // Most texts have no form of a date, and parsing takes long.
    let separator = |text: &str| text.chars().find(|character| !character.is_alphanumeric());
    let first = separator(cell).filter(|_| (6..=32).contains(&cell.len()) && cell.starts_with(|c: char| c.is_ascii_digit()));
    let has_form = move |format: &str| first.is_some() && separator(format) == first;
    PARSED.iter().filter(move |(format, parsed)| has_form(format) && parsed.date(cell).is_some()).map(|(format, _)| *format)
}

/// The formats of the dates in a file.
#[derive(Debug, Default)]
pub struct Dates(BTreeMap<Vec<&'static str>, usize>);

#[derive(Debug, PartialEq, Eq)]
pub struct DateFormats {
    pub formats: Vec<&'static str>,
    /// Two formats with different meanings, between which no cell decides.
    pub doubt: Option<(&'static str, &'static str)>,
}

impl Dates {
    pub fn note(&mut self, cell: &str) {
        if is_filled(cell) && dates::read(&[], cell) == Ok(None) {
            *self.0.entry(formats(cell).collect()).or_default() += 1;
        }
    }

    fn count(&self, is_wanted: impl Fn(&[&str]) -> bool) -> usize {
        self.0.iter().filter(|(formats, _)| is_wanted(formats)).map(|(_, count)| count).sum()
    }

    /// Returns the formats that read all dates, the most frequent first. Cells with a day above 12 show the order of day and
    /// month, unless another cell contradicts.
    pub fn formats(&self) -> DateFormats {
        let mut found = DateFormats { formats: Vec::new(), doubt: None };
        loop {
            let is_read = |formats: &[&str]| formats.iter().any(|format| found.formats.contains(format));
            let number = |format: &&str| self.count(|formats| formats.contains(format) && !is_read(formats));
            let best = FORMATS.into_iter().skip(1).rev().max_by_key(number).filter(|format| number(format) > 0);
            let Some(format) = best else { return found };
            if let Some(other) = swapped(format) {
                let only = |one: &str, other: &str| self.count(|formats| formats.contains(&one) && !formats.contains(&other));
                match (only(format, other), only(other, format)) {
                    (1.., 0) => {}
                    (0, 1..) => {
                        found.formats.push(other);
                        continue;
                    }
                    _ => {
                        found.doubt = Some((format, other));
                        return found;
                    }
                }
            }
            found.formats.push(format);
        }
    }

    /// Returns the number of cells that none of these formats reads.
    pub fn misfits(&self, read: &[&str]) -> usize {
        self.count(|formats| !formats.iter().any(|format| read.contains(format)))
    }
}

/// Returns the format with day and month swapped, if [`FORMATS`] contains it.
fn swapped(format: &str) -> Option<&'static str> {
    let other = format.replace("DD", "_").replace("MM", "DD").replace('_', "MM");
    FORMATS.into_iter().find(|known| *known == other && *known != format)
}

/// The forms of the prices in a file.
#[derive(Debug, Default)]
pub struct Prices {
    /// Like `12,49`.
    with_comma: usize,
    /// Like `12.49`.
    with_point: usize,
    /// Like `1.249`, which can have a decimal point or a thousands separator.
    ambiguous: usize,
    /// Like `1,249`.
    thousands: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// There are no prices, or all are understood.
    Nothing,
    Clear(Decimal),
    /// The prices can be read in two ways.
    Ambiguous,
}

impl Prices {
    pub fn note(&mut self, cell: &str) {
        let number = |price: Option<String>| price.and_then(|price| price.parse::<f64>().ok());
        let with_comma = number(price_with_comma(cell));
        match (with_comma, number(price_with_point(cell, false)), number(price_with_point(cell, true))) {
            (Some(one), Some(other), _) => self.ambiguous += usize::from((one - other).abs() > f64::EPSILON),
            (Some(_), None, Some(_)) => self.thousands += 1,
            (Some(_), None, None) => self.with_comma += 1,
            (None, Some(_), _) => self.with_point += 1,
            (None, None, _) => {}
        }
    }

    pub fn finding(&self) -> Finding {
        match (self.with_comma, self.with_point) {
            (1.., 0) => Finding::Clear(Decimal::Comma),
            (0, 1..) if self.thousands > 0 => Finding::Clear(Decimal::Point),
            (0, 1..) => Finding::Nothing,
            (0, 0) if self.ambiguous + self.thousands == 0 => Finding::Nothing,
            _ => Finding::Ambiguous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(cells: &[&str]) -> DateFormats {
        let mut dates = Dates::default();
        cells.iter().for_each(|cell| dates.note(cell));
        dates.formats()
    }

    fn clear(formats: &[&'static str]) -> DateFormats {
        DateFormats { formats: formats.to_vec(), doubt: None }
    }

    #[test]
    fn dates_show_their_formats() {
        assert_eq!(dates(&["05.03.2025", "", "31.12.2024", "soon"]), clear(&["DD.MM.YYYY"]));
        assert_eq!(dates(&["2025-03-05", "2025-3-5", "2025-03-05 00:00:00"]), clear(&[]));
        assert_eq!(dates(&["2025-03-05", "2025-03-06", "31.12.2024"]), clear(&["DD.MM.YYYY"]));
        assert_eq!(dates(&["soon", ""]), clear(&[]));
        assert_eq!(dates(&["05/03/2025", "03/25/2025"]), clear(&["MM/DD/YYYY"]));
        assert_eq!(dates(&["05/03/25", "25/03/25"]), clear(&["DD/MM/YY"]));
        assert_eq!(dates(&["2025-03-05 10:30:00"]), clear(&["YYYY-MM-DD HH:mm:ss"]));
        assert_eq!(dates(&["2025-03-05 23:30:00 UTC"]), clear(&["YYYY-MM-DD HH:mm:ss UTC"]));
        assert_eq!(dates(&["3/25/2024 10:30", "1/2/2024 9:05"]), clear(&["MM/DD/YYYY HH:mm"]));
        assert_eq!(dates(&["1/2/2024 9:05"]).doubt, Some(("DD/MM/YYYY HH:mm", "MM/DD/YYYY HH:mm")));
        assert_eq!(
            dates(&["05.03.2025", "31.12.2024", "14 Feb 2024", "05.03.25"]),
            clear(&["DD.MM.YYYY", "DD.MM.YY", "DD MMM YYYY"])
        );
        assert_eq!(formats_of("03/04/2025"), ["DD/MM/YYYY", "MM/DD/YYYY"]);
    }

    #[test]
    fn day_and_month_are_not_guessed() {
        let doubt = |cells: &[&str]| dates(cells).doubt;
        assert_eq!(doubt(&["05/03/2025", "01/02/2025"]), Some(("DD/MM/YYYY", "MM/DD/YYYY")));
        assert_eq!(doubt(&["25-03-2025", "24-03-2025", "03-25-2025"]), Some(("DD-MM-YYYY", "MM-DD-YYYY")));
    }

    fn prices(cells: &[&str]) -> Finding {
        let mut prices = Prices::default();
        cells.iter().for_each(|cell| prices.note(cell));
        prices.finding()
    }

    #[test]
    fn prices_show_their_comma() {
        assert_eq!(prices(&["1.249,00 €", "1.249", "999"]), Finding::Clear(Decimal::Comma));
        assert_eq!(prices(&["12.49", "1.249", "999"]), Finding::Nothing);
        assert_eq!(prices(&["$12.49", "1,249.00", "1,249"]), Finding::Clear(Decimal::Point));
        assert_eq!(prices(&["$12.49", "1,249.00"]), Finding::Nothing);
        assert_eq!(prices(&["1,249", "999"]), Finding::Ambiguous);
        assert_eq!(prices(&["999", "", "free"]), Finding::Nothing);
        assert_eq!(prices(&["1.249"]), Finding::Ambiguous);
        assert_eq!(prices(&["12,49", "12.49"]), Finding::Ambiguous);
    }

    #[test]
    fn only_words_and_signs_stand_for_an_unknown_value() {
        for text in ["n/a", "-", "#N/A", "#DIV/0!", "unknown", "k.A."] {
            assert!(is_unknown(text), "{text}");
        }
        for text in ["0.00", "1234567.89", "x", "X", "'@x", "000000", "xxxxxx", "101", "Berlin"] {
            assert!(!is_unknown(text), "{text}");
        }
    }

    #[test]
    fn garbled_letters_are_recognized() {
        assert!(is_garbled("BÃ¼ro") && is_garbled("24 â€“ 7"));
        assert!(!is_garbled("Büro") && !is_garbled("SÃO") && !is_garbled("âge"));
    }
}
