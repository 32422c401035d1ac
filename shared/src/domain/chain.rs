//! Verifies the history of a record: that no entry is missing or altered, and that each follows from the one before.

use super::event::{self, EventType, Verb};
use super::id::EventId;
use super::record::Kind;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An entry of the history as it is stored in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The event id in the item's key.
    pub id: EventId,
    /// The canonical JSON of the event.
    pub text: String,
    /// The hash that is stored with it.
    pub hash: String,
}

/// The end of a history as the record itself states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// The number of changes.
    pub version: u64,
    /// The hash of the latest entry.
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
    #[error("the stored hash is not the hash of the entry")]
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

/// The facts of an entry that are needed once all entries before it have been added.
#[derive(Debug)]
struct Link {
    id: EventId,
    hash: String,
    previous: Option<String>,
    /// `None` for a type that this version of the service does not know.
    verb: Option<Verb>,
    /// What is wrong with the entry itself.
    error: Option<ChainError>,
}

/// The record that an entry is about. The kind is `None` if this version of the service does not know it.
pub type Subject = (Option<Kind>, Uuid);

/// The history of one record while it is verified. Entries may be added in any order.
#[derive(Debug, Default)]
pub struct Chain {
    head: Option<ChainHead>,
    checked: u64,
    /// The hash and the verb of the last entry that was checked.
    last: Option<(String, Option<Verb>)>,
    /// Entries beyond a gap, by version.
    waiting: BTreeMap<u64, Link>,
    broken: Option<BrokenLink>,
}

/// Returns the record that an entry is about and the version that it describes; `None` if the entry can't be read.
#[must_use]
pub fn subject(text: &str) -> Option<(Subject, u64)> {
    let entry: Value = serde_json::from_str(text).ok()?;
    let kind = EventType::parse(entry["type"].as_str()?)?.kind;
    Some(((kind, entry["entity_id"].as_str()?.parse().ok()?), entry["version"].as_u64()?))
}

/// Returns whether an entry describes the deletion of its record.
#[must_use]
pub fn is_deletion(text: &str) -> bool {
    let entry: Option<Value> = serde_json::from_str(text).ok();
    entry.is_some_and(|entry| verb_of(&entry) == Some(Verb::Deleted))
}

fn verb_of(entry: &Value) -> Option<Verb> {
    EventType::parse(entry["type"].as_str()?)?.verb
}

impl Chain {
    /// Creates a chain without entries; `head` comes from the record, if it exists.
    #[must_use]
    pub fn new(head: Option<ChainHead>) -> Self {
        Self { head, ..Self::default() }
    }

