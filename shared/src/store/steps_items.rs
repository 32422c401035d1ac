//! Steps items: the steps of process definitions and instances, beside the records.
//!
//! A definition can have 64 KB of steps, and each of its instances has the same ones. As an attribute of the records, a
//! write of any of them would cost by that size. The steps are therefore an item of their own, `STEPS#<hash>`, which is
//! written once and never changed or deleted; records have its hash. Reads fill the steps in, from memory if possible.

use super::PointReads;
use super::error::StoreError;
use super::keys::{Item, Key, TYPE};
use super::retry::pause;
use super::transaction::TransactionItem;
use crate::domain::hex;
use crate::domain::id::TenantId;
use crate::domain::record::Kind;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The attribute with the steps: in a steps item, and in the item of a record once they are filled in.
pub(super) const STEPS: &str = "steps";
/// The attribute of a record that names its steps.
pub(super) const STEPS_HASH: &str = "steps_hash";
/// How many bytes of steps are kept in memory.
const MAX_CACHED_BYTES: usize = 4 * 1024 * 1024;
/// How often steps that are missing are looked for. A record may become visible before the steps that the same
/// transaction writes.
const MAX_ROUNDS: u32 = 6;

/// The steps of a record that is being written, as JSON text.
pub(super) struct StepsText {
    pub(super) hash: String,
    pub(super) text: String,
}

/// Takes the steps out of a record's attributes and puts their hash in their place.
pub(super) fn take_steps(kind: Kind, attributes: &mut Item) -> Option<StepsText> {
    if !matches!(kind, Kind::Process | Kind::Instance) {
        return None;
    }
    let AttributeValue::S(text) = attributes.remove(STEPS)? else { return None };
    let hash = hex::sha256(&text);
    attributes.insert(STEPS_HASH.to_owned(), AttributeValue::S(hash.clone()));
    Some(StepsText { hash, text })
}

/// Fills an empty list of steps in, for code that needs the rest of a record only.
pub(super) fn without_steps(mut item: Item) -> Item {
    if hash_of(&item).is_some() {
        item.insert(STEPS.to_owned(), AttributeValue::S("[]".to_owned()));
    }
    item
}

/// Returns the hash of a record's steps.
pub(super) fn hash_of(item: &Item) -> Option<&str> {
    item.get(STEPS_HASH)?.as_s().ok().map(String::as_str)
}

/// The steps that were read lately. They never change, so they never become outdated.
#[derive(Debug, Default)]
pub(super) struct StepsCache(Mutex<CachedSteps>);

#[derive(Debug, Default)]
struct CachedSteps {
    texts: HashMap<(TenantId, String), Arc<str>>,
    /// The oldest first.
    order: VecDeque<(TenantId, String)>,
    bytes: usize,
}

impl StepsCache {
    fn get(&self, tenant: TenantId, hash: &str) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.get(&(tenant, hash.to_owned())).cloned()
    }

    fn insert(&self, tenant: TenantId, hash: &str, text: Arc<str>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tenant, hash.to_owned());
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

impl PointReads {
    /// Returns the put of steps; `None` if the tenant's table is known to have them.
    pub(super) fn steps_put(&self, steps: StepsText) -> Result<Option<TransactionItem>, StoreError> {
        if self.store.steps.get(self.id, &steps.hash).is_some() {
            return Ok(None);
        }
        self.store.put_content(self.steps_item(steps), STEPS).map(Some)
    }

    /// Returns the item of steps.
    pub(super) fn steps_item(&self, steps: StepsText) -> Item {
        let mut item = self.keys.steps(&steps.hash).item();
        item.insert(TYPE.to_owned(), AttributeValue::S("steps".to_owned()));
        item.insert(STEPS.to_owned(), AttributeValue::S(steps.text));
        item
    }

    /// Fills in the steps of those items that have their hash. An item whose steps are lost stays without, so that it can't
    /// be read.
    pub(super) async fn fill_in_steps(&self, items: &mut [Item]) -> Result<(), StoreError> {
        let texts = self.steps_texts(items.iter().filter_map(hash_of).map(str::to_owned).collect()).await?;
        for item in items {
            if let Some(text) = hash_of(item).and_then(|hash| texts.get(hash)) {
                item.insert(STEPS.to_owned(), AttributeValue::S(text.to_string()));
            }
        }
        Ok(())
    }

    /// Returns the steps with these hashes, as JSON text, except those that are lost. Those that are not in memory take a round trip, and up to 16
    /// read units each, and so wait until the caller's key is verified.
    pub(super) async fn steps_texts(&self, hashes: BTreeSet<String>) -> Result<BTreeMap<String, Arc<str>>, StoreError> {
        let mut texts = BTreeMap::new();
        let mut missing = Vec::new();
        for hash in hashes {
            match self.store.steps.get(self.id, &hash) {
                Some(text) => drop(texts.insert(hash, text)),
                None => missing.push(hash),
            }
        }
        if !missing.is_empty() {
            self.verified.wait().await;
        }
        for round in 0..MAX_ROUNDS {
            if missing.is_empty() {
                return Ok(texts);
            }
            if round > 0 {
                pause(&self.store, round).await;
            }
            let keys: Vec<Key> = missing.iter().map(|hash| self.keys.steps(hash)).collect();
            let mut found = self.items(&keys).await?;
            for (hash, key) in missing.iter().zip(&keys) {
                if let Some(AttributeValue::S(text)) = found.remove(key).and_then(|mut item| item.remove(STEPS)) {
                    let text: Arc<str> = text.into();
                    self.store.steps.insert(self.id, hash, Arc::clone(&text));
                    texts.insert(hash.clone(), text);
                }
            }
            missing.retain(|hash| !texts.contains_key(hash));
        }
        Ok(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::Id;
    use crate::domain::time::Timestamp;

    fn tenant(n: u8) -> TenantId {
        TenantId::new(Timestamp::from_millis(0), [n; 10])
    }

    #[test]
    fn the_cache_drops_the_oldest_steps_and_knows_whose_they_are() {
        let cache = StepsCache::default();
        let text: Arc<str> = "x".repeat(MAX_CACHED_BYTES / 4).into();
        for hash in ["a", "b", "c", "d", "d"] {
            cache.insert(tenant(1), hash, Arc::clone(&text));
        }
        assert!(cache.get(tenant(1), "a").is_some() && cache.get(tenant(2), "a").is_none());
        cache.insert(tenant(2), "a", text);
        let left = |n| ["a", "b", "c", "d"].map(|hash| cache.get(tenant(n), hash).is_some());
        assert_eq!((left(1), left(2)), ([false, true, true, true], [true, false, false, false]));
    }

    #[test]
    fn only_definitions_and_instances_have_steps_items() {
        let item = || Item::from([(STEPS.to_owned(), AttributeValue::S("[]".to_owned()))]);
        for kind in Kind::ALL {
            let mut attributes = item();
            let taken = take_steps(*kind, &mut attributes);
            assert_eq!(taken.is_some(), matches!(kind, Kind::Process | Kind::Instance), "{kind:?}");
            assert_eq!(attributes == item(), taken.is_none(), "{kind:?}");
            assert_eq!(hash_of(&attributes).map(str::to_owned), taken.map(|steps| steps.hash), "{kind:?}");
        }
    }
}
