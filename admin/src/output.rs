//! What a command prints, and its exit code.

use serde_json::Value;

/// The result of a command that ran to its end.
pub struct Output {
    /// What it prints.
    pub value: Value,
    /// Whether its exit code is 0.
    pub is_success: bool,
}

impl From<Value> for Output {
    fn from(value: Value) -> Self {
        Self { value, is_success: true }
    }
}
