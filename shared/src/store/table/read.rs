//! Reads from one tenant's part of the table, and conversion of items into records. Unless stated otherwise, reads are strongly
//! consistent, because a decision depends on each read, or the read follows a write.
//!
//! Query and BatchGetItem can see only some of the items that a transaction has written (AWS: "read-committed isolation"). So
//! events can contain a change that the record doesn't have yet, or vice versa. The other items become visible shortly
//! afterwards, so contradictory reads are retried.
//!
//! A read fills in *blobs*, large parts of records that are stored separately. In a *dry run*, a read also finds what the run
//! would have written so far.
//!
//! Also reads responses stored for retries of their request (docs/adr/0010), and signature images, which are stored separately
//! from their process instance or movement so that lists stay small.

use crate::domain::catalog::custom_fields::schema_hash;
use crate::domain::keys::api_key::prefix;
use crate::domain::processes::instance::ImageName;
use crate::domain::record::{IdempotentRequest, Kind, Record, Stored, StoredResponse, Unique};
use crate::domain::values::id::{ApiKeyId, EventId, Id, TenantId};
use crate::domain::values::signature_image::data_url;
use crate::domain::values::time::Timestamp;
use crate::domain::values::{hex, json};
use crate::store::keys::{EXPIRES, Item, Key, Keys, PK, SK, TYPE, record_id, record_id_of_sort_key, tenant};
use crate::store::table::unit_of_work::{Purpose, TransactionError, TransactionItem, Write};
use crate::store::{Reader, StoreError, TornReadRetry, UnreadableRecord, max_event_delay, pause};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Select};
use futures_util::future::try_join_all;
use serde_dynamo::aws_sdk_dynamodb_1::from_item;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

const MAX_CACHED_BYTES: usize = 4 * 1024 * 1024;

/// A part of records that is stored in a separate, deduplicated item: the steps of process definitions and instances, and the
/// schemas of asset types.
///
/// A definition can have 64 KB of steps, and each of its instances has the same steps; an asset type can have a schema of 32 KB.
/// As an attribute of the record, a blob would add to the cost of every write, and lists would read all of it. So each blob is a
/// separate item, `STEPS#<hash>` or `SCHEMA#<hash>`, which is written once and never changed or deleted; records contain its
/// hash. Reads fill in the blob, from the cache if possible. Lists read blobs only for their page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::store) enum BlobKind {
    Steps,
    Schema,
}

impl BlobKind {
    const ALL: [Self; 2] = [Self::Steps, Self::Schema];

    fn of_kind(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Process | Kind::Instance => Some(Self::Steps),
            Kind::AssetType => Some(Self::Schema),
            _ => None,
        }
    }

    /// Returns the attribute with the text, both in the blob's item and, once the blob is filled in, in a record's item.
    pub(in crate::store) fn attribute(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Schema => "custom_fields_schema",
        }
    }

    /// Returns the attribute of a record with its blob's hash.
    fn hash_attribute(self) -> &'static str {
        match self {
            Self::Steps => "steps_hash",
            Self::Schema => "custom_fields_schema_hash",
        }
    }

    pub(in crate::store) fn noun(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Schema => "schema",
        }
    }

    pub(in crate::store) fn hash(self, text: &str) -> String {
        match self {
            Self::Steps => hex::sha256(text),
            Self::Schema => schema_hash(text),
        }
    }

    fn hash_of(self, item: &Item) -> Option<&str> {
        item.get(self.hash_attribute())?.as_s().ok().map(String::as_str)
    }
}

pub(in crate::store) type BlobName = (BlobKind, String);

/// The blob of a record that is being written, as JSON text.
pub(in crate::store) struct Blob {
    pub(in crate::store) name: BlobName,
    pub(in crate::store) text: String,
}

/// Takes the blob out of a record's attributes, and replaces the blob with its hash.
pub(in crate::store) fn take_blob(kind: Kind, attributes: &mut Item) -> Option<Blob> {
    let blob = BlobKind::of_kind(kind)?;
    let AttributeValue::S(text) = attributes.remove(blob.attribute())? else { return None };
    let hash = blob.hash(&text);
    attributes.insert(blob.hash_attribute().to_owned(), AttributeValue::S(hash.clone()));
    Some(Blob { name: (blob, hash), text })
}

