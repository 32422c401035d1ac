//! Delivery records of webhooks: writes and lists them, and finds pending deliveries. Also the state of a tenant's replays.
//!
//! Messages in the queue drive pending deliveries. The records are searched for pending deliveries only if messages were lost.

use crate::domain::history::event::Actor;
use crate::domain::record::{IdempotentRequest, Stored};
use crate::domain::values::id::{EventId, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::domain::webhooks::{Delivery, DeliveryRequest, DeliveryStatus, DisabledReason, RETENTION, Replays, Webhook};
use crate::store::keys::{EXPIRES, Item, Key, Keys, LIST_INDEX, LS, PK, SK, TYPE, delivered_event};
use crate::store::lists::indexed_lists::{Page, PageRequest};
use crate::store::table::read::{MAX_BATCH_KEYS, seconds};
use crate::store::table::unit_of_work::{ChangeContext, UnitOfWork};
use crate::store::{Reader, Store, StoreError, WriteError, Writer, unless_condition_failed};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use serde_dynamo::aws_sdk_dynamodb_1::{from_item, to_item};

/// Attribute with the number of attempts. Every write of a delivery is conditional on this number.
const ATTEMPT_COUNT: &str = "attempt_count";
/// Attribute with the time of the claim, in milliseconds since 1970.
const CLAIMED_AT: &str = "claimed_at";
/// Attribute with a random number that identifies the claimant.
const CLAIMED_BY: &str = "claimed_by";
/// Lifetime of a claim: longer than the timeout of the function `deliver`. A message that `deliver` did not finish is redelivered
/// after the claim expires.
const CLAIM: TimeDelta = TimeDelta::minutes(1);
/// A list counts and shows only the newest deliveries. With records of 1 KB, reading this many deliveries takes 63 read units;
/// reading their index rows and a page of 100 records takes at most 70. All reads are eventually consistent, because nobody waits
/// for an attempt.
pub const MAX_LISTED_DELIVERIES: usize = 500;
const STATUS: &str = "status";

#[derive(Debug, Default)]
pub struct PendingDeliveries {
    /// One request per delivery, grouped by webhook and ordered by event.
    pub requests: Vec<DeliveryRequest>,
    /// Deliveries whose record can't be read. These must not hold up the other deliveries.
    pub unreadable: Vec<(WebhookId, EventId)>,
}

impl Reader {
    /// Reads the record of a delivery.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when the record
    /// can't be read.
    pub async fn delivery(&self, webhook: WebhookId, event: EventId) -> Result<Option<Delivery>, StoreError> {
        self.item(&self.keys.delivery(webhook, event)).await?.map(read).transpose()
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

    /// Reads a delivery; `None` if the record doesn't exist or has expired.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when the record
    /// can't be read.
    pub async fn find_delivery(&self, webhook: WebhookId, event: EventId) -> Result<Option<Delivery>, StoreError> {
        let item = self.item(&self.keys.delivery(webhook, event)).await?;
        item.filter(|item| self.is_kept(item)).map(read).transpose()
    }

    /// Whether the item has not expired. DynamoDB can take days to delete expired items.
    fn is_kept(&self, item: &Item) -> bool {
        let expires = item.get(EXPIRES).and_then(|value| value.as_n().ok()?.parse::<i64>().ok());
        expires.is_none_or(|expires| expires > seconds(self.store.now()))
    }

    /// Lists deliveries, newest first. The list covers the newest [`MAX_LISTED_DELIVERIES`] deliveries or, for the status pending
    /// or failed, the newest with that status. For the status delivered, the list covers the newest deliveries, and omits
    /// undelivered deliveries.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when a record
    /// can't be read.
    pub async fn list_deliveries(
        &self,
        webhook: WebhookId,
        status: Option<DeliveryStatus>,
        request: PageRequest,
    ) -> Result<Page<Delivery>, StoreError> {
        let items = match status {
            None | Some(DeliveryStatus::Delivered) => self.newest(self.all_deliveries(webhook)).await?,
            Some(status) => self.newest(self.deliveries_by_status(webhook, status)).await?,
        };
        let has_status = |item: &Item| {
            status
                .is_none_or(|status| item.get(STATUS).and_then(|value| value.as_s().ok()).is_some_and(|it| it == status.as_str()))
        };
        let listed = items.into_iter().filter(|item| self.is_kept(item) && has_status(item)).collect();
        let Page { mut items, total, request, unreadable, .. } = Page::cut_from(listed, request);
        if !matches!(status, None | Some(DeliveryStatus::Delivered)) {
            items = self.indexed(webhook, &items).await?;
            // The index can lag behind the table.
            items.retain(has_status);
        }
        let items: Vec<Delivery> = items.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Page::new(items, total, request, unreadable))
    }

    /// Reads the records for rows of the index.
    async fn indexed(&self, webhook: WebhookId, rows: &[Item]) -> Result<Vec<Item>, StoreError> {
        let event = |row| delivered_event(&Key::of(row)?);
        let keys: Vec<Key> = rows.iter().filter_map(event).map(|event| self.keys.delivery(webhook, event)).collect();
        let mut items = self.batch_of(&keys, false).await?;
        Ok(keys.iter().filter_map(|key| items.remove(key)).collect())
    }

    /// Reads the newest [`MAX_LISTED_DELIVERIES`] items of a query.
    async fn newest(&self, query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
        let limit = i32::try_from(MAX_LISTED_DELIVERIES).unwrap_or(i32::MAX);
        let mut pages = query.scan_index_forward(false).limit(limit).into_paginator().send();
        let mut items = Vec::new();
        while items.len() < MAX_LISTED_DELIVERIES
            && let Some(page) = pages.next().await
        {
            items.extend(page?.items.unwrap_or_default());
        }
        items.truncate(MAX_LISTED_DELIVERIES);
        Ok(items)
    }

    /// Queries all deliveries of a webhook, including their records. Reading a page of records separately would cost more.
    fn all_deliveries(&self, webhook: WebhookId) -> QueryFluentBuilder {
        self.beginning_in(self.keys.webhook_partition(webhook), Keys::delivery_prefix()).consistent_read(false)
    }

    /// Queries the index for deliveries with a status, pending or failed. The index does not contain `expires`.
    fn deliveries_by_status(&self, webhook: WebhookId, status: DeliveryStatus) -> QueryFluentBuilder {
        let query = self.store.client.query().table_name(&self.store.table).index_name(LIST_INDEX);
        query
            .key_condition_expression("#pk = :pk AND begins_with(#ls, :ls)")
            .projection_expression("#pk, #sk, #status")
            .expression_attribute_names("#sk", SK)
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#ls", LS)
            .expression_attribute_values(":pk", self.keys.webhook_partition(webhook))
            .expression_attribute_values(":ls", Keys::delivery_status_prefix(status))
    }

    /// Reads the pending deliveries of the tenant: its webhooks, their rows for pending deliveries in the list index, and each
    /// delivery's record.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn pending_deliveries(&self) -> Result<PendingDeliveries, StoreError> {
        let mut pending = PendingDeliveries::default();
        for webhook in self.all::<Webhook>().await? {
            self.add_pending(webhook.value.id, &mut pending).await?;
        }
        Ok(pending)
    }

    /// Adds a webhook's pending deliveries. Checks the records as well, because the index can lag behind the table.
    async fn add_pending(&self, webhook: WebhookId, pending: &mut PendingDeliveries) -> Result<(), StoreError> {
        let rows = self.every(self.deliveries_by_status(webhook, DeliveryStatus::Pending)).await?;
        for rows in rows.chunks(MAX_BATCH_KEYS) {
            for item in self.indexed(webhook, rows).await? {
                let event = Key::of(&item).as_ref().and_then(delivered_event);
                match read(item) {
                    Ok(delivery) => pending.requests.extend(delivery.pending_request(self.id())),
                    Err(_) => pending.unreadable.extend(event.map(|event| (webhook, event))),
                }
            }
        }
        Ok(())
    }

    /// Identifies a request with an idempotency key. All its retries have the same identity.
    #[must_use]
    pub fn request_identity(&self, request: &IdempotentRequest) -> String {
        self.keys.stored_response(request).sort().to_owned()
    }
}

