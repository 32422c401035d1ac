//! Comparing a list index with the events of the last hour before it becomes a snapshot.
//!
//! A load applies the events of the last minute, because the secondary index may lag that far. Should it ever lag further,
//! an index of a function instance is wrong for an hour, but a snapshot is wrong for all of them and for a day.

use crate::domain::record::{Kind, Record};
use crate::store::TenantStore;
use crate::store::keys::{ENTRY, Item, Keys};
use crate::store::lists::list_index::cache::LoadedIndex;
use crate::store::lists::list_index::change_event::ChangeEvent;
use crate::store::lists::list_index::index::ListIndex;
use crate::store::lists::list_index::refresh_error::RefreshError;
use crate::store::table::delays::max_secondary_index_delay_of_snapshots;
use std::collections::HashMap;
use uuid::Uuid;

const RECORDS_PER_READ: usize = 100;

/// The latest versions of records that events speak of; `None` if they delete the record. Little, however many events there
/// are.
type LatestVersions = HashMap<(Kind, Uuid), Option<u64>>;

impl TenantStore {
    /// Reads the records that the index has in an older version than the events of the last hour, or lacks, and removes those
    /// that are deleted.
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
        // The load has read the last minute consistently, and no replica of a partition lags longer behind.
        let query = self.events_query(from, to).consistent_read(false);
        let query = query.projection_expression("#entry").expression_attribute_names("#entry", ENTRY);
        let mut latest = LatestVersions::new();
        let mut start_key = None::<Item>;
        loop {
            let page = self.page(query.clone().set_exclusive_start_key(start_key)).await?;
            for item in page.items.unwrap_or_default() {
                let entry = item.get(ENTRY).and_then(|entry| entry.as_s().ok()).ok_or(RefreshError::Inconsistent)?;
                let Ok(event) = ChangeEvent::parse(entry)? else { continue };
                if I::follows(event.kind) {
                    let version = latest.entry((event.kind, event.record_id)).or_insert(Some(0));
                    *version = version.filter(|_| !I::is_removed_by(&event)).map(|version| version.max(event.version));
                }
            }
            start_key = page.last_evaluated_key;
            if start_key.is_none() {
                return Ok(latest);
            }
        }
    }
}
