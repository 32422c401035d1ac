//! The records of deliveries to webhooks.

use crate::domain::actor::Actor;
use crate::domain::record::Stored;
use crate::domain::values::id::{EventId, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::{Delivery, DeliveryStatus, DisabledReason, RETENTION, Webhook};
use crate::store::TenantStore;
use crate::store::keys::{EXPIRES, Item, Keys, LS, PK, TYPE};
use crate::store::table::change_context::ChangeContext;
use crate::store::table::error::{StoreError, WriteError, unless_condition_failed};
use crate::store::table::stored_responses::seconds;
use crate::store::table::unit_of_work::UnitOfWork;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use serde_dynamo::aws_sdk_dynamodb_1::{from_item, to_item};

/// Every write of a delivery requires that it is as it was read.
const ATTEMPT_COUNT: &str = "attempt_count";
/// In milliseconds since 1970.
const CLAIMED_AT: &str = "claimed_at";
/// A random number.
const CLAIMED_BY: &str = "claimed_by";
/// Longer than the function `deliver` may take. A message that it could not finish comes back later.
const CLAIM: TimeDelta = TimeDelta::minutes(1);

impl TenantStore {
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when the record
    /// can't be read.
    pub async fn delivery(&self, webhook: WebhookId, event: EventId) -> Result<Option<Delivery>, StoreError> {
        self.item(&self.keys.delivery(webhook, event)).await?.map(read).transpose()
    }

    /// The record must still be `previous`; for `None`, there must be none.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] when it has changed since, and [`WriteError::Store`] when it can't be written.
    pub async fn write_delivery(&self, previous: Option<&Delivery>, next: &Delivery) -> Result<(), WriteError> {
        let put = self.store.client.put_item().table_name(&self.store.table).set_item(Some(self.delivery_item(next)?));
        let put = match previous {
            None => put.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", PK),
            Some(previous) => put
                .condition_expression("#count = :count")
                .expression_attribute_names("#count", ATTEMPT_COUNT)
                .expression_attribute_values(":count", AttributeValue::N(previous.attempt_count.to_string())),
        };
        unless_condition_failed(put.send().await)?.map(drop).ok_or(WriteError::Stale)
    }

    /// Claims the next attempt of a delivery, until its record is written or the claim has expired. Returns whether nobody else has.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn claim_attempt(&self, record: &Delivery, now: Timestamp) -> Result<bool, StoreError> {
        let number = |number: String| AttributeValue::N(number);
        // If the response is lost, the claim is repeated, and must not be in its own way.
        let claimant = u64::from_le_bytes(self.store.random()?).to_string();
        let update = self.store.client.update_item().table_name(&self.store.table);
        let update = update
            .set_key(Some(self.keys.delivery(record.webhook_id, record.event_id).item()))
            .update_expression("SET #at = :now, #by = :me")
            .condition_expression("#count = :count AND (attribute_not_exists(#at) OR #at <= :over OR #by = :me)")
            .expression_attribute_names("#at", CLAIMED_AT)
            .expression_attribute_names("#by", CLAIMED_BY)
            .expression_attribute_names("#count", ATTEMPT_COUNT)
            .expression_attribute_values(":count", number(record.attempt_count.to_string()))
            .expression_attribute_values(":me", number(claimant))
            .expression_attribute_values(":now", number(now.millis().to_string()))
            .expression_attribute_values(":over", number(now.plus(-CLAIM).millis().to_string()));
        Ok(unless_condition_failed(update.send().await)?.is_some())
    }

    /// Writes an event. The webhook must still be as it was read.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] when it has changed since, and [`WriteError::Store`] when it can't be written.
    pub async fn disable_webhook(&self, webhook: &Stored<Webhook>, reason: DisabledReason) -> Result<(), WriteError> {
        let at = self.store.now();
        let context =
            ChangeContext { actor: Actor::webhook_delivery(), at, idempotency: None, precondition: None, is_erasure: false };
        let mut unit = UnitOfWork::new(self, &context);
        unit.update(webhook, webhook.value.disabled(reason))?;
        unit.commit().await
    }

    fn delivery_item(&self, delivery: &Delivery) -> Result<Item, StoreError> {
        let Delivery { webhook_id, event_id, status, .. } = *delivery;
        let mut item: Item = to_item(delivery).map_err(StoreError::broken)?;
        item.extend(self.keys.delivery(webhook_id, event_id).item());
        item.insert(TYPE.to_owned(), AttributeValue::S("delivery".to_owned()));
        let last = delivery.attempts.last().map_or(delivery.requested_at, |attempt| attempt.at);
        item.insert(EXPIRES.to_owned(), expiry(last));
        if status != DeliveryStatus::Delivered {
            item.insert(LS.to_owned(), Keys::delivery_status(status, event_id));
        }
        Ok(item)
    }
}

/// # Errors
///
/// Returns [`StoreError::Internal`] when it is damaged, or was written by a version of the service that this one does not know.
pub(in crate::store) fn read(item: Item) -> Result<Delivery, StoreError> {
    from_item(item).map_err(StoreError::broken)
}

/// [`RETENTION`] after `at`.
pub(super) fn expiry(at: Timestamp) -> AttributeValue {
    AttributeValue::N(seconds(at.plus(RETENTION)).to_string())
}
