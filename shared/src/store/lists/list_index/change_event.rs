//! Events of the change feed for list indexes: parsing an event, applying events to an index, and remembering recently applied
//! events, which need not be read again if there are many.

use super::ListIndex;
use crate::domain::history::event::{EventType, Verb};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::json;
use crate::domain::values::time::Timestamp;
use chrono::TimeDelta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use uuid::Uuid;

/// Maximum time between a record's ID and the ID of its creation event: longer than any request takes.
const MAX_TIME_TO_EVENT: TimeDelta = TimeDelta::minutes(1);
/// From this number on, applied events are counted instead of read. With fewer events, the extra query costs more than it saves.
pub const MANY_EVENTS: usize = 100;
/// Number of events, of about 1 KB, that one query counts: less than a page.
const COUNTED_AT_ONCE: usize = 800;

/// The index contradicts the table or the change feed, or this version of the service can't read one of them. The index must be
/// loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the list index is inconsistent with the table")]
pub struct Inconsistent;

/// An event about a kind of record that is unknown to this version of the service. No list shows such records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownEvent(pub(super) EventId);

/// One change of one record.
#[derive(Debug, Clone)]
pub struct ChangeEvent {
    pub kind: Kind,
    pub(super) verb: Verb,
    pub id: EventId,
    pub record_id: Uuid,
    pub version: u64,
    pub at: Timestamp,
    changes: Changes,
}

/// The changed fields, parsed lazily, because most events that a refresh reads are already in the index.
#[derive(Debug, Clone)]
struct Changes {
    text: Box<RawValue>,
    read: OnceCell<Option<Map<String, Value>>>,
}

impl Changes {
    /// # Errors
    ///
    /// Returns [`Inconsistent`] for anything but an object.
    fn get(&self) -> Result<&Map<String, Value>, Inconsistent> {
        self.read.get_or_init(|| json::parse_object(self.text.get()).ok()).as_ref().ok_or(Inconsistent)
    }
}

/// The parts of an [`Event`](crate::domain::history::event::Event) that an index needs.
#[derive(Deserialize)]
struct Entry<'a> {
    id: EventId,
    at: Timestamp,
    #[serde(borrow, rename = "type")]
    event_type: Cow<'a, str>,
    entity_id: Uuid,
    version: u64,
    changes: Box<RawValue>,
}

impl ChangeEvent {
    /// Parses the text of a stored event.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when the event is about a known kind of record, but its contents are unknown to this version of
    /// the service.
    pub fn parse(entry: &str) -> Result<Result<Self, UnknownEvent>, Inconsistent> {
        let event: Entry<'_> = serde_json::from_str(entry).map_err(|_| Inconsistent)?;
        let EventType { kind, verb } = EventType::parse(&event.event_type).ok_or(Inconsistent)?;
        let Some(kind) = kind else { return Ok(Err(UnknownEvent(event.id))) };
        Ok(Ok(Self {
            kind,
            verb: verb.ok_or(Inconsistent)?,
            id: event.id,
            record_id: event.entity_id,
            version: event.version,
            at: event.at,
            changes: Changes { text: event.changes, read: OnceCell::new() },
        }))
    }

    /// Whether the record was created so long before `since` that its creation event has an earlier ID, too.
    pub(super) fn is_of_older_record(&self, since: Timestamp) -> bool {
        let created_at = EventId::from_uuid(self.record_id).timestamp();
        self.verb != Verb::Created && created_at.plus(MAX_TIME_TO_EVENT) < since
    }

    pub fn record(&self) -> (Kind, Uuid) {
        (self.kind, self.record_id)
    }

    pub fn is_deletion(&self) -> bool {
        self.verb == Verb::Deleted
    }

    /// `None` if the event doesn't change the field, or its new value isn't text.
    pub fn new_text(&self, field: &str) -> Option<&str> {
        self.changes.get().ok()?.get(field)?.get("new")?.as_str()
    }

    /// `None` if the event doesn't change the field, or its new value isn't an object.
    pub fn new_object(&self, field: &str) -> Option<&Map<String, Value>> {
        self.changes.get().ok()?.get(field)?.get("new")?.as_object()
    }

    /// Whether the event changes a shown field, which also changes `updated_at`.
    pub fn changes_shown_field<T: Record>(&self) -> bool {
        self.changes.get().is_ok_and(|changes| changes.keys().any(|field| T::is_shown(field)))
    }

    /// The new values of changed fields, except values that are neither text nor Boolean.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] for a change without a new value, and for changes that can't be read.
    pub fn new_values(&self) -> Result<impl Iterator<Item = Result<(&str, Option<&str>), Inconsistent>>, Inconsistent> {
        Ok(self.changes.get()?.iter().filter_map(|(field, change)| match change.get("new") {
            None => Some(Err(Inconsistent)),
            Some(Value::Null) => Some(Ok((field.as_str(), None))),
            Some(Value::String(text)) => Some(Ok((field.as_str(), Some(text.as_str())))),
            Some(Value::Bool(flag)) => Some(Ok((field.as_str(), Some(if *flag { "true" } else { "false" })))),
            Some(_) => None,
        }))
    }
}

