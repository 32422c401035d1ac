//! Prices with a decimal point or a decimal comma, with currencies and thousands separators.

use crate::values::string_enum::string_enum;

string_enum! {
    /// The sign before the cents.
    Decimal {
        /// As in 1.249,00: a comma; points separate thousands.
        Comma = "comma",
        /// As in 1,249.00: a point; commas separate thousands.
        Point = "point",
    }
}

/// Returns the price as a JSON number; `None` if the service has to check the text.
///
/// # Errors
///
/// Describes a text that isn't a price with a decimal comma.
pub fn read(decimal: Option<Decimal>, text: &str) -> Result<Option<String>, String> {
    if decimal != Some(Decimal::Comma) {
        return Ok(price_with_point(text, decimal.is_some()));
    }
    let price = price_with_comma(text);
    price.map(Some).ok_or_else(|| format!("{text:?} is not a price with a decimal comma, such as 1.249,00 €"))
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn prices_with_a_decimal_point_are_read_unless_it_could_be_a_comma() {
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
}
