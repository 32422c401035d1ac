//! Writes the snapshots of all tenants, on a schedule (docs/adr/0013).

use super::refresh::{CacheSlot, LoadedIndex, RefreshError, SharedSlot};
use super::snapshots::format::{SnapshotSource, encode_snapshot};
use super::snapshots::load::Pace;
use super::{AssetIndex, InstanceColumns, ListIndex, MovementColumns, SortedRows, UserColumns};
use crate::aws::object_store::{ObjectStore, ObjectStoreError};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::log::error_chain;
use crate::store::keys::{self, BUCKETS, Key, Keys, SK, Section};
use crate::store::table::error::StoreError;
use crate::store::table::times::{CLOCK_SKEW, max_event_delay};
use crate::store::{Store, TenantStore};
use aws_sdk_dynamodb::types::Select;
use chrono::TimeDelta;
use futures_util::future::{join_all, try_join_all};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KINDS: [Kind; 4] = [Kind::Asset, Kind::User, Kind::Instance, Kind::Movement];
/// A snapshot with more events since its position is rewritten. An event is about 1 KB, so a cold list reads at most about 65
/// units of events from before the writer's last run.
const MAX_EVENTS: i32 = 250;
/// Age at which an index is loaded from the secondary index again, instead of following events. This limits how long an
/// undetected error lasts. Objects are rewritten long before they expire.
const REWRITTEN_AFTER: TimeDelta = TimeDelta::hours(24);
/// The reloads of different tenants are spread over this part of [`REWRITTEN_AFTER`].
const AGE_SPREAD: TimeDelta = TimeDelta::hours(6);
/// A list's size is estimated from one in this many of its buckets, because records are spread over buckets randomly.
const COUNTED_PART: usize = 16;
/// Time limit for one snapshot. The writer's caller must allow this much time after the start of the last one.
pub const MAX_SNAPSHOT_TIME: Duration = Duration::from_secs(400);
/// Number of tenants examined concurrently. Indexes are written one by one, so that only one is in memory.
const PARALLEL_TENANTS: usize = 8;

/// The result of a run of the writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Snapshots with few events since, and lists too small for a snapshot.
    pub current: usize,
    pub written: usize,
    pub failed: usize,
    /// Tenants left for lack of time. The next run starts with them.
    pub postponed: usize,
}

#[derive(Debug, thiserror::Error)]
enum SnapshotWriteError {
    #[error("the table can't be read")]
    Store(#[from] StoreError),
    #[error("the snapshot can't be stored")]
    Objects(#[from] ObjectStoreError),
    #[error("the list index would exceed the memory budget")]
    TooLarge,
    #[error("the secondary index contradicts the events")]
    Inconsistent,
    #[error("it takes too long")]
    TooSlow,
}

impl From<RefreshError> for SnapshotWriteError {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Store(error) => Self::Store(error),
            RefreshError::TooLarge => Self::TooLarge,
            RefreshError::Inconsistent | RefreshError::TooManyEvents => Self::Inconsistent,
        }
    }
}

impl Store {
    /// Writes missing and outdated snapshots. Starts none after `until`; the next run continues with the remaining tenants.
    /// Failures are logged and counted.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the tenants can't be read.
    pub async fn write_snapshots(&self, until: Timestamp) -> Result<SnapshotReport, StoreError> {
        let mut report = SnapshotReport::default();
        let Some(objects) = &self.snapshots else { return Ok(report) };
        let mut tenants = self.tenant_ids().await?;
        tenants.sort_unstable();
        let last = self.last_tenant(&**objects).await;
        let first = tenants.partition_point(|tenant| last.is_some_and(|last| *tenant <= last));
        tenants.rotate_left(first);
        let mut done = 0;
        for chunk in tenants.chunks(PARALLEL_TENANTS) {
            if self.now() >= until {
                break;
            }
            let examined = join_all(chunk.iter().map(async |tenant| self.tenant(*tenant).due_snapshots().await)).await;
            // If writing them kills this function, the next run must not start with the same tenants.
            let has_due = examined.iter().flatten().any(|(_, is_due)| matches!(is_due, Ok(true)));
            if let (true, Some(last)) = (has_due, chunk.last()) {
                self.store_last_tenant(&**objects, *last).await;
            }
            for (tenant, due) in chunk.iter().zip(examined) {
                if !self.tenant(*tenant).write_due(due, &**objects, until, &mut report).await {
                    break;
                }
                done += 1;
            }
        }
        report.postponed = tenants.len() - done;
        if let Some(last) = done.checked_sub(1).and_then(|last| tenants.get(last)) {
            self.store_last_tenant(&**objects, *last).await;
        }
        Ok(report)
    }

