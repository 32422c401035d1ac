//! Writes the snapshots of all tenants, on a schedule (docs/adr/0013).
//!
//! A load applies the events of the last minute, because the secondary index can lag that far. If the secondary index ever lags
//! further, a function instance's list index is wrong for an hour, but a snapshot is wrong for all instances and for a day. So
//! the writer first compares a list index with the events of the last hour. The writer reads page by page, at a pace that leaves
//! most of the partition's capacity to the API.

use super::snapshots::{MAX_HEADER_BYTES, SnapshotHeader, SnapshotSource, decode_header, encode_snapshot};
use super::{
    AssetIndex, CacheSlot, ChangeEvent, InstanceColumns, ListIndex, LoadedIndex, MovementColumns, RefreshError, SharedSlot,
    SortedRows, UserColumns, apply_events,
};
use crate::aws::object_store::{ObjectStore, ObjectStoreError};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::time::Timestamp;
use crate::log::error_chain;
use crate::store::keys::{self, BUCKETS, ENTRY, Item, Key, Keys, SK, Section};
use crate::store::{
    CLOCK_SKEW, Reader, SECONDARY_INDEX_LAG, Store, StoreError, max_event_delay, max_secondary_index_delay_of_snapshots,
};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Select};
use chrono::TimeDelta;
use futures_util::future::{join_all, try_join_all};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

const KINDS: [Kind; 4] = [Kind::Asset, Kind::User, Kind::Instance, Kind::Movement];
/// A snapshot is rewritten if there are more events since its position. An event is about 1 KB, so a cold list reads at most
/// about 65 units of events from before the writer's last run.
const MAX_EVENTS: i32 = 250;
/// Age at which an index is loaded from the secondary index again, instead of following events, which limits how long an
/// undetected error lasts. Objects are rewritten long before they expire.
const REWRITTEN_AFTER: TimeDelta = TimeDelta::hours(24);
/// The reloads of different tenants are spread over this part of [`REWRITTEN_AFTER`].
const AGE_SPREAD: TimeDelta = TimeDelta::hours(6);
/// A list's size is estimated from one bucket in this many, because records are spread over buckets randomly.
const COUNTED_PART: usize = 16;
/// A snapshot that takes longer is not written. The writer's caller must allow this much time after the start of the last
/// snapshot.
pub const MAX_SNAPSHOT_TIME: Duration = Duration::from_secs(400);
/// Number of tenants examined concurrently. Indexes are written one at a time, so that only one is in memory.
const PARALLEL_TENANTS: usize = 8;
const RECORDS_PER_READ: usize = 100;
/// Read units per second: a third of the 3,000 that a partition has.
const UNITS_PER_SECOND: f64 = 1_000.0;