    /// Returns the first version that has no entry yet.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.checked + 1
    }

    /// Returns whether the chain is valid so far, but ends with neither a record nor a deletion.
    #[must_use]
    pub fn ends_open(&self) -> bool {
        let deleted = self.last.as_ref().is_some_and(|(_, verb)| *verb == Some(Verb::Deleted));
        self.head.is_none() && self.broken.is_none() && self.waiting.is_empty() && self.checked > 0 && !deleted
    }

    /// Returns whether the chain is valid so far, but has entries beyond the record's version.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.broken.is_none() && self.head.as_ref().is_some_and(|head| head.version < self.checked)
    }

    /// Returns whether the chain is valid so far, but lacks an entry that must exist.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.broken.is_none() && (!self.waiting.is_empty() || self.is_behind() || self.checked == 0)
    }

    /// Returns whether the record's version is beyond the last entry.
    fn is_behind(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.version > self.checked)
    }

    /// Returns the hash of the last entry so far.
    #[must_use]
    pub fn hash(&self) -> Option<&str> {
        self.last.as_ref().map(|(hash, _)| hash.as_str())
    }

    /// Adds the entry that describes `version`.
    pub fn add(&mut self, version: u64, entry: &HistoryEntry) {
        if self.broken.is_some() {
            return;
        }
        let link = Link::read(version, entry);
        if version <= self.checked || self.waiting.contains_key(&version) {
            self.broken = Some(BrokenLink { event_id: Some(entry.id), version, reason: ChainError::Doubled });
            return;
        }
        self.waiting.insert(version, link);
        while let Some(link) = self.waiting.remove(&(self.checked + 1)) {
            if let Err(reason) = self.check_next(&link) {
                self.broken = Some(BrokenLink { event_id: Some(link.id), version: self.checked + 1, reason });
                return;
            }
            self.checked += 1;
            self.last = Some((link.hash, link.verb));
        }
    }

    /// Checks that `link` continues the chain.
    fn check_next(&self, link: &Link) -> Result<(), ChainError> {
        link.error.map_or(Ok(()), Err)?;
        let previous = self.last.as_ref();
        if (link.verb == Some(Verb::Created)) != previous.is_none() {
            return Err(ChainError::NotCreated);
        }
        if previous.is_some_and(|(_, verb)| *verb == Some(Verb::Deleted)) {
            return Err(ChainError::AfterDeletion);
        }
        if link.previous.as_ref() != previous.map(|(hash, _)| hash) {
            return Err(ChainError::WrongPrevious);
        }
        let head = self.head.as_ref().filter(|head| head.version == self.checked + 1);
        if head.is_some_and(|head| head.last_hash != link.hash) { Err(ChainError::WrongHead) } else { Ok(()) }
    }

    /// Returns the result, after every entry has been added.
    #[must_use]
    pub fn finish(self) -> Verification {
        let next = self.next();
        let end = |reason| Some(BrokenLink { event_id: None, version: next, reason });
        let has_gap = self.has_gap();
        let broken = match (self.broken, &self.head) {
            (Some(broken), _) => Some(broken),
            (None, _) if has_gap => end(ChainError::Missing),
            (None, None) if self.last.as_ref().is_none_or(|(_, verb)| *verb != Some(Verb::Deleted)) => end(ChainError::Gone),
            (None, _) => None,
        };
        Verification { valid: broken.is_none(), checked: self.checked, broken }
    }
}

