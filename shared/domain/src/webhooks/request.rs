//! Requests for one delivery.

use super::{Attempt, TestEvent};
use crate::values::id::{EventId, TenantId, WebhookId};
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// The most that an attempt may begin before its planned time. Queues count whole seconds.
const TOLERANCE: TimeDelta = TimeDelta::seconds(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRequest {
    pub tenant_id: TenantId,
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    /// The event's time or, if the delivery is repeated, the time of that request.
    pub requested_at: Timestamp,
    /// The attempt that the message is for, from 1. For another one there is another message.
    pub number: u32,
    /// The message waits until then; `None` for no wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The event itself, if it is a test: no history has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestEvent>,
    /// Only to be recorded: the attempt was made, and its record could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Attempted>,
}

/// An attempt that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempted {
    pub event_type: String,
    pub attempt: Attempt,
}

impl DeliveryRequest {
    /// The first attempt, at once.
    #[must_use]
    pub fn first(tenant_id: TenantId, webhook_id: WebhookId, event_id: EventId, requested_at: Timestamp) -> Self {
        Self { tenant_id, webhook_id, event_id, requested_at, number: 1, due: None, test: None, attempted: None }
    }

    #[must_use]
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| is_early(due, now))
    }
}

pub(super) fn is_early(due: Timestamp, now: Timestamp) -> bool {
    due.since(now) > TOLERANCE
}
