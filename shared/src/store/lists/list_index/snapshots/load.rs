//! Loads a list index from its snapshot, and brings the writer's copy of an index up to date.
//!
//! A faulty snapshot or object store costs a load from the table, but never fails a list. A load applies the events of the last
//! minute, because the secondary index can lag that far. If it ever lags further, a function instance's index is wrong for an
//! hour, but a snapshot is wrong for all instances and for a day. So the writer first compares an index with the events of the
//! last hour. It reads page by page, at a pace that leaves most of the partition's capacity to the API.

use super::format::{
    MAX_HEADER_BYTES, SnapshotError, SnapshotHeader, SnapshotSource, check_snapshot, decode_header, decode_index,
};
use crate::aws::object_store::ObjectStoreError;
use crate::domain::record::{Kind, Record};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::keys::{ENTRY, Item, Keys};
use crate::store::lists::list_index::ListIndex;
use crate::store::lists::list_index::change_event::{ChangeEvent, apply_events};
use crate::store::lists::list_index::refresh::{LoadedIndex, RefreshError};
use crate::store::table::times::{CLOCK_SKEW, SECONDARY_INDEX_LAG, max_event_delay, max_secondary_index_delay_of_snapshots};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

const RECORDS_PER_READ: usize = 100;
/// Read units per second: a third of the 3,000 that a partition has.
const UNITS_PER_SECOND: f64 = 1_000.0;

/// The latest versions of records according to events; `None` for deleted records. Small, however many events there are.
type LatestVersions = HashMap<(Kind, Uuid), Option<u64>>;

impl TenantStore {
    pub(in crate::store::lists::list_index) fn snapshot_source<I: ListIndex>(&self) -> SnapshotSource<'_> {
        SnapshotSource { table: &self.store.table, tenant: self.id, kind: I::Entity::KIND }
    }

    /// The index from its snapshot, without the events since then; `None` if there is no usable snapshot. Calls `make_room` with
    /// the size of the index before decoding it.
    ///
    /// # Errors
    ///
    /// Returns [`RefreshError::Store`] when the table can't be read, and [`RefreshError::TooLarge`] when the index would exceed
    /// the memory budget: loading it from the table would fail the same way.
    pub(in crate::store::lists::list_index) async fn load_snapshot<I: ListIndex>(
        &self,
        now: Timestamp,
        make_room: impl FnOnce(usize),
    ) -> Result<Option<(SnapshotHeader, LoadedIndex<I>)>, RefreshError> {
        let Some(objects) = self.store.snapshots.as_ref().filter(|_| I::HAS_SNAPSHOTS) else { return Ok(None) };
        let (source, budget) = (self.snapshot_source::<I>(), self.store.list_indexes.budget());
        let bytes = match objects.get(&source.key(), budget.saturating_add(MAX_HEADER_BYTES)).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.log_ignored::<I>(error);
                return Ok(None);
            }
        };
        let decoded = check_snapshot(source, &bytes, budget, now).and_then(|(header, body)| {
            let whole = Some(header.index_bytes).filter(|bytes| *bytes <= budget as u64).unwrap_or(header.least_bytes());
            make_room(usize::try_from(whole).unwrap_or(usize::MAX));
            Ok((header, decode_index(&header, body, budget, now)?))
        });
        drop(bytes);
        let (header, loaded) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                self.log_ignored::<I>(error);
                return if error == SnapshotError::TooLarge { Err(RefreshError::TooLarge) } else { Ok(None) };
            }
        };
        if self.item(&self.keys.event(header.latest_event)).await?.is_none() {
            self.log_ignored::<I>(SnapshotError::State);
            return Ok(None);
        }
        Ok(Some((header, loaded)))
    }

    /// `None` if there is no usable snapshot.
    pub(in crate::store::lists::list_index) async fn snapshot_header<I: ListIndex>(
        &self,
    ) -> Result<Option<SnapshotHeader>, ObjectStoreError> {
        let Some(objects) = self.store.snapshots.as_ref() else { return Ok(None) };
        let source = self.snapshot_source::<I>();
        let Some(bytes) = objects.get(&source.key(), MAX_HEADER_BYTES).await? else { return Ok(None) };
        Ok(decode_header(source, &bytes).map(|(header, _)| header).inspect_err(|error| self.log_ignored::<I>(*error)).ok())
    }

    /// The dashboard counts these lines.
    pub(in crate::store::lists::list_index) fn log_ignored<I: ListIndex>(&self, reason: impl std::error::Error + 'static) {
        let cause = crate::log::error_chain(&reason);
        let kind = I::Entity::KIND.noun();
        tracing::warn!(metric = "unused_snapshots", tenant_id = %self.id, kind, cause, "a snapshot is not used");
    }

    /// Compares the index with the events of the last hour: reads records that are missing or outdated in the index, and removes
    /// deleted ones.
    ///
    /// # Errors
    ///
    /// Returns [`RefreshError::Store`] when the table can't be read, and [`RefreshError::Inconsistent`] when this version of
    /// the service can't read an event or a record.
    pub(in crate::store::lists::list_index) async fn catch_up<I: ListIndex>(
        &self,
        loaded: &mut LoadedIndex<I>,
    ) -> Result<(), RefreshError> {
        let mut behind = Vec::new();
        for ((kind, id), latest) in self.latest_versions::<I>(loaded).await? {
            match latest {
                None => loaded.index.remove(kind, id),
                Some(latest) if loaded.index.version(kind, id).unwrap_or(0) < latest => behind.push((kind, id)),
                Some(_) => {}
            }
        }
        if !behind.is_empty() {
            let (kind, records) = (<I::Entity as Record>::KIND.noun(), behind.len());
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

    /// A query for the entries of old events. Eventually consistent, for half the cost, because no replica of a partition lags by
    /// a minute. Loads and refreshes read the last minute consistently.
    fn old_entries(&self, from: AttributeValue, to: AttributeValue) -> QueryFluentBuilder {
        let query = self.events_query(from, to).consistent_read(false);
        query.projection_expression("#entry").expression_attribute_names("#entry", ENTRY)
    }

    /// Applies the events up to a minute before `now`, which is always cheaper for the writer than a load.
    ///
    /// # Errors
    ///
    /// Returns [`RefreshError::Store`] when the table can't be read, and [`RefreshError::Inconsistent`] when this version of the
    /// service can't read an event.
    pub(in crate::store::lists::list_index) async fn follow_old_events<I: ListIndex>(
        &self,
        loaded: &mut LoadedIndex<I>,
        now: Timestamp,
    ) -> Result<(), RefreshError> {
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
                // Events whose predecessor is still missing are recent, and are read again.
                loaded.synced_at = end;
                return Ok(());
            }
        }
    }
}

