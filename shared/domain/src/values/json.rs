//! JSON parsers: a strict one for requests, which rejects anything that a lenient parser would silently drop or change, and one
//! for stored JSON.
//!
//! Neither parser gives a member name a special meaning. serde_json does when it deserializes a [`Value`]: its private protocol
//! replaces an object whose first member is `$serde_json::private::RawValue` with another value.

use crate::values::field_error::{ValueError, pointer_token};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest whole number that every JSON parser reads exactly (RFC 7493 §2.2).
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// The error for an unpaired surrogate such as `\ud800`, which is well-formed JSON but not Unicode text.
pub const UNPAIRED_SURROGATE: &str = "must not contain an unpaired surrogate, such as \\ud800";

/// Prefix of the member names in the private protocol.
const PRIVATE: &str = "$serde_json::private::";

/// The error for a member name with the prefix of the private protocol.
pub const PRIVATE_NAME: &str = "must not have a name that starts with $serde_json::private::; choose another name";

pub fn is_private(name: &str) -> bool {
    name.starts_with(PRIVATE)
}

/// Returns the JSON Pointer to the first member whose name starts with `$serde_json::private::`, at any depth. `None` for text
/// that is not JSON, or is nested deeper than any field can be.
pub fn private_name(text: &str) -> Option<String> {
    fn find(value: &Value) -> Option<String> {
        let within = |(name, value): (String, &Value)| Some(format!("/{}{}", pointer_token(&name), find(value)?));
        match value {
            Value::Object(members) => members.iter().find_map(|(name, value)| match is_private(name) {
                true => Some(format!("/{}", pointer_token(name))),
                false => within((name.clone(), value)),
            }),
            Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| within((index.to_string(), item))),
            _ => None,
        }
    }
    // A name can be written with escapes.
    let may_have_one = text.contains(PRIVATE) || text.contains("\\u");
    may_have_one.then(|| find(&parse(text).ok()?)).flatten()
}

/// Parses stored JSON. No member name has a special meaning.
///
/// # Errors
///
/// Returns an error for invalid JSON, and for nesting deeper than 127 levels.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Reader::STORED.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Like [`parse`], for an object.
///
/// # Errors
///
/// Returns an error for anything but an object.
pub fn parse_object(text: &str) -> serde_json::Result<Map<String, Value>> {
    match parse(text)? {
        Value::Object(members) => Ok(members),
        _ => Err(serde_json::Error::custom("must be an object")),
    }
}

/// Parses an object, for `#[serde(deserialize_with = …)]`.
pub(crate) fn deserialize_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match Reader::STORED.deserialize(deserializer)? {
        Value::Object(members) => Ok(members),
        _ => Err(D::Error::custom("must be an object")),
    }
}

/// Parses JSON from a request.
///
/// # Errors
///
/// Returns a [`ValueError`] for invalid JSON, arrays and objects nested deeper than `max_levels`, a member that occurs twice or
/// has a private name, whole numbers beyond 2^53, which many parsers round, and other numbers that a double would round.
pub fn parse_strict(text: &str, max_levels: usize) -> Result<Value, ValueError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value =
        Reader { is_strict: true, left: max_levels, max: max_levels }.deserialize(&mut deserializer).map_err(|error| {
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            ValueError::new(if text.contains("hex escape") { UNPAIRED_SURROGATE } else { text })
        })?;
    deserializer.end().map_err(|_| ValueError::form("must be one JSON value"))?;
    match numbers(text).find(|digits| !is_exact(digits)) {
        Some(_) => Err(ValueError::new("must not contain numbers with more digits than a double can hold; send them as text")),
        None => Ok(value),
    }
}

/// Returns the numbers in a well-formed JSON text that the parser reads as doubles.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            rest = &rest[start..];
            if let Some(inner) = rest.strip_prefix('"') {
                rest = after_string(inner);
                continue;
            }
            let end = rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            rest = after;
            if number.contains(['.', 'e', 'E']) {
                return Some(number);
            }
        }
    })
}

/// Returns the rest after a string. `inner` starts after the opening quote.
fn after_string(inner: &str) -> &str {
    let mut is_escaped = false;
    let end = inner.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.and_then(|end| inner.get(end + 1..)).unwrap_or_default()
}

/// Whether a number survives the round trip through a double.
fn is_exact(digits: &str) -> bool {
    let written = digits.parse::<f64>().map(|number| format!("{number:e}"));
    written.is_ok_and(|written| decimal(&written) == decimal(digits))
}

/// Returns the digits of a number without leading and trailing zeros, and the power of ten of the last digit.
fn decimal(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_end_matches('0');
    if significant.is_empty() || significant.bytes().all(|digit| digit == b'0') {
        return ("0".to_owned(), 0);
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX / 4);
    let power = exponent.parse::<i64>().unwrap_or(i64::MAX / 4).saturating_sub(length(fraction));
    let power = power.saturating_add(length(&all) - length(significant));
    (format!("{sign}{}", significant.trim_start_matches('0')), power)
}

/// Reads a value. `left` is the number of levels of arrays and objects that the value can have.
#[derive(Clone, Copy)]
struct Reader {
    is_strict: bool,
    left: usize,
    max: usize,
}

impl Reader {
    /// The parser already limits the levels.
    const STORED: Self = Self { is_strict: false, left: usize::MAX, max: usize::MAX };

