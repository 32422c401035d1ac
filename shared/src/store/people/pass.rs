//! A pass over all events of a tenant, part by part: only they show everything that names a person.

use crate::domain::history::chain::HistoryEntry;
use crate::domain::history::event::Event;
use crate::domain::people::{actor_pointers, lead};
use crate::domain::record::Kind;
use crate::domain::values::id::{EventId, Id, UserId};
use crate::domain::values::time::Timestamp;
use crate::store::TenantStore;
use crate::store::history::of_record::entry_of;
use crate::store::keys::Keys;
use crate::store::table::error::StoreError;
use chrono::TimeDelta;
use std::collections::BTreeSet;
use uuid::Uuid;

/// The most events of a part: some 4 MB, or 1,000 read units.
const MAX_EVENTS: usize = 5_000;
/// The most records of a part: each takes some ten round trips, and a part must end in the time of a request.
const MAX_RECORDS: usize = 40;
/// The most actions of a part: each takes one write.
const MAX_ACTIONS: usize = 200;

/// What the events of a part say about a person.
#[derive(Debug)]
pub struct PartAbout {
    person: UserId,
    /// Every event that names the person contains it.
    id: String,
    /// Records whose histories may say something.
    pub records: BTreeSet<(Kind, Uuid)>,
    /// What the person did to others. Their entries say who acted, and no more about the person.
    pub actions: Vec<(HistoryEntry, Event)>,
    /// The last event of the part; `None` at the end of the pass.
    pub last: Option<EventId>,
}

impl PartAbout {
    /// Nothing so far.
    #[must_use]
    pub fn new(person: UserId) -> Self {
        Self { person, id: person.to_string(), records: BTreeSet::new(), actions: Vec::new(), last: None }
    }

    /// The actions on others' records. The histories of `records` have the rest.
    pub fn actions_on_others(&self) -> impl Iterator<Item = &(HistoryEntry, Event)> {
        self.actions.iter().filter(|(_, event)| !self.records.iter().any(|(_, id)| *id == event.entity_id))
    }

    /// Of all records that say something about the person, and of the person's own.
    pub(super) fn ids(&self) -> BTreeSet<Uuid> {
        self.records.iter().map(|(_, id)| *id).chain([self.person.uuid()]).collect()
    }

    /// The part found something, or ends the pass.
    pub(super) fn is_due(&self) -> bool {
        self.last.is_none() || !self.records.is_empty() || !self.actions.is_empty()
    }

    /// Adds what an entry says.
    pub(in crate::store) fn add(&mut self, entry: &HistoryEntry) {
        // Reading JSON takes longer than looking for the id.
        let event: Option<Event> = entry.text.contains(&self.id).then(|| serde_json::from_str(&entry.text).ok()).flatten();
        let Some(event) = event else { return };
        match lead(self.person, &event) {
            Some(record) => drop(self.records.insert(record)),
            None if actor_pointers(self.person, &event.actor).is_empty() => {}
            None => self.actions.push((entry.clone(), event)),
        }
    }
}

impl TenantStore {
    /// The next part of a pass, after an event or from the beginning, over the events before `until`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] when the table does not respond in time.
    pub async fn part_about(&self, person: UserId, after: Option<EventId>, until: Timestamp) -> Result<PartAbout, StoreError> {
        let mut part = PartAbout::new(person);
        // Nothing names a person earlier than a minute before the record is made.
        let first = Keys::last_event_before(person.timestamp().plus(-TimeDelta::minutes(1)));
        let Some((from, to)) = Keys::events_between(Some(after.unwrap_or(first)), until) else { return Ok(part) };
        let (mut read, mut pages) = (0, self.events_query(from, to).into_paginator().send());
        while let Some(page) = pages.next().await {
            for entry in page?.items.unwrap_or_default().iter().filter_map(entry_of) {
                part.last = Some(entry.id);
                read += 1;
                part.add(&entry);
                if read == MAX_EVENTS || part.records.len() == MAX_RECORDS || part.actions.len() == MAX_ACTIONS {
                    return Ok(part);
                }
            }
        }
        part.last = None;
        Ok(part)
    }
}
