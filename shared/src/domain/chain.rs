//! Checking a chain of the audit trail: that every change of a thing is there, unaltered, one after the other.

use super::event;
use super::id::EventId;
use super::record::Kind;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// A stored entry, as the table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The event that the item's key names.
    pub id: EventId,
    /// The entry's text, which was hashed.
    pub text: String,
    /// The hash that is kept beside it.
    pub hash: String,
}

/// What a record says of its own history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// How many changes there were.
    pub version: u64,
    /// The hash of the latest.
    pub last_hash: String,
}

/// Why a chain does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ChainError {
    /// The entry is not what an entry looks like.
    #[error("the entry can't be read")]
    Unreadable,
    /// The entry is not the canonical text of what it says.
    #[error("the entry is not in its canonical form")]
    NotCanonical,
    /// The hash beside the entry is not the entry's.
    #[error("the entry does not have the hash that is kept beside it")]
    WrongHash,
    /// The entry says that it is another event than the item's key, or of another version.
    #[error("the entry is another event's")]
    WrongId,
    /// The entry names another hash than that of the entry before.
    #[error("the entry does not follow from the one before")]
    WrongPrevious,
    /// There is no entry for this version.
    #[error("the entry is missing")]
    Missing,
    /// Two entries are of the same version.
    #[error("there are two entries for the same version")]
    Doubled,
    /// The first entry is no creation, or a later one is.
    #[error("the history does not begin with a creation, or begins twice")]
    NotCreated,
    /// Something happened after the deletion.
    #[error("something happened after the deletion")]
    AfterDeletion,
    /// The record does not carry the hash of its latest entry.
    #[error("the record carries another hash than its latest entry")]
    WrongHead,
    /// The record is gone, and no entry says so.
    #[error("the record is gone, and no entry says so")]
    Gone,
}

/// The first place where a chain does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BrokenLink {
    /// The event there; null when it is missing.
    #[schema(required)]
    pub event_id: Option<EventId>,
    /// The version that it should have made.
    pub version: u64,
    /// Why.
    pub reason: ChainError,
}

/// What a check of a chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Verification {
    /// Whether the whole chain holds.
    pub valid: bool,
    /// How many entries were found good, from the first on.
    pub checked: u64,
    /// The first place where it does not hold.
    #[schema(required)]
    pub broken: Option<BrokenLink>,
}

/// What is kept of an entry until those before it have come.
#[derive(Debug)]
struct Link {
    id: EventId,
    hash: String,
    previous: Option<String>,
    verb: Verb,
    flaw: Option<ChainError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Created,
    Deleted,
    Other,
}

/// Which thing an entry is about: its kind's noun and its id. Ids alone are unique, too; the noun is for people.
pub type Subject = (Option<Kind>, Uuid);

/// The chain of one thing while it is checked. Entries may come in any order.
#[derive(Debug, Default)]
pub struct Chain {
    head: Option<ChainHead>,
    checked: u64,
    last: Option<(String, Verb)>,
    waiting: BTreeMap<u64, Link>,
    broken: Option<BrokenLink>,
}

/// Reads which thing an entry is about and which version it made; `None` when it can't be read.
#[must_use]
pub fn subject(text: &str) -> Option<(Subject, u64)> {
    let entry: Value = serde_json::from_str(text).ok()?;
    let noun = entry["type"].as_str()?.split_once('.')?.0;
    let kind = Kind::ALL.iter().copied().find(|kind| kind.noun() == noun);
    Some(((kind, entry["entity_id"].as_str()?.parse().ok()?), entry["version"].as_u64()?))
}

/// Whether an entry says that the thing was deleted.
#[must_use]
pub fn is_deletion(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|entry| entry["type"].as_str().is_some_and(|kind| kind.ends_with(".deleted")))
}

impl Chain {
    /// A chain of which nothing has been seen; `head` is what the record says, if there is one.
    #[must_use]
    pub fn new(head: Option<ChainHead>) -> Self {
        Self { head, ..Self::default() }
    }

    /// The next version of which there is no entry yet.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.checked + 1
    }

    /// Whether the chain holds so far, and neither a record nor a deletion says where it ends.
    #[must_use]
    pub fn ends_open(&self) -> bool {
        let deleted = self.last.as_ref().is_some_and(|(_, verb)| *verb == Verb::Deleted);
        self.head.is_none() && self.broken.is_none() && self.waiting.is_empty() && self.checked > 0 && !deleted
    }

    /// Whether there are entries beyond the one that the record ends with.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.broken.is_none() && self.head.as_ref().is_some_and(|head| head.version < self.checked)
    }

    /// Whether the chain holds so far, and lacks an entry that must be there.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.broken.is_none() && (!self.waiting.is_empty() || self.is_behind() || self.checked == 0)
    }

    fn is_behind(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.version > self.checked)
    }

    /// The hash of the latest entry so far.
    #[must_use]
    pub fn hash(&self) -> Option<&str> {
        self.last.as_ref().map(|(hash, _)| hash.as_str())
    }

    /// Adds the entry that made `version`, wherever in the chain that is.
    pub fn add(&mut self, version: u64, entry: &Entry) {
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
            if let Err(reason) = self.follow(&link) {
                self.broken = Some(BrokenLink { event_id: Some(link.id), version: self.checked + 1, reason });
                return;
            }
            self.checked += 1;
            self.last = Some((link.hash, link.verb));
        }
    }

    /// Whether the next link fits the chain so far.
    fn follow(&self, link: &Link) -> Result<(), ChainError> {
        link.flaw.map_or(Ok(()), Err)?;
        let previous = self.last.as_ref();
        if (link.verb == Verb::Created) != previous.is_none() {
            return Err(ChainError::NotCreated);
        }
        if previous.is_some_and(|(_, verb)| *verb == Verb::Deleted) {
            return Err(ChainError::AfterDeletion);
        }
        if link.previous.as_ref() != previous.map(|(hash, _)| hash) {
            return Err(ChainError::WrongPrevious);
        }
        let head = self.head.as_ref().filter(|head| head.version == self.checked + 1);
        if head.is_some_and(|head| head.last_hash != link.hash) { Err(ChainError::WrongHead) } else { Ok(()) }
    }

    /// What the check found, once every entry has come.
    #[must_use]
    pub fn finish(self) -> Verification {
        let next = self.next();
        let end = |reason| Some(BrokenLink { event_id: None, version: next, reason });
        let has_gap = self.has_gap();
        let broken = match (self.broken, &self.head) {
            (Some(broken), _) => Some(broken),
            (None, _) if has_gap => end(ChainError::Missing),
            (None, None) if self.last.as_ref().is_none_or(|(_, verb)| *verb != Verb::Deleted) => end(ChainError::Gone),
            (None, _) => None,
        };
        Verification { valid: broken.is_none(), checked: self.checked, broken }
    }
}