    fn deeper<E: Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        left.map(|left| Self { left, ..self })
            .ok_or_else(|| E::custom(format!("must have at most {} levels of nesting", self.max)))
    }
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        if self.is_strict && number > MAX_EXACT_INTEGER {
            return Err(E::custom("must not contain whole numbers beyond 2^53; send them as text"));
        }
        Ok(Value::Number(number.into()))
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        if self.is_strict && number.unsigned_abs() > MAX_EXACT_INTEGER {
            return Err(E::custom("must not contain whole numbers beyond 2^53; send them as text"));
        }
        Ok(Value::Number(number.into()))
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        // The parser passes whole numbers beyond 64 bits as floats, already rounded.
        if self.is_strict && number.abs() > MAX_EXACT_INTEGER as f64 && number.fract() == 0.0 {
            return Err(E::custom("must not contain whole numbers beyond 2^53; send them as text"));
        }
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("must not contain a number out of range"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if self.is_strict && map.contains_key(&name) {
                return Err(A::Error::custom(format!("must not contain the member {name:?} twice")));
            }
            if self.is_strict && is_private(&name) {
                return Err(A::Error::custom(PRIVATE_NAME));
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// Whether two values are equal, ignoring the form of numbers (`1` and `1.0`) and the order of members.
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_equal = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(has_equal)
        }
        _ => one == other,
    }
}

/// Returns the length in bytes of `body` as a string inside a JSON document, the form in which a Lambda function returns it.
pub fn escaped_len(body: &[u8]) -> usize {
    body.len() + body.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_that_a_lenient_parser_would_change_is_refused() {
        assert_eq!(parse_strict(r#"{"a":[1,-2.5,null,true,"x"]}"#, 2), Ok(json!({"a": [1, -2.5, null, true, "x"]})));
        for (wrong, why) in [
            (r#"{"a":1,"a":2}"#, "twice"),
            (r#"{"a":{"b":{}}}"#, "2 levels"),
            ("9007199254740993", "2^53"),
            ("-9007199254740993", "2^53"),
            ("123456789012345678901", "2^53"),
            ("1234567890123456789012", "2^53"),
            ("9007199254740993.0", "double"),
            ("90071992547409930e-1", "double"),
            (r#"{"\"":[0.1234567890123456789]}"#, "double"),
            ("1e-400", "double"),
            ("1e400", "out of range"),
            (r#"{"\ud800":1}"#, "unpaired surrogate"),
            (r#"["\udc00"]"#, "unpaired surrogate"),
            (r#"[{"\u0024serde_json::private::Number":"1"}]"#, "$serde_json::private::"),
        ] {
            let error = parse_strict(wrong, 2).expect_err(wrong).to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn numbers_come_back_as_they_were_sent_or_are_refused() {
        for exact in [
            "0.1",
            "-0.0",
            "0e99",
            "1.10",
            "1e-7",
            "2499.00",
            "9007199254740991.0",
            "9007199254740992.0",
            "123456.789e3",
            "5e-324",
        ] {
            assert!(parse_strict(exact, 1).is_ok(), "{exact}");
        }
        assert!(parse_strict(r#"{"0.1234567890123456789\\":"\"0.1234567890123456789"}"#, 1).is_ok(), "strings are ignored");
    }

    #[test]
    fn numbers_are_equal_in_any_form() {
        let (one, other) = (json!({"a": [1, {"b": 2499.0}], "c": -0.0}), json!({"c": 0, "a": [1.0, {"b": 2499}]}));
        assert!(equal(&one, &other) && one != other);
        for different in [json!({"a": [1, {"b": 2499}]}), json!({"a": [1], "c": 0}), json!({"a": ["1", {"b": 2499}], "c": 0})] {
            assert!(!equal(&one, &different), "{different}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_double_is_exact(number in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            proptest::prop_assert!(is_exact(&format!("{number:?}")) && is_exact(&format!("{number:e}")), "{number}");
        }
    }

    #[test]
    fn stored_members_are_data_whatever_their_names_are() {
        for text in [r#"{"$serde_json::private::RawValue":"["}"#, r#"{"a":[{"$serde_json::private::RawValue":"{}"}]}"#] {
            assert_eq!(parse(text).map(|value| value.to_string()).ok().as_deref(), Some(text));
            let mut deserializer = serde_json::Deserializer::from_str(text);
            assert_eq!(deserialize_object(&mut deserializer).ok(), parse_object(text).ok());
        }
        for (text, pointer) in [
            (r#"{"$serde_json::private::":1}"#, Some("/$serde_json::private::")),
            (r#"{"b":[0,{"a/b":{"\u0024serde_json::private::x":1}}]}"#, Some("/b/1/a~1b/$serde_json::private::x")),
            (r#"{"b":"$serde_json::private::RawValue","serde_json::private::x":1}"#, None),
        ] {
            assert_eq!(private_name(text).as_deref(), pointer, "{text}");
        }
        assert_eq!(parse(r#"{"a":18446744073709551615,"a":1e300}"#).ok(), Some(json!({"a": 1e300})));
        assert!(parse("{} x").is_err() && parse_object("[]").is_err());
    }

    #[test]
    fn deep_nesting_is_refused_without_recursing_into_it() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse_strict(&deep, 8).is_err());
    }
}
