//! The body of a delivery.

use super::{DeliveryRequest, TestEvent};
use crate::history::event::Event;
use crate::values::id::Id;
use crate::values::time::Timestamp;
use serde::Serialize;
use serde_json::Map;

#[derive(Serialize)]
struct Body<'a, T> {
    #[serde(rename = "type")]
    event_type: &'a str,
    timestamp: Timestamp,
    data: &'a T,
}

/// Only tests a webhook. No history has an event of this type.
pub const TEST_EVENT: &str = "webhook.test";

/// Type and time of the event, and the entry as the change feed has it.
///
/// # Errors
///
/// The entry can't be written as JSON, which doesn't happen to entries of the feed.
pub fn delivery_body(event_type: &str, timestamp: Timestamp, entry: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Body { event_type, timestamp, data: entry })
}

/// It changes nothing, and has version 0 and no hash.
#[must_use]
pub fn test_event(request: &DeliveryRequest, test: &TestEvent) -> Event {
    Event {
        id: request.event_id,
        at: request.event_id.timestamp(),
        event_type: TEST_EVENT.to_owned(),
        entity_id: request.webhook_id.uuid(),
        version: 0,
        actor: test.actor.clone(),
        changes: Map::new(),
        previous_hash: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_body_has_type_time_and_entry_in_this_order() {
        let body = delivery_body("asset.created", Timestamp::from_millis(0), &json!({"id": "x"})).expect("JSON");
        assert_eq!(body, r#"{"type":"asset.created","timestamp":"1970-01-01T00:00:00.000Z","data":{"id":"x"}}"#);
    }
}