impl Link {
    /// What an entry says; what is wrong with it in itself comes with it.
    fn read(version: u64, entry: &Entry) -> Self {
        let mut link = Self {
            id: entry.id,
            hash: entry.hash.clone(),
            previous: None,
            verb: Verb::Other,
            flaw: Some(ChainError::Unreadable),
        };
        let Ok(value) = serde_json::from_str::<Value>(&entry.text) else { return link };
        let (Some(id), Some(kind)) = (value["id"].as_str(), value["type"].as_str()) else { return link };
        link.verb = match kind.split_once('.').map(|(_, verb)| verb) {
            Some("created") => Verb::Created,
            Some("deleted") => Verb::Deleted,
            _ => Verb::Other,
        };
        link.previous = value["previous_hash"].as_str().map(str::to_owned);
        link.flaw = if event::hash(&entry.text) != entry.hash {
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

    /// A good chain of these verbs.
    fn entries(verbs: &[&str]) -> Vec<Entry> {
        let mut previous: Option<String> = None;
        let made = verbs.iter().zip(1u8..).map(|(verb, version)| {
            let id = EventId::new(Timestamp::from_millis(version.into()), [version; 10]);
            let event = Event {
                id,
                at: Timestamp::from_millis(5),
                kind: format!("asset.{verb}"),
                entity_id: Uuid::from_u128(1),
                version: version.into(),
                actor: Actor::operator(),
                changes: serde_json::Map::from_iter([("n".to_owned(), serde_json::json!({"old": null, "new": 1.5}))]),
                previous_hash: previous.clone(),
            };
            let text = event.canonical().expect("finite");
            let hash = event::hash(&text);
            previous = Some(hash.clone());
            Entry { id, text, hash }
        });
        made.collect()
    }

    fn check(entries: &[Entry], head: Option<(u64, &str)>) -> Result<u64, (u64, ChainError)> {
        let mut chain = Chain::new(head.map(|(version, hash)| ChainHead { version, last_hash: hash.to_owned() }));
        for entry in entries {
            let (_, version) = subject(&entry.text).unwrap_or(((None, Uuid::nil()), chain.next()));
            chain.add(version, entry);
        }
        let found = chain.finish();
        assert_eq!(found.valid, found.broken.is_none());
        found.broken.map_or(Ok(found.checked), |broken| Err((broken.version, broken.reason)))
    }

    #[test]
    fn a_whole_chain_holds_in_any_order() {
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
    fn every_byte_counts() {
        let good = entries(&["created", "updated", "updated"]);
        let head = good[2].hash.clone();
        for (version, entry) in good.iter().enumerate() {
            for place in 0..entry.text.len() {
                let mut bad = good.clone();
                let mut bytes = entry.text.clone().into_bytes();
                bytes[place] ^= 1;
                bad[version].text = String::from_utf8(bytes).expect("ASCII");
                let found = check(&bad, Some((3, &head)));
                assert!(found.is_err(), "byte {place} of entry {version}");
            }
            let mut bad = good.clone();
            bad[version].hash = event::hash("x");
            assert_eq!(check(&bad, Some((3, &head))), Err((version as u64 + 1, ChainError::WrongHash)));
        }
    }

    #[test]
    fn an_entry_replaced_together_with_its_hash_breaks_the_next_or_the_head() {
        let good = entries(&["created", "updated", "updated"]);
        let head = good[2].hash.clone();
        for (version, reason) in [(2, ChainError::WrongPrevious), (3, ChainError::WrongHead)] {
            let mut bad = good.clone();
            let entry = &mut bad[version - 1];
            entry.text = entry.text.replace("operator", "somebody");
            entry.hash = event::hash(&entry.text);
            let place = if version == 3 { 3 } else { version as u64 + 1 };
            assert_eq!(check(&bad, Some((3, &head))), Err((place, reason)));
        }
    }

    #[test]
    fn what_is_missing_doubled_or_too_much_is_found() {
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
    fn another_spelling_of_the_same_entry_is_not_the_entry() {
        let mut all = entries(&["created", "deleted"]);
        all[1].text = all[1].text.replacen(',', ", ", 1);
        all[1].hash = event::hash(&all[1].text);
        assert_eq!(check(&all, None), Err((2, ChainError::NotCanonical)));
    }
}
