//! Verification of one record's hash chain.

use crate::domain::history::chain::{BrokenLink, Chain, ChainError, HistoryEntry, Verification};
use crate::domain::record::Record;
use crate::domain::values::id::Id;
use crate::store::TenantStore;
use crate::store::history::history_head::{MAX_LOOKS, may_be_in_flight, pause_before_look};
use crate::store::table::error::StoreError;

/// The number of entries that are read at once while a chain is verified.
const ENTRIES_PER_READ: u64 = 1_000;

impl TenantStore {
    /// Oldest entry first; `None` if no such record ever existed.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::history`](crate::store::TenantStore::history).
    pub async fn whole_history<T: Record>(&self, id: T::Id) -> Result<Option<Vec<HistoryEntry>>, StoreError> {
        let Some(mut state) = self.history_state::<T>(id, None).await? else { return Ok(None) };
        let versions = 1..=state.total();
        Ok(Some(self.history_entries(&mut state, versions).await?.into_values().collect()))
    }

    /// Recomputes the whole hash chain of a record; `None` if no such record ever existed.
    ///
    /// # Errors
    ///
    /// As [`TenantStore::history`](crate::store::TenantStore::history). An entry that may only be late leads to
    /// [`StoreError::Unsettled`], not to a broken chain.
    pub async fn verify_history<T: Record>(&self, id: T::Id) -> Result<Option<Verification>, StoreError> {
        let Some(mut state) = self.history_state::<T>(id, None).await? else { return Ok(None) };
        let mut chain = Chain::new(state.head.as_ref().map(|head| head.chain.clone()));
        let total = state.total();
        let mut from = 1;
        while from <= total {
            let to = total.min(from + ENTRIES_PER_READ - 1);
            for (version, entry) in self.history_entries(&mut state, from..=to).await? {
                chain.add(version, &entry);
            }
            from = to + 1;
        }
        let is_beyond = chain.is_beyond() && !self.record_follows::<T>(id, &chain).await?;
        let mut verification = chain.finish();
        if let Some(head) = state.head.as_ref().filter(|_| is_beyond) {
            let broken = BrokenLink { event_id: None, version: head.chain.version + 1, reason: ChainError::WrongHead };
            verification = Verification { valid: false, broken: Some(broken), ..verification };
        }
        let is_gone = verification.broken.as_ref().is_some_and(|broken| broken.reason == ChainError::Gone);
        let is_in_flight = || state.last_event().is_some_and(|event| may_be_in_flight(event, self.store.now()));
        if (is_beyond || is_gone) && is_in_flight() {
            return Err(StoreError::Unsettled("the record of a history may just be changing"));
        }
        Ok(Some(verification))
    }

    /// The record, or its tombstone, has reached the end of a chain that was beyond it: it changed while the entries were read.
    /// Nothing else puts entries there.
    async fn record_follows<T: Record>(&self, id: T::Id, chain: &Chain) -> Result<bool, StoreError> {
        for looks in 1..=MAX_LOOKS {
            let head = self.history_head(T::KIND, id.uuid()).await?;
            if chain.agrees_with(head.as_ref().map(|head| &head.chain)) {
                return Ok(true);
            }
            if looks < MAX_LOOKS {
                pause_before_look(looks).await;
            }
        }
        Ok(false)
    }
}