impl Writer {
    /// Writes a record if the stored record is still `previous` or, if `previous` is `None`, if there is no record yet.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] when the stored record is different, and [`WriteError::Store`] when the record can't be
    /// written.
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

    /// Claims a delivery's next attempt, until the delivery's record is written or the claim expires. Returns `false` if the
    /// attempt is already claimed.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn claim_attempt(&self, record: &Delivery, now: Timestamp) -> Result<bool, StoreError> {
        let number = |number: String| AttributeValue::N(number);
        // If the response is lost, the SDK's retry must not fail because of the claim that the first attempt made.
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

    /// Disables a webhook, and writes an event, if the webhook is unchanged since it was read.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] when the webhook has changed since, and [`WriteError::Store`] when it can't be written.
    pub async fn disable_webhook(&self, webhook: &Stored<Webhook>, reason: DisabledReason) -> Result<(), WriteError> {
        let at = self.store.now();
        let context =
            ChangeContext { actor: Actor::webhook_delivery(), at, idempotency: None, precondition: None, is_erasure: false };
        let mut unit = UnitOfWork::new(self, &context);
        unit.update(webhook, webhook.value.disabled(reason))?;
        unit.commit().await
    }

    /// Changes the state of replays with `decide`, and retries after a write conflict. Writes nothing if the state stays
    /// the same, or in a dry run.
    ///
    /// # Errors
    ///
    /// Returns the errors of `decide`, [`StoreError::Unavailable`] when the table does not respond in time, and
    /// [`StoreError::Internal`] when the record can't be read.
    pub async fn change_replays<T, E: From<StoreError>>(
        &self,
        decide: impl Fn(Replays) -> Result<(Replays, T), E>,
    ) -> Result<T, E> {
        let decide = |current: Option<Replays>| decide(current.unwrap_or_default());
        self.change_state(&self.keys.replays(), "replays", decide).await
    }
}

impl Store {
    /// Lists the pending deliveries of all tenants. Omits unreadable deliveries.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::pending_deliveries`].
    pub async fn pending_requests(&self) -> Result<Vec<DeliveryRequest>, StoreError> {
        let mut requests = Vec::new();
        for tenant in self.tenant_ids().await? {
            requests.extend(self.reader(tenant).pending_deliveries().await?.requests);
        }
        Ok(requests)
    }
}

fn read(item: Item) -> Result<Delivery, StoreError> {
    from_item(item).map_err(StoreError::broken)
}

/// Returns the time at which a delivery written at `at` expires: after [`RETENTION`].
pub(super) fn expiry(at: Timestamp) -> AttributeValue {
    AttributeValue::N(seconds(at.plus(RETENTION)).to_string())
}
