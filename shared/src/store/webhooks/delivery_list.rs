//! Lists of the deliveries to a webhook, newest first.

use crate::domain::values::id::{EventId, WebhookId};
use crate::domain::webhooks::{Delivery, DeliveryStatus};
use crate::store::TenantStore;
use crate::store::keys::{EXPIRES, Item, Key, Keys, LIST_INDEX, LS, PK, SK, delivered_event};
use crate::store::lists::page::{Page, PageRequest};
use crate::store::table::error::StoreError;
use crate::store::table::stored_responses::seconds;
use crate::store::webhooks::deliveries::read;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;

/// A list counts and shows the newest. With records of 1 KB, reading them takes 63 units; that of their rows in the index and of a
/// page of 100 records at most 70. No read is consistent: nobody waits for an attempt.
pub const MAX_LISTED_DELIVERIES: usize = 500;
const STATUS: &str = "status";

impl TenantStore {
    /// `None` if there is no record, or it has expired.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Internal`] when the record
    /// can't be read.
    pub async fn find_delivery(&self, webhook: WebhookId, event: EventId) -> Result<Option<Delivery>, StoreError> {
        let item = self.item(&self.keys.delivery(webhook, event)).await?;
        item.filter(|item| self.is_kept(item)).map(read).transpose()
    }

    /// The item has not expired. DynamoDB may take days to delete an expired one.
    fn is_kept(&self, item: &Item) -> bool {
        let expires = item.get(EXPIRES).and_then(|value| value.as_n().ok()?.parse::<i64>().ok());
        expires.is_none_or(|expires| expires > seconds(self.store.now()))
    }

    /// Newest first: of the newest [`MAX_LISTED_DELIVERIES`] of all, or of the newest that are pending or failed. Delivered ones
    /// are found among the newest of all.
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
            // Delivered ones are not in the index.
            None | Some(DeliveryStatus::Delivered) => self.newest(self.all_deliveries(webhook)).await?,
            Some(status) => self.newest(self.deliveries_by_status(webhook, status)).await?,
        };
        let has_status = |item: &Item| {
            status
                .is_none_or(|status| item.get(STATUS).and_then(|value| value.as_s().ok()).is_some_and(|it| it == status.as_str()))
        };
        let listed = items.into_iter().filter(|item| self.is_kept(item) && has_status(item)).collect();
        let Page { mut items, total, request, unreadable } = Page::cut_from(listed, request);
        if !matches!(status, None | Some(DeliveryStatus::Delivered)) {
            items = self.indexed(webhook, &items).await?;
            // The index may lag behind the table.
            items.retain(has_status);
        }
        let items: Vec<Delivery> = items.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Page { items, total, request, unreadable })
    }

    /// The records of some rows of the index.
    pub(super) async fn indexed(&self, webhook: WebhookId, rows: &[Item]) -> Result<Vec<Item>, StoreError> {
        let event = |row| delivered_event(&Key::of(row)?);
        let keys: Vec<Key> = rows.iter().filter_map(event).map(|event| self.keys.delivery(webhook, event)).collect();
        let mut items = self.batch_of(&keys, false).await?;
        Ok(keys.iter().filter_map(|key| items.remove(key)).collect())
    }

    /// Reads the first items of a query, as many as a list has.
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

    /// With their records, which cost nothing more: a second read would cost a page of them again.
    fn all_deliveries(&self, webhook: WebhookId) -> QueryFluentBuilder {
        self.beginning_in(self.keys.webhook_partition(webhook), Keys::delivery_prefix()).consistent_read(false)
    }

    /// `status` is pending or failed. The index does not contain `expires`.
    pub(super) fn deliveries_by_status(&self, webhook: WebhookId, status: DeliveryStatus) -> QueryFluentBuilder {
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
}
