//! The DynamoDB table: one for all tenants, each in a separate partition (docs/adr/0002).
//!
//! A tenant's data is read and written only through a [`Reader`], which builds keys for that tenant only.
//!
//! Also the client with its timeouts and retries (docs/adr/0003-client.md), and the time limits of the store: backoff between
//! attempts, retries of contradictory reads, the time a request has left for reads, and the maximum delays until a write is
//! visible, on which list indexes rely (docs/adr/0008). The errors of reads and writes are at the end.
//!
//! Requests that many handlers make are boxed, like loading an index: the SDK's futures take 5 to 7 KB, and would be part of the
//! futures of all callers, which are moved several times.

mod assets;
mod check;
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
    AssetBounds, AssetFilter, AssetSort, AssetTypeFilter, Assignee, InstanceFilter, ManufacturerFilter, ManufacturerName,
    ModelFilter, PlaceFilter, ProcessFilter, Range, SortField, Statuses, UserFilter, custom_column, literal, wanted_field,
};
pub use lists::indexed_lists::{Page, PageRequest};
pub use lists::list_index::{CodedCondition, MAX_SNAPSHOT_TIME, SnapshotReport};
pub use lists::stats::GroupBy;
pub use people::{Held, PartAbout};
pub use signing::KeyError;
pub use table::dry_run::DryRun;
pub use table::read::{BatchGet, BatchResult};
pub use table::stored_responses::PreviousRequest;
pub use table::unit_of_work::{ChangeContext, CommitFailure, MAX_TRANSACTION_ITEMS, UnitOfWork};
pub use tenants::registry::{NewTenant, RegisteredTenant};
pub use tenants::verify_tenant::TenantVerification;
pub use webhooks::deliveries::{MAX_LISTED_DELIVERIES, PendingDeliveries};

use crate::aws::object_store::ObjectStore;
use crate::domain::record::{Kind, Mismatch};
use crate::domain::values::id::{AssetId, TenantId};
use crate::domain::values::time::Timestamp;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use chrono::TimeDelta;
use keys::Keys;
use lists::list_index::{ListIndexCache, Pace};
use std::error::Error;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use table::blobs::BlobCache;
use tenants::leases::{Ceilings, Leases};
use tokio::time::Instant;
use uuid::Uuid;

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
    smallest_snapshot: usize,
    /// Pace of the reads. Set only in the snapshot writer, which must pause between reads.
    read_pace: Option<Arc<Mutex<Pace>>>,
    blobs: Arc<BlobCache>,
    leases: Arc<Leases>,
    ceilings: Arc<Ceilings>,
}

/// Reads one tenant's part of the table. A handler gets a `Reader` only if this function instance has verified the key, for this
/// request or recently. In a dry run, it also reads what the dry run would have written.
///
/// A `Reader` can't write:
///
/// ```compile_fail,E0308
/// use shared::store::{ChangeContext, Reader, UnitOfWork};
///
/// fn unit<'a>(store: &'a Reader, context: &'a ChangeContext) -> UnitOfWork<'a> {
///     UnitOfWork::new(store, context)
/// }
/// ```
///
/// The same with a [`Writer`]:
///
/// ```
/// use shared::store::{ChangeContext, UnitOfWork, Writer};
///
/// fn unit<'a>(store: &'a Writer, context: &'a ChangeContext) -> UnitOfWork<'a> {
///     UnitOfWork::new(store, context)
/// }
/// ```
#[derive(Clone)]
pub struct Reader {
    store: Store,
    keys: Keys,
    id: TenantId,
    dry_run: Option<DryRun>,
}

/// Reads and writes one tenant's part of the table. A handler gets a `Writer` only after the check of the key, from
/// `Caller::verified`.
#[derive(Clone)]
pub struct Writer(Reader);

impl Deref for Writer {
    type Target = Reader;
    fn deref(&self) -> &Reader {
        &self.0
    }
}

impl Writer {
    #[must_use]
    pub fn reads(&self) -> &Reader {
        &self.0
    }

    /// Returns a writer that only plans its writes.
    #[must_use]
    pub fn in_dry_run(self, dry_run: DryRun) -> Self {
        Self(self.0.in_dry_run(dry_run))
    }
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

    #[must_use]
    pub fn with_snapshots(self, snapshots: Option<Arc<dyn ObjectStore>>) -> Self {
        Self { snapshots, ..self }
    }

    /// Sets the approximate number of rows below which a list gets no snapshot. By default, every list gets a snapshot.
    #[must_use]
    pub fn with_smallest_snapshot(self, rows: usize) -> Self {
        Self { smallest_snapshot: rows, ..self }
    }

