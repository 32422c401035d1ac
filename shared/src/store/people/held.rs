//! What one record and its history say about a person.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::Event;
use crate::domain::people::Traces;
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::values::id::{Id, UserId};
use crate::store::TenantStore;
use crate::store::table::backoff::{MAX_ROUNDS, pause};
use crate::store::table::error::StoreError;
use uuid::Uuid;

#[derive(Debug)]
pub struct Held<T> {
    /// `None` if it was deleted.
    pub record: Option<Stored<T>>,
    /// Oldest first, each with the pointers to what it says about the person.
    pub entries: Vec<(HistoryEntry, Event, Vec<String>)>,
    pub traces: Traces,
}

impl TenantStore {
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time, or the record changes too often.
    pub async fn held<T: Record>(&self, person: UserId, id: Uuid) -> Result<Held<T>, StoreError> {
        for round in 0..MAX_ROUNDS {
            // The history first: a record that has more versions has changed since.
            let (newest, entries, traces) = self.traces(person, T::KIND, id).await?;
            let record = self.get::<T>(T::Id::from_uuid(id)).await?;
            // In a dry run, the record is as it would become, and its history as it is.
            if self.is_dry_run() || record.as_ref().is_none_or(|record| record.version <= newest) {
                return Ok(Held { record, entries, traces });
            }
            pause(&self.store, round).await;
        }
        Err(StoreError::Unavailable("a record changes too often".into()))
    }

    /// With the number of the newest entry.
    async fn traces(
        &self,
        person: UserId,
        kind: Kind,
        id: Uuid,
    ) -> Result<(u64, Vec<(HistoryEntry, Event, Vec<String>)>, Traces), StoreError> {
        let Some(mut state) = self.history_state_of(kind, id, None).await? else { return Ok(Default::default()) };
        let newest = state.total();
        let entries = self.history_entries(&mut state, 1..=newest).await?.into_values();
        let entries: Vec<(HistoryEntry, Event)> = entries
            .filter_map(|entry| Some((serde_json::from_str(&entry.text).ok()?, entry)))
            .map(|(event, entry)| (entry, event))
            .collect();
        let shown: Vec<_> = entries.iter().map(|(entry, event)| (event, &entry.commitments)).collect();
        let traces = Traces::of(person, kind, &shown);
        let about = traces.entries.iter().cloned();
        Ok((newest, entries.into_iter().zip(about).map(|((entry, event), about)| (entry, event, about)).collect(), traces))
    }
}
