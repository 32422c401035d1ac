//! Deletion of a tenant with all of its items, from the operator's command line only.
//!
//! An interrupted deletion can be repeated until the tenant is no longer in the registry:
//!
//! 1. [`Writer::begin_deletion`] marks the tenant's registration.
//! 2. [`Writer::delete_items`] deletes the API keys, so that no more requests can write, and then everything else
//!    except the tenant record.
//! 3. [`Writer::finish_deletion`] deletes the tenant record, the ceiling and the registration together.
//!
//! Items are deleted unconditionally, regardless of their version. No events are written, because they would be deleted, too. The
//! partitions of webhooks, including deleted webhooks, are emptied before the webhooks and tombstones that lead to them.

use crate::domain::record::Kind;
use crate::domain::values::id::{Id, WebhookId};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{self, Item, Key, Keys, PK, SK, TYPE};
use crate::store::table::unit_of_work::{Condition, write_error};
use crate::store::table::unit_of_work::{Purpose, TransactionItem, Write};
use crate::store::{OPERATION_TIMEOUT, Reader, Store, StoreError, WriteError, Writer, pause, unless_condition_failed};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, WriteRequest};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

pub(in crate::store) const REGISTRATION: &str = "registration";
pub(super) const DELETION_BEGAN: &str = "deletion_began";
/// Maximum number of items in a BatchWriteItem (AWS: "Quotas in Amazon DynamoDB").
const MAX_BATCH_ITEMS: usize = 25;
/// Maximum number of retries without progress while the table throttles. These retries take about a minute; then the deletion
/// fails.
const MAX_ROUNDS: u32 = 200;

/// Returns the time at which the deletion of a tenant began. `registration` is the tenant's item in the registry.
pub(in crate::store) fn deletion_began(registration: &Item) -> Option<Timestamp> {
    registration.get(DELETION_BEGAN)?.as_s().ok()?.parse().ok()
}

impl Reader {
    /// Reads the time at which an unfinished deletion began; `None` if the tenant is not being deleted.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the registry can't be read.
    pub async fn deletion_began(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.item(&keys::registry(self.id)).await?.as_ref().and_then(deletion_began))
    }

    /// Counts the tenant's items by type. The cost grows with the number of items. Calls `progress` with the number of items
    /// counted so far.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn count_items(&self, mut progress: impl FnMut(u64)) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        for partition in self.partitions().await? {
            let query = everything_in(&self.store, partition).projection_expression("#sk, #type");
            let query = query.expression_attribute_names("#type", TYPE);
            let mut start = None;
            while let Some(items) = self.next_page(&query, &mut start).await? {
                for item in &items {
                    *counts.entry(noun(item)).or_default() += 1;
                }
                progress(counts.values().sum());
            }
        }
        Ok(counts)
    }

    /// Returns the partitions of the tenant and of its webhooks, including deleted webhooks.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read.
    pub async fn partitions(&self) -> Result<Vec<AttributeValue>, StoreError> {
        let webhooks = self.webhooks_ever().await?;
        let of_webhooks = webhooks.into_iter().map(|webhook| self.keys.webhook_partition(webhook));
        Ok([self.keys.partition()].into_iter().chain(of_webhooks).collect())
    }

    /// Includes deleted webhooks.
    async fn webhooks_ever(&self) -> Result<BTreeSet<WebhookId>, StoreError> {
        let mut webhooks = BTreeSet::new();
        for prefix in [Keys::prefix(Kind::Webhook), keys::tombstone_prefix(Kind::Webhook)] {
            let query = self.beginning(prefix).projection_expression("#pk, #sk");
            let id = |key| keys::record_id(Kind::Webhook, &key).or_else(|| Some(keys::deleted_record(&key)?.1));
            let mut start = None;
            while let Some(items) = self.next_page(&query, &mut start).await? {
                webhooks.extend(items.iter().filter_map(|item| id(Key::of(item)?)).map(WebhookId::from_uuid));
            }
        }
        Ok(webhooks)
    }

    fn own_record(&self) -> Key {
        self.keys.record(Kind::Tenant, Uuid::nil())
    }

    /// Reads the next page of a query, with retries; `None` after the last page. `start` is `None` for the first page.
    async fn next_page(&self, query: &QueryFluentBuilder, start: &mut Option<Item>) -> Result<Option<Vec<Item>>, StoreError> {
        // After the last page, the start key is empty.
        if start.as_ref().is_some_and(HashMap::is_empty) {
            return Ok(None);
        }
        for round in 0.. {
            match query.clone().set_exclusive_start_key(start.clone()).send().await.map_err(StoreError::from) {
                Err(StoreError::Unavailable(_)) if round < MAX_ROUNDS => pause(&self.store, round).await,
                Err(error) => return Err(error),
                Ok(page) => {
                    *start = Some(page.last_evaluated_key.unwrap_or_default());
                    return Ok(Some(page.items.unwrap_or_default()));
                }
            }
        }
        unreachable!("the loop ends by returning")
    }
}