/// Applies the events since `since`, plus a short overlap before it. They can be in any order, and may already have been applied.
///
/// The clocks of two function instances differ, so a record's deletion can have a lower ID than its creation. The events since
/// `since` alone could then contain the creation without the deletion, and bring the record back. So `events` must start as long
/// before `since` as clocks can differ. In this overlap, events of records that are not in the index are ignored: the index had
/// these records, and removed them. So are later events of older records, if the index drops records that still exist
/// ([`ListIndex::DROPS_ENDED`]).
///
/// `removed` has the records that earlier events of the overlap remove. Records that these events remove are added to it.
///
/// Returns the records whose events don't continue from the index, because an event is missing: it was missed, or its transaction
/// is only partly visible. Their later events are not applied.
///
/// # Errors
///
/// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
pub fn apply_events<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
    removed: &mut HashSet<(Kind, Uuid)>,
) -> Result<Vec<(Kind, Uuid)>, Inconsistent> {
    let mut incomplete = Vec::new();
    let mut by_record: BTreeMap<(Kind, Uuid), Vec<ChangeEvent>> = BTreeMap::new();
    for event in events {
        by_record.entry(event.record()).or_default().push(event);
    }
    for ((kind, id), mut events) in by_record {
        if removed.contains(&(kind, id)) || events.iter().any(I::is_removed_by) {
            removed.insert((kind, id));
            index.remove(kind, id);
            continue;
        }
        events.sort_by_key(|event| event.version);
        for event in events {
            let present = index.version(kind, id).unwrap_or(0);
            let is_removed = || event.id.timestamp() < since || I::DROPS_ENDED && event.is_of_older_record(since);
            if event.version <= present || present == 0 && is_removed() {
                continue;
            }
            // Because clocks differ, an event can be read before its predecessor, but hardly ever without it.
            if event.version > present + 1 || (present == 0) != (event.verb == Verb::Created) {
                incomplete.push((kind, id));
                break;
            }
            index.apply_change(&event)?;
        }
    }
    Ok(incomplete)
}

/// Recently applied events by ID, with the record if the event removes it.
#[derive(Debug, Default)]
pub struct AppliedEvents(BTreeMap<EventId, Option<(Kind, Uuid)>>);

impl AppliedEvents {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Splits the time from `from` to `to` into parts that are counted concurrently, with the number of applied events in each.
    pub fn parts(&self, from: Timestamp, to: Timestamp) -> Vec<(Range<Timestamp>, usize)> {
        let count = 1 + self.0.range(first_id(from)..first_id(to)).count() / COUNTED_AT_ONCE;
        let millis = to.since(from).num_milliseconds();
        let bound = |n: usize| Timestamp::from_millis(from.millis() + millis * n as i64 / count as i64);
        let parts = (0..count).map(|n| bound(n)..bound(n + 1));
        parts.map(|part| (part.clone(), self.0.range(first_id(part.start)..first_id(part.end)).count())).collect()
    }

    pub fn contains(&self, UnknownEvent(id): &UnknownEvent) -> bool {
        self.0.contains_key(id)
    }

    /// The records that these events remove.
    pub fn removed(&self) -> HashSet<(Kind, Uuid)> {
        self.0.values().copied().flatten().collect()
    }

    pub fn add<I: ListIndex>(&mut self, events: &[ChangeEvent], others: Vec<EventId>) {
        self.0.extend(events.iter().map(|event| (event.id, I::is_removed_by(event).then(|| event.record()))));
        self.0.extend(others.into_iter().map(|id| (id, None)));
    }

    pub fn append(&mut self, Self(mut later): Self) {
        self.0.append(&mut later);
    }

    /// Forgets earlier events, which are not read again.
    pub fn forget_before(&mut self, time: Timestamp) {
        self.0 = self.0.split_off(&first_id(time));
    }
}

fn first_id(time: Timestamp) -> EventId {
    EventId::new(time, [0; 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_time_once_with_the_events_in_each() {
        let at = Timestamp::from_millis;
        let mut applied = AppliedEvents::default();
        applied.0.extend((0..2_000).map(|n| (EventId::new(at(5_000 + n * 3), [n as u8; 10]), None)));
        for (from, to) in [(0, 20_000), (5_000, 11_000), (5_001, 10_999), (6_000, 6_001), (20_000, 30_000)] {
            let parts = applied.parts(at(from), at(to));
            let bounds: Vec<Timestamp> = parts.iter().map(|(part, _)| part.start).chain([at(to)]).collect();
            assert_eq!(bounds.first(), Some(&at(from)));
            assert!(parts.iter().zip(&bounds[1..]).all(|((part, _), next)| part.end == *next));
            let inside = (0..2_000).filter(|n| (from..to).contains(&(5_000 + n * 3))).count();
            assert_eq!(parts.iter().map(|(_, count)| count).sum::<usize>(), inside, "{from} to {to}");
        }
        assert_eq!(applied.parts(at(5_000), at(11_000)).len(), 3);
        applied.forget_before(at(8_000));
        assert_eq!(applied.len(), 1_000);
    }
}
