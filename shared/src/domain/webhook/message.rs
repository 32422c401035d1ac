//! What the queue between the functions `fanout` and `deliver` carries.

use super::WebhookEvents;
use crate::domain::event::Actor;
use crate::domain::id::{EventId, TenantId, WebhookId};
use crate::domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A message of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    /// Deliver an event.
    Delivery(DeliveryRequest),
    /// Deliver events of the past again.
    Replay(ReplayRequest),
}

impl Message {
    /// Returns the webhook, whose messages are a group: those of one group don't delay the others.
    #[must_use]
    pub fn webhook(&self) -> WebhookId {
        match self {
            Self::Delivery(request) => request.webhook_id,
            Self::Replay(request) => request.webhook_id,
        }
    }
}

/// A request to deliver an event to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRequest {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The event.
    pub event_id: EventId,
    /// The event's time or, if the delivery is repeated, the time of that request.
    pub requested_at: Timestamp,
    /// The event itself, if it is a test, which is in no history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestEvent>,
}

/// An event that only tests a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestEvent {
    /// Who asked for the test.
    pub actor: Actor,
}

/// A request to deliver all events of a time to a webhook again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayRequest {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The event to continue after; an ID that no event need have.
    pub after: EventId,
    /// The end of the time, which is not part of it.
    pub until: Timestamp,
    /// The types of the events.
    pub events: WebhookEvents,
    /// When the replay was asked for.
    pub requested_at: Timestamp,
}