/// Fills in an empty blob: an empty list of steps, or no schema. For code that needs only the rest of a record.
pub(in crate::store) fn without_blob(mut item: Item) -> Item {
    if let Some((blob, _)) = blob_of(&item) {
        let empty = match blob {
            BlobKind::Steps => AttributeValue::S("[]".to_owned()),
            BlobKind::Schema => AttributeValue::Null(true),
        };
        item.insert(blob.attribute().to_owned(), empty);
    }
    item
}

pub(in crate::store) fn fill_in(item: &mut Item, blob: BlobKind, text: &str) {
    item.insert(blob.attribute().to_owned(), AttributeValue::S(text.to_owned()));
}

pub(in crate::store) fn blob_of(item: &Item) -> Option<BlobName> {
    BlobKind::ALL.into_iter().find_map(|blob| Some((blob, blob.hash_of(item)?.to_owned())))
}

pub(in crate::store) fn lacks_blob(item: &Item) -> bool {
    // An unreadable hash counts, too.
    BlobKind::ALL.iter().any(|it| item.contains_key(it.hash_attribute()) && !item.contains_key(it.attribute()))
}

impl Reader {
    /// Returns the write of a blob; `None` if the table is known to have the blob.
    pub(in crate::store) fn blob_put(&self, blob: Blob) -> Option<TransactionItem> {
        let is_known = self.store.blobs.get(self.id, &blob.name).is_some();
        let attribute = blob.name.0.attribute();
        (!is_known).then(|| TransactionItem::put_blob(self.blob_item(blob), attribute))
    }

    fn blob_item(&self, Blob { name, text }: Blob) -> Item {
        let mut item = self.blob_key(&name).item();
        item.insert(TYPE.to_owned(), AttributeValue::S(name.0.noun().to_owned()));
        fill_in(&mut item, name.0, &text);
        item
    }

    pub(in crate::store) fn blob_key(&self, (blob, hash): &BlobName) -> Key {
        match blob {
            BlobKind::Steps => self.keys.steps(hash),
            BlobKind::Schema => self.keys.schema(hash),
        }
    }

    /// Fills in the blobs of items that contain a blob's hash. If a blob is lost, the item stays incomplete, and is unreadable.
    pub(in crate::store) async fn fill_in_blobs(&self, items: &mut [Item]) -> Result<(), StoreError> {
        let mut names: BTreeMap<BlobName, Timestamp> = BTreeMap::new();
        for item in items.iter() {
            if let Some(name) = blob_of(item) {
                let latest = names.entry(name).or_default();
                *latest = written_at(item).unwrap_or_default().max(*latest);
            }
        }
        let texts = self.blob_texts(names).await?;
        for item in items {
            if let Some(name) = blob_of(item)
                && let Some(text) = texts.get(&name)
            {
                fill_in(item, name.0, text);
            }
        }
        Ok(())
    }

    /// Reads the JSON texts of blobs. Omits lost blobs. Uncached blobs take a round trip, and up to 16 read units each.
    ///
    /// A record can become visible before the blob from the same transaction. So a missing blob is read again if its record was
    /// written recently; `names` has the times.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unsettled`] for a blob that may still become visible.
    pub(in crate::store) async fn blob_texts(
        &self,
        names: BTreeMap<BlobName, Timestamp>,
    ) -> Result<BTreeMap<BlobName, Arc<str>>, StoreError> {
        let mut texts = BTreeMap::new();
        let mut missing = Vec::new();
        for (name, written_at) in names {
            match self.store.blobs.get(self.id, &name) {
                Some(text) => drop(texts.insert(name, text)),
                None => missing.push((name, written_at)),
            }
        }
        let mut torn_read_retry = TornReadRetry::default();
        while !missing.is_empty() {
            let keys: Vec<Key> = missing.iter().map(|(name, _)| self.blob_key(name)).collect();
            let mut found = self.items(&keys).await?;
            for ((name, _), key) in missing.iter().zip(&keys) {
                if let Some(AttributeValue::S(text)) = found.remove(key).and_then(|mut item| item.remove(name.0.attribute())) {
                    let text: Arc<str> = text.into();
                    // Don't cache planned writes of a dry run, which the table may never have.
                    if self.dry_run.is_none() {
                        self.store.blobs.insert(self.id, name, Arc::clone(&text));
                    }
                    texts.insert(name.clone(), text);
                }
            }
            let now = self.store.now();
            missing.retain(|(name, written_at)| !texts.contains_key(name) && written_at.plus(max_event_delay()) >= now);
            if !missing.is_empty() && !torn_read_retry.pause(&self.store).await {
                return Err(StoreError::Unsettled("the content of a record"));
            }
        }
        Ok(texts)
    }
}

