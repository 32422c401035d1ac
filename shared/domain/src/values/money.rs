//! Amounts of money: decimal numbers that keep every digit.

use crate::values::field_error::{ErrorCode, ValueError, text_form};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{AnyOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Upper bound of prices, exclusive.
const BOUND: i64 = 1_000_000_000_000;

/// A purchase price: 0 ≤ p < 10^12 with at most 4 fractional digits. `2499.00` stays `2499.00`.
///
/// Stored as text, because DynamoDB numbers drop trailing zeros. A JSON number in responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Price(Decimal);

/// Price as a number, the form in responses.
#[derive(utoipa::ToSchema)]
#[schema(value_type = f64, minimum = 0, exclusive_maximum = 1_000_000_000_000_i64, examples(2499.00))]
pub struct PriceNumber(());

/// Price as text, an alternative form in requests.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, pattern = r"^0*[0-9]{1,12}(\.[0-9]{1,4})?$", examples("2499.00"))]
pub struct PriceText(());

impl PartialSchema for Price {
    fn schema() -> RefOr<Schema> {
        let names = [PriceNumber::name(), PriceText::name()];
        names.iter().fold(AnyOfBuilder::new(), |any, name| any.item(Ref::from_schema_name(name.as_ref()))).into()
    }
}

impl ToSchema for Price {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((PriceNumber::name().into_owned(), PriceNumber::schema()));
        schemas.push((PriceText::name().into_owned(), PriceText::schema()));
    }
}

impl Price {
    /// Parses a JSON number.
    ///
    /// # Errors
    ///
    /// Returns a [`ValueError`] for a number out of bounds, or with more than 4 fractional digits.
    pub fn from_json_number(digits: &str) -> Result<Self, ValueError> {
        let read = Decimal::from_str_exact(digits).or_else(|_| Decimal::from_scientific(digits).map(|read| read.normalize()));
        let Ok(amount) = read else { return outside_decimal(digits) };
        if amount.is_sign_negative() && !amount.is_zero() {
            return Err(negative());
        }
        if amount >= Decimal::from(BOUND) {
            return Err(too_large());
        }
        if amount.scale() > 4 {
            return Err(too_precise());
        }
        Ok(Self(amount.abs()))
    }

    /// Returns the price in ten-thousandths, its smallest fraction.
    pub fn ten_thousandths(self) -> u64 {
        let mut scaled = self.0;
        scaled.rescale(4);
        scaled.mantissa().try_into().unwrap_or_default()
    }

    /// Parses digits, with an optional decimal point. Rejects other forms, such as exponents and thousands separators.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Price::from_json_number`], and an error for other forms.
    pub fn from_decimal_text(text: &str) -> Result<Self, ValueError> {
        let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number(integer.strip_prefix('-').unwrap_or(integer)) && is_number(fraction) {
            Self::from_json_number(text)
        } else {
            Err(no_price())
        }
    }

    /// Writes a JSON number with exactly the price's digits.
    ///
    /// # Errors
    ///
    /// Returns the serializer's error.
    pub fn serialize_number<S: Serializer>(price: &Option<Self>, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(price) = price else { return serializer.serialize_none() };
        serde_json::value::RawValue::from_string(price.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Returns the error for anything but a number or a decimal text.
pub fn no_price() -> ValueError {
    let text = "must be a number from 0 to below 1000000000000, or its decimal text such as \"1249.00\"";
    ValueError::coded(ErrorCode::InvalidDecimal, text)
}

fn negative() -> ValueError {
    ValueError::limited(ErrorCode::TooSmall, 0, "must not be negative: it must be from 0 to below 1000000000000")
}

fn too_large() -> ValueError {
    // The bound itself is too large, so the limit is the greatest price.
    let limit = serde_json::Number::from_f64(999_999_999_999.999_9);
    ValueError { limit, ..ValueError::coded(ErrorCode::TooLarge, "must be below 1000000000000") }
}

fn too_precise() -> ValueError {
    ValueError::coded(ErrorCode::InvalidDecimal, "must have at most 4 fractional digits")
}

/// Parses a number that `Decimal` can't represent, such as `1e400` or `0e400`: it is zero, or exceeds a bound.
fn outside_decimal(digits: &str) -> Result<Price, ValueError> {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (integer, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.trim_start_matches(['+', '-']);
    if integer.is_empty() || !is_number(integer) || !is_number(fraction) || power.is_empty() || !is_number(power) {
        return Err(no_price());
    }
    let Some(first) = integer.bytes().chain(fraction.bytes()).position(|digit| digit != b'0') else {
        return Ok(Price(Decimal::ZERO));
    };
    let power: i64 = power.parse().unwrap_or(i64::MAX / 2);
    let power = if exponent.starts_with('-') { -power } else { power };
    Err(if mantissa.starts_with('-') {
        negative()
    } else if i64::try_from(integer.len()).unwrap_or(i64::MAX / 4) - i64::try_from(first).unwrap_or_default() + power > 12 {
        too_large()
    } else {
        too_precise()
    })
}

impl std::fmt::Display for Price {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

impl std::str::FromStr for Price {
    type Err = ValueError;
    fn from_str(digits: &str) -> Result<Self, ValueError> {
        Self::from_json_number(digits)
    }
}

text_form!(Price, |price| price.to_string());

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_price_keeps_its_digits_and_stays_within_its_bounds() {
        for (digits, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("2499.00", "2499.00"),
            ("999999999999.9999", "999999999999.9999"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
            ("0e50", "0"),
            ("-0.0E-400", "0"),
            ("10000e-8", "0.0001"),
        ] {
            assert_eq!(Price::from_json_number(digits).map(|p| p.to_string()), Ok(expected.into()), "{digits}");
        }
        for wrong in ["-0.01", "1000000000000", "0.00001", "1e400", "1e-400", "99999999999999999999999999999999999", "abc", ""] {
            assert!(Price::from_json_number(wrong).is_err(), "{wrong}");
        }
        for (wrong, why) in [
            ("1.00000000000000000000000000000000001", "fractional"),
            ("1e-400", "fractional"),
            ("99999999999999999999999999999999999", "below"),
            ("1e400", "below"),
            ("-99999999999999999999999999999999999", "negative"),
        ] {
            let error = Price::from_json_number(wrong).expect_err(wrong).to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_decimal_text_is_read_as_the_number_and_nothing_else_is() {
        for (text, expected) in [("1249.00", "1249.00"), ("0", "0"), ("007.5", "7.5"), ("999999999999.9999", "999999999999.9999")]
        {
            assert_eq!(Price::from_decimal_text(text).map(|price| price.to_string()), Ok(expected.into()), "{text}");
        }
        for wrong in ["", "1,249.00", "1.249,00", "1e3", "+1", ".5", "5.", " 5", "5 EUR", "0x10", "1_000", "-", "NaN", "\u{0661}"]
        {
            assert_eq!(Price::from_decimal_text(wrong), Err(no_price()), "{wrong}");
        }
        for (wrong, why) in [("-1.00", "negative"), ("1000000000000", "below"), ("0.00001", "fractional")] {
            assert!(Price::from_decimal_text(wrong).expect_err(wrong).to_string().contains(why), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn prices_are_read_back_with_every_digit(whole in 0u64..1_000_000_000_000, fraction in "(\\.[0-9]{1,4})?") {
            let digits = format!("{whole}{fraction}");
            prop_assert_eq!(Price::from_json_number(&digits).map(|p| p.to_string()), Ok(digits));
        }
    }
}
