//! The change feed: events, and how they are applied to a list index.

use super::index::{Inconsistent, ListIndex};
use crate::domain::history::event::{Event, EventType, Verb};
use crate::domain::record::{Kind, Record};
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use chrono::TimeDelta;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// How much later than a record's id the id of the event of its creation may be created: longer than any request takes.
const MAX_TIME_TO_EVENT: TimeDelta = TimeDelta::minutes(1);

/// An event of a kind of record that this version of the service does not have. No list shows such records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownEvent(pub(super) EventId);

/// One change of one record.
#[derive(Debug, Clone)]
pub struct ChangeEvent {
    pub kind: Kind,
    verb: Verb,
    /// When the event's id was created.
    id_created_at: Timestamp,
    pub record_id: Uuid,
    pub version: u64,
    pub at: Timestamp,
    changes: serde_json::Map<String, Value>,
}

impl ChangeEvent {
    /// Parses the entry of a stored event.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when the event is about a known kind of record, but says something that this version
    /// of the service does not know.
    pub fn parse(entry: &str) -> Result<Result<Self, UnknownEvent>, Inconsistent> {
        let event: Event = serde_json::from_str(entry).map_err(|_| Inconsistent)?;
        let EventType { kind, verb } = EventType::parse(&event.event_type).ok_or(Inconsistent)?;
        let Some(kind) = kind else { return Ok(Err(UnknownEvent(event.id))) };
        Ok(Ok(Self {
            kind,
            verb: verb.ok_or(Inconsistent)?,
            id_created_at: event.id.timestamp(),
            record_id: event.entity_id,
            version: event.version,
            at: event.at,
            changes: event.changes,
        }))
    }

    /// Whether the event is a later one of a record that was created so long before `since` that the event of its creation
    /// has an id from before that time too.
    fn is_of_older_record(&self, since: Timestamp) -> bool {
        let created_at = EventId::from_uuid(self.record_id).timestamp();
        self.verb != Verb::Created && created_at.plus(MAX_TIME_TO_EVENT) < since
    }

    /// Whether the event deletes its record.
    pub fn is_deletion(&self) -> bool {
        self.verb == Verb::Deleted
    }

    /// Returns the new value of a field, if the event changes it and it is a text.
    pub fn new_text(&self, field: &str) -> Option<&str> {
        self.changes.get(field)?.get("new")?.as_str()
    }

    /// Whether the event changes a field that counts for `updated_at`.
    pub fn changes_shown_field<T: Record>(&self) -> bool {
        self.changes.keys().any(|field| T::is_shown(field))
    }

    /// Returns the new values of the changed fields. Values that are neither text nor Boolean are left out.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] for a change without a new value.
    pub fn new_values(&self) -> impl Iterator<Item = Result<(&str, Option<&str>), Inconsistent>> {
        self.changes.iter().filter_map(|(field, change)| match change.get("new") {
            None => Some(Err(Inconsistent)),
            Some(Value::Null) => Some(Ok((field.as_str(), None))),
            Some(Value::String(text)) => Some(Ok((field.as_str(), Some(text.as_str())))),
            Some(Value::Bool(flag)) => Some(Ok((field.as_str(), Some(if *flag { "true" } else { "false" })))),
            Some(_) => None,
        })
    }
}

/// Applies the events since `since`, and those of a short time before it. They may be in any order, and may have been
/// applied before.
///
/// The clocks of two function instances differ, so a record's deletion may have an earlier id than its creation. The
/// events since `since` alone could then contain the creation without the deletion, and bring the record back. So
/// `events` must begin as long before `since` as clocks may differ. From that time, events of records that the index
/// does not have are ignored: it had them, and removed them. The same is true of later events of older records, if the
/// index removes records that go on existing ([`ListIndex::LISTS_SOME_FOR_A_TIME`]).
///
/// Returns the records whose events don't follow from the index, because one is missing: it was missed, or its
/// transaction is visible only in part. Their later events are not applied.
///
/// # Errors
///
/// Returns [`Inconsistent`] when this version of the service can't read one of the new values.
pub fn apply_events<I: ListIndex>(
    index: &mut I,
    events: Vec<ChangeEvent>,
    since: Timestamp,
) -> Result<Vec<(Kind, Uuid)>, Inconsistent> {
    let mut incomplete = Vec::new();
    let mut by_record: BTreeMap<(Kind, Uuid), Vec<ChangeEvent>> = BTreeMap::new();
    for event in events {
        by_record.entry((event.kind, event.record_id)).or_default().push(event);
    }
    for ((kind, id), mut events) in by_record {
        if events.iter().any(I::is_removed_by) {
            index.remove(kind, id);
            continue;
        }
        events.sort_by_key(|event| event.version);
        for event in events {
            let present = index.version(kind, id).unwrap_or(0);
            let is_removed = || event.id_created_at < since || I::LISTS_SOME_FOR_A_TIME && event.is_of_older_record(since);
            if event.version <= present || present == 0 && is_removed() {
                continue;
            }
            // Clocks differ, so an event may be read before the one that it follows, but hardly ever without it.
            if event.version > present + 1 || (present == 0) != (event.verb == Verb::Created) {
                incomplete.push((kind, id));
                break;
            }
            index.apply_change(&event)?;
        }
    }
    Ok(incomplete)
}
