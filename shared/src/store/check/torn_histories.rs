//! Transactions that wrote several events of one record, of which a restore has the later and not the earlier ones.

use super::histories::state_of;
use super::{TenantCheck, named};
use crate::domain::history::chain::state::ChainState;
use crate::domain::history::chain::{BrokenLink, Chain, ChainError, subject};
use crate::domain::record::Record;
use crate::store::history::history_head::HistoryHead;
use crate::store::history::of_record::entry_of;
use crate::store::keys::Item;
use crate::store::table::error::StoreError;
use crate::store::table::transaction_items::TRANSACTION_START;
use std::collections::BTreeMap;
use uuid::Uuid;

impl TenantCheck<'_> {
    /// Removes the entries beyond the first that is missing, if the same transaction wrote it and all of them: entries after a
    /// lost one can't be verified. Returns the new difference between the record and the rest of its history; `None` if the
    /// entries stay.
    pub(super) async fn remove_torn_entries<T: Record>(
        &mut self,
        id: Uuid,
        broken: &BrokenLink,
    ) -> Result<Option<ChainState>, StoreError> {
        let lost = broken.version;
        let items = self.entries(id).await?;
        let versioned = |item: Item| Some((subject(&entry_of(&item)?.text)?.1, item));
        let mut kept: BTreeMap<u64, Item> = items.into_iter().filter_map(versioned).collect();
        let torn = kept.split_off(&lost);
        if broken.reason != ChainError::Missing || torn.is_empty() || !torn.values().all(|item| is_of_transaction(item, lost)) {
            return Ok(None);
        }
        let mut change = self.change();
        for item in torn.values() {
            change = change.remove(item)?;
        }
        let problem = format!("its history lacks version {lost}, but has later entries of the same transaction");
        if !self.repair(named((T::KIND, id)), problem, "removes the rest of the transaction", change).await? {
            return Ok(None);
        }
        self.removed_events.extend(torn.values().filter_map(entry_of).map(|entry| entry.id));
        let head = self.records.get(&(T::KIND, id)).map(|facts| facts.head.clone());
        if head.is_none() && kept.is_empty() {
            self.forget(T::KIND, id, 0);
            return Ok(Some(ChainState::Consistent));
        }
        self.history_lengths.insert(id, head.as_ref().map_or(0, |head| head.chain.version).max(lost - 1));
        let (mut chain, mut last) = (Chain::new(head.as_ref().map(|head| head.chain.clone())), None);
        for (version, entry) in kept.iter().filter_map(|(version, item)| Some((*version, entry_of(item)?))) {
            chain.add(version, &entry);
            last = Some(HistoryHead::after(version, &entry));
        }
        Ok(Some(state_of(chain, head.as_ref(), last.as_ref())))
    }
}

/// The transaction that wrote an event also wrote that of an earlier version of the same record.
fn is_of_transaction(event: &Item, version: u64) -> bool {
    let start: Option<u64> = event.get(TRANSACTION_START).and_then(|start| start.as_n().ok()?.parse().ok());
    start.is_some_and(|start| start <= version)
}
