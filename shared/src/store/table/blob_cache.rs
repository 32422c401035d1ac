//! The blobs that were read lately.

use crate::domain::values::id::TenantId;
use crate::store::table::deduplicated_blobs::BlobName;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

const MAX_CACHED_BYTES: usize = 4 * 1024 * 1024;

/// Blobs that were read lately. They never change, so they never become outdated.
#[derive(Debug, Default)]
pub(in crate::store) struct BlobCache(Mutex<CachedBlobs>);

#[derive(Debug, Default)]
struct CachedBlobs {
    texts: HashMap<(TenantId, BlobName), Arc<str>>,
    /// The oldest first.
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
    use crate::domain::values::id::Id;
    use crate::domain::values::time::Timestamp;
    use crate::store::table::deduplicated_blobs::BlobKind;

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