    /// Stores the tenant after which the next run starts.
    async fn store_last_tenant(&self, objects: &dyn ObjectStore, tenant: TenantId) {
        if let Err(error) = objects.put(&self.last_tenant_key(), tenant.short().into_bytes()).await {
            tracing::error!(cause = error_chain(&error), "the writer's position can't be stored");
        }
    }

    fn last_tenant_key(&self) -> String {
        format!("list-index/{}/last-tenant", self.table)
    }

    /// The tenant that the last run ended with.
    async fn last_tenant(&self, objects: &dyn ObjectStore) -> Option<TenantId> {
        let bytes = objects.get(&self.last_tenant_key(), 64).await.ok()??;
        TenantId::from_short(std::str::from_utf8(&bytes).ok()?)
    }
}

impl TenantStore {
    #[must_use]
    pub fn snapshot_keys(&self) -> Vec<String> {
        let source = |kind| SnapshotSource { table: &self.store.table, tenant: self.id, kind };
        KINDS.iter().map(|kind| source(*kind).key()).collect()
    }

    /// Whether the snapshot of each kind must be written.
    async fn due_snapshots(&self) -> Vec<(Kind, Result<bool, SnapshotWriteError>)> {
        let now = self.store.now();
        let due = join_all(KINDS.map(async |kind| {
            let is_due = match kind {
                Kind::Asset => self.is_due::<AssetIndex>(now).await,
                Kind::User => self.is_due::<SortedRows<UserColumns>>(now).await,
                Kind::Instance => self.is_due::<SortedRows<InstanceColumns>>(now).await,
                _ => self.is_due::<SortedRows<MovementColumns>>(now).await,
            };
            (kind, is_due)
        }));
        due.await
    }

    /// Writes due snapshots one by one. Returns whether there was time for all. A snapshot whose state can't be read is not
    /// written, to avoid loading the index from the table without need.
    async fn write_due(
        &self,
        examined: Vec<(Kind, Result<bool, SnapshotWriteError>)>,
        objects: &dyn ObjectStore,
        until: Timestamp,
        report: &mut SnapshotReport,
    ) -> bool {
        for (kind, is_due) in examined {
            let written = match is_due {
                Ok(false) => {
                    report.current += 1;
                    continue;
                }
                Ok(true) if self.store.now() >= until => return false,
                Ok(true) => {
                    let written = tokio::time::timeout(MAX_SNAPSHOT_TIME, self.paced().write_snapshot_of(kind, objects)).await;
                    written.unwrap_or(Err(SnapshotWriteError::TooSlow))
                }
                Err(error) => Err(error),
            };
            match written {
                Ok(()) => report.written += 1,
                Err(error) => {
                    let cause = error_chain(&error);
                    tracing::error!(tenant_id = %self.id, kind = kind.noun(), cause, "a snapshot can't be written");
                    report.failed += 1;
                }
            }
        }
        true
    }

    /// A store that pauses between reads.
    fn paced(&self) -> Self {
        let store = Store { read_pace: Some(Arc::new(Mutex::new(Pace::begin()))), ..self.store.clone() };
        Self { store, ..self.clone() }
    }

    async fn write_snapshot_of(&self, kind: Kind, objects: &dyn ObjectStore) -> Result<(), SnapshotWriteError> {
        match kind {
            Kind::Asset => self.write_snapshot::<AssetIndex>(objects).await,
            Kind::User => self.write_snapshot::<SortedRows<UserColumns>>(objects).await,
            Kind::Instance => self.write_snapshot::<SortedRows<InstanceColumns>>(objects).await,
            _ => self.write_snapshot::<SortedRows<MovementColumns>>(objects).await,
        }
    }

    /// Whether the snapshot of an index is old, many events behind, or missing although the list is large.
    async fn is_due<I: ListIndex>(&self, now: Timestamp) -> Result<bool, SnapshotWriteError> {
        match self.snapshot_header::<I>().await? {
            Some(header) if !self.is_old(header.loaded_at, now) => Ok(self.has_many_events(header.synced_at).await?),
            // Even if the list has become small, because lists still read the snapshot.
            Some(_) => Ok(true),
            None => Ok(self.has_many_rows::<I>().await?),
        }
    }

    /// Whether the index must be loaded from the secondary index again.
    fn is_old(&self, loaded_at: Timestamp, now: Timestamp) -> bool {
        let turn = AGE_SPREAD * i32::from(self.id.uuid().as_bytes()[15]) / i32::from(u8::MAX);
        loaded_at.plus(REWRITTEN_AFTER - turn) <= now
    }

    /// Whether a list would have to read more than [`MAX_EVENTS`] events after this position.
    async fn has_many_events(&self, synced_at: Timestamp) -> Result<bool, StoreError> {
        let (from, to) = Keys::events_since(synced_at.plus(-max_event_delay()));
        let query = self.events_query(from, to).consistent_read(false).select(Select::Count).limit(MAX_EVENTS);
        Ok(query.send().await?.last_evaluated_key.is_some())
    }

