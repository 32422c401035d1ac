//! The form of dates and prices, as far as the cells of a file show it.

use crate::import::columns::convert::{DateFormat, price_with_comma, price_with_point};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The service's own form comes first.
const FORMATS: [&str; 14] = [
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
    "YYYY-MM-DDTHH:mm:ssZ",
    "DD.MM.YYYY HH:mm",
];

/// Formats in which a date fits, without the service's own.
#[must_use]
pub fn formats_of(cell: &str) -> Vec<&'static str> {
    fitting(cell).filter(|format| FORMATS.first() != Some(format)).collect()
}

fn fitting(cell: &str) -> impl Iterator<Item = &'static str> + use<'_> {
    static PARSED: LazyLock<Vec<(&str, DateFormat)>> =
        LazyLock::new(|| FORMATS.into_iter().filter_map(|format| Some((format, DateFormat::parse(format).ok()?))).collect());
    PARSED.iter().filter(move |(_, parsed)| parsed.date(cell).is_ok()).map(|(format, _)| *format)
}

#[derive(Debug, PartialEq, Eq)]
pub enum Finding<T> {
    /// Nothing has to be said: there is none, or they are as the service reads them.
    Nothing,
    Clear(T),
    /// The cells fit several forms, which differ in meaning.
    Ambiguous(T, T),
}

/// The numbers of cells, by the formats that they fit.
#[derive(Debug, Default)]
pub struct Dates(BTreeMap<Vec<&'static str>, u64>);

impl Dates {
    pub fn note(&mut self, cell: &str) {
        if !cell.is_empty() && cell != "\\N" {
            *self.0.entry(fitting(cell).collect()).or_default() += 1;
        }
    }

    fn count(&self, is_wanted: impl Fn(&[&str]) -> bool) -> u64 {
        self.0.iter().filter(|(formats, _)| is_wanted(formats)).map(|(_, count)| count).sum()
    }

    /// The format of most cells that don't have the service's own, which is always understood. Day and month are told apart by
    /// cells with a day above 12, none of which may say the opposite.
    #[must_use]
    pub fn finding(&self) -> Finding<&'static str> {
        let [own, others @ ..] = FORMATS;
        let number = |format: &&str| self.count(|formats| formats.contains(format) && !formats.contains(&own));
        let Some(format) = others.into_iter().rev().max_by_key(number).filter(|format| number(format) > 0) else {
            return Finding::Nothing;
        };
        let Some(other) = swapped(format) else { return Finding::Clear(format) };
        let only = |one: &str, other: &str| self.count(|formats| formats.contains(&one) && !formats.contains(&other));
        match (only(format, other), only(other, format)) {
            (1.., 0) => Finding::Clear(format),
            _ => Finding::Ambiguous(format, other),
        }
    }

    /// Cells that have neither this format nor the service's own.
    #[must_use]
    pub fn misfits(&self, format: &str) -> u64 {
        let [own, ..] = FORMATS;
        self.count(|formats| !formats.contains(&format) && !formats.contains(&own))
    }
}

/// The format with day and month in the other order, if both are in use.
fn swapped(format: &str) -> Option<&'static str> {
    let other = format.replace("DD", "_").replace("MM", "DD").replace('_', "MM");
    FORMATS.into_iter().find(|known| *known == other && *known != format)
}

#[derive(Debug, Default)]
pub struct Prices {
    /// `12,49`.
    with_comma: u64,
    /// `12.49`.
    with_point: u64,
    /// `1.249`, which either reads.
    ambiguous: u64,
    /// `1,249`.
    thousands: u64,
}

impl Prices {
    pub fn note(&mut self, cell: &str) {
        let number = |price: Option<String>| price.and_then(|price| price.parse::<f64>().ok());
        let with_comma = number(price_with_comma(cell).ok());
        match (with_comma, number(price_with_point(cell, false)), number(price_with_point(cell, true))) {
            (Some(one), Some(other), _) => self.ambiguous += u64::from((one - other).abs() > f64::EPSILON),
            (Some(_), None, Some(_)) => self.thousands += 1,
            (Some(_), None, None) => self.with_comma += 1,
            (None, Some(_), _) => self.with_point += 1,
            (None, None, _) => {}
        }
    }

    /// Whether prices have a decimal comma, or a decimal point and commas between thousands.
    #[must_use]
    pub fn finding(&self) -> Finding<bool> {
        match (self.with_comma, self.with_point) {
            (1.., 0) => Finding::Clear(true),
            (0, 1..) if self.thousands > 0 => Finding::Clear(false),
            (0, 1..) => Finding::Nothing,
            (0, 0) if self.ambiguous + self.thousands == 0 => Finding::Nothing,
            _ => Finding::Ambiguous(true, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(cells: &[&str]) -> Finding<&'static str> {
        let mut dates = Dates::default();
        cells.iter().for_each(|cell| dates.note(cell));
        dates.finding()
    }

    fn prices(cells: &[&str]) -> Finding<bool> {
        let mut prices = Prices::default();
        cells.iter().for_each(|cell| prices.note(cell));
        prices.finding()
    }

    #[test]
    fn dates_show_their_format() {
        assert_eq!(dates(&["05.03.2025", "", "31.12.2024", "soon"]), Finding::Clear("DD.MM.YYYY"));
        assert_eq!(dates(&["2025-03-05"]), Finding::Nothing);
        assert_eq!(dates(&["2025-03-05", "2025-03-06", "31.12.2024"]), Finding::Clear("DD.MM.YYYY"));
        assert_eq!(dates(&["soon", ""]), Finding::Nothing);
        assert_eq!(dates(&["05/03/2025", "03/25/2025"]), Finding::Clear("MM/DD/YYYY"));
        assert_eq!(dates(&["05/03/25", "25/03/25"]), Finding::Clear("DD/MM/YY"));
        assert_eq!(dates(&["2025-03-05 10:30:00"]), Finding::Clear("YYYY-MM-DD HH:mm:ss"));
        assert_eq!(formats_of("03/04/2025"), ["DD/MM/YYYY", "MM/DD/YYYY"]);
    }

    #[test]
    fn day_and_month_are_not_guessed() {
        assert_eq!(dates(&["05/03/2025", "01/02/2025"]), Finding::Ambiguous("DD/MM/YYYY", "MM/DD/YYYY"));
        assert_eq!(dates(&["25-03-2025", "24-03-2025", "03-25-2025"]), Finding::Ambiguous("DD-MM-YYYY", "MM-DD-YYYY"));
    }

    #[test]
    fn prices_show_their_comma() {
        assert_eq!(prices(&["1.249,00 €", "1.249", "999"]), Finding::Clear(true));
        assert_eq!(prices(&["12.49", "1.249", "999"]), Finding::Nothing);
        assert_eq!(prices(&["$12.49", "1,249.00", "1,249"]), Finding::Clear(false));
        assert_eq!(prices(&["$12.49", "1,249.00"]), Finding::Nothing);
        assert_eq!(prices(&["1,249", "999"]), Finding::Ambiguous(true, false));
        assert_eq!(prices(&["999", "", "free"]), Finding::Nothing);
        assert_eq!(prices(&["1.249"]), Finding::Ambiguous(true, false));
        assert_eq!(prices(&["12,49", "12.49"]), Finding::Ambiguous(true, false));
    }
}
