//! Requests for one delivery.

use super::{Attempt, TestEvent};
use crate::values::id::{EventId, TenantId, WebhookId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRequest {
    pub tenant_id: TenantId,
    pub webhook_id: WebhookId,
    pub event_id: EventId,
    /// The event's time or, if the delivery is repeated, the time of that request.
    pub requested_at: Timestamp,
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
