//! The event types that a webhook gets, and the first attempts to deliver new events.

use super::{DeliveryRequest, Webhook};
use crate::history::event::EventType;
use crate::history::filter::{self, ANY, EVENT_TYPE_FILTER, EventTypes};
use crate::values::field_error::{ValueError, unknown_name};
use crate::values::id::{EventId, Id, TenantId, WebhookId};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

pub const MAX_EVENT_TYPES: usize = 50;

/// Event types: exact ones such as `asset.created`, all of a kind such as `asset.*`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookEvents(pub Vec<String>);

impl WebhookEvents {
    pub fn known_names() -> impl Iterator<Item = String> {
        filter::known_names()
    }

    /// Checks a list of event types.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no types or too many, or an error for each unknown or repeated type. Each error has the
    /// index of its type, or none if it concerns the whole list.
    pub fn read(types: Vec<String>) -> Result<Self, Vec<(Option<usize>, ValueError)>> {
        if !(1..=MAX_EVENT_TYPES).contains(&types.len()) {
            let detail = format!("must have 1 to {MAX_EVENT_TYPES} event types; this has {}", types.len());
            return Err(vec![(None, ValueError::new(detail))]);
        }
        let known: Vec<String> = Self::known_names().collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut errors = Vec::new();
        for (index, wanted) in types.iter().enumerate() {
            if !known.contains(&wanted.as_str()) {
                let detail = unknown_name(wanted, &known, "event type", errors.len());
                errors.push((Some(index), ValueError::new(detail)));
            } else if types.iter().position(|earlier| earlier == wanted) != Some(index) {
                errors.push((Some(index), ValueError::new(format!("must contain {wanted} only once"))));
            }
        }
        if errors.is_empty() { Ok(Self(types)) } else { Err(errors) }
    }

    pub fn contain(&self, event_type: &str) -> bool {
        let kind = event_type.split_once('.').map(|(kind, _)| kind);
        let must_be_named = EventType::parse(event_type).is_some_and(filter::must_be_named);
        let stands_for = |wanted: &String| wanted == ANY || wanted.strip_suffix(".*").is_some_and(|wanted| Some(wanted) == kind);
        self.0.iter().any(|wanted| wanted == event_type || !must_be_named && stands_for(wanted))
    }

    /// Returns a filter for the event feed; `None` for all types that don't have to be named.
    pub fn filter(&self) -> Option<EventTypes> {
        EventTypes::of_known(self.0.iter().map(String::as_str)).unless_all()
    }
}

impl PartialSchema for WebhookEvents {
    fn schema() -> RefOr<Schema> {
        let types = Ref::from_schema_name(EVENT_TYPE_FILTER);
        let array = ArrayBuilder::new().description(Some(
            "Event types: exact ones such as `asset.created`, all of a kind such as `asset.*`, or `*` for all.",
        ));
        array.items(types).min_items(Some(1)).max_items(Some(MAX_EVENT_TYPES)).unique_items(true).into()
    }
}

impl ToSchema for WebhookEvents {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        EventTypes::schemas(schemas);
    }
}

/// The first attempts to deliver a new event to the webhooks that subscribe to it.
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

/// New events for which the tenant's webhooks could not be read.
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
    /// Returns one request per event that a webhook subscribes to. `max_delay` is the maximum time from an event's timestamp to
    /// its commit.
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
    /// Whether the webhook gets this event. Excludes events older than the webhook, in case the stream is read again from the
    /// start.
    fn is_for(&self, webhook: &Webhook, max_delay: TimeDelta) -> bool {
        let is_older = self.id.timestamp().plus(max_delay) < webhook.id.timestamp();
        webhook.is_active && !is_older && webhook.events.contain(&self.event_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::filter::EventFilter;

    fn entry(event_type: &str) -> String {
        let (at, actor) = ("2026-03-05T10:00:00.000Z", serde_json::json!({"key_id": null, "user_id": null}));
        serde_json::json!({"type": event_type, "entity_id": uuid::Uuid::nil(), "at": at, "actor": actor}).to_string()
    }

    fn read(types: &[&str]) -> Result<WebhookEvents, Vec<(Option<usize>, ValueError)>> {
        WebhookEvents::read(types.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn types_are_exact_or_all_of_a_kind_or_all() {
        let events = read(&["asset.created", "user.*"]).expect("types");
        for (event_type, is_sent) in [
            ("asset.created", true),
            ("asset.updated", false),
            ("asset_type.created", false),
            ("user.deleted", true),
            ("user.merged", true),
            ("users.created", false),
            ("drone.created", false),
            ("webhook.test", false),
        ] {
            assert_eq!(events.contain(event_type), is_sent, "{event_type}");
            let filter = EventFilter { types: events.filter(), ..EventFilter::default() };
            assert_eq!(filter.matches(&entry(event_type)), is_sent, "the feed decides otherwise about {event_type}");
        }
        for (types, is_sent) in [(vec!["*"], false), (vec!["asset.*"], false), (vec!["*", "asset.seen"], true)] {
            let events = read(&types).expect("types");
            let filter = EventFilter { types: events.filter(), ..EventFilter::default() };
            let in_feed = filter.matches(&entry("asset.seen"));
            assert_eq!((events.contain("asset.seen"), in_feed), (is_sent, is_sent), "{types:?}");
            assert!(filter.matches(&entry("asset.created")), "{types:?}");
        }
        let all = read(&["asset.created", "*"]).expect("types");
        assert!(all.contain("drone.created") && all.filter().is_none());
    }

    #[test]
    fn types_of_another_version_match_nothing_in_the_feed() {
        let stored = WebhookEvents(vec!["drone.created".to_owned()]);
        let filter = EventFilter { types: stored.filter(), ..EventFilter::default() };
        assert!(!filter.matches(&entry("asset.created")) && !stored.contain("asset.created") && stored.contain("drone.created"));
    }
}
