//! The state of a record at an earlier time, as its history says.

use super::{HistoryFields, Origin, Restore, RestoreError, replay};
use crate::history::chain::HistoryEntry;
use crate::history::event::{Event, EventType, Verb};
use crate::record::Stored;
use crate::values::time::Timestamp;
use std::collections::BTreeMap;

/// The state of a record after some of its changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PastState {
    pub fields: HistoryFields,
    created: Event,
    /// The last change, and the hash of its entry.
    last: (Event, String),
    /// The version and the time of the last change of each field.
    changed_at: BTreeMap<String, (u64, Timestamp)>,
}

/// `entries` is the whole history in its order. `None` if it did not exist then.
///
/// A change counts from the time of its request, which is the time that the history shows.
///
/// # Errors
///
/// Returns [`RestoreError::Unreadable`] when an entry can't be read.
pub fn state_at(entries: &[HistoryEntry], at: Timestamp) -> Result<Option<PastState>, RestoreError> {
    let unreadable = |entry: &HistoryEntry| RestoreError::Unreadable(format!("entry {}", entry.id));
    let read = |entry: &HistoryEntry| serde_json::from_str::<Event>(&entry.text).map_err(|_| unreadable(entry));
    let events = entries.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // Of requests at almost the same time, the later can have been faster: the order of versions is the one that counts.
    let count = events.iter().rposition(|event| event.at <= at).map_or(0, |last| last + 1);
    let (Some(made), Some(entry)) = (events.get(..count), entries.get(count.wrapping_sub(1))) else { return Ok(None) };
    let (Some(created), Some(last)) = (made.first(), made.last()) else { return Ok(None) };
    if EventType::parse(&last.event_type).is_some_and(|event_type| event_type.verb == Some(Verb::Deleted)) {
        return Ok(None);
    }
    Ok(Some(PastState {
        fields: replay(HistoryFields::new(), made),
        changed_at: made.iter().flat_map(changes_of).collect(),
        created: created.clone(),
        last: (last.clone(), entry.hash.clone()),
    }))
}

fn changes_of(event: &Event) -> impl Iterator<Item = (String, (u64, Timestamp))> {
    event.changes.keys().map(|field| (field.clone(), (event.version, event.at)))
}

impl PastState {
    /// `origin` has the facts that the history does not show.
    ///
    /// # Errors
    ///
    /// As [`super::restore`].
    pub fn into_record<T: Restore>(self, id: T::Id, origin: &Origin<'_, T>) -> Result<Stored<T>, RestoreError> {
        let value = super::restore(id, &self.fields, origin)?;
        let (last, last_hash) = self.last;
        let shown = self.changed_at.iter().filter(|(field, _)| T::is_shown(field)).map(|(_, change)| *change);
        Ok(Stored {
            value,
            version: last.version,
            created_at: self.created.at,
            updated_at: shown.max().map_or(self.created.at, |(_, at)| at),
            last_hash,
            last_event: last.id,
        })
    }

    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.created.at
    }

    #[must_use]
    pub fn creator(&self) -> &crate::actor::Actor {
        &self.created.actor
    }

    /// `None` if it is null or no id.
    #[must_use]
    pub fn id_in<I: std::str::FromStr>(&self, field: &str) -> Option<I> {
        self.text_in(field)?.parse().ok()
    }

    /// `None` if it is null or no text.
    #[must_use]
    pub fn text_in(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }
}
