//! Events as a directory reads them.

use super::index::{Inconsistent, ListIndex};
use crate::domain::event::{Event, EventType, Verb};
use crate::domain::id::{EventId, Id};
use crate::domain::record::{Kind, Record};
use crate::domain::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An event of a kind that this version does not know: of something that it shows nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownEvent(EventId);

/// One change of one thing.
#[derive(Debug, Clone)]
pub struct ChangeEvent {
    pub kind: Kind,
    verb: Verb,
    /// When its event got its id.
    made: Timestamp,
    pub id: Uuid,
    pub version: u64,
    pub at: Timestamp,
    changes: serde_json::Map<String, Value>,
}

impl ChangeEvent {
    /// Reads a stored entry.
    ///
    /// # Errors
    ///
    /// It says something that this version does not know of what it does know: whoever wrote it may mean anything by it.
    pub fn read(entry: &str) -> Result<Result<Self, UnknownEvent>, Inconsistent> {
        let event: Event = serde_json::from_str(entry).map_err(|_| Inconsistent)?;
        let EventType { kind, verb } = EventType::parse(&event.event_type).ok_or(Inconsistent)?;
        let Some(kind) = kind else { return Ok(Err(UnknownEvent(event.id))) };
        let verb = verb.ok_or(Inconsistent)?;
        let (id, made) = (event.entity_id, event.id.timestamp());
        Ok(Ok(Self { kind, verb, made, id, version: event.version, at: event.at, changes: event.changes }))
    }

    /// Whether a field changed that counts as a change.
    pub fn shows<T: Record>(&self) -> bool {
        self.changes.keys().any(|field| T::is_shown(field))
    }

    /// The fields that changed, with what they hold now; a field that is neither text nor flag is left out.
    ///
    /// # Errors
    ///
    /// A change without a new value.
    pub fn fields(&self) -> impl Iterator<Item = Result<(&str, Option<&str>), Inconsistent>> {
        self.changes.iter().filter_map(|(field, change)| match change.get("new") {
            None => Some(Err(Inconsistent)),
            Some(Value::Null) => Some(Ok((field.as_str(), None))),
            Some(Value::String(text)) => Some(Ok((field.as_str(), Some(text.as_str())))),
            Some(Value::Bool(flag)) => Some(Ok((field.as_str(), Some(if *flag { "true" } else { "false" })))),
            Some(_) => None,
        })
    }
}

/// Brings a book up to date with all events since a moment, and with those of as long before it as clocks differ.
/// Events that it has seen change nothing, whatever order they come in.
///
/// Of two events of one thing the later may have the earlier id, by as much as clocks differ: whoever reads from a
/// moment on may read that something was made, and not that it was deleted. So deletions are looked for further back,
/// and what is told there of things that the book does not have is old: it had them, and lost them.
///
/// # Errors
///
/// The events don't follow from what the book holds: it missed something.
pub fn apply<B: ListIndex>(book: &mut B, news: Vec<ChangeEvent>, since: Timestamp) -> Result<(), Inconsistent> {
    let mut things: BTreeMap<(Kind, Uuid), Vec<ChangeEvent>> = BTreeMap::new();
    for one in news {
        things.entry((one.kind, one.id)).or_default().push(one);
    }
    for ((kind, id), mut news) in things {
        if news.iter().any(|one| one.verb == Verb::Deleted) {
            book.remove(kind, id);
            continue;
        }
        news.sort_by_key(|one| one.version);
        for one in news {
            let known = book.version(kind, id).unwrap_or(0);
            if one.version <= known || known == 0 && one.made < since {
                continue;
            }
            // Clocks differ: an event may be read before the one that it follows, but never without it.
            if one.version > known + 1 || (known == 0) != (one.verb == Verb::Created) {
                return Err(Inconsistent);
            }
            book.change(&one)?;
        }
    }
    Ok(())
}
