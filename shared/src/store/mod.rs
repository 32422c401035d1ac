//! The DynamoDB table: one for all tenants, each tenant in a separate partition (docs/adr/0002).
//!
//! Nothing of a tenant is read or written except through a [`TenantStore`], which makes keys of one tenant only.

mod assets;
mod check;
pub mod client;
mod history;
pub mod keys;
mod lists;
mod people;
mod signing;
mod state_records;
mod table;
mod tenants;
mod webhooks;

pub use assets::{MAX_ASSIGNMENTS, PastAssets, SerialMatch};
pub use check::{CheckMode, CheckReport, Finding, Removal};
pub use history::feed::{Feed, MAX_BODY_BEFORE_OMISSION, RecordNames};
pub use history::of_record::HistoryPage;
pub use lists::export::{AssetExport, Chunk};
pub use lists::filters::{
    AssetFilter, AssetRanges, AssetSort, AssetTypeFilter, Assignee, InstanceFilter, ManufacturerFilter, ModelFilter, PlaceFilter,
    ProcessFilter, Range, SortField, Statuses, UserFilter, custom_column, literal, wanted_field,
};
pub use lists::indexed_lists::{Page, PageRequest};
pub use lists::list_index::{MAX_SNAPSHOT_TIME, SnapshotReport, Wanted};
pub use lists::stats::GroupBy;
pub use people::{Held, PartAbout};
pub use signing::KeyError;
pub use table::dry_run::DryRun;
pub use table::error::{StoreError, UnreadableRecord, WriteError};
pub(crate) use table::read::KeyBatch;
pub use table::read::{BatchGet, BatchResult};
pub use table::stored_responses::PreviousRequest;
pub(crate) use table::times::pause;
pub use table::times::{has_time_for_operation, max_event_delay, with_deadline};
pub use table::unit_of_work::{ChangeContext, CommitFailure, MAX_TRANSACTION_ITEMS, UnitOfWork};
pub use tenants::registry::{NewTenant, RegisteredTenant};
pub use tenants::verify_tenant::TenantVerification;
pub use webhooks::deliveries::{MAX_LISTED_DELIVERIES, PendingDeliveries};

use crate::aws::object_store::ObjectStore;
use crate::domain::values::id::TenantId;
use crate::domain::values::time::Timestamp;
use aws_sdk_dynamodb::Client;
use keys::Keys;
use lists::list_index::{ListIndexCache, Pace};
use std::sync::{Arc, Mutex};
use table::blobs::BlobCache;
use tenants::leases::{Ceilings, Leases};

/// Tests pass another clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Fills a buffer with random bytes, or returns a reason. Simulations pass a seeded source, so that one seed repeats them.
pub type Random = Arc<dyn Fn(&mut [u8]) -> Result<(), String> + Send + Sync>;

/// The table, as one SDK client reaches it. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    client: Client,
    table: String,
    clock: Clock,
    random: Random,
    list_indexes: Arc<ListIndexCache>,
    snapshots: Option<Arc<dyn ObjectStore>>,
    /// The number of rows from which on a list gets a snapshot.
    smallest_snapshot: usize,
    /// Of the writer of snapshots. Nobody else waits between reads.
    read_pace: Option<Arc<Mutex<Pace>>>,
    blobs: Arc<BlobCache>,
    leases: Arc<Leases>,
    ceilings: Arc<Ceilings>,
}

/// One tenant's part of the table. A handler gets one for a key that is verified, now or lately by this function instance.
#[derive(Clone)]
pub struct TenantStore {
    store: Store,
    keys: Keys,
    id: TenantId,
    dry_run: Option<DryRun>,
    /// Of a request whose key is being checked.
    key_batch: Option<Arc<KeyBatch>>,
}

impl Store {
    /// Random bytes come from the operating system.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        let random: Random = Arc::new(|bytes| getrandom::fill(bytes).map_err(|error| error.to_string()));
        let list_indexes = Arc::new(ListIndexCache::new(lists::indexed_lists::memory_budget()));
        Self {
            client,
            table: table.into(),
            clock,
            random,
            list_indexes,
            snapshots: None,
            smallest_snapshot: 0,
            read_pace: None,
            blobs: Arc::default(),
            leases: Arc::default(),
            ceilings: Arc::default(),
        }
    }

    /// For snapshots of list indexes.
    #[must_use]
    pub fn with_snapshots(self, snapshots: Option<Arc<dyn ObjectStore>>) -> Self {
        Self { snapshots, ..self }
    }

    /// Lists with less than about so many rows get no snapshot. Without this, each gets one.
    #[must_use]
    pub fn with_smallest_snapshot(self, rows: usize) -> Self {
        Self { smallest_snapshot: rows, ..self }
    }

    #[must_use]
    pub fn with_random(self, random: Random) -> Self {
        Self { random, ..self }
    }

    /// Gives it a separate cache for list indexes; 0 keeps none.
    #[must_use]
    pub fn with_list_index_bytes(self, budget: usize) -> Self {
        Self { list_indexes: Arc::new(ListIndexCache::new(budget)), ..self }
    }

    /// As [`Store::with_list_index_bytes`], for tests: indexes that have applied so few events of the last seconds count them, as
    /// others do after a burst.
    #[must_use]
    pub fn with_counted_events(self, events: usize) -> Self {
        let cache = ListIndexCache::new(self.list_indexes.budget()).with_many_events(events);
        Self { list_indexes: Arc::new(cache), ..self }
    }

    #[must_use]
    pub fn list_index_bytes(&self) -> usize {
        self.list_indexes.bytes()
    }

    /// The next list of each tenant loads its index again.
    pub fn forget_list_indexes(&self) {
        self.list_indexes.clear();
    }

    /// For callers that need no verification or have passed it, and for verifying them.
    #[must_use]
    pub fn tenant(&self, id: TenantId) -> TenantStore {
        TenantStore { store: self.clone(), keys: Keys::of(id), id, dry_run: None, key_batch: None }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Checks that the table responds, with one read of a missing item.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] or [`StoreError::Internal`] when the read fails.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.client.get_item().table_name(&self.table).set_key(Some(keys::health_check().item())).send().await?;
        Ok(())
    }

    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the system has no random source.
    pub fn random<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        (self.random)(&mut bytes).map_err(StoreError::broken)?;
        Ok(bytes)
    }
}

impl TenantStore {
    #[must_use]
    pub fn id(&self) -> TenantId {
        self.id
    }

    /// A dry run writes nothing.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.is_some()
    }

    /// The writes that a dry run has left out.
    pub(crate) fn dry_run(&self) -> Option<&DryRun> {
        self.dry_run.as_ref()
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The record is created at `at`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the system has no random source.
    pub fn new_id<I: crate::domain::values::id::Id>(&self, at: Timestamp) -> Result<I, StoreError> {
        Ok(I::new(at, self.store.random()?))
    }

    /// In ascending order: lists then show them in that order.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::new_id`].
    pub fn new_ids<I: crate::domain::values::id::Id + Ord>(&self, at: Timestamp, count: usize) -> Result<Vec<I>, StoreError> {
        let mut ids = (0..count).map(|_| self.new_id(at)).collect::<Result<Vec<I>, _>>()?;
        ids.sort_unstable();
        Ok(ids)
    }
}
