//! The fuzz targets and their shared helpers.

pub mod body;
pub mod header;
pub mod key;
pub mod png;
pub mod query;
pub mod schema;
pub mod tag;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The longest prefix that is UTF-8. Text parsers never get anything else.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// Splits text into `COUNT` inputs at line breaks; the last one has the rest, missing ones are empty.
fn lines<const COUNT: usize>(text: &str) -> [&str; COUNT] {
    let mut lines = text.splitn(COUNT, '\n');
    [(); COUNT].map(|()| lines.next().unwrap_or_default())
}

/// Checks that an accepted value survives being stored: reading it back gives the same value.
fn assert_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let written = serde_json::to_string(value).expect("an accepted value is serialized");
    let read: T = serde_json::from_str(&written).expect("a serialized value is read back");
    assert_eq!(&read, value, "{written}");
}
