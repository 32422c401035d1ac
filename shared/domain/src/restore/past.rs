//! The state of a record at an earlier time, as its history says.

use super::{HistoryFields, Origin, Restore, RestoreError, replay};
use crate::history::chain::HistoryEntry;
use crate::history::event::{Event, EventType, Verb, scans};
use crate::record::Stored;
use crate::values::id::UserId;
use crate::values::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// The state of a record after some of its changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PastState {
    pub fields: HistoryFields,
    created: Event,
    /// The number of changes that only say when it was seen.
    scans: u64,
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
    let events = events_of(entries)?;
    Ok(state_after(entries, &events, count_at(&events, at)))
}

/// The asset that `user` had at `at`, as it was then; or, if its history doesn't say who had it then, as it was when an import
/// claimed that the user had it.
///
/// # Errors
///
/// As [`state_at`].
pub fn held_state_at(entries: &[HistoryEntry], at: Timestamp, user: UserId) -> Result<Option<PastState>, RestoreError> {
    let events = events_of(entries)?;
    let count = count_at(&events, at);
    let known = state_after(entries, &events, count);
    let holder = |state: &PastState| state.id_in::<UserId>("assigned_to");
    if let Some(holder) = known.as_ref().and_then(holder) {
        return Ok(known.filter(|_| holder == user));
    }
    // Each assignment after that time, with the last claim about it and the number of events then.
    let (mut claims, day) = (Vec::<Option<(String, usize)>>::new(), at.date().to_string());
    for (index, event) in events.iter().enumerate().skip(count) {
        if event.changes.contains_key("assigned_to") {
            claims.push(None);
        }
        let since = event.changes.get("assigned_since").map(|change| change.get("new").and_then(Value::as_str));
        if let (Some(since), Some(claim)) = (since, claims.last_mut()) {
            *claim = since.map(|since| (since.to_owned(), index + 1));
        }
    }
    let claimed = claims.into_iter().flatten().rfind(|(since, _)| *since <= day);
    Ok(claimed.and_then(|(_, count)| state_after(entries, &events, count)).filter(|state| holder(state) == Some(user)))
}

fn events_of(entries: &[HistoryEntry]) -> Result<Vec<Event>, RestoreError> {
    let unreadable = |entry: &HistoryEntry| RestoreError::Unreadable(format!("entry {}", entry.id));
    entries.iter().map(|entry| serde_json::from_str::<Event>(&entry.text).map_err(|_| unreadable(entry))).collect()
}

/// Of requests at almost the same time, the later can have been faster: the order of versions is the one that counts.
fn count_at(events: &[Event], at: Timestamp) -> usize {
    events.iter().rposition(|event| event.at <= at).map_or(0, |last| last + 1)
}

/// After so many events.
fn state_after(entries: &[HistoryEntry], events: &[Event], count: usize) -> Option<PastState> {
    let (made, entry) = (events.get(..count)?, entries.get(count.checked_sub(1)?)?);
    let (created, last) = (made.first()?, made.last()?);
    if EventType::parse(&last.event_type).is_some_and(|event_type| event_type.verb == Some(Verb::Deleted)) {
        return None;
    }
    Some(PastState {
        fields: replay(HistoryFields::new(), made),
        changed_at: made.iter().flat_map(changes_of).collect(),
        created: created.clone(),
        scans: scans(made),
        last: (last.clone(), entry.hash.clone()),
    })
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
        let origin = Origin { scans: Some(self.scans), ..origin.clone() };
        let value = super::restore(id, &self.fields, &origin)?;
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