/// The latest version of each record according to events; `None` for deleted records.
type LatestVersions = HashMap<(Kind, Uuid), Option<u64>>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Snapshots followed by only a few events, and lists too small for a snapshot.
    pub current: usize,
    pub written: usize,
    pub failed: usize,
    /// Tenants for which no time was left. The next run starts with these tenants.
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
    /// Writes missing and outdated snapshots. Starts no snapshot after `until`; the next run continues with the remaining
    /// tenants. Failures are logged and counted.
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
            let examined = join_all(chunk.iter().map(async |tenant| self.reader(*tenant).due_snapshots().await)).await;
            // If writing the due snapshots kills this function, the next run must not start with the same tenants.
            let has_due = examined.iter().flatten().any(|(_, is_due)| matches!(is_due, Ok(true)));
            if let (true, Some(last)) = (has_due, chunk.last()) {
                self.store_last_tenant(&**objects, *last).await;
            }
            for (tenant, due) in chunk.iter().zip(examined) {
                if !self.reader(*tenant).write_due(due, &**objects, until, &mut report).await {
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

    async fn last_tenant(&self, objects: &dyn ObjectStore) -> Option<TenantId> {
        let bytes = objects.get(&self.last_tenant_key(), 64).await.ok()??;
        TenantId::from_short(std::str::from_utf8(&bytes).ok()?)
    }
}

impl Reader {
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

    /// Writes due snapshots, one at a time. Returns whether there was time for all due snapshots. A snapshot whose state can't be
    /// read is not written, to avoid loading the index from the table without need.
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
                    tracing::error!(tenant_id = %self.id, kind = kind.as_str(), cause, "a snapshot can't be written");
                    report.failed += 1;
                }
            }
        }
        true
    }

    /// Returns a store that pauses between reads.
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
            // Write the snapshot even if the list has become small, because lists still read it.
            Some(_) => Ok(true),
            None => Ok(self.has_many_rows::<I>().await?),
        }
    }

    /// Reads the header of a snapshot; `None` if there is no usable snapshot.
    async fn snapshot_header<I: ListIndex>(&self) -> Result<Option<SnapshotHeader>, ObjectStoreError> {
        let Some(objects) = self.store.snapshots.as_ref() else { return Ok(None) };
        let source = self.snapshot_source::<I>();
        let Some(bytes) = objects.get(&source.key(), MAX_HEADER_BYTES).await? else { return Ok(None) };
        Ok(decode_header(source, &bytes).map(|(header, _)| header).inspect_err(|error| self.log_ignored::<I>(*error)).ok())
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

    /// Counts the rows in a part of a section, at most `limit`.
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
        let (rows, kind) = (loaded.index.len(), I::Entity::KIND.as_str());
        drop(loaded);
        tracing::debug!(tenant_id = %self.id, kind, rows, bytes = bytes.len(), "a snapshot is written");
        objects.put(&source.key(), bytes).await?;
        // A concurrent erasure may have deleted snapshots before this snapshot was stored.
        if self.erasures().await?.iter().any(|erasure| !erasure.is_done || erasure.began_at >= loaded_from) {
            objects.delete(&source.key()).await?;
        }
        Ok(())
    }

    /// Loads an index outside the cache. No list waits for the index, so loading can take any amount of time.
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

    /// Compares the index with the events of the last hour: reads the records that are missing from the index or outdated in it,
    /// and removes deleted records from the index.
    async fn catch_up<I: ListIndex>(&self, loaded: &mut LoadedIndex<I>) -> Result<(), RefreshError> {
        let mut behind = Vec::new();
        for ((kind, id), latest) in self.latest_versions::<I>(loaded).await? {
            match latest {
                None => loaded.index.remove(kind, id),
                Some(latest) if loaded.index.version(kind, id).unwrap_or(0) < latest => behind.push((kind, id)),
                Some(_) => {}
            }
        }
        if !behind.is_empty() {
            let (kind, records) = (<I::Entity as Record>::KIND.as_str(), behind.len());
            tracing::warn!(tenant_id = %self.id, kind, records, "the secondary index lags far behind");
        }
        for records in behind.chunks(RECORDS_PER_READ) {
            let keys: Vec<_> = records.iter().map(|(kind, id)| self.keys.record(*kind, *id)).collect();
            let items = self.items(&keys).await?;
            for ((kind, id), key) in records.iter().zip(&keys) {
                match items.get(key) {
                    Some(item) => loaded.index.load_item(*kind, item)?,
                    None => loaded.index.remove(*kind, *id),
                }
            }
        }
        Ok(())
    }

    /// Reads the events that the secondary index may lack, page by page.
    async fn latest_versions<I: ListIndex>(&self, loaded: &LoadedIndex<I>) -> Result<LatestVersions, RefreshError> {
        let (from, to) = Keys::events_since(loaded.loaded_at.plus(-max_secondary_index_delay_of_snapshots()));
        let query = self.old_entries(from, to);
        let mut latest = LatestVersions::new();
        let mut start_key = None::<Item>;
        loop {
            let page = self.page(query.clone().set_exclusive_start_key(start_key)).await?;
            for event in events_of::<I>(page.items)? {
                let version = latest.entry(event.record()).or_insert(Some(0));
                *version = version.filter(|_| !I::is_removed_by(&event)).map(|version| version.max(event.version));
            }
            start_key = page.last_evaluated_key;
            if start_key.is_none() {
                return Ok(latest);
            }
        }
    }

    /// Queries the entries of old events. Reads are eventually consistent, at half the cost, because no replica of a partition
    /// lags by a minute. Loads and refreshes read the last minute consistently.
    fn old_entries(&self, from: AttributeValue, to: AttributeValue) -> QueryFluentBuilder {
        let query = self.events_query(from, to).consistent_read(false);
        query.projection_expression("#entry").expression_attribute_names("#entry", ENTRY)
    }

    /// Applies the events up to a minute before `now`, which is always cheaper for the writer than a load.
    async fn follow_old_events<I: ListIndex>(&self, loaded: &mut LoadedIndex<I>, now: Timestamp) -> Result<(), RefreshError> {
        let (since, end) = (loaded.synced_at.plus(-max_event_delay()), now.plus(-SECONDARY_INDEX_LAG));
        if loaded.synced_at >= end {
            return Ok(());
        }
        let (from, to) = (Keys::events_since(since.plus(-CLOCK_SKEW)).0, Keys::events_since(end).0);
        let query = self.old_entries(from, to);
        let (mut left, mut removed) = (Vec::<ChangeEvent>::new(), HashSet::new());
        let mut start_key = None::<Item>;
        loop {
            let page = self.page(query.clone().set_exclusive_start_key(start_key)).await?;
            let events = left.into_iter().chain(events_of::<I>(page.items)?).collect();
            left = apply_page(&mut loaded.index, events, since, &mut removed)?;
            start_key = page.last_evaluated_key;
            if start_key.is_none() {
                // Events whose predecessor is still missing are recent, and will be read again.
                loaded.synced_at = end;
                return Ok(());
            }
        }
    }

    /// Applies the events since the current snapshot to its index. Returns the index, and the time at which it was loaded from
    /// the secondary index; `None` if the index must be loaded again.
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