/// Returns the time at which a record was written, by the clock of its writer.
fn written_at(item: &Item) -> Option<Timestamp> {
    EventId::from_short(item.get(LAST_EVENT)?.as_s().ok()?).map(|event| event.timestamp())
}

/// Recently read blobs. Blobs never change, so the cache is never stale.
#[derive(Debug, Default)]
pub(in crate::store) struct BlobCache(Mutex<CachedBlobs>);

#[derive(Debug, Default)]
struct CachedBlobs {
    texts: HashMap<(TenantId, BlobName), Arc<str>>,
    /// Names of the cached blobs, oldest first.
    order: VecDeque<(TenantId, BlobName)>,
    bytes: usize,
}

impl BlobCache {
    pub(in crate::store) fn get(&self, tenant: TenantId, name: &BlobName) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.get(&(tenant, name.clone())).cloned()
    }

    pub(in crate::store) fn insert(&self, tenant: TenantId, name: &BlobName, text: Arc<str>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tenant, name.clone());
        cached.bytes += text.len();
        if let Some(known) = cached.texts.insert(key.clone(), text) {
            cached.bytes -= known.len();
            return;
        }
        cached.order.push_back(key);
        while cached.bytes > MAX_CACHED_BYTES {
            let Some(oldest) = cached.order.pop_front() else { break };
            let dropped = cached.texts.remove(&oldest).map_or(0, |text| text.len());
            cached.bytes -= dropped;
        }
    }
}

const MAX_NUMBERS: u64 = 1_000_000;
/// Number of possible prefixes for the numbers that a dry run reserves. Prefixes have twelve digits; no counter reaches such
/// numbers.
const NUMBER_PREFIXES: u64 = 900_000_000_000;
const FIRST_NUMBER_PREFIX: u64 = 100_000_000_000;
/// Longer texts are not searched for placeholders, because assigned texts are shorter.
const MAX_PLACEHOLDER_TEXT: usize = 512;

/// The planned writes of a dry run, a request that decides everything and writes nothing. The plan is part of the request's
/// [`Reader`]. Instead of writing, units of work read the items in their conditions, and store the planned items here. The
/// request's later reads and units of work find these items as if they were in the table.
///
/// Cheap to clone; all clones share the planned writes. Doesn't implement `Debug`, because it contains secrets.
#[derive(Clone, Default)]
pub struct DryRun(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    /// Items as the units of work would leave them; `None` for a deleted item.
    items: HashMap<Key, Option<Item>>,
    /// Placeholders for texts that only the real request assigns.
    placeholders: BTreeSet<String>,
    /// Prefix and count of the reserved numbers.
    numbers: Option<(u64, u64)>,
}

impl DryRun {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the planned state of an item: `None` if the request would not have written it, `Some(None)` if it would have
    /// deleted it.
    pub(in crate::store) fn item(&self, key: &Key) -> Option<Option<Item>> {
        self.plan().items.get(key).cloned()
    }

    /// Adds a string that only the real request would assign.
    pub(crate) fn add_placeholder(&self, text: impl Into<String>) {
        self.plan().placeholders.insert(text.into());
    }

    /// Reserves numbers for asset tags or movements, beyond the range of any counter, and returns the last number. Fails when the
    /// request reserves more than a million numbers.
    pub(in crate::store) fn reserve_numbers(&self, count: u64, random: [u8; 8]) -> Result<u64, StoreError> {
        let mut plan = self.plan();
        let first = || (FIRST_NUMBER_PREFIX + u64::from_le_bytes(random) % NUMBER_PREFIXES, 0);
        let (prefix, used) = plan.numbers.get_or_insert_with(first);
        *used = used.saturating_add(count);
        if *used >= MAX_NUMBERS {
            return Err(StoreError::broken("a dry run reserves too many numbers"));
        }
        Ok(*prefix * MAX_NUMBERS + *used)
    }