    #[must_use]
    pub fn with_random(self, random: Random) -> Self {
        Self { random, ..self }
    }

    /// Gives the store a separate cache for list indexes, of `budget` bytes. 0 disables the cache.
    #[must_use]
    pub fn with_list_index_bytes(self, budget: usize) -> Self {
        Self { list_indexes: Arc::new(ListIndexCache::new(budget)), ..self }
    }

    /// Replaces the number of applied events from which indexes count events instead of reading them. Only for tests. Like
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

    /// Drops all list indexes. Each tenant's next list then loads its index again.
    pub fn forget_list_indexes(&self) {
        self.list_indexes.clear();
    }

    /// Returns a tenant's part of the table, for reading. Must be called only for verified callers, for callers that need no
    /// verification, and for verification itself.
    #[must_use]
    pub fn reader(&self, id: TenantId) -> Reader {
        Reader { store: self.clone(), keys: Keys::of(id), id, dry_run: None }
    }

    /// Returns a tenant's part of the table, for writing. Only for callers that need no verification, such as the operator's
    /// command line: a handler gets its writer from `Caller::verified`.
    #[must_use]
    pub fn writer(&self, id: TenantId) -> Writer {
        Writer(self.reader(id))
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

    /// Returns random bytes.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the system has no random source.
    pub fn random<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        (self.random)(&mut bytes).map_err(StoreError::broken)?;
        Ok(bytes)
    }
}

impl Reader {
    #[must_use]
    pub fn id(&self) -> TenantId {
        self.id
    }

    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.is_some()
    }

    pub(crate) fn dry_run(&self) -> Option<&DryRun> {
        self.dry_run.as_ref()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// Returns random bytes.
    ///
    /// # Errors
    ///
    /// Same as [`Store::random`].
    pub fn random<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        self.store.random()
    }

    /// Returns an ID for a new record, created at `at`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when the system has no random source.
    pub fn new_id<I: crate::domain::values::id::Id>(&self, at: Timestamp) -> Result<I, StoreError> {
        Ok(I::new(at, self.store.random()?))
    }

    /// Returns IDs for new records, in ascending order, so that lists show the records in this order.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::new_id`].
    pub fn new_ids<I: crate::domain::values::id::Id + Ord>(&self, at: Timestamp, count: usize) -> Result<Vec<I>, StoreError> {
        let mut ids = (0..count).map(|_| self.new_id(at)).collect::<Result<Vec<I>, _>>()?;
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Maximum number of SDK attempts for a call that is throttled, times out or gets a server error.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum backoff before the second attempt, doubled before the third, with jitter. The SDK's default of a second suits services
/// that take seconds to respond.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for an operation with all its attempts. The same limit applies to a whole unit of work, including its retries after
/// conflicts. Lists rely on this limit (docs/adr/0008-list-index.md).
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the timeouts and retries of every DynamoDB client.
#[must_use]
pub fn configure_client(config: aws_sdk_dynamodb::config::Builder) -> aws_sdk_dynamodb::config::Builder {
    let retries = RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(INITIAL_BACKOFF);
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).operation_timeout(OPERATION_TIMEOUT);
    config.retry_config(retries).timeout_config(timeouts.build())
}

/// Default number of attempts at an operation that can conflict with others.
const MAX_ROUNDS: u32 = 6;
/// Maximum of the first backoff. The maximum doubles with each attempt.
const FIRST_PAUSE_MILLIS: u64 = 10;
/// Number of times that the maximum backoff doubles: up to 640 ms.
const MAX_DOUBLINGS: u32 = 6;

impl Store {
    /// Adds up to 100% jitter to `least`, so that requests that failed together don't retry together.
    #[must_use]
    pub fn jittered(&self, least: Duration) -> Duration {
        // If there are no random bytes, there is no jitter.
        let random = u16::from_le_bytes(self.random().unwrap_or_default());
        least + least * u32::from(random) / u32::from(u16::MAX)
    }
}

/// Waits a random time before a retry, to separate competing writers: up to 10 ms after round 0, 20 ms after round 1, and so on
/// up to 640 ms.
pub(crate) async fn pause(store: &Store, round: u32) {
    let longest = FIRST_PAUSE_MILLIS << round.min(MAX_DOUBLINGS);
    // If there are no random bytes, all competing writers wait equally long.
    let bytes = store.random().unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(1 + u64::from(u16::from_le_bytes(bytes)) % longest)).await;
}

/// Retries reads that contradict each other, up to a time limit.
#[derive(Debug, Default)]
struct TornReadRetry {
    began_at: Option<Instant>,
    round: u32,
}

