//! The items of blobs, and reading them.

use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::keys::{Item, Key, TYPE};
use crate::store::table::deduplicated_blobs::{Blob, BlobKind, BlobName, blob_of, fill_in};
use crate::store::table::delays::max_event_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item::LAST_EVENT;
use crate::store::table::torn_reads::TornReadRetry;
use crate::store::table::transaction::TransactionItem;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// By the clock of the record's writer.
fn written_at(item: &Item) -> Option<Timestamp> {
    EventId::from_short(item.get(LAST_EVENT)?.as_s().ok()?).map(|event| event.timestamp())
}

impl TenantStore {
    /// `None` if the tenant's table is known to have it.
    pub(in crate::store) fn blob_put(&self, blob: Blob) -> Option<TransactionItem> {
        let is_known = self.store.blobs.get(self.id, &blob.name).is_some();
        let attribute = blob.name.0.attribute();
        (!is_known).then(|| TransactionItem::put_blob(self.blob_item(blob), attribute))
    }

    pub(in crate::store) fn blob_item(&self, Blob { name, text }: Blob) -> Item {
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

    /// Fills in the blobs of those items that have a hash. An item whose blob is lost stays without, so that it can't
    /// be read.
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

    /// JSON texts of the blobs, without lost ones. Blobs that are not in memory take a round trip, and up to 16 read units each.
    ///
    /// A record may become visible before the blob that the same transaction writes. So a blob is waited for if a record that
    /// names it was written lately; `names` has the times.
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
                    // The table may never have what a dry run would write.
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
