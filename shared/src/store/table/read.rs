//! Reads from one tenant's part of the table, and conversion of items into records. Unless stated otherwise, reads are strongly
//! consistent, because a decision depends on each read, or the read follows a write.
//!
//! Query and BatchGetItem can see only some of the items that a transaction has written (AWS: "read-committed isolation"). So
//! events can contain a change that the record doesn't have yet, or vice versa. The other items become visible shortly
//! afterwards, so contradictory reads are retried.
//!
//! A read fills in [blobs](super::blobs). In a [dry run](super::dry_run), a read also finds what the run would have written so
//! far.

use super::blobs::{lacks_blob, without_blob};
use crate::domain::record::{Kind, Record, Stored, Unique};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{Item, Key, Keys, PK, SK, record_id, record_id_of_sort_key, tenant};
use crate::store::{Reader, StoreError, UnreadableRecord, pause};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use futures_util::future::try_join_all;
use serde_dynamo::aws_sdk_dynamodb_1::from_item;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Maximum number of items in a BatchGetItem (AWS: "Quotas in Amazon DynamoDB").
pub(in crate::store) const MAX_BATCH_KEYS: usize = 100;
/// Maximum number of requests for a batch, including retries of unprocessed keys.
const MAX_ROUNDS: u32 = 5;

#[derive(Debug, Default)]
pub struct BatchGet(HashSet<(Kind, Uuid)>);

impl BatchGet {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record. `None` adds nothing.
    #[must_use]
    pub fn with<T: Record>(self, id: Option<T::Id>) -> Self {
        self.with_all::<T>(id)
    }

    #[must_use]
    pub fn with_all<T: Record>(mut self, ids: impl IntoIterator<Item = T::Id>) -> Self {
        self.0.extend(ids.into_iter().map(|id| (T::KIND, id.uuid())));
        self
    }
}

#[derive(Debug, Default)]
pub struct BatchResult {
    pub(in crate::store) items: HashMap<(Kind, Uuid), Item>,
}

impl BatchResult {
    /// Returns a record; `None` if the tenant has no such record, or `id` is `None`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unreadable`] when the item can't be read as this kind of record.
    pub fn get<T: Record>(&self, id: Option<T::Id>) -> Result<Option<Stored<T>>, StoreError> {
        let item = id.and_then(|id| self.items.get(&(T::KIND, id.uuid())));
        item.cloned().map(read).transpose()
    }

    /// Like [`BatchResult::get`], but returns `None` for an unreadable record. For records that are shown only as part of other
    /// records.
    ///
    /// # Errors
    ///
    /// Returns every other error of [`BatchResult::get`].
    pub fn get_readable<T: Record>(&self, id: Option<T::Id>) -> Result<Option<Stored<T>>, StoreError> {
        StoreError::tolerate_unreadable(self.get(id))
    }

    /// Returns the existing records in the order of `ids`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unreadable`] when an item can't be read as this kind of record.
    pub fn get_all<T: Record>(&self, ids: impl IntoIterator<Item = T::Id>) -> Result<Vec<Stored<T>>, StoreError> {
        ids.into_iter().filter_map(|id| self.get::<T>(Some(id)).transpose()).collect()
    }
}

impl Reader {
    /// Reads a record. Costs one read unit per 4 KB. Steps or a schema that are not cached take a second round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, and [`StoreError::Unreadable`] when the item
    /// can't be read as this kind of record.
    pub async fn get<T: Record>(&self, id: T::Id) -> Result<Option<Stored<T>>, StoreError> {
        let mut items = Vec::from_iter(self.item(&self.keys.record(T::KIND, id.uuid())).await?);
        self.fill_in_blobs(&mut items).await?;
        items.pop().map(read).transpose()
    }

