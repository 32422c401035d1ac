//! JSON read strictly: what a plain parser would drop or bend without a word is refused instead.

use super::field_error::ValueError;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest whole number that every JSON reader keeps exactly (RFC 7493 §2.2).
const LARGEST_WHOLE: u64 = 1 << 53;

/// What to say of an escape such as \\ud800 without its other half: well-formed JSON, but no text.
pub const HALF_A_CHARACTER: &str = "must not contain half of a character, such as \\ud800 alone";

/// Reads one JSON value.
///
/// # Errors
///
/// Says what is wrong: nested deeper than `levels`, a member given twice, a whole number beyond 2^53 (which
/// many readers would round).
pub fn parse_strict(text: &str, levels: usize) -> Result<Value, ValueError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Level { left: levels, all: levels }.deserialize(&mut deserializer).map_err(|error| {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        ValueError::new(if text.contains("hex escape") { HALF_A_CHARACTER } else { text })
    })?;
    deserializer.end().map_err(|_| ValueError::new("must be one JSON value"))?;
    Ok(value)
}

/// A value that may have this many levels of arrays and objects.
#[derive(Clone, Copy)]
struct Level {
    left: usize,
    all: usize,
}

impl Level {
    fn down<E: Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        left.map(|left| Self { left, ..self })
            .ok_or_else(|| E::custom(format!("must have at most {} levels of nesting", self.all)))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
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
        if number > LARGEST_WHOLE {
            return Err(E::custom("must not contain whole numbers beyond 2^53; send them as text"));
        }
        Ok(Value::Number(number.into()))
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        if number.unsigned_abs() > LARGEST_WHOLE {
            return Err(E::custom("must not contain whole numbers beyond 2^53; send them as text"));
        }
        Ok(Value::Number(number.into()))
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        // The parser gives whole numbers beyond 64 bits as floats too, and has rounded them already.
        if number.abs() > LARGEST_WHOLE as f64 && number.fract() == 0.0 {
            return Err(E::custom("must not contain whole numbers beyond 2^53; send them as text"));
        }
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("must not contain a number out of range"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.down()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.down()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("must not contain the member {name:?} twice")));
            }
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// What a body weighs in a Lambda's answer, where it is a text within JSON.
#[must_use]
pub fn weight(body: &[u8]) -> usize {
    body.len() + body.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_would_be_lost_is_refused() {
        assert_eq!(parse_strict(r#"{"a":[1,-2.5,null,true,"x"]}"#, 2), Ok(json!({"a": [1, -2.5, null, true, "x"]})));
        for (wrong, why) in [
            (r#"{"a":1,"a":2}"#, "twice"),
            (r#"{"a":{"b":{}}}"#, "2 levels"),
            ("9007199254740993", "2^53"),
            ("-9007199254740993", "2^53"),
            ("123456789012345678901", "2^53"),
            ("1234567890123456789012", "2^53"),
            ("1e400", "out of range"),
            (r#"{"\ud800":1}"#, "half of a character"),
            (r#"["\udc00"]"#, "half of a character"),
        ] {
            let refusal = parse_strict(wrong, 2).expect_err(wrong).to_string();
            assert!(refusal.contains(why), "{wrong}: {refusal}");
        }
    }

    #[test]
    fn depth_is_refused_without_recursing_into_it() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse_strict(&deep, 8).is_err());
    }
}
