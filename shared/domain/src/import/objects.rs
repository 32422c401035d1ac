//! JSON objects as rows, with their values as written: numbers keep their digits.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The members of an object in order, repeated ones included.
pub struct Members(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Members)
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns a string's text, and any other value's JSON.
pub fn text(value: &RawValue) -> String {
    serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// Returns the rows of a text in UTF-8: its lines or, if it is an array, the array's items.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    let trimmed = text.trim_ascii();
    if trimmed.starts_with(b"[")
        && let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(trimmed)
    {
        return items.into_iter().map(|item| item.get().as_bytes()).collect();
    }
    text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines_or_the_items_of_an_array() {
        assert_eq!(lines(b"{\"a\":1}\n\n {\"b\":2}\r\n"), [&b"{\"a\":1}"[..], b" {\"b\":2}\r"]);
        assert_eq!(lines(b" [\n{\"a\":1.50},\n{\"b\":[1]}\n]\n"), [&b"{\"a\":1.50}"[..], b"{\"b\":[1]}"]);
        assert_eq!(lines(b"[1]\n{}\n"), [&b"[1]"[..], b"{}"], "not an array");
    }
}
