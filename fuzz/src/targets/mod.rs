//! The targets, and what several of them check.

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

/// Bytes as text, as far as they are: nothing else gets as far as a parser of texts.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The lines of a text, one for each thing that a target wants.
fn lines<const COUNT: usize>(text: &str) -> [&str; COUNT] {
    let mut lines = text.splitn(COUNT, '\n');
    [(); COUNT].map(|()| lines.next().unwrap_or_default())
}

/// Checks that a value which was accepted can be kept in the table: it is read back as it was.
fn is_kept<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let written = serde_json::to_string(value).expect("a value that was accepted is written");
    let read: T = serde_json::from_str(&written).expect("what was written is read");
    assert_eq!(&read, value, "{written}");
}
