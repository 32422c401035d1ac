//! What one record and its history say about a person.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::Event;
use crate::domain::people::Traces;
use crate::domain::record::{Kind, Record, Stored};
use crate::domain::values::id::{Id, UserId};
use crate::store::TenantStore;
use crate::store::table::backoff::pause;
use crate::store::table::error::StoreError;
use uuid::Uuid;

/// Reads of a record that changes meanwhile.
const MAX_ROUNDS: u32 = 6;

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
            let (entries, traces) = self.traces(person, T::KIND, id).await?;
            let record = self.get::<T>(T::Id::from_uuid(id)).await?;
            let newest = entries.last().map_or(0, |(_, event, _)| event.version);
            // In a dry run, the record is as it would become, and its history as it is.
            if self.is_dry_run() || record.as_ref().is_none_or(|record| record.version <= newest) {
                return Ok(Held { record, entries, traces });
            }
            pause(&self.store, round).await;
        }
        Err(StoreError::Unavailable("a record changes too often".into()))
    }

    async fn traces(
        &self,
        person: UserId,
        kind: Kind,
        id: Uuid,
    ) -> Result<(Vec<(HistoryEntry, Event, Vec<String>)>, Traces), StoreError> {
        let Some(mut state) = self.history_state_of(kind, id, None).await? else { return Ok(Default::default()) };
        let last = state.total();
        let entries = self.history_entries(&mut state, 1..=last).await?.into_values();
        let (entries, events): (Vec<HistoryEntry>, Vec<Event>) = entries
            .filter_map(|entry| Some((serde_json::from_str(&entry.text).ok()?, entry)))
            .map(|(event, entry)| (entry, event))
            .unzip();
        let traces = Traces::of(person, kind, &events);
        let about = traces.entries.iter().cloned();
        Ok((entries.into_iter().zip(events).zip(about).map(|((entry, event), about)| (entry, event, about)).collect(), traces))
    }
}
