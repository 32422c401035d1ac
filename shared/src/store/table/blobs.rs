//! Large parts of records that are stored in separate, deduplicated items.

use super::read::LAST_EVENT;
use crate::domain::catalog::custom_fields::schema_hash;
use crate::domain::record::Kind;
use crate::domain::values::hex;
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{Item, Key, TYPE};
use crate::store::table::unit_of_work::TransactionItem;
use crate::store::{Reader, StoreError, TornReadRetry, max_event_delay};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

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
}
