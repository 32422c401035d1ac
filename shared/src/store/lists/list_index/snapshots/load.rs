//! Loading a list index from its snapshot. A fault of a snapshot or of the object store costs a load from the table, never a
//! list.

use super::format::{
    MAX_HEADER_BYTES, SnapshotError, SnapshotHeader, SnapshotSource, check_snapshot, decode_header, decode_index,
};
use crate::aws::object_store::ObjectStoreError;
use crate::domain::record::Record;
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::lists::list_index::cache::LoadedIndex;
use crate::store::lists::list_index::index::ListIndex;
use crate::store::lists::list_index::refresh_error::RefreshError;

impl TenantStore {
    pub(in crate::store::lists::list_index) fn snapshot_source<I: ListIndex>(&self) -> SnapshotSource<'_> {
        SnapshotSource { table: &self.store.table, tenant: self.id, kind: I::Entity::KIND }
    }

    /// The index as it was when its snapshot was written, without the events since then; `None` if there is no usable snapshot.
    /// Calls `make_room` with the bytes of the index before it is in memory.
    ///
    /// # Errors
    ///
    /// Returns [`RefreshError::Store`] when the table can't be read, and [`RefreshError::TooLarge`] when the index would exceed
    /// the memory budget: loading it from the table would end in the same way.
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
}