impl TornReadRetry {
    /// Waits a random time before the next read. Returns `false` immediately if the contradiction has lasted longer than a
    /// transaction can explain.
    async fn pause(&mut self, store: &Store) -> bool {
        let began_at = *self.began_at.get_or_insert_with(Instant::now);
        if began_at.elapsed() >= MAX_TIME_TO_COMMIT {
            return false;
        }
        pause(store, self.round).await;
        self.round += 1;
        true
    }
}

/// Time that long reads must leave for the rest of the request.
const TIME_TO_RESPOND: Duration = Duration::from_secs(1);
/// Time limit for the reads of a request without a deadline.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Runs a request whose long reads end before `deadline`.
pub async fn with_deadline<F: Future>(deadline: Instant, request: F) -> F::Output {
    DEADLINE.scope(deadline, request).await
}

/// Whether the request has time for another operation, which can take up to [`OPERATION_TIMEOUT`].
#[must_use]
pub fn has_time_for_operation() -> bool {
    DEADLINE.try_with(|deadline| *deadline > Instant::now() + OPERATION_TIMEOUT).unwrap_or(true)
}

fn time_to_read() -> Duration {
    let left = |deadline: &Instant| deadline.saturating_duration_since(Instant::now()).saturating_sub(TIME_TO_RESPOND);
    DEADLINE.try_with(left).unwrap_or(DEFAULT_TIME)
}

/// Maximum difference between the clocks of two function instances.
const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(2);
/// After this time, an event is usually in the table. Refreshes of a list index expect few older new events.
const USUAL_EVENT_DELAY: TimeDelta = TimeDelta::seconds(1);
/// Maximum time until a write takes effect after its writer has given up waiting.
const MAX_TIME_IN_FLIGHT: TimeDelta = TimeDelta::seconds(3);
/// Maximum time during which a transaction is only partly visible. DynamoDB writes the items of a decided transaction within
/// milliseconds, or within a few seconds if the coordinating host fails in between. Even a list that waits this long, reloads the
/// index and waits again finishes before a function times out (15 s).
const MAX_TIME_TO_COMMIT: Duration = Duration::from_secs(3);
/// Maximum time from the arrival of a request, which is the time of its events, to the time in the events' IDs. No function that
/// serves requests runs longer.
const MAX_REQUEST: TimeDelta = TimeDelta::seconds(30);
/// Maximum lag of a secondary index behind the table.
const SECONDARY_INDEX_LAG: TimeDelta = TimeDelta::seconds(60);

/// Maximum lag of a secondary index from which a snapshot is written. Longer than [`SECONDARY_INDEX_LAG`], because a row missing
/// from a snapshot would be missing for everyone and for a day, and because the snapshot writer can wait.
const SECONDARY_INDEX_LAG_OF_SNAPSHOTS: TimeDelta = TimeDelta::hours(1);

/// Maximum age of a partial load. After that, reading the events since the start of the load costs as much as loading again.
const MAX_LOAD_AGE: TimeDelta = TimeDelta::minutes(10);

/// Returns the maximum time from an event's ID to its write, by the clock of another function instance.
#[must_use]
pub fn max_event_delay() -> TimeDelta {
    TimeDelta::from_std(OPERATION_TIMEOUT).unwrap_or(TimeDelta::MAX) + CLOCK_SKEW + MAX_TIME_IN_FLIGHT
}

/// Returns the maximum time from an event's ID to its appearance in a secondary index.
fn max_secondary_index_delay() -> TimeDelta {
    SECONDARY_INDEX_LAG + max_event_delay()
}

/// Like [`max_secondary_index_delay`], for a secondary index from which a snapshot is written.
fn max_secondary_index_delay_of_snapshots() -> TimeDelta {
    SECONDARY_INDEX_LAG_OF_SNAPSHOTS + max_event_delay()
}