    pub(in crate::store) async fn item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        if let Some(left) = self.dry_run.as_ref().and_then(|dry_run| dry_run.item(key)) {
            return Ok(left);
        }
        let request = self.store.client.get_item().table_name(&self.store.table);
        Ok(Box::pin(request.set_key(Some(key.item())).consistent_read(true).send()).await?.item)
    }

    /// Whether a record has the unique value, or had it and still reserves it.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn is_taken(&self, kind: Kind, unique: &Unique) -> Result<bool, StoreError> {
        Ok(self.item(&self.keys.unique(kind, unique)).await?.is_some())
    }

    /// Finds the owners of unique values, by value. Omits free values. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn owners<T: Record>(&self, unique: &[Unique]) -> Result<HashMap<String, T::Id>, StoreError> {
        let keys: Vec<Key> = unique.iter().map(|unique| self.keys.unique(T::KIND, unique)).collect();
        let markers = self.items(&keys).await?;
        let owner = |key| record_id_of_sort_key(T::KIND, markers.get(key)?.get(OWNER)?.as_s().ok()?).map(T::Id::from_uuid);
        Ok(unique.iter().zip(&keys).filter_map(|(unique, key)| Some((unique.value.clone(), owner(key)?))).collect())
    }

    /// Reads several records. Takes one round trip, or two if steps or schemas are not cached. An empty batch sends no request.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, or leaves keys unprocessed five times in a
    /// row.
    pub async fn batch_get(&self, batch: BatchGet) -> Result<BatchResult, StoreError> {
        let (keys, mut items): (Vec<_>, Vec<Item>) = self.batch_items(batch).await?.unzip();
        self.fill_in_blobs(&mut items).await?;
        Ok(BatchResult { items: keys.into_iter().zip(items).collect() })
    }

    /// Like [`Reader::batch_get`], but without steps and schemas. Takes one round trip.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::batch_get`].
    pub async fn batch_get_without_blobs(&self, batch: BatchGet) -> Result<BatchResult, StoreError> {
        let items = self.batch_items(batch).await?;
        Ok(BatchResult { items: items.map(|(key, item)| (key, without_blob(item))).collect() })
    }

    async fn batch_items(&self, batch: BatchGet) -> Result<impl Iterator<Item = ((Kind, Uuid), Item)>, StoreError> {
        let by_key = self.keys_of(batch);
        let keys: Vec<Key> = by_key.keys().cloned().collect();
        let items = self.items(&keys).await?;
        Ok(items.into_iter().filter_map(move |(key, item)| Some((*by_key.get(&key)?, item))))
    }

    pub(in crate::store) fn keys_of(&self, batch: BatchGet) -> HashMap<Key, (Kind, Uuid)> {
        batch.0.into_iter().map(|(kind, id)| (self.keys.record(kind, id), (kind, id))).collect()
    }

    /// Reads up to a hundred items per request, with concurrent requests.
    pub(in crate::store) async fn items(&self, keys: &[Key]) -> Result<HashMap<Key, Item>, StoreError> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let batches = try_join_all(keys.chunks(MAX_BATCH_KEYS).map(|chunk| self.batch_of(chunk, true))).await?;
        let mut items: HashMap<Key, Item> = batches.into_iter().flatten().collect();
        if let Some(dry_run) = &self.dry_run {
            for (key, left) in keys.iter().filter_map(|key| Some((key, dry_run.item(key)?))) {
                items.remove(key);
                items.extend(left.map(|item| (key.clone(), item)));
            }
        }
        Ok(items)
    }

    /// Reads at most [`MAX_BATCH_KEYS`] items. An eventually consistent read costs half as much, and suffices for lists from an
    /// index, which lags anyway.
    pub(in crate::store) async fn batch_of(&self, keys: &[Key], consistent: bool) -> Result<HashMap<Key, Item>, StoreError> {
        let mut found = HashMap::new();
        let mut left: Vec<Item> = keys.iter().map(Key::item).collect();
        if left.is_empty() {
            return Ok(found);
        }
        for round in 0..MAX_ROUNDS {
            let request = KeysAndAttributes::builder().set_keys(Some(left)).consistent_read(consistent).build();
            let request = request.map_err(StoreError::broken)?;
            let output = Box::pin(self.store.client.batch_get_item().request_items(&self.store.table, request).send()).await?;
            let items = output.responses.into_iter().flat_map(HashMap::into_values).flatten();
            found.extend(items.filter_map(|item| Some((Key::of(&item)?, item))));
            let unprocessed = output.unprocessed_keys.into_iter().flat_map(HashMap::into_values);
            left = unprocessed.flat_map(|keys| keys.keys).collect();
            if left.is_empty() {
                return Ok(found);
            }
            pause(&self.store, round).await;
        }
        Err(StoreError::Unavailable("a batch left keys unprocessed five times in a row".into()))
    }

    /// Reads all readable records of a kind. The cost grows with the number of records.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn all<T: Record>(&self) -> Result<Vec<Stored<T>>, StoreError> {
        let mut items = self.every(self.of_kind(T::KIND)).await?;
        self.fill_in_blobs(&mut items).await?;
        let read = items.into_iter().map(|item| StoreError::tolerate_unreadable(read(item).map(Some)));
        read.filter_map(Result::transpose).collect()
    }

    /// Like [`Reader::all`], but without steps and schemas.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::all`].
    pub async fn all_without_blobs<T: Record>(&self) -> Result<Vec<Stored<T>>, StoreError> {
        let items = self.every(self.of_kind(T::KIND)).await?;
        let read = items.into_iter().map(|item| StoreError::tolerate_unreadable(read(without_blob(item)).map(Some)));
        read.filter_map(Result::transpose).collect()
    }

    /// Counts the records of a kind. The cost grows with the number of records.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn count<T: Record>(&self) -> Result<usize, StoreError> {
        let mut pages = self.of_kind(T::KIND).select(Select::Count).into_paginator().send();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            count += usize::try_from(page?.count).unwrap_or_default();
        }
        Ok(count)
    }

    pub(in crate::store) fn of_kind(&self, kind: Kind) -> QueryFluentBuilder {
        self.beginning(Keys::prefix(kind))
    }

    /// Queries every item whose sort key starts with `prefix`.
    pub(in crate::store) fn beginning(&self, prefix: AttributeValue) -> QueryFluentBuilder {
        self.beginning_in(self.keys.partition(), prefix)
    }

    pub(in crate::store) fn beginning_in(&self, partition: AttributeValue, prefix: AttributeValue) -> QueryFluentBuilder {
        let query = self.store.client.query().table_name(&self.store.table).consistent_read(true);
        query
            .key_condition_expression("#pk = :pk AND begins_with(#sk, :sk)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", partition)
            .expression_attribute_values(":sk", prefix)
    }

    /// Queries the events from one ID to another, oldest first.
    pub(in crate::store) fn events_query(&self, from: AttributeValue, to: AttributeValue) -> QueryFluentBuilder {
        let query = self.store.client.query().table_name(&self.store.table).consistent_read(true);
        query
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :to")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":from", from)
            .expression_attribute_values(":to", to)
    }

    pub(in crate::store) async fn every(&self, query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
        let mut pages = query.into_paginator().send();
        let mut items = Vec::new();
        while let Some(page) = pages.next().await {
            items.extend(page?.items.unwrap_or_default());
        }
        Ok(items)
    }
}

