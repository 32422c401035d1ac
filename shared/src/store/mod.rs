//! The table: one for all tenants, each in a partition of its own (docs/adr/0002).

mod change_context;
pub mod client;
mod counters;
mod credentials;
mod error;
mod feed;
mod filters;
mod history;
mod item;
pub mod keys;
mod list_index;
mod lists;
mod memory_budget;
mod rate;
mod read;
mod receipt_keys;
mod signature_images;
mod stored_responses;
mod tenants;
mod transaction;
mod transaction_items;
mod unit_of_work;
mod verify_tenant;
mod write;

pub use change_context::ChangeContext;
pub use error::{StoreError, WriteError};
pub use feed::{Feed, LARGEST_ANSWER};
pub use filters::{AssetFilter, AssetSort, InstanceFilter, ModelFilter, Page, PageRequest, ProcessFilter, SortField, UserFilter};
pub use history::HistoryPage;
pub use read::{BatchGet, BatchResult};
pub use receipt_keys::KeyError;
pub use stored_responses::PreviousRequest;
pub use tenants::NewTenant;
pub use unit_of_work::UnitOfWork;
pub use verify_tenant::TenantVerification;

use crate::domain::id::TenantId;
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::Client;
use keys::Keys;
use list_index::ListIndexCache;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::SetOnce;

/// Tells the time; tests tell another.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The table. Gives a handle for each tenant; nothing of a tenant is read or written but through one.
#[derive(Clone)]
pub struct Store {
    client: Client,
    table: String,
    clock: Clock,
    list_indexes: Arc<ListIndexCache>,
}

/// What can be read and written of one tenant. Makes keys of no other.
#[derive(Clone)]
pub struct TenantStore {
    store: Store,
    keys: Keys,
    id: TenantId,
    /// Set once whoever asks has shown a good key; `None` when nobody needs to.
    admission: Option<Arc<SetOnce<()>>>,
}

impl Store {
    /// The table `table`, as `client` reaches it.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        Self { client, table: table.into(), clock, list_indexes: Arc::new(ListIndexCache::new(memory_budget::from_env())) }
    }

    /// The same table with directories of its own, which may take so many bytes of memory; none at all for 0.
    #[must_use]
    pub fn with_list_index_bytes(self, budget: usize) -> Self {
        Self { list_indexes: Arc::new(ListIndexCache::new(budget)), ..self }
    }

    /// How many bytes its directories take.
    #[must_use]
    pub fn list_index_bytes(&self) -> usize {
        self.list_indexes.bytes()
    }

    /// Throws its directories away. They are copies: the next lists load them again.
    pub fn forget_list_indexes(&self) {
        self.list_indexes.clear();
    }

    /// One tenant's part.
    #[must_use]
    pub fn tenant(&self, id: TenantId) -> TenantStore {
        TenantStore { store: self.clone(), keys: Keys::of(id), id, admission: None }
    }

    /// One tenant's part for somebody whose key is still being checked: cheap reads may start, what costs more
    /// waits until the other half says that the key is good.
    #[must_use]
    pub fn tenant_for_stranger(&self, id: TenantId) -> (TenantStore, Arc<SetOnce<()>>) {
        let admission = Arc::new(SetOnce::new());
        (TenantStore { admission: Some(Arc::clone(&admission)), ..self.tenant(id) }, admission)
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Whether the table answers, in one cheap read.
    ///
    /// # Errors
    ///
    /// It does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.client.get_item().table_name(&self.table).set_key(Some(keys::health_check().item())).send().await?;
        Ok(())
    }

    /// Random bytes for an id.
    ///
    /// # Errors
    ///
    /// The system has none, which a running one always has.
    pub fn random<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::broken(error.to_string()))?;
        Ok(bytes)
    }
}

impl TenantStore {
    /// Which tenant.
    #[must_use]
    pub fn id(&self) -> TenantId {
        self.id
    }

    /// The table that the handle is of.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Waits until whoever asks has shown a good key.
    async fn admitted(&self) {
        if let Some(admission) = &self.admission {
            admission.wait().await;
        }
    }

    /// A new id for something made at `at`.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn new_id<I: crate::domain::id::Id>(&self, at: Timestamp) -> Result<I, StoreError> {
        Ok(I::new(at, self.store.random()?))
    }
}

/// Waits before try number `round` + 2: up to 10 ms, 20 ms … 640 ms, at random, so that rivals part.
pub async fn pause(round: u32) {
    let most = 10u64 << round.min(6);
    let mut byte = [0u8; 2];
    // Without random bytes the wait is just the same for all.
    let _ = getrandom::fill(&mut byte);
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(byte)) % most)).await;
}