type Cause = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB still throttled, timed out or had conflicts after all retries. A later attempt may succeed.
    #[error("DynamoDB is unavailable")]
    Unavailable(#[source] Cause),
    /// A retry doesn't help: a permission is missing, an item is invalid, or the service has a bug.
    #[error("DynamoDB rejected the request, or the data is invalid")]
    Internal(#[source] Cause),
    /// A record is damaged, or was written by an unknown version of the service.
    #[error(transparent)]
    Unreadable(#[from] UnreadableRecord),
    /// The unit of work took too long to decide, so it isn't committed.
    #[error("the deadline of the unit of work has passed")]
    TooLate,
    #[error("a change is not fully visible yet: {0}")]
    Unsettled(&'static str),
    /// A list index is still loading. Contains the number of seconds after which a request probably has enough time to load the
    /// rest.
    #[error("a list index is still loading")]
    NotLoaded(u64),
    /// A list index exceeds its memory budget. Contains the number of seconds until it is loaded again.
    #[error("a list index exceeds the memory budget")]
    ListTooLarge(u64),
    #[error("custom fields exceed the memory budget of the list index")]
    FieldsLeftOut,
    /// Lists can't use the custom field that the parameter names, because of its value in this asset.
    #[error("lists can't filter or sort by the custom field in {parameter}, because of its value in some asset")]
    UnfitField { parameter: String, asset: Option<AssetId> },
    /// The index of a history lacks entries. Contains the number of seconds after which the index may have them.
    #[error("the latest entries of a history can't be read yet; try again")]
    HistoryBehind(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {} {} can't be read", .kind.as_str(), .id.map(|id| id.to_string()).unwrap_or_default())]
pub struct UnreadableRecord {
    pub kind: Kind,
    pub id: Option<Uuid>,
    /// Can quote the record's data, so only the operator may see the cause.
    pub cause: String,
}

/// The cause of a [`StoreError::Unavailable`] error due to throttling.
#[derive(Debug, thiserror::Error)]
#[error("DynamoDB throttles")]
struct Throttling(#[source] Cause);

impl StoreError {
    /// Builds the error for data in an impossible state.
    pub fn broken(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// Turns an unreadable record into `None`.
    ///
    /// # Errors
    ///
    /// Returns every other error.
    pub fn tolerate_unreadable<T>(read: Result<Option<T>, Self>) -> Result<Option<T>, Self> {
        match read {
            Err(Self::Unreadable(_)) => Ok(None),
            read => read,
        }
    }

    /// Returns the ID of an unreadable record, which is `None` if the record's key has no ID, or any other error.
    fn unreadable_id(self) -> Result<Option<Uuid>, Self> {
        match self {
            Self::Unreadable(record) => Ok(record.id),
            other => Err(other),
        }
    }

    fn is_throttling(&self) -> bool {
        matches!(self, Self::Unavailable(cause) if cause.is::<Throttling>())
    }
}

const THROTTLING_CODES: [&str; 5] = [
    "ThrottlingException",
    "ThrottlingError",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
];

/// Retryable error codes besides throttling and HTTP 5xx. Source: "Error handling with DynamoDB" in the AWS guide.
const RETRYABLE_CODES: [&str; 3] = ["InternalServerError", "TransactionInProgressException", "TransactionConflictException"];

fn is_retryable(code: &str) -> bool {
    RETRYABLE_CODES.contains(&code) || THROTTLING_CODES.contains(&code)
}

/// Returns the output of a write, or `None` if its condition failed.
fn unless_condition_failed<T, E>(written: Result<T, SdkError<E>>) -> Result<Option<T>, StoreError>
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    match written {
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(None),
        written => Ok(Some(written?)),
    }
}

impl<E> From<SdkError<E>> for StoreError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        let retryable = match &error {
            SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
            SdkError::ServiceError(response) => {
                response.raw().status().is_server_error() || response.err().code().is_some_and(is_retryable)
            }
            _ => false,
        };
        let is_throttling = error.code().is_some_and(|code| THROTTLING_CODES.contains(&code));
        if is_throttling {
            return Self::Unavailable(Throttling(error.into()).into());
        }
        if retryable { Self::Unavailable(error.into()) } else { Self::Internal(error.into()) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The record was changed or deleted after it was read: read it again and decide again.
    #[error("the record has changed since it was read")]
    Stale,
    /// Another record has the same value in this field. Contains that record, if it still exists.
    #[error("another record has the same {0}")]
    Duplicate(&'static str, Option<(Kind, Uuid)>),
    /// The record that this field refers to no longer exists or can't be referenced: read it again and decide again.
    #[error("the record that {0} refers to does not exist or can't be referenced")]
    MissingReference(&'static str),
    #[error("a response is already stored under the idempotency key")]
    AlreadyAnswered,
    #[error("the same request is in progress")]
    InProgress,
    #[error("the response is too long to be stored")]
    ResponseTooLong,
    /// The record is not as the request expects.
    #[error("the precondition failed")]
    PreconditionFailed(Mismatch),
    /// Contains the number of other records that refer to this record.
    #[error("the record is referenced by {0} others")]
    InUse(u64),
    #[error("the changes don't fit into one transaction")]
    TooLarge,
    #[error(transparent)]
    Store(#[from] StoreError),
}