/// The attribute with a record's version, the number of its changes.
pub(in crate::store) const VERSION: &str = "version";
pub(in crate::store) const CREATED_AT: &str = "created_at";
/// The attribute with the time of the last change to a shown field.
pub(in crate::store) const UPDATED_AT: &str = "updated_at";
pub(in crate::store) const LAST_HASH: &str = "last_hash";
/// The attribute with the ID of a record's latest event. The ID contains the time of the last change, even if `updated_at` is
/// older, and finds the event without an index.
pub(in crate::store) const LAST_EVENT: &str = "last_event";
/// The attribute of a reference item with the number of references to its record.
pub(in crate::store) const USES: &str = "uses";
/// The attribute of a unique value's marker with the sort key of the record that has the value.
pub(in crate::store) const OWNER: &str = "owner";

/// The attribute with values that only lists need, as one string: [`Record::listed`].
pub(in crate::store) const LISTED: &str = "listed";

pub(in crate::store) const UNREADABLE: &str = "unreadable_records";

/// Converts an item, whose blob must be filled in, into a record. Failures are logged.
pub(in crate::store) fn read<T: Record>(item: Item) -> Result<Stored<T>, StoreError> {
    let key = Key::of(&item);
    let id = key.as_ref().and_then(|key| record_id(T::KIND, key));
    decode::<T>(item, id).map_err(|cause| {
        let (tenant_id, record_id) = (key.as_ref().and_then(tenant).map(|id| id.to_string()), id.map(|id| id.to_string()));
        let (tenant_id, record_id) = (tenant_id.as_deref(), record_id.as_deref());
        // Don't log the cause, which can quote the data. The template's metric filters count these lines.
        tracing::error!(metric = UNREADABLE, kind = T::KIND.as_str(), tenant_id, record_id, "a record can't be read");
        StoreError::Unreadable(UnreadableRecord { kind: T::KIND, id, cause })
    })
}

/// Decodes an item. `id` is the ID in the item's key; `None` for kinds without an ID in the key.
fn decode<T: Record>(item: Item, id: Option<Uuid>) -> Result<Stored<T>, String> {
    if lacks_blob(&item) {
        return Err("its steps or its schema are lost".to_owned());
    }
    // Parsed by hand, because deserializing would copy the whole item again.
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    let time = |name: &str| Timestamp::try_from(text(name)?).ok();
    let version = item.get(VERSION).and_then(|version| version.as_n().ok()?.parse().ok()).ok_or("it has no version")?;
    let created_at = time(CREATED_AT).ok_or("it has no creation time")?;
    let updated_at = time(UPDATED_AT).ok_or("it has no time of last change")?;
    let last_hash = text(LAST_HASH).ok_or("it has no hash")?;
    let last_event = text(LAST_EVENT).and_then(|event| EventId::from_short(&event)).ok_or("it has no last event")?;
    let value: T = from_item(item).map_err(|error| error.to_string())?;
    if id.is_some_and(|id| id != value.id().uuid()) {
        return Err("its ID differs from the ID in its key".to_owned());
    }
    Ok(Stored { value, version, created_at, updated_at, last_hash, last_event })
}

/// Returns whole seconds since 1970, the unit of DynamoDB's expiry.
pub(in crate::store) fn seconds(at: Timestamp) -> i64 {
    at.millis().div_euclid(1000)
}
