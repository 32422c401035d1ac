//! What is sent to a receiver.

use serde::Serialize;
use serde_json::json;

/// The type of an event that only tests a webhook. No history has it.
pub const TEST_EVENT: &str = "webhook.test";

/// Returns the body of a delivery: type and time of the event, and the entry as the change feed has it.
#[must_use]
pub fn delivery_body(event_type: &str, timestamp: &str, entry: &impl Serialize) -> String {
    json!({"type": event_type, "timestamp": timestamp, "data": entry}).to_string()
}