    /// Whether only the real request would assign this text or a part of it, as in the path of a new record or a tag with a
    /// reserved number.
    #[must_use]
    pub fn is_placeholder(&self, text: &str) -> bool {
        if text.len() > MAX_PLACEHOLDER_TEXT {
            return false;
        }
        let plan = self.plan();
        let is_known = |text: &str| plan.placeholders.contains(text);
        let has_number = || plan.numbers.is_some_and(|(prefix, _)| text.contains(&prefix.to_string()));
        is_known(text) || text.starts_with('/') && text.split('/').any(is_known) || has_number()
    }
}

impl Reader {
    #[must_use]
    pub fn in_dry_run(self, dry_run: DryRun) -> Self {
        Self { dry_run: Some(dry_run), ..self }
    }

    #[must_use]
    pub fn is_placeholder(&self, text: &str) -> bool {
        self.dry_run.as_ref().is_some_and(|dry_run| dry_run.is_placeholder(text))
    }

    /// Notes the ID of a new record, and the text that shows an API key by its ID.
    pub(in crate::store) fn note_created(&self, kind: Kind, id: Uuid) {
        let Some(dry_run) = &self.dry_run else { return };
        dry_run.add_placeholder(id.to_string());
        if kind == Kind::ApiKey {
            dry_run.add_placeholder(prefix(ApiKeyId::from_uuid(id)));
        }
    }

    /// Evaluates the conditions as the table would, but writes nothing. Stores the planned items in the dry run, for the
    /// conditions of the request's later units of work.
    pub(in crate::store) async fn try_out(&self, dry_run: &DryRun, items: Vec<TransactionItem>) -> Result<(), TransactionError> {
        let keys: Result<Vec<Key>, StoreError> = items.iter().map(|item| item.write.key()).collect();
        let keys = keys.map_err(TransactionError::Store)?;
        if keys.iter().collect::<HashSet<_>>().len() < keys.len() {
            // DynamoDB rejects such a transaction.
            return Err(TransactionError::Store(StoreError::broken("a transaction with two writes of an item")));
        }
        // Most invariants say that a new key is free, which needs no read.
        let can_fail = |item: &TransactionItem| item.purpose != Purpose::Invariant;
        let unknown = items.iter().zip(&keys).filter(|(item, key)| can_fail(item) && dry_run.item(key).is_none());
        let unknown: Vec<Key> = unknown.map(|(_, key)| key.clone()).collect();
        let mut read = self.items(&unknown).await.map_err(TransactionError::Store)?;
        // This lock lets concurrent units of work in the same request check their conditions one after another.
        let mut plan = dry_run.plan();
        let mut left = Vec::new();
        for (item, key) in items.into_iter().zip(keys) {
            let current = plan.items.get(&key).cloned().unwrap_or_else(|| read.remove(&key));
            if can_fail(&item) && !item.condition.is_met_by(current.as_ref()) {
                return Err(TransactionError::ConditionFailed(item.purpose, current));
            }
            if !matches!(item.write, Write::Check(_)) {
                left.push((key, item.write.applied_to(current)));
            }
        }
        plan.items.extend(left);
        Ok(())
    }
}

/// How long a response is stored for retries of its request: 24 hours (docs/adr/0010).
pub(in crate::store) const STORED_SECONDS: i64 = 24 * 60 * 60;
pub(in crate::store) const FINGERPRINT: &str = "fingerprint";
/// The attribute with the history entries that the request added, as sort keys of the index `history`. A restored table can
/// contain the response without the entries, which `admin check` detects.
pub(in crate::store) const ENTRIES: &str = "entries";
/// The attribute with the PNG file of a signature image.
pub(in crate::store) const IMAGE: &str = "image";
pub(in crate::store) const RESPONSE: &str = "response";

/// An earlier request with the same idempotency key.
#[derive(Debug, Clone)]
pub enum PreviousRequest {
    Same(Box<StoredResponse>),
    /// The idempotency key belongs to a request with a different path or body.
    Different,
}