impl Link {
    /// Reads an entry and checks it by itself.
    fn read(version: u64, entry: &HistoryEntry) -> Self {
        let mut link =
            Self { id: entry.id, hash: entry.hash.clone(), previous: None, verb: None, error: Some(ChainError::Unreadable) };
        let Ok(value) = serde_json::from_str::<Value>(&entry.text) else { return link };
        let (Some(id), true) = (value["id"].as_str(), value["type"].is_string()) else { return link };
        link.verb = verb_of(&value);
        link.previous = value["previous_hash"].as_str().map(str::to_owned);
        link.error = if event::hash(&entry.text) != entry.hash {
            Some(ChainError::WrongHash)
        } else if serde_json_canonicalizer::to_string(&value).ok().as_deref() != Some(&entry.text) {
            Some(ChainError::NotCanonical)
        } else if id != entry.id.to_string() || value["version"].as_u64() != Some(version) {
            Some(ChainError::WrongId)
        } else {
            None
        };
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::{Actor, Event};
    use crate::domain::id::Id;
    use crate::domain::time::Timestamp;

    /// Returns the entries of a valid history with these verbs.
    fn entries(verbs: &[&str]) -> Vec<HistoryEntry> {
        let mut previous: Option<String> = None;
        let entries = verbs.iter().zip(1u8..).map(|(verb, version)| {
            let id = EventId::new(Timestamp::from_millis(version.into()), [version; 10]);
            let event = Event {
                id,
                at: Timestamp::from_millis(5),
                event_type: format!("asset.{verb}"),
                entity_id: Uuid::from_u128(1),
                version: version.into(),
                actor: Actor::operator(),
                changes: serde_json::Map::from_iter([("n".to_owned(), serde_json::json!({"old": null, "new": 1.5}))]),
                previous_hash: previous.clone(),
            };
            let text = event.canonical().expect("finite");
            let hash = event::hash(&text);
            previous = Some(hash.clone());
            HistoryEntry { id, text, hash }
        });
        entries.collect()
    }

    fn check(entries: &[HistoryEntry], head: Option<(u64, &str)>) -> Result<u64, (u64, ChainError)> {
        let mut chain = Chain::new(head.map(|(version, hash)| ChainHead { version, last_hash: hash.to_owned() }));
        for entry in entries {
            let (_, version) = subject(&entry.text).unwrap_or(((None, Uuid::nil()), chain.next()));
            chain.add(version, entry);
        }
        let result = chain.finish();
        assert_eq!(result.valid, result.broken.is_none());
        result.broken.map_or(Ok(result.checked), |broken| Err((broken.version, broken.reason)))
    }

    #[test]
    fn a_complete_history_is_valid_in_any_order() {
        let mut all = entries(&["created", "updated", "updated"]);
        let last = all[2].hash.clone();
        assert_eq!(check(&all, Some((3, &last))), Ok(3));
        // The record was read before the last change.
        assert_eq!(check(&all, Some((2, &all[1].hash.clone()))), Ok(3));
        all.reverse();
        assert_eq!(check(&all, Some((3, &last))), Ok(3));
        assert_eq!(check(&entries(&["created", "deleted"]), None), Ok(2));
    }

    #[test]
    fn changing_any_byte_is_detected() {
        let good = entries(&["created", "updated", "updated"]);
        let head = good[2].hash.clone();
        for (version, entry) in good.iter().enumerate() {
            for index in 0..entry.text.len() {
                let mut bad = good.clone();
                let mut bytes = entry.text.clone().into_bytes();
                bytes[index] ^= 1;
                bad[version].text = String::from_utf8(bytes).expect("ASCII");
                assert!(check(&bad, Some((3, &head))).is_err(), "byte {index} of entry {version}");
            }
            let mut bad = good.clone();
            bad[version].hash = event::hash("x");
            assert_eq!(check(&bad, Some((3, &head))), Err((version as u64 + 1, ChainError::WrongHash)));
        }
    }

    #[test]
    fn replacing_an_entry_and_its_hash_breaks_the_next_entry_or_the_head() {
        let good = entries(&["created", "updated", "updated"]);
        let head = good[2].hash.clone();
        for (version, reason) in [(2, ChainError::WrongPrevious), (3, ChainError::WrongHead)] {
            let mut bad = good.clone();
            let entry = &mut bad[version - 1];
            entry.text = entry.text.replace("operator", "somebody");
            entry.hash = event::hash(&entry.text);
            let broken_version = if version == 3 { 3 } else { version as u64 + 1 };
            assert_eq!(check(&bad, Some((3, &head))), Err((broken_version, reason)));
        }
    }

    #[test]
    fn missing_repeated_and_misplaced_entries_are_found() {
        let good = entries(&["created", "updated", "updated"]);
        let head = Some((3, good[2].hash.as_str()));
        assert_eq!(check(&good[1..], head), Err((1, ChainError::Missing)));
        assert_eq!(check(&[good[0].clone(), good[2].clone()], head), Err((2, ChainError::Missing)));
        assert_eq!(check(&good[..2], head), Err((3, ChainError::Missing)));
        assert_eq!(check(&[], head), Err((1, ChainError::Missing)));
        assert_eq!(check(&good, None), Err((4, ChainError::Gone)));
        assert_eq!(check(&[good.as_slice(), &good[1..2]].concat(), head), Err((2, ChainError::Doubled)));
        assert_eq!(check(&entries(&["updated"]), None), Err((1, ChainError::NotCreated)));
        assert_eq!(check(&entries(&["created", "created"]), None), Err((2, ChainError::NotCreated)));
        assert_eq!(check(&entries(&["created", "deleted", "updated"]), None), Err((3, ChainError::AfterDeletion)));
        let mut foreign = good.clone();
        foreign[1].id = EventId::new(Timestamp::from_millis(9), [9; 10]);
        assert_eq!(check(&foreign, head), Err((2, ChainError::WrongId)));
    }

    #[test]
    fn an_entry_that_is_not_canonical_is_refused() {
        let mut all = entries(&["created", "deleted"]);
        all[1].text = all[1].text.replacen(',', ", ", 1);
        all[1].hash = event::hash(&all[1].text);
        assert_eq!(check(&all, None), Err((2, ChainError::NotCanonical)));
    }
}
