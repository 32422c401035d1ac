//! Keys of the items of webhooks besides their records.

use super::{HS, Item, Key, Keys};
use crate::domain::values::id::{EventId, Id, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::{DeliveryStatus, DueRow};
use aws_sdk_dynamodb::types::AttributeValue;

const DELIVERIES: &str = "DELIVERY#";
/// The prefix of the sort keys of webhooks' health. No record has it: webhooks begin with `WEBHOOK#`.
const HEALTH: &str = "WEBHOOKHEALTH#";
/// The prefix of the keys of deliveries in the index `list_index`. No section has this letter.
const BY_STATUS: char = 'D';
/// The prefix of the keys of deliveries that wait for a sweep, in the index `history`. Records' ids are there without a prefix.
const DUE: &str = "DUE#";

impl Keys {
    /// `DELIVERY#<webhook>#<event>`: the delivery of an event to a webhook.
    #[must_use]
    pub fn delivery(&self, webhook: WebhookId, event: EventId) -> Key {
        self.key(format!("{DELIVERIES}{}#{}", webhook.short(), event.short()))
    }

    /// Keys with this prefix are in the order of the events.
    #[must_use]
    pub fn delivery_prefix(webhook: WebhookId) -> AttributeValue {
        AttributeValue::S(format!("{DELIVERIES}{}#", webhook.short()))
    }

    /// In the index `list_index`: `D#<webhook>#<status>#<event>`. Delivered ones are not in the index.
    #[must_use]
    pub fn delivery_status(webhook: WebhookId, status: DeliveryStatus, event: EventId) -> AttributeValue {
        AttributeValue::S(format!("{BY_STATUS}#{}#{status}#{}", webhook.short(), event.short()))
    }

    /// The prefix, in the index `list_index`, of a webhook's deliveries with this status.
    #[must_use]
    pub fn delivery_status_prefix(webhook: WebhookId, status: DeliveryStatus) -> AttributeValue {
        AttributeValue::S(format!("{BY_STATUS}#{}#{status}#", webhook.short()))
    }

    /// The partition of a webhook's deliveries, also in the indexes.
    #[must_use]
    pub fn deliveries_partition(&self, _webhook: WebhookId) -> AttributeValue {
        self.partition()
    }

    /// In the index `history`: `DUE#<webhook>#<due, in milliseconds>#<event>`. Only deliveries that wait for a sweep are there.
    #[must_use]
    pub fn due(webhook: WebhookId, row: DueRow) -> AttributeValue {
        AttributeValue::S(format!("{}{}", due_prefix(webhook, row.due), row.event_id.short()))
    }

    /// The first and the last key, in the index `history`, of deliveries after a row and due before `until`.
    #[must_use]
    pub fn due_between(webhook: WebhookId, after: Option<DueRow>, until: Timestamp) -> (AttributeValue, AttributeValue) {
        let first = after.map(|row| format!("{}{}~", due_prefix(webhook, row.due), row.event_id.short()));
        let first = first.unwrap_or_else(|| format!("{DUE}{}#", webhook.short()));
        (AttributeValue::S(first), AttributeValue::S(due_prefix(webhook, until)))
    }

    /// `WEBHOOKHEALTH#<webhook>`: the time since the last success of a webhook's deliveries.
    #[must_use]
    pub fn webhook_health(&self, webhook: WebhookId) -> Key {
        self.key(format!("{HEALTH}{}", webhook.short()))
    }
}

#[must_use]
pub fn delivered_event(key: &Key) -> Option<EventId> {
    let (_, event) = key.sort().strip_prefix(DELIVERIES)?.split_once('#')?;
    EventId::from_short(event)
}

fn due_prefix(webhook: WebhookId, due: Timestamp) -> String {
    format!("{DUE}{}#{:015}#", webhook.short(), due.millis().max(0))
}

/// A row of the index `history`; `None` if it is no delivery.
#[must_use]
pub fn due_row(item: &Item) -> Option<DueRow> {
    let (_, rest) = item.get(HS)?.as_s().ok()?.strip_prefix(DUE)?.split_once('#')?;
    let (due, event) = rest.split_once('#')?;
    Some(DueRow { due: Timestamp::from_millis(due.parse().ok()?), event_id: EventId::from_short(event)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Kind;
    use crate::domain::values::id::TenantId;
    use crate::domain::values::time::Timestamp;
    use crate::store::keys::{Section, record_id};

    #[test]
    fn deliveries_are_in_the_order_of_their_events_and_in_no_section() {
        let at = Timestamp::from_millis;
        let keys = Keys::of(TenantId::new(at(0), [0; 10]));
        let webhook = WebhookId::new(at(1), [1; 10]);
        let (early, late) = (EventId::new(at(5), [255; 10]), EventId::new(at(6), [0; 10]));
        let sort = |event| keys.delivery(webhook, event).sort().to_owned();
        let prefix = Keys::delivery_prefix(webhook);
        assert!(sort(early) < sort(late) && sort(early).starts_with(prefix.as_s().expect("text")));
        let status = Keys::delivery_status(webhook, DeliveryStatus::Pending, early);
        let sections = [Section::Assets, Section::Users, Section::OpenInstances, Section::EndedInstances, Section::Movements];
        assert!(sections.iter().all(|section| section.bucket_number(&status).is_none()));
        let text = |value: &AttributeValue| value.as_s().cloned().unwrap_or_default();
        assert!(text(&status).starts_with(&text(&Keys::delivery_status_prefix(webhook, DeliveryStatus::Pending))));
        assert!(!text(&status).starts_with(&text(&Keys::delivery_status_prefix(webhook, DeliveryStatus::Failed))));
        assert_eq!(delivered_event(&keys.delivery(webhook, late)), Some(late));
        assert_eq!(delivered_event(&keys.event(late)), None);
        assert_eq!(record_id(Kind::Webhook, &keys.webhook_health(webhook)), None);
        assert!(!keys.webhook_health(webhook).sort().starts_with("WEBHOOK#"));
    }
}