impl Reader {
    /// Looks up the previous request with the same idempotency key; `None` if no such request has taken effect within 24 hours.
    pub(crate) async fn previous_request(&self, request: &IdempotentRequest) -> Result<Option<PreviousRequest>, StoreError> {
        let Some(item) = self.item(&self.keys.stored_response(request)).await? else { return Ok(None) };
        let Some(previous) = self.previous_in(&item, request)? else { return Ok(None) };
        let PreviousRequest::Same(mut response) = previous else { return Ok(Some(previous)) };
        // The end of the second in which the response was stored.
        let stored_at = Timestamp::from_millis((expiry(&item).unwrap_or_default() - STORED_SECONDS + 1) * 1000);
        if !response.images.is_empty() {
            response.body = self.with_images(&response).await?;
        }
        let steps = response.steps.iter().map(|hash| ((BlobKind::Steps, hash.clone()), stored_at)).collect();
        for ((_, hash), text) in self.blob_texts(steps).await? {
            response.body = response.with_steps(&hash, &text);
        }
        Ok(Some(PreviousRequest::Same(response)))
    }

    /// Reads the stored responses of the first `count` parts. Parts change assets or users, so these responses have neither
    /// images nor steps.
    pub(crate) async fn previous_parts(
        &self,
        request: &IdempotentRequest,
        count: usize,
    ) -> Result<Vec<Option<StoredResponse>>, StoreError> {
        let parts: Vec<IdempotentRequest> = (0..count).map(|index| request.part(index)).collect();
        let keys: Vec<Key> = parts.iter().map(|part| self.keys.stored_response(part)).collect();
        let items = self.items(&keys).await?;
        let previous = parts.iter().zip(&keys).map(|(part, key)| {
            let previous = items.get(key).map(|item| self.previous_in(item, part)).transpose()?.flatten();
            Ok(match previous {
                Some(PreviousRequest::Same(response)) => Some(*response),
                Some(PreviousRequest::Different) | None => None,
            })
        });
        previous.collect()
    }

    /// Parses a stored response; `None` if it has expired.
    fn previous_in(&self, item: &Item, request: &IdempotentRequest) -> Result<Option<PreviousRequest>, StoreError> {
        let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str);
        if expiry(item).is_none_or(|expires| expires <= seconds(self.store.now())) {
            return Ok(None);
        }
        if text(FINGERPRINT) != Some(&request.fingerprint) {
            return Ok(Some(PreviousRequest::Different));
        }
        let response = text(RESPONSE).ok_or_else(|| StoreError::broken("a stored response without text"))?;
        Ok(Some(PreviousRequest::Same(Box::new(serde_json::from_str(response).map_err(StoreError::broken)?))))
    }

    /// Returns the images as PNG files. Omits missing images.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the images can't be read.
    pub async fn signature_images(&self, names: BTreeSet<ImageName>) -> Result<HashMap<ImageName, Vec<u8>>, StoreError> {
        let keys: Vec<Key> = names.iter().map(|name| self.keys.signature(name)).collect();
        let mut items = self.items(&keys).await?;
        let image = |item: Item| item.get(IMAGE).and_then(|value| value.as_b().ok()).map(|blob| blob.as_ref().to_vec());
        Ok(names.into_iter().zip(keys).filter_map(|(name, key)| Some((name, image(items.remove(&key)?)?))).collect())
    }

    /// Returns the response's body with its images, which are stored only once, with their instances.
    async fn with_images(&self, response: &StoredResponse) -> Result<String, StoreError> {
        let names: BTreeSet<_> = response.images.iter().map(|(_, name)| name.clone()).collect();
        let images = self.signature_images(names).await?;
        let shown: HashMap<(&str, &str), String> = response
            .images
            .iter()
            .filter_map(|(path, name)| Some(((name.step.as_str(), path.as_str()), data_url(images.get(name)?))))
            .collect();
        let mut body = json::parse(&response.body).map_err(StoreError::broken)?;
        insert_images(&mut body, &shown);
        serde_json::to_string(&body).map_err(StoreError::broken)
    }
}

/// Returns the expiry time of an item, in seconds since 1970.
fn expiry(item: &Item) -> Option<i64> {
    item.get(EXPIRES)?.as_n().ok()?.parse().ok()
}

