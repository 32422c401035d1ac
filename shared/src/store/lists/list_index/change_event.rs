//! The events of the change feed, as list indexes need them.

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
use uuid::Uuid;

/// The index contradicts the table or the change feed, or this version of the service can't read one of them. The index must be
/// loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the list index is inconsistent with the table")]
pub struct Inconsistent;

/// The longest time between the id of a record and the id of the event of its creation: longer than any request takes.
const MAX_TIME_TO_EVENT: TimeDelta = TimeDelta::minutes(1);

/// An event of a kind of record that this version of the service does not have. No list shows such records.
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

/// The changed fields. Most events that a refresh reads are in the index already, so they are read when they are needed.
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
    /// The text of a stored event.
    ///
    /// # Errors
    ///
    /// Returns [`Inconsistent`] when the event is about a known kind of record, but with contents that this version of the
    /// service does not know.
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

    /// The record was created so long before `since` that the event of its creation has an earlier id too.
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

    /// `None` if the event does not change the field, or its new value is not a text.
    pub fn new_text(&self, field: &str) -> Option<&str> {
        self.changes.get().ok()?.get(field)?.get("new")?.as_str()
    }

    /// `None` if the event does not change the field, or its new value is no object.
    pub fn new_object(&self, field: &str) -> Option<&Map<String, Value>> {
        self.changes.get().ok()?.get(field)?.get("new")?.as_object()
    }

    /// Such fields count for `updated_at`.
    pub fn changes_shown_field<T: Record>(&self) -> bool {
        self.changes.get().is_ok_and(|changes| changes.keys().any(|field| T::is_shown(field)))
    }

    /// Values that are neither text nor Boolean are left out.
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