/// The events of a page that the index follows.
fn events_of<I: ListIndex>(items: Option<Vec<Item>>) -> Result<Vec<ChangeEvent>, RefreshError> {
    let mut events = Vec::new();
    for item in items.unwrap_or_default() {
        let entry = item.get(ENTRY).and_then(|entry| entry.as_s().ok()).ok_or(RefreshError::Inconsistent)?;
        events.extend(ChangeEvent::parse(entry)?.ok().filter(|event| I::follows(event.kind)));
    }
    Ok(events)
}

/// Applies a page. Returns the events of records whose earlier event may be on the next page. `removed` has removed records:
/// because clocks differ, more of their events can follow.
fn apply_page<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
    removed: &mut HashSet<(Kind, Uuid)>,
) -> Result<Vec<ChangeEvent>, RefreshError> {
    let incomplete: HashSet<_> = apply_events(index, events.clone(), since, removed)?.into_iter().collect();
    Ok(events.into_iter().filter(|event| incomplete.contains(&event.record())).collect())
}

/// The reads of one snapshot so far.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    began_at: Instant,
    units: f64,
}

impl Pace {
    pub fn begin() -> Self {
        Self { began_at: Instant::now(), units: 0.0 }
    }

    /// Counts a read, and returns the time until the next one.
    pub fn pause_after(&mut self, units: f64) -> Duration {
        self.units += units;
        pause(self.units, self.began_at.elapsed())
    }
}

/// The rest of the time that reading `units` must take.
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
        // A million assets with 250 changes a second take 147,000 units, page by page. The reads themselves take no time here.
        let (mut pace, mut waited) = (Pace::begin(), Duration::ZERO);
        for _ in 0..1_148 {
            waited = pace.pause_after(128.0);
        }
        assert!(waited > seconds(146.0) && waited < seconds(148.0), "{waited:?}");
    }
}
