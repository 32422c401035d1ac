//! The DynamoDB table: one for all tenants, each tenant in a separate partition (docs/adr/0002).
//!
//! A tenant's data is read and written only through a [`TenantStore`], which builds keys of that tenant only.

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

/// The current time. Tests pass their own clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Fills a buffer with random bytes, or returns an error text. Simulations pass a seeded source, to be reproducible.
pub type Random = Arc<dyn Fn(&mut [u8]) -> Result<(), String> + Send + Sync>;

/// The table, accessed through one SDK client. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    client: Client,
    table: String,
    clock: Clock,
    random: Random,
    list_indexes: Arc<ListIndexCache>,
    snapshots: Option<Arc<dyn ObjectStore>>,
    /// Minimum number of rows for a list to get a snapshot.
    smallest_snapshot: usize,
    /// Set only in the snapshot writer, which pauses between reads.
    read_pace: Option<Arc<Mutex<Pace>>>,
    blobs: Arc<BlobCache>,
    leases: Arc<Leases>,
    ceilings: Arc<Ceilings>,
}

/// One tenant's part of the table. A handler gets it only if this function instance has verified the key, now or recently.
#[derive(Clone)]
pub struct TenantStore {
    store: Store,
    keys: Keys,
    id: TenantId,
    dry_run: Option<DryRun>,
    /// Set while the request's key is being checked.
    key_batch: Option<Arc<KeyBatch>>,
}

impl Store {
    /// Takes random bytes from the operating system.
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

    /// Where snapshots of list indexes are stored.
    #[must_use]
    pub fn with_snapshots(self, snapshots: Option<Arc<dyn ObjectStore>>) -> Self {
        Self { snapshots, ..self }
    }

    /// Lists with fewer rows, approximately, get no snapshot. By default, every list gets one.
    #[must_use]
    pub fn with_smallest_snapshot(self, rows: usize) -> Self {
        Self { smallest_snapshot: rows, ..self }
    }

    #[must_use]
    pub fn with_random(self, random: Random) -> Self {
        Self { random, ..self }
    }

    /// Gives the store its own cache for list indexes, of `budget` bytes. 0 disables the cache.
    #[must_use]
    pub fn with_list_index_bytes(self, budget: usize) -> Self {
        Self { list_indexes: Arc::new(ListIndexCache::new(budget)), ..self }
    }

    /// For tests: indexes count recent events from this number on, as they otherwise do only after a burst. Like
    /// [`Store::with_list_index_bytes`], creates a new cache.
    #[must_use]
    pub fn with_counted_events(self, events: usize) -> Self {
        let cache = ListIndexCache::new(self.list_indexes.budget()).with_many_events(events);
        Self { list_indexes: Arc::new(cache), ..self }
    }

    #[must_use]
    pub fn list_index_bytes(&self) -> usize {
        self.list_indexes.bytes()
    }

    /// Each tenant's next list then loads its index again.
    pub fn forget_list_indexes(&self) {
        self.list_indexes.clear();
    }

    /// For verified callers, callers that need no verification, and verification itself.
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
    /// Returns [`StoreError::Unavailable`] or [`StoreError::Internal`] if the read fails.
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

    /// Whether this is a dry run, which writes nothing.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.is_some()
    }

    /// The planned writes of a dry run.
    pub(crate) fn dry_run(&self) -> Option<&DryRun> {
        self.dry_run.as_ref()
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// An ID for a new record, created at `at`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the system has no random source.
    pub fn new_id<I: crate::domain::values::id::Id>(&self, at: Timestamp) -> Result<I, StoreError> {
        Ok(I::new(at, self.store.random()?))
    }

    /// IDs for new records, in ascending order, so that lists show the records in this order.
    ///
    /// # Errors
    ///
    /// Same as [`TenantStore::new_id`].
    pub fn new_ids<I: crate::domain::values::id::Id + Ord>(&self, at: Timestamp, count: usize) -> Result<Vec<I>, StoreError> {
        let mut ids = (0..count).map(|_| self.new_id(at)).collect::<Result<Vec<I>, _>>()?;
        ids.sort_unstable();
        Ok(ids)
    }
}
