//! From new events to the first attempts at their deliveries.

use super::{DeliveryRequest, Webhook};
use crate::values::id::{EventId, Id, TenantId, WebhookId};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// The first attempts to deliver a new event to the webhooks that want it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRequest {
    pub tenant_id: TenantId,
    pub event_id: EventId,
    pub webhook_ids: Vec<WebhookId>,
}

impl EventRequest {
    pub fn deliveries(&self) -> impl Iterator<Item = DeliveryRequest> {
        let requested_at = self.event_id.timestamp();
        let first =
            move |webhook_id: &WebhookId| DeliveryRequest::first(self.tenant_id, *webhook_id, self.event_id, requested_at);
        self.webhook_ids.iter().map(first)
    }
}

/// New events of a tenant whose webhooks could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanoutRequest {
    pub tenant_id: TenantId,
    pub events: Vec<NewEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEvent {
    pub id: EventId,
    #[serde(rename = "type")]
    pub event_type: String,
}

impl FanoutRequest {
    /// One request for each event that a webhook wants. `max_delay` is the most by which an event's time can be before its
    /// commit.
    pub fn requests(&self, webhooks: &[Webhook], max_delay: TimeDelta) -> impl Iterator<Item = EventRequest> {
        self.events.iter().filter_map(move |event| {
            let wanting = webhooks.iter().filter(|webhook| event.is_for(webhook, max_delay));
            let webhook_ids: Vec<WebhookId> = wanting.map(|webhook| webhook.id).collect();
            let request = EventRequest { tenant_id: self.tenant_id, event_id: event.id, webhook_ids };
            Some(request).filter(|request| !request.webhook_ids.is_empty())
        })
    }
}

impl NewEvent {
    /// A stream that is read again from its beginning has events of before the webhook, which it does not want.
    fn is_for(&self, webhook: &Webhook, max_delay: TimeDelta) -> bool {
        let is_older = self.id.timestamp().plus(max_delay) < webhook.id.timestamp();
        webhook.is_active && !is_older && webhook.events.contain(&self.event_type)
    }
}
