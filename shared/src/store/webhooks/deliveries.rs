//! The records of deliveries to webhooks, and the health of webhooks.

use crate::domain::actor::Actor;
use crate::domain::history::chain::HistoryEntry;
use crate::domain::record::{Kind, Stored};
use crate::domain::values::id::{EventId, Id, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::{Delivery, DeliveryStatus, DisabledReason, DueRow, RETENTION, Webhook};
use crate::store::TenantStore;
use crate::store::history::of_record::entry_of;
use crate::store::keys::{EXPIRES, HS, Item, Key, Keys, LS, PK, TYPE};
use crate::store::table::change_context::ChangeContext;
use crate::store::table::error::{StoreError, WriteError};
use crate::store::table::item;
use crate::store::table::stored_responses::seconds;
use crate::store::table::unit_of_work::UnitOfWork;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_dynamo::aws_sdk_dynamodb_1::{from_item, to_item};

/// In a webhook's health: the time of the first failure since the last success.
const FAILING_SINCE: &str = "failing_since";
/// Every write of a delivery requires that it is as it was read.
const ATTEMPT_COUNT: &str = "attempt_count";

#[derive(Debug, Clone)]
pub struct DeliveryInputs {
    /// `None` if it is deleted.
    pub webhook: Option<Stored<Webhook>>,
    /// `None` for tests.
    pub event: Option<HistoryEntry>,
    /// `None` before the first attempt.
    pub record: Option<Delivery>,
    /// The first failure since the last success; `None` if the last one succeeded.
    pub failing_since: Option<Timestamp>,
}

impl TenantStore {
    /// Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, [`StoreError::Unreadable`] when the webhook
    /// can't be read, and [`StoreError::Internal`] when the record of the delivery can't be read.
    pub async fn delivery_inputs(&self, webhook: WebhookId, event: EventId) -> Result<DeliveryInputs, StoreError> {
        let (record, health) = (self.keys.delivery(webhook, event), self.keys.webhook_health(webhook));
        let (webhook, event) = (self.webhook_key(webhook), self.keys.event(event));
        let mut items = self.items(&[webhook.clone(), event.clone(), record.clone(), health.clone()]).await?;
        Ok(DeliveryInputs {
            webhook: items.remove(&webhook).map(item::read).transpose()?,
            event: items.get(&event).and_then(entry_of),
            record: items.remove(&record).map(read).transpose()?,
            failing_since: items.get(&health).and_then(failing_since),
        })
    }

    /// # Errors
    ///
    /// As [`TenantStore::delivery_inputs`].
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
        match put.send().await {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => {
                Err(WriteError::Stale)
            }
            result => Ok(result.map(drop).map_err(StoreError::from)?),
        }
    }

    /// Records the time of the first failure since the last success, if the recorded one is still `previous`. Otherwise another
    /// delivery has recorded something else, and nothing is written.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn begin_failing(
        &self,
        webhook: WebhookId,
        previous: Option<Timestamp>,
        since: Timestamp,
    ) -> Result<(), StoreError> {
        let mut item = self.keys.webhook_health(webhook).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("webhook_health".to_owned()));
        item.insert(FAILING_SINCE.to_owned(), text(since));
        item.insert(EXPIRES.to_owned(), expiry(since));
        let put = self.store.client.put_item().table_name(&self.store.table).set_item(Some(item));
        let put = match previous {
            None => put.condition_expression("attribute_not_exists(#pk)").expression_attribute_names("#pk", PK),
            Some(previous) => put
                .condition_expression("#since = :since")
                .expression_attribute_names("#since", FAILING_SINCE)
                .expression_attribute_values(":since", text(previous)),
        };
        match put.send().await {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => Ok(()),
            result => Ok(result.map(drop)?),
        }
    }

    /// A delivery has succeeded. `since` is the recorded time of the first failure.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::begin_failing`].
    pub async fn end_failing(&self, webhook: WebhookId, since: Timestamp) -> Result<(), StoreError> {
        let delete = self.store.client.delete_item().table_name(&self.store.table);
        let delete = delete
            .set_key(Some(self.keys.webhook_health(webhook).item()))
            .condition_expression("#since = :since")
            .expression_attribute_names("#since", FAILING_SINCE)
            .expression_attribute_values(":since", text(since));
        match delete.send().await {
            Err(error) if error.as_service_error().is_some_and(|e| e.is_conditional_check_failed_exception()) => Ok(()),
            result => Ok(result.map(drop)?),
        }
    }

    /// Writes an event. The webhook must still be as it was read.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] when it has changed since, and [`WriteError::Store`] when it can't be written.
    pub async fn disable_webhook(&self, webhook: &Stored<Webhook>, reason: DisabledReason) -> Result<(), WriteError> {
        let at = self.store.now();
        let context = ChangeContext { actor: Actor::webhook_delivery(), at, idempotency: None, precondition: None };
        let mut unit = UnitOfWork::new(self, &context);
        unit.update(webhook, webhook.value.disabled(reason))?;
        unit.commit().await
    }

    fn webhook_key(&self, id: WebhookId) -> Key {
        self.keys.record(Kind::Webhook, id.uuid())
    }

    fn delivery_item(&self, delivery: &Delivery) -> Result<Item, StoreError> {
        let Delivery { webhook_id, event_id, status, .. } = *delivery;
        let mut item: Item = to_item(delivery).map_err(StoreError::broken)?;
        item.extend(self.keys.delivery(webhook_id, event_id).item());
        item.insert(TYPE.to_owned(), AttributeValue::S("delivery".to_owned()));
        let last = delivery.attempts.last().map_or(delivery.requested_at, |attempt| attempt.at);
        item.insert(EXPIRES.to_owned(), expiry(last));
        if status != DeliveryStatus::Delivered {
            item.insert(LS.to_owned(), Keys::delivery_status(webhook_id, status, event_id));
        }
        if let Some(due) = delivery.swept_at() {
            item.insert(HS.to_owned(), Keys::due(webhook_id, DueRow { due, event_id }));
        }
        Ok(item)
    }
}

/// # Errors
///
/// Returns [`StoreError::Internal`] when it is damaged, or was written by a version of the service that this one does not know.
pub(in crate::store) fn read(item: Item) -> Result<Delivery, StoreError> {
    // Without the cause, which may quote a response.
    from_item(item).map_err(|_| StoreError::broken("the record of a delivery can't be read"))
}

fn failing_since(health: &Item) -> Option<Timestamp> {
    health.get(FAILING_SINCE)?.as_s().ok()?.parse().ok()
}

fn text(at: Timestamp) -> AttributeValue {
    AttributeValue::S(at.to_string())
}

/// [`RETENTION`] after `at`.
fn expiry(at: Timestamp) -> AttributeValue {
    AttributeValue::N(seconds(at.plus(RETENTION)).to_string())
}
