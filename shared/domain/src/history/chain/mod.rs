//! Verifies the history of a record: that no entry is missing or altered, and that each follows from the one before.

#[cfg(test)]
mod tests;
mod verify;

pub use verify::{Chain, Contradiction, contradiction};

use crate::history::commitments::Commitments;
use crate::history::event::{EventType, Verb};
use crate::record::Kind;
use crate::values::id::EventId;
use crate::values::json;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// From the item's key.
    pub id: EventId,
    /// The canonical JSON of the event, with the values that it commits to.
    pub text: String,
    pub commitments: Commitments,
    pub hash: String,
}

/// The end of a history as the record itself states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    pub version: u64,
    pub last_hash: String,
}

/// Why a history is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ChainError {
    /// The entry is not a JSON event.
    #[error("the entry can't be read")]
    Unreadable,
    /// The entry is not in its canonical form (RFC 8785).
    #[error("the entry is not in its canonical form")]
    NotCanonical,
    /// The stored hash is not the hash of the entry.
    #[error("the entry does not have the hash that is stored with it")]
    WrongHash,
    /// The entry has another event id than its key, or another version.
    #[error("the entry belongs to another event or version")]
    WrongId,
    /// The entry's `previous_hash` is not the hash of the entry before.
    #[error("the entry does not follow from the one before it")]
    WrongPrevious,
    /// There is no entry for this version.
    #[error("the entry is missing")]
    Missing,
    /// There are two entries for this version.
    #[error("there are two entries for the same version")]
    Doubled,
    /// The first entry is not a creation, or a later one is.
    #[error("the history does not begin with a creation, or contains a second one")]
    NotCreated,
    /// There is an entry after the deletion.
    #[error("there is an entry after the deletion")]
    AfterDeletion,
    /// The record's hash of its latest entry is not the hash of that entry.
    #[error("the record carries another hash than its latest entry")]
    WrongHead,
    /// The record is missing, and there is no entry for its deletion.
    #[error("the record is missing, and there is no entry for its deletion")]
    Gone,
}

/// The first entry at which a history is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BrokenLink {
    /// The id of the entry's event; null if the entry is missing.
    #[schema(required)]
    pub event_id: Option<EventId>,
    /// The version that the entry should describe.
    pub version: u64,
    /// Why the history is not valid here.
    pub reason: ChainError,
}

/// The result of verifying a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Verification {
    /// Whether the whole history is valid.
    pub valid: bool,
    /// The number of valid entries, counted from the first.
    pub checked: u64,
    /// The first entry at which the history is not valid; null if all are.
    #[schema(required)]
    pub broken: Option<BrokenLink>,
}

/// The record that an entry is about. The kind is `None` if this version of the service does not know it.
pub type Subject = (Option<Kind>, Uuid);

/// The record and its version; `None` if the entry can't be read.
#[must_use]
pub fn subject(text: &str) -> Option<(Subject, u64)> {
    let entry = json::parse(text).ok()?;
    let kind = EventType::parse(entry["type"].as_str()?)?.kind;
    Some(((kind, entry["entity_id"].as_str()?.parse().ok()?), entry["version"].as_u64()?))
}

#[must_use]
pub fn is_deletion(text: &str) -> bool {
    let entry = json::parse(text).ok();
    entry.is_some_and(|entry| verb_of(&entry) == Some(Verb::Deleted))
}

fn verb_of(entry: &Value) -> Option<Verb> {
    EventType::parse(entry["type"].as_str()?)?.verb
}