impl Writer {
    /// Marks the tenant in the registry as being deleted.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the registry can't be written.
    pub async fn begin_deletion(&self) -> Result<(), StoreError> {
        let marked = self
            .store
            .client
            .update_item()
            .table_name(&self.store.table)
            .set_key(Some(keys::registry(self.id).item()))
            .update_expression("SET #began = :now, #type = :type")
            .condition_expression("attribute_not_exists(#began)")
            .expression_attribute_names("#began", DELETION_BEGAN)
            .expression_attribute_names("#type", TYPE)
            .expression_attribute_values(":now", AttributeValue::S(self.store.now().to_string()))
            .expression_attribute_values(":type", AttributeValue::S(REGISTRATION.to_owned()));
        // The condition fails if an earlier deletion was interrupted.
        unless_condition_failed(marked.send().await).map(drop)
    }

    /// Deletes all items except the tenant record. Finishes when nothing is left and `settle` has passed since the last API key
    /// was deleted, because requests that were verified before that may still write. Calls `progress` with the number of items
    /// deleted so far, and returns the total.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table throttles or doesn't respond for about a minute.
    pub async fn delete_items(&self, settle: Duration, mut progress: impl FnMut(u64)) -> Result<u64, StoreError> {
        let (mut deleted, mut keyless_since) = (0, Instant::now());
        // A delivery in flight may still write after the last round has deleted its webhook.
        let mut webhooks = BTreeSet::new();
        loop {
            let before = deleted;
            deleted += self.delete_all(self.of_kind(Kind::ApiKey), |_| {}).await?;
            if deleted > before {
                keyless_since = Instant::now();
            }
            webhooks.extend(self.webhooks_ever().await?);
            let of_webhooks = webhooks.iter().map(|webhook| self.keys.webhook_partition(*webhook));
            for partition in of_webhooks.chain([self.keys.partition()]) {
                deleted += self.delete_all(everything_in(&self.store, partition), |now| progress(deleted + now)).await?;
            }
            if deleted == before {
                let left = settle.saturating_sub(keyless_since.elapsed());
                if left.is_zero() {
                    return Ok(deleted);
                }
                tokio::time::sleep(left).await;
            }
        }
    }

    /// Deletes the last items: the tenant record, the ceiling and the registration.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError::Stale`] when the deletion has not begun, and [`WriteError::Store`] when the table can't be written.
    pub async fn finish_deletion(&self) -> Result<(), WriteError> {
        let items = [
            (self.own_record(), Condition::ALWAYS),
            (self.keys.ceiling(self.id.uuid()), Condition::ALWAYS),
            (keys::registry(self.id), Condition::Has(DELETION_BEGAN)),
        ];
        let delete = |(key, condition)| TransactionItem { purpose: Purpose::RecordState, condition, write: Write::Delete(key) };
        let deadline = Instant::now() + OPERATION_TIMEOUT;
        self.store.transact(items.map(delete).into(), deadline).await.map_err(write_error)
    }

    /// Deletes all items of the query except the tenant record. Returns their number.
    async fn delete_all(&self, query: QueryFluentBuilder, mut progress: impl FnMut(u64)) -> Result<u64, StoreError> {
        let (mut deleted, mut start, own) = (0, None, self.own_record());
        let query = query.projection_expression("#pk, #sk");
        while let Some(items) = self.next_page(&query, &mut start).await? {
            let keys: Vec<Key> = items.iter().filter_map(Key::of).filter(|key| *key != own).collect();
            for batch in keys.chunks(MAX_BATCH_ITEMS) {
                self.delete_batch(batch).await?;
                deleted += batch.len() as u64;
                progress(deleted);
            }
        }
        Ok(deleted)
    }

    async fn delete_batch(&self, keys: &[Key]) -> Result<(), StoreError> {
        let delete = |key: &Key| DeleteRequest::builder().set_key(Some(key.item())).build();
        let request = |key| delete(key).map(|delete| WriteRequest::builder().delete_request(delete).build());
        let requests: Result<Vec<_>, _> = keys.iter().map(request).collect();
        let (mut left, mut round) = (requests.map_err(StoreError::broken)?, 0);
        while !left.is_empty() {
            let before = left.len();
            let batch = self.store.client.batch_write_item().request_items(&self.store.table, left.clone());
            match batch.send().await.map_err(StoreError::from) {
                Ok(output) => {
                    left = output.unprocessed_items.into_iter().flat_map(HashMap::into_values).flatten().collect();
                }
                Err(StoreError::Unavailable(_)) if round < MAX_ROUNDS => {}
                Err(error) => return Err(error),
            }
            round = if left.len() < before { 0 } else { round + 1 };
            if round > MAX_ROUNDS {
                return Err(StoreError::Unavailable("the table left every deletion of a batch unprocessed".into()));
            }
            if !left.is_empty() {
                pause(&self.store, round).await;
            }
        }
        Ok(())
    }
}

fn everything_in(store: &Store, partition: AttributeValue) -> QueryFluentBuilder {
    let query = store.client.query().table_name(&store.table).consistent_read(true);
    query
        .key_condition_expression("#pk = :pk")
        .expression_attribute_names("#pk", PK)
        .expression_attribute_names("#sk", SK)
        .expression_attribute_values(":pk", partition)
}

/// Returns an item's type or, without one, the prefix of its key.
fn noun(item: &Item) -> String {
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    let prefix = || text(SK).map(|key| key.split('#').next().unwrap_or_default().to_lowercase());
    text(TYPE).or_else(prefix).unwrap_or_default()
}