    /// Whether the list has about [`Store::with_smallest_snapshot`] rows or more.
    async fn has_many_rows<I: ListIndex>(&self) -> Result<bool, StoreError> {
        let enough = i32::try_from(self.store.smallest_snapshot / COUNTED_PART).unwrap_or(i32::MAX);
        if enough == 0 {
            return Ok(true);
        }
        let counts = try_join_all(I::SECTIONS.iter().copied().map(|section| self.count_part(section, enough))).await?;
        Ok(counts.iter().sum::<i32>() >= enough)
    }

    /// The number of rows in a part of a section, at most `limit`.
    async fn count_part(&self, section: Section, limit: i32) -> Result<i32, StoreError> {
        let query = self.store.client.query().table_name(&self.store.table).index_name(keys::LIST_INDEX);
        let query = query
            .key_condition_expression("#pk = :pk AND #ls BETWEEN :from AND :to")
            .expression_attribute_names("#pk", keys::PK)
            .expression_attribute_names("#ls", keys::LS)
            .expression_attribute_values(":pk", self.keys.partition())
            .expression_attribute_values(":from", section.bucket(0))
            .expression_attribute_values(":to", section.bucket(BUCKETS / COUNTED_PART - 1))
            .select(Select::Count)
            .limit(limit);
        Ok(query.send().await?.count)
    }

    async fn write_snapshot<I: ListIndex>(&self, objects: &dyn ObjectStore) -> Result<(), SnapshotWriteError> {
        let now = self.store.now();
        let loaded_from = now.plus(-CLOCK_SKEW);
        let (loaded_at, loaded) = match self.follow_snapshot::<I>(now).await? {
            Some(followed) => followed,
            None => (now, self.load_unkept::<I>().await?),
        };
        let latest_event = self.latest_event().await?;
        let source = self.snapshot_source::<I>();
        let bytes = encode_snapshot(source, &loaded, loaded_at, latest_event);
        let (rows, kind) = (loaded.index.len(), I::Entity::KIND.noun());
        drop(loaded);
        tracing::debug!(tenant_id = %self.id, kind, rows, bytes = bytes.len(), "a snapshot is written");
        objects.put(&source.key(), bytes).await?;
        // A concurrent erasure may have deleted snapshots before this one was stored.
        if self.erasures().await?.iter().any(|erasure| !erasure.is_done || erasure.began_at >= loaded_from) {
            objects.delete(&source.key()).await?;
        }
        Ok(())
    }

    /// Loads an index outside of the cache. No list waits for it, so loading can take any time.
    async fn load_unkept<I: ListIndex>(&self) -> Result<LoadedIndex<I>, RefreshError> {
        let (mut slot, shared) = (CacheSlot::Empty, SharedSlot::default());
        loop {
            match (self.load_index(&mut slot, &shared).await, slot) {
                (Ok(()), CacheSlot::Loaded(mut loaded)) => return self.catch_up(&mut loaded).await.map(|()| loaded),
                (Err(RefreshError::Store(StoreError::NotLoaded(_))), partial) => slot = partial,
                (outcome, _) => return Err(outcome.err().unwrap_or(RefreshError::Inconsistent)),
            }
        }
    }

    /// The current snapshot's index with the events since then, and when it was loaded from the secondary index. `None` if it
    /// must be loaded again.
    async fn follow_snapshot<I: ListIndex>(
        &self,
        now: Timestamp,
    ) -> Result<Option<(Timestamp, LoadedIndex<I>)>, SnapshotWriteError> {
        match self.load_snapshot::<I>(now, |_| {}).await? {
            Some((header, mut loaded)) if !self.is_old(header.loaded_at, now) => {
                let followed = match self.follow_old_events(&mut loaded, now).await {
                    Ok(()) => self.refresh(&mut loaded, now).await,
                    failed => failed,
                };
                match followed {
                    Ok(()) => Ok(Some((header.loaded_at, loaded))),
                    Err(RefreshError::Store(error)) => Err(error.into()),
                    Err(_) => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    async fn latest_event(&self) -> Result<EventId, StoreError> {
        let (from, to) = Keys::events_since(Timestamp::from_millis(0));
        let query = self.events_query(from, to).scan_index_forward(false).limit(1);
        let query = query.projection_expression("#pk, #sk").expression_attribute_names("#sk", SK);
        let item = query.send().await?.items.and_then(|items| items.into_iter().next());
        let id = item.as_ref().and_then(Key::of).as_ref().and_then(keys::event_id);
        id.ok_or_else(|| StoreError::broken("a tenant without events"))
    }
}
