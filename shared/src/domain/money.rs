//! Amounts of money: decimal, every digit kept (contract 1, "Money").

use super::refusal::Refusal;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};

/// A purchase price: 0 ≤ p < 10^12 with at most 4 fractional digits. `2499.00` stays `2499.00`.
///
/// The table keeps it as text, since a DynamoDB number drops trailing zeros; replies show it as a JSON number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = f64, minimum = 0, exclusive_maximum = 1_000_000_000_000_i64, examples(2499.00))]
pub struct Price(Decimal);

impl Price {
    /// Reads the digits of a JSON number.
    ///
    /// # Errors
    ///
    /// Says which bound is broken.
    pub fn from_json_number(digits: &str) -> Result<Self, Refusal> {
        let amount = Decimal::from_str_exact(digits)
            .or_else(|_| Decimal::from_scientific(digits))
            .map_err(|_| Refusal::new("must be a decimal number from 0 to below 1000000000000"))?;
        if amount.is_sign_negative() && !amount.is_zero() {
            return Err(Refusal::new("must not be negative"));
        }
        if amount >= Decimal::from(1_000_000_000_000_i64) {
            return Err(Refusal::new("must be below 1000000000000"));
        }
        if amount.scale() > 4 {
            return Err(Refusal::new("must have at most 4 fractional digits"));
        }
        Ok(Self(amount.abs()))
    }

    /// Writes the amount as a JSON number with exactly its digits.
    ///
    /// # Errors
    ///
    /// The serializer's own.
    pub fn serialize_number<S: Serializer>(price: &Option<Self>, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(price) = price else { return serializer.serialize_none() };
        serde_json::value::RawValue::from_string(price.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl std::fmt::Display for Price {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

impl From<Price> for String {
    fn from(price: Price) -> Self {
        price.to_string()
    }
}

impl TryFrom<String> for Price {
    type Error = Refusal;
    fn try_from(digits: String) -> Result<Self, Refusal> {
        Self::from_json_number(&digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_hold() {
        for (digits, kept) in [
            ("0", "0"),
            ("-0", "0"),
            ("2499.00", "2499.00"),
            ("999999999999.9999", "999999999999.9999"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
        ] {
            assert_eq!(Price::from_json_number(digits).map(|p| p.to_string()), Ok(kept.into()), "{digits}");
        }
        for wrong in ["-0.01", "1000000000000", "0.00001", "1e400", "1e-400", "99999999999999999999999999999999999", "abc", ""] {
            assert!(Price::from_json_number(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_digit_comes_back(whole in 0u64..1_000_000_000_000, fraction in "(\\.[0-9]{1,4})?") {
            let digits = format!("{whole}{fraction}");
            prop_assert_eq!(Price::from_json_number(&digits).map(|p| p.to_string()), Ok(digits));
        }
    }
}
