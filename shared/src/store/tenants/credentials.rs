//! Reading and touching an API key while it is verified. The first reads of a request join the batch that reads its key: one
//! call instead of two.

use crate::domain::record::Kind;
use crate::domain::values::id::{ApiKeyId, Id};
use crate::domain::values::time::Timestamp;
use crate::store::keys::{Item, Key, PK};
use crate::store::table::error::{StoreError, unless_condition_failed};
use crate::store::table::read::{BatchGet, BatchResult, MAX_BATCH_KEYS};
use crate::store::{TenantStore, client};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::SetOnce;
use tokio::time::timeout;

/// The longest wait of a request for this write.
const TOUCH_TIMEOUT: Duration = Duration::from_millis(250);

/// The batch that reads a key. A request's reads are polled before the check of its key, so that they can join.
#[derive(Default)]
pub(crate) struct KeyBatch {
    joined: Mutex<Joined>,
    items: SetOnce<HashMap<Key, Item>>,
}

#[derive(Default)]
struct Joined {
    keys: HashSet<Key>,
    is_sent: bool,
}

impl KeyBatch {
    /// `false` if the batch is sent or has no room: then the keys must be read in a separate request.
    fn join(&self, keys: &[Key]) -> bool {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        // Two places are for the key and its owner.
        let joins = !joined.is_sent && joined.keys.len() + keys.len() <= MAX_BATCH_KEYS - 2;
        if joins {
            joined.keys.extend(keys.iter().cloned());
        }
        joins
    }

    fn close(&self) -> HashSet<Key> {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        joined.is_sent = true;
        std::mem::take(&mut joined.keys)
    }

    /// `None` if the keys could not join. Never returns if the batch fails: the request then ends with the error of its key, and
    /// this future is dropped.
    pub(in crate::store) async fn read(&self, keys: &[Key]) -> Option<HashMap<Key, Item>> {
        if !self.join(keys) {
            return None;
        }
        let items = self.items.wait().await;
        Some(keys.iter().filter_map(|key| Some((key.clone(), items.get(key)?.clone()))).collect())
    }
}

impl TenantStore {
    /// Writes no event, since nobody decided it. A request does not wait long for it.
    pub(crate) async fn touch_key(&self, id: ApiKeyId, at: Timestamp) -> Result<(), StoreError> {
        let update = self.store.client.update_item().table_name(&self.store.table);
        let result = update
            .set_key(Some(self.keys.record(Kind::ApiKey, id.uuid()).item()))
            .condition_expression("attribute_exists(#pk)")
            .update_expression("SET #used = :at")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#used", "last_used_at")
            .expression_attribute_values(":at", AttributeValue::S(at.to_string()))
            .customize()
            .config_override(client::dispensable())
            .send();
        let touched = timeout(TOUCH_TIMEOUT, result).await.map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?;
        unless_condition_failed(touched).map(drop)
    }

    /// For reads that may join the batch.
    pub(crate) fn joining(&self, batch: &Arc<KeyBatch>) -> Self {
        Self { key_batch: Some(Arc::clone(batch)), ..self.clone() }
    }

    /// Reads `records`, without steps and schemas, and all that has joined, in one round trip. Nothing can join any more.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::batch_get`].
    pub(crate) async fn read_key_batch(&self, batch: &KeyBatch, records: BatchGet) -> Result<BatchResult, StoreError> {
        let records = self.keys_of(records);
        let mut keys = batch.close();
        keys.extend(records.keys().cloned());
        let items = self.items(&Vec::from_iter(keys)).await?;
        let result = records.iter().filter_map(|(key, record)| Some((*record, items.get(key)?.clone()))).collect();
        // Only this call sets it.
        let _ = batch.items.set(items);
        Ok(BatchResult { items: result })
    }
}
