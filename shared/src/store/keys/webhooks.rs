//! Keys of the items of webhooks besides their records.

use super::{Key, Keys};
use crate::domain::values::id::{EventId, Id, WebhookId};
use crate::domain::webhooks::DeliveryStatus;
use aws_sdk_dynamodb::types::AttributeValue;

const DELIVERIES: &str = "DELIVERY#";
const HEALTH: &str = "HEALTH";
/// The prefix of the keys of deliveries in the index `list_index`.
const BY_STATUS: char = 'D';

impl Keys {
    /// `T#<tenant>#HOOK#<webhook>`: the partition of a webhook's deliveries and its health, in the table and in the index
    /// `list_index`. Deliveries use none of the capacity of the tenant's own partition. As with counters of requests, it is no
    /// other tenant's partition.
    #[must_use]
    pub fn webhook_partition(&self, webhook: WebhookId) -> AttributeValue {
        AttributeValue::S(self.of_webhook(webhook, String::new()).pk)
    }

    fn of_webhook(&self, webhook: WebhookId, sk: String) -> Key {
        Key { pk: format!("{}#HOOK#{}", self.pk, webhook.short()), sk }
    }

    /// `DELIVERY#<event>`: the delivery of an event to a webhook.
    #[must_use]
    pub fn delivery(&self, webhook: WebhookId, event: EventId) -> Key {
        self.of_webhook(webhook, format!("{DELIVERIES}{}", event.short()))
    }

    /// Keys with this prefix are in the order of the events.
    #[must_use]
    pub fn delivery_prefix() -> AttributeValue {
        AttributeValue::S(DELIVERIES.to_owned())
    }

    /// In the index `list_index`: `D#<status>#<event>`. Delivered ones are not in the index.
    #[must_use]
    pub fn delivery_status(status: DeliveryStatus, event: EventId) -> AttributeValue {
        AttributeValue::S(format!("{BY_STATUS}#{status}#{}", event.short()))
    }

    /// The prefix, in the index `list_index`, of deliveries with this status.
    #[must_use]
    pub fn delivery_status_prefix(status: DeliveryStatus) -> AttributeValue {
        AttributeValue::S(format!("{BY_STATUS}#{status}#"))
    }

    /// `HEALTH`: the time since the last success of a webhook's deliveries.
    #[must_use]
    pub fn webhook_health(&self, webhook: WebhookId) -> Key {
        self.of_webhook(webhook, HEALTH.to_owned())
    }

    /// `REPLAYS`: the replays of the tenant's webhooks.
    #[must_use]
    pub fn replays(&self) -> Key {
        self.key("REPLAYS".to_owned())
    }
}

#[must_use]
pub fn delivered_event(key: &Key) -> Option<EventId> {
    EventId::from_short(key.sort().strip_prefix(DELIVERIES)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::values::id::TenantId;
    use crate::domain::values::time::Timestamp;

    #[test]
    fn deliveries_are_in_their_webhooks_partition_in_the_order_of_their_events() {
        let at = Timestamp::from_millis;
        let keys = Keys::of(TenantId::new(at(0), [0; 10]));
        let webhook = WebhookId::new(at(1), [1; 10]);
        let (early, late) = (EventId::new(at(5), [255; 10]), EventId::new(at(6), [0; 10]));
        let sort = |event| keys.delivery(webhook, event).sort().to_owned();
        let text = |value: &AttributeValue| value.as_s().cloned().unwrap_or_default();
        assert!(sort(early) < sort(late) && sort(early).starts_with(&text(&Keys::delivery_prefix())));
        let partition = format!("{}#HOOK#{}", text(&keys.partition()), webhook.short());
        assert_eq!(text(&keys.webhook_partition(webhook)), partition);
        assert_eq!([keys.delivery(webhook, late).pk, keys.webhook_health(webhook).pk], [partition.clone(), partition]);
        let status = text(&Keys::delivery_status(DeliveryStatus::Pending, early));
        assert!(status.starts_with(&text(&Keys::delivery_status_prefix(DeliveryStatus::Pending))));
        assert!(!status.starts_with(&text(&Keys::delivery_status_prefix(DeliveryStatus::Failed))));
        assert_eq!(delivered_event(&keys.delivery(webhook, late)), Some(late));
        assert_eq!(delivered_event(&keys.event(late)), None);
    }
}
