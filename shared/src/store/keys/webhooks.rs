//! Keys of what belongs to webhooks, besides the webhooks themselves.

use super::{Key, Keys};
use crate::domain::id::{EventId, Id, WebhookId};
use crate::domain::webhook::DeliveryStatus;
use aws_sdk_dynamodb::types::AttributeValue;

/// The prefix of deliveries' sort keys.
const DELIVERIES: &str = "DELIVERY#";
/// What the keys of deliveries in the index `list_index` begin with.
const DELIVERIES_BY_STATUS: &str = "D#";

impl Keys {
    /// `DELIVERY#<webhook>#<event>`: the record of a delivery.
    #[must_use]
    pub fn delivery(&self, webhook: WebhookId, event: EventId) -> Key {
        self.key(format!("{DELIVERIES}{}#{}", webhook.short(), event.short()))
    }

    /// Returns what the sort keys of all deliveries to a webhook begin with.
    #[must_use]
    pub fn delivery_prefix(webhook: WebhookId) -> AttributeValue {
        AttributeValue::S(format!("{DELIVERIES}{}#", webhook.short()))
    }

    /// Returns the sort key, in the index `list_index`, of a delivery that is not delivered: `D#<webhook>#<status>#<event>`.
    #[must_use]
    pub fn delivery_status(webhook: WebhookId, status: DeliveryStatus, event: EventId) -> AttributeValue {
        AttributeValue::S(format!("{DELIVERIES_BY_STATUS}{}#{status}#{}", webhook.short(), event.short()))
    }

    /// Returns what the sort keys, in the index `list_index`, of a webhook's deliveries with a status begin with.
    #[must_use]
    pub fn delivery_status_prefix(webhook: WebhookId, status: DeliveryStatus) -> AttributeValue {
        AttributeValue::S(format!("{DELIVERIES_BY_STATUS}{}#{status}#", webhook.short()))
    }
}

/// Returns the event in the sort key of a delivery.
#[must_use]
pub fn delivered_event(key: &Key) -> Option<EventId> {
    let (_, event) = key.sort().strip_prefix(DELIVERIES)?.split_once('#')?;
    EventId::from_short(event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::TenantId;
    use crate::domain::time::Timestamp;

    #[test]
    fn deliveries_sort_by_their_events_in_the_table_and_in_the_index() {
        let at = Timestamp::from_millis;
        let keys = Keys::of(TenantId::new(at(0), [0; 10]));
        let webhook = WebhookId::new(at(5), [5; 10]);
        let (early, late) = (EventId::new(at(1_000), [255; 10]), EventId::new(at(1_001), [0; 10]));
        assert!(keys.delivery(webhook, early).sort() < keys.delivery(webhook, late).sort());
        assert_eq!(delivered_event(&keys.delivery(webhook, late)), Some(late));
        assert_eq!(delivered_event(&keys.event(late)), None);
        let text = |value: AttributeValue| value.as_s().cloned().unwrap_or_default();
        assert!(keys.delivery(webhook, early).sort().starts_with(&text(Keys::delivery_prefix(webhook))));
        let (pending, failed) = (DeliveryStatus::Pending, DeliveryStatus::Failed);
        let of = |status| text(Keys::delivery_status(webhook, status, early));
        assert!(of(pending).starts_with(&text(Keys::delivery_status_prefix(webhook, pending))));
        assert!(!of(failed).starts_with(&text(Keys::delivery_status_prefix(webhook, pending))));
    }
}
