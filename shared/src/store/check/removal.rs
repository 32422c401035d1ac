//! Removal of a record that can't be read, where no history can restore it.

use super::{CheckMode, TenantCheck};
use crate::domain::history::chain::{HistoryEntry, subject};
use crate::domain::history::event::Verb;
use crate::domain::record::Kind;
use crate::store::TenantStore;
use crate::store::keys::Item;
use crate::store::table::delays::max_secondary_index_delay;
use crate::store::table::error::StoreError;
use crate::store::table::item;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Removed,
    Missing,
    /// It can be read, so it must be deleted like any other.
    Readable,
    /// A repair can restore it from its history.
    Restorable,
    /// It is the tenant itself: nothing works without it.
    Tenant,
    /// It, or something else of the tenant, was changing.
    Changing,
}

impl TenantStore {
    /// Removes a record that can't be read, and ends its history with an entry of the operator's. References to it and items
    /// derived from it are left to [`TenantStore::check_items`]. In a dry run nothing is removed.
    ///
    /// # Errors
    ///
    /// Returns a [`StoreError`] when the table can't be read or written.
    pub async fn remove_unreadable(&self, kind: Kind, id: Uuid) -> Result<Removal, StoreError> {
        if kind == Kind::Tenant {
            return Ok(Removal::Tenant);
        }
        let mode = if self.is_dry_run() { CheckMode::ReadOnly } else { CheckMode::Repair };
        let mut check = TenantCheck::new(self, mode);
        let key = self.keys.record(kind, id);
        let Some(item) = self.item(&key).await? else { return Ok(Removal::Missing) };
        let mut filled = [item.clone()];
        self.fill_in_blobs(&mut filled).await?;
        let [filled] = filled;
        if is_readable(kind, filled) {
            return Ok(Removal::Readable);
        }
        check.know_late_entries(id).await?;
        if check.is_restorable(kind, id).await? {
            return Ok(Removal::Restorable);
        }
        let mut change = check.change().remove(&item)?;
        let record = (kind, id);
        // A history that is broken, or that ends with a deletion, can't go on.
        if let Some(past) = check.past(id).await?
            && past.events.last().is_some_and(|event| event.event_type != Verb::Deleted.event_type(kind))
        {
            change = check.end_history(change, record, &past).await?.0;
        }
        let is_removed = check.repair(super::named(record), "it can't be read", "removes it", change).await?;
        Ok(if is_removed { Removal::Removed } else { Removal::Changing })
    }
}

impl TenantCheck<'_> {
    /// The history of the record, which can't be read, has all of its fields.
    async fn is_restorable(&self, kind: Kind, id: Uuid) -> Result<bool, StoreError> {
        let Some(past) = self.past(id).await? else { return Ok(false) };
        Ok(with_type!(kind, T => self.restored::<T>(id, &past, None).await?.is_ok()))
    }

    /// Reads the entries of a record that the index `history` may still lack.
    async fn know_late_entries(&mut self, record: Uuid) -> Result<(), StoreError> {
        let recent = self.recent.entry(record).or_default();
        let is_of_record = |entry: &HistoryEntry| subject(&entry.text).is_some_and(|((_, id), _)| id == record);
        let since = self.began.plus(-max_secondary_index_delay());
        self.store.each_page_of_entries(since, |entries| recent.extend(entries.into_iter().filter(is_of_record))).await
    }
}

fn is_readable(kind: Kind, item: Item) -> bool {
    with_type!(kind, T => item::read::<T>(item).is_ok())
}