/// Parses the events in a page, and keeps events about kinds that the index follows.
fn events_of<I: ListIndex>(items: Option<Vec<Item>>) -> Result<Vec<ChangeEvent>, RefreshError> {
    let mut events = Vec::new();
    for item in items.unwrap_or_default() {
        let entry = item.get(ENTRY).and_then(|entry| entry.as_s().ok()).ok_or(RefreshError::Inconsistent)?;
        events.extend(ChangeEvent::parse(entry)?.ok().filter(|event| I::follows(event.kind)));
    }
    Ok(events)
}

/// Applies a page of events. Returns the events of records whose earlier event may be on the next page. `removed` contains
/// removed records: because clocks differ, more of their events can follow.
fn apply_page<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
    removed: &mut HashSet<(Kind, Uuid)>,
) -> Result<Vec<ChangeEvent>, RefreshError> {
    let incomplete: HashSet<_> = apply_events(index, events.clone(), since, removed)?.into_iter().collect();
    Ok(events.into_iter().filter(|event| incomplete.contains(&event.record())).collect())
}

/// Measures the reads of one snapshot, to limit their rate.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    began_at: Instant,
    units: f64,
}

impl Pace {
    pub fn begin() -> Self {
        Self { began_at: Instant::now(), units: 0.0 }
    }

    /// Counts a read, and returns the time until the next read.
    pub fn pause_after(&mut self, units: f64) -> Duration {
        self.units += units;
        pause(self.units, self.began_at.elapsed())
    }
}

/// Returns the remainder of the time that reading `units` must take.
fn pause(units: f64, elapsed: Duration) -> Duration {
    Duration::from_secs_f64((units / UNITS_PER_SECOND).max(0.0)).saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_wait_until_their_units_are_due() {
        let seconds = Duration::from_secs_f64;
        for (units, elapsed, wait) in [(0.0, 0.0, 0.0), (128.0, 0.0, 0.128), (128.0, 0.1, 0.028), (1_000.0, 3.0, 0.0)] {
            let paused = pause(units, seconds(elapsed));
            assert!(paused.abs_diff(seconds(wait)) < Duration::from_micros(1), "{units} units in {elapsed} s: {paused:?}");
        }
        // A million assets with 250 changes a second take 147,000 units, page by page. In this test, the reads themselves take no
        // time.
        let (mut pace, mut waited) = (Pace::begin(), Duration::ZERO);
        for _ in 0..1_148 {
            waited = pace.pause_after(128.0);
        }
        assert!(waited > seconds(146.0) && waited < seconds(148.0), "{waited:?}");
    }
}
