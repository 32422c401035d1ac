//! Deliveries: one event on its way to one webhook, and the result of each attempt.

use crate::actor::Actor;
use crate::values::id::{EventId, WebhookId};
use crate::values::string_enum::string_enum;
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// The time from a failed attempt to the next one: one delay for each further attempt.
pub const RETRY_DELAYS: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(14),
    TimeDelta::hours(20),
    TimeDelta::hours(24),
];
/// The time that the record of a delivery is kept after its last attempt.
pub const RETENTION: TimeDelta = TimeDelta::days(30);
/// The record of a delivery keeps the newest.
pub const MAX_ATTEMPTS_KEPT: usize = 20;

string_enum! {
    /// What became of a delivery.
    DeliveryStatus {
        /// An attempt is still to come.
        Pending = "pending",
        /// The receiver has responded with a status from 200 to 299.
        Delivered = "delivered",
        /// No attempt will follow.
        Failed = "failed",
    }
}

string_enum! {
    /// Why there was no response to an attempt.
    #[schema(as = AttemptError)]
    AttemptFailure {
        /// The host's name could not be resolved.
        NameNotFound = "name_not_found",
        /// The host's name has an address that webhooks must not have.
        AddressNotAllowed = "address_not_allowed",
        /// No connection could be made, or it broke.
        ConnectionFailed = "connection_failed",
        /// The receiver's certificate is not valid, or TLS failed otherwise.
        TlsFailed = "tls_failed",
        /// There was no response within 15 seconds.
        TimedOut = "timed_out",
        /// The webhook was not active when the attempt was due.
        WebhookDisabled = "webhook_disabled",
    }
}

/// Nothing of the response but its status: receivers may repeat names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Timestamp,
    /// `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptFailure>,
    pub duration_ms: u64,
}

impl Attempt {
    /// Recorded in place of an attempt, because the webhook is not active.
    #[must_use]
    pub fn not_made(at: Timestamp) -> Self {
        Self { at, status: None, error: Some(AttemptFailure::WebhookDisabled), duration_ms: 0 }
    }

    /// The receiver has taken the event: any status from 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The receiver wants no more events: status 410.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.status == Some(410)
    }

    #[must_use]
    pub fn ended_at(&self) -> Timestamp {
        self.at.plus(TimeDelta::milliseconds(i64::try_from(self.duration_ms).unwrap_or_default()))
    }
}

/// An event that only tests a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestEvent {
    pub actor: Actor,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub webhook_id: WebhookId,
    /// The event, whose ID is the delivery's: there is one delivery of an event to a webhook, however often it is repeated.
    pub event_id: EventId,
    pub event_type: String,
    pub status: DeliveryStatus,
    /// The event's time or, if it is repeated, the time of that request. Messages of earlier requests are dropped.
    pub requested_at: Timestamp,
    /// Attempts that this request has caused.
    pub tries: u32,
    /// All attempts. Every write requires that it is as it was read.
    pub attempt_count: u64,
    /// The newest attempts, oldest first.
    pub attempts: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The event itself, if it is a test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestEvent>,
}
