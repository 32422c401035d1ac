//! The request of one delivery attempt: its message, its body, and the secrets that sign it according to [Standard
//! Webhooks](https://www.standardwebhooks.com).

use super::{Attempt, TestEvent};
use crate::history::event::Event;
use crate::values::field_error::{ValueError, text_form};
use crate::values::id::{EventId, Id, TenantId, WebhookId};
use crate::values::time::Timestamp;
use base64_simd::STANDARD;
use chrono::TimeDelta;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// How long before its due time an attempt can start. Queues delay messages by whole seconds.
const TOLERANCE: TimeDelta = TimeDelta::seconds(1);
/// The type of test events. No history has an event of this type.
pub const TEST_EVENT: &str = "webhook.test";
const PREFIX: &str = "whsec_";
pub const SECRET_BYTES: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRequest {
    pub tenant_id: TenantId,
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    /// The time of the event or, if the event is sent again, of the request to do so.
    pub requested_at: Timestamp,
    /// Number of the attempt, from 1. Each attempt has a separate message.
    pub number: u32,
    /// When the attempt is due; `None` for immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The event itself, if it only tests the webhook: no history has a test event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestEvent>,
    /// An attempt that was made but not recorded. This message only records it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Attempted>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempted {
    pub event_type: String,
    pub attempt: Attempt,
}

impl DeliveryRequest {
    /// Returns the first attempt, due immediately.
    pub fn first(tenant_id: TenantId, webhook_id: WebhookId, event_id: EventId, requested_at: Timestamp) -> Self {
        Self { tenant_id, webhook_id, event_id, requested_at, number: 1, due: None, test: None, attempted: None }
    }

    pub fn is_waiting(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| is_early(due, now))
    }
}

pub(super) fn is_early(due: Timestamp, now: Timestamp) -> bool {
    due.since(now) > TOLERANCE
}

#[derive(Serialize)]
struct Body<'a, T> {
    #[serde(rename = "type")]
    event_type: &'a str,
    timestamp: Timestamp,
    data: &'a T,
}

/// Returns the body of a delivery: type and time of the event, and the entry as in the event feed.
///
/// # Errors
///
/// Returns an error when the entry can't be written as JSON, which doesn't happen with entries of the feed.
pub fn delivery_body(event_type: &str, timestamp: Timestamp, entry: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Body { event_type, timestamp, data: entry })
}

/// Returns a test event, with version 0, no changes and no previous hash.
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

/// A secret that signs deliveries. `Debug` doesn't disclose it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(random.to_vec())
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text that receivers use for verification. Not `Display`, so nothing prints it by accident.
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode_to_string(&self.0))
    }

    /// Returns `v1,` and the HMAC-SHA256 of ID, Unix time in seconds and body, in base64.
    pub fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mac = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode_to_string(mac.as_ref()))
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// A secret encrypted with a key outside the table. Its text form is base64.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EncryptedSecret(pub Vec<u8>);

impl std::str::FromStr for EncryptedSecret {
    type Err = ValueError;
    fn from_str(text: &str) -> Result<Self, ValueError> {
        STANDARD.decode_to_vec(text).map(Self).map_err(|_| ValueError::new("must be base64"))
    }
}

text_form!(EncryptedSecret, |secret| STANDARD.encode_to_string(secret.0));

impl std::fmt::Debug for EncryptedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncryptedSecret(…)")
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