/// Returns whole seconds since 1970, the unit of DynamoDB's expiry.
pub(in crate::store) fn seconds(at: Timestamp) -> i64 {
    at.millis().div_euclid(1000)
}

/// Replaces the paths of images with the images, in the `step_data` of every instance in the body.
fn insert_images(value: &mut Value, images: &HashMap<(&str, &str), String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::Object(data) if name == "step_data" => {
                        for (step, value) in data.iter_mut() {
                            let image = value.as_str().and_then(|path| images.get(&(step.as_str(), path)));
                            if let Some(image) = image {
                                *value = Value::String(image.clone());
                            }
                        }
                    }
                    other => insert_images(other, images),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| insert_images(value, images)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_instances_and_asset_types_have_deduplicated_blobs() {
        for blob in BlobKind::ALL {
            let item = || Item::from([(blob.attribute().to_owned(), AttributeValue::S("[]".to_owned()))]);
            for kind in Kind::ALL {
                let mut attributes = item();
                let taken = take_blob(*kind, &mut attributes);
                assert_eq!(taken.is_some(), BlobKind::of_kind(*kind) == Some(blob), "{kind:?}");
                assert_eq!(attributes == item(), taken.is_none(), "{kind:?}");
                assert_eq!(lacks_blob(&attributes), taken.is_some(), "{kind:?}");
                assert_eq!(blob_of(&attributes), taken.map(|taken| taken.name), "{kind:?}");
            }
        }
    }

    #[test]
    fn the_order_of_members_does_not_change_the_hash_of_a_schema() {
        let hash = |text| BlobKind::Schema.hash(text);
        assert_eq!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"b":2,"a":1}"#));
        assert_ne!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"a":2,"b":1}"#));
    }

    fn tenant(n: u8) -> TenantId {
        TenantId::new(Timestamp::from_millis(0), [n; 10])
    }

    fn steps(hash: &str) -> BlobName {
        (BlobKind::Steps, hash.to_owned())
    }

    #[test]
    fn the_cache_drops_the_oldest_content_and_knows_whose_it_is() {
        let cache = BlobCache::default();
        let text: Arc<str> = "x".repeat(MAX_CACHED_BYTES / 4).into();
        for hash in ["a", "b", "c", "d", "d"] {
            cache.insert(tenant(1), &steps(hash), Arc::clone(&text));
        }
        assert!(cache.get(tenant(1), &steps("a")).is_some() && cache.get(tenant(2), &steps("a")).is_none());
        assert!(cache.get(tenant(1), &(BlobKind::Schema, "a".to_owned())).is_none());
        cache.insert(tenant(2), &steps("a"), text);
        let left = |n| ["a", "b", "c", "d"].map(|hash| cache.get(tenant(n), &steps(hash)).is_some());
        assert_eq!((left(1), left(2)), ([false, true, true, true], [true, false, false, false]));
    }

    #[test]
    fn reserved_numbers_differ_and_are_recognized_in_tags_and_nowhere_else() {
        let dry_run = DryRun::default();
        assert!(!dry_run.is_placeholder("AST-000001"));
        let numbers: Vec<u64> = [1, 1, 200, 1].map(|count| dry_run.reserve_numbers(count, [7; 8]).unwrap()).into();
        assert_eq!(numbers.iter().map(|number| number - numbers[0]).collect::<Vec<_>>(), [0, 1, 201, 202]);
        for number in numbers {
            assert!(dry_run.is_placeholder(&format!("AST-{number}-X")));
        }
        assert!(!dry_run.is_placeholder("AST-000001") && !dry_run.is_placeholder(""));
        assert!(dry_run.reserve_numbers(MAX_NUMBERS, [7; 8]).is_err());
    }

    #[test]
    fn a_placeholder_is_recognized_alone_and_in_paths() {
        let dry_run = DryRun::default();
        dry_run.add_placeholder("an-id");
        for (text, expected) in
            [("an-id", true), ("/v1/assets/an-id", true), ("/v1/x/an-id/y", true), ("see an-id", false), ("/v1/an-idea", false)]
        {
            assert_eq!(dry_run.is_placeholder(text), expected, "{text}");
        }
    }
}
