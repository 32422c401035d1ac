//! The messages in the queue between the functions `fanout` and `deliver`.

use super::{DeliveryRequest, EventRequest, FanoutRequest, WebhookEvents};
use crate::values::id::{EventId, Id, TenantId, WebhookId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    Event(EventRequest),
    Delivery(DeliveryRequest),
    Replay(ReplayRequest),
    Fanout(FanoutRequest),
}

impl Message {
    /// Returns the message group: each tenant has one, so tenants don't delay each other's messages.
    pub fn group(&self) -> String {
        match self {
            Self::Event(EventRequest { tenant_id, .. })
            | Self::Delivery(DeliveryRequest { tenant_id, .. })
            | Self::Replay(ReplayRequest { tenant_id, .. })
            | Self::Fanout(FanoutRequest { tenant_id, .. }) => tenant_id.short(),
        }
    }
}

impl From<DeliveryRequest> for Message {
    fn from(request: DeliveryRequest) -> Self {
        Self::Delivery(request)
    }
}

/// A request to send a webhook the matching events of a period, even if they were already delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayRequest {
    pub tenant_id: TenantId,
    pub webhook_id: WebhookId,
    /// The event to continue after. It doesn't have to exist.
    pub after: EventId,
    /// End of the period, exclusive.
    pub until: Timestamp,
    pub events: WebhookEvents,
    pub requested_at: Timestamp,
}

/// How long a replay waits for more events if the feed hasn't reached the end of the period.
pub const REPLAY_DELAY: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPart {
    pub deliveries: Vec<DeliveryRequest>,
    /// The rest of the replay, and the delay before it.
    pub rest: Option<(ReplayRequest, Duration)>,
}

impl ReplayRequest {
    /// Returns the end of the replay, which includes no events after its request.
    fn end(&self) -> Timestamp {
        self.until.min(self.requested_at)
    }

    /// Returns the next part of the replay. `events` are the matching events after [`ReplayRequest::after`], up to `last`.
    /// `has_more`: whether there are more. The feed is complete before `complete_until`.
    pub fn part(&self, events: &[EventId], last: Option<EventId>, has_more: bool, complete_until: Timestamp) -> ReplayPart {
        let end = self.end();
        let within = events.iter().filter(|event| event.timestamp() < end);
        let deliveries: Vec<DeliveryRequest> =
            within.map(|event| DeliveryRequest::first(self.tenant_id, self.webhook_id, *event, self.requested_at)).collect();
        let is_past_end = deliveries.len() < events.len() || last.is_some_and(|last| last.timestamp() >= end);
        let after = last.unwrap_or(self.after);
        let rest = || Self { after, ..self.clone() };
        let rest = match (is_past_end, has_more) {
            (true, _) => None,
            (false, true) => Some((rest(), Duration::ZERO)),
            (false, false) if complete_until >= end => None,
            (false, false) => Some((rest(), REPLAY_DELAY)),
        };
        ReplayPart { deliveries, rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::at;

    fn event(seconds: i64) -> EventId {
        EventId::new(at(seconds), [9; 10])
    }

    fn replay(until: i64, requested_at: i64) -> ReplayRequest {
        ReplayRequest {
            tenant_id: TenantId::new(at(0), [0; 10]),
            webhook_id: WebhookId::new(at(0), [1; 10]),
            after: event(1),
            until: at(until),
            events: serde_json::from_value(serde_json::json!(["*"])).expect("events"),
            requested_at: at(requested_at),
        }
    }

    /// Returns the number of deliveries, the event to continue after, and the seconds until then.
    fn part(replay: &ReplayRequest, events: &[i64], has_more: bool, complete: i64) -> (usize, Option<(EventId, u64)>) {
        let events: Vec<EventId> = events.iter().map(|seconds| event(*seconds)).collect();
        let ReplayPart { deliveries, rest } = replay.part(&events, events.last().copied(), has_more, at(complete));
        assert!(deliveries.iter().all(|delivery| delivery.requested_at == replay.requested_at));
        (deliveries.len(), rest.map(|(rest, delay)| (rest.after, delay.as_secs())))
    }

    #[test]
    fn a_replay_goes_on_until_its_end() {
        let replay = replay(10, 100);
        assert_eq!(part(&replay, &[2, 3], true, 90), (2, Some((event(3), 0))));
        assert_eq!(part(&replay, &[4, 9, 10, 11], true, 90), (2, None));
        assert_eq!(part(&replay, &[4, 9], false, 10), (2, None));
        // Events before the end of the period can still be added.
        assert_eq!(part(&replay, &[4, 9], false, 9), (2, Some((event(9), 15))));
        assert_eq!(part(&replay, &[], false, 9), (0, Some((event(1), 15))));
        assert_eq!(part(&replay, &[], false, 10), (0, None));
    }

    #[test]
    fn replay_contains_no_events_after_its_end() {
        let replay = replay(1000, 20);
        assert_eq!(part(&replay, &[19, 20], true, 30), (1, None));
        assert_eq!(part(&replay, &[19], false, 20), (1, None));
        // The last event read doesn't have to match.
        let ReplayPart { deliveries, rest } = replay.part(&[event(19)], Some(event(21)), true, at(30));
        assert_eq!((deliveries.len(), rest), (1, None));
    }
}
