//! The table: one for all tenants, each in a partition of its own (docs/adr/0002).

pub mod client;
mod counters;
mod credentials;
mod error;
mod item;
pub mod keys;
mod lists;
mod parts;
mod processes;
mod read;
mod tenants;
mod transact;
mod write;

pub use error::{StoreError, WriteError};
pub use lists::{AssetFilter, AssetSort, InstanceFilter, Listed, ModelFilter, Page, ProcessFilter, SortField, UserFilter};
pub use read::{Batch, Wanted};
pub use tenants::NewTenant;
pub use write::{Stamp, Work};

use crate::domain::id::TenantId;
use crate::domain::time::Timestamp;
use aws_sdk_dynamodb::Client;
use keys::Keys;
use std::sync::Arc;
use std::time::Duration;

/// Tells the time; tests tell another.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The table. Gives a handle for each tenant; nothing of a tenant is read or written but through one.
#[derive(Clone)]
pub struct Store {
    client: Client,
    table: String,
    clock: Clock,
}

/// What can be read and written of one tenant. Makes keys of no other.
#[derive(Clone)]
pub struct TenantStore {
    store: Store,
    keys: Keys,
    id: TenantId,
}

impl Store {
    /// The table `table`, as `client` reaches it.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        Self { client, table: table.into(), clock }
    }

    /// One tenant's part.
    #[must_use]
    pub fn tenant(&self, id: TenantId) -> TenantStore {
        TenantStore { store: self.clone(), keys: Keys::of(id), id }
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
        self.client.get_item().table_name(&self.table).set_key(Some(keys::nothing().item())).send().await?;
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
async fn pause(round: u32) {
    let most = 10u64 << round.min(6);
    let mut byte = [0u8; 2];
    // Without random bytes the wait is just the same for all.
    let _ = getrandom::fill(&mut byte);
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(byte)) % most)).await;
}
