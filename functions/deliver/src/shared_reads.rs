//! Reads that the messages of a batch share, so that the tenant's own partition sees few of them.

use super::Failure;
use shared::domain::history::chain::HistoryEntry;
use shared::domain::values::id::{EventId, TenantId, WebhookId};
use shared::domain::webhooks::Health;
use shared::event_view::{FeedEntry, feed_entries};
use shared::store::{StoreError, TenantStore};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

type Cell<T> = Arc<OnceCell<T>>;
type Cells<K, T> = Mutex<HashMap<K, Cell<T>>>;

/// Everything is read at most once, by the first message that needs it. After a failure, the next one reads again.
pub(crate) struct SharedReads {
    /// Tells batches apart.
    pub(crate) batch: u64,
    events: Cells<(TenantId, EventId), Option<HistoryEntry>>,
    entries: Cells<(TenantId, EventId), Arc<FeedEntry>>,
    health: Cells<(TenantId, WebhookId), Health>,
}

impl SharedReads {
    pub(crate) fn new(batch: u64) -> Self {
        Self { batch, events: Mutex::default(), entries: Mutex::default(), health: Mutex::default() }
    }

    pub(crate) async fn event(&self, store: &TenantStore, event: EventId) -> Result<Option<HistoryEntry>, StoreError> {
        let cell = cell(&self.events, (store.id(), event));
        cell.get_or_try_init(|| store.event_entry(event)).await.cloned()
    }

    /// The event as the feed has it.
    pub(crate) async fn entry(&self, store: &TenantStore, event: HistoryEntry) -> Result<Arc<FeedEntry>, Failure> {
        let cell = cell(&self.entries, (store.id(), event.id));
        let read = async || {
            let entry = feed_entries(store, vec![event.clone()]).await?.pop();
            // Another version of the service may be able to read it.
            Ok(Arc::new(entry.ok_or("the event can't be read")?))
        };
        cell.get_or_try_init(read).await.cloned()
    }

    pub(crate) async fn health(&self, store: &TenantStore, webhook: WebhookId) -> Result<Health, StoreError> {
        let cell = cell(&self.health, (store.id(), webhook));
        cell.get_or_try_init(|| store.webhook_health(webhook)).await.copied()
    }
}

fn cell<K: Eq + Hash, T>(cells: &Cells<K, T>, key: K) -> Cell<T> {
    Arc::clone(cells.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
}
