//! The chain of a history while it is verified. How a record and its events contradict each other.

use super::{BrokenLink, ChainError, ChainHead, HistoryEntry, Verification, verb_of};

use crate::history::event::{self, Verb};
use crate::values::id::EventId;
use crate::values::json;
use std::borrow::Cow;
use std::collections::BTreeMap;

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

#[derive(Debug)]
struct Link {
    id: EventId,
    hash: String,
    previous: Option<String>,
    /// `None` for a type that this version of the service does not know.
    verb: Option<Verb>,
    /// An error of the entry itself.
    error: Option<ChainError>,
}

impl Chain {
    /// `head` comes from the record, if it exists.
    #[must_use]
    pub fn new(head: Option<ChainHead>) -> Self {
        Self { head, ..Self::default() }
    }

    #[must_use]
    pub fn next(&self) -> u64 {
        self.checked + 1
    }

    /// The chain is valid so far, but ends with neither a record nor a deletion.
    #[must_use]
    pub fn ends_open(&self) -> bool {
        self.head.is_none() && self.broken.is_none() && self.waiting.is_empty() && self.checked > 0 && !self.ends_with_deletion()
    }

    #[must_use]
    pub fn ends_with_deletion(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, verb)| *verb == Some(Verb::Deleted))
    }

    /// `head` is a record that was read after the entries. It may have changed further since. `None` is a record without a
    /// tombstone, of which only the entry of its deletion can tell.
    #[must_use]
    pub fn agrees_with(&self, head: Option<&ChainHead>) -> bool {
        let hash = self.last.as_ref().map(|(hash, _)| hash);
        match head {
            Some(head) => head.version > self.checked || head.version == self.checked && hash == Some(&head.last_hash),
            None => self.ends_with_deletion(),
        }
    }

    /// The chain is valid so far, but has entries beyond the record's version.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.broken.is_none() && self.head.as_ref().is_some_and(|head| head.version < self.checked)
    }

    /// The chain is valid so far, but lacks an entry that must exist.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.broken.is_none() && (!self.waiting.is_empty() || self.is_behind() || self.checked == 0)
    }

    /// The record's version is beyond the last entry.
    fn is_behind(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.version > self.checked)
    }

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

    #[must_use]
    pub fn finish(self) -> Verification {
        let next = self.next();
        let end = |reason| Some(BrokenLink { event_id: None, version: next, reason });
        let (has_gap, is_deleted) = (self.has_gap(), self.ends_with_deletion());
        let broken = match (self.broken, &self.head) {
            (Some(broken), _) => Some(broken),
            (None, _) if has_gap => end(ChainError::Missing),
            (None, None) if !is_deleted => end(ChainError::Gone),
            (None, _) => None,
        };
        Verification { valid: broken.is_none(), checked: self.checked, broken }
    }
}

impl Link {
    fn read(version: u64, entry: &HistoryEntry) -> Self {
        let mut link =
            Self { id: entry.id, hash: entry.hash.clone(), previous: None, verb: None, error: Some(ChainError::Unreadable) };
        let Ok(value) = json::parse(&entry.text) else { return link };
        let (Some(id), true) = (value["id"].as_str(), value["type"].is_string()) else { return link };
        link.verb = verb_of(&value);
        link.previous = value["previous_hash"].as_str().map(str::to_owned);
        let is_wrong_id = id != entry.id.to_string() || value["version"].as_u64() != Some(version);
        // With commitments, the hash is computed from the values, in whatever form the text has them.
        let is_canonical =
            !entry.commitments.is_empty() || event::canonical(&value).is_ok_and(|canonical| canonical == entry.text);
        link.error = if entry.commitments.hash_of(Cow::Owned(value), &entry.text).as_ref() != Some(&entry.hash) {
            Some(ChainError::WrongHash)
        } else if !is_canonical {
            Some(ChainError::NotCanonical)
        } else {
            is_wrong_id.then_some(ChainError::WrongId)
        };
        link
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// Events are beyond the record's version.
    #[error("it is at version {record}, but its history is at {history}")]
    RecordBehind { record: u64, history: u64 },
    #[error("its history ends without a deletion, but the record is missing")]
    RecordLost,
    #[error("it still exists, but its history says that it was deleted")]
    RecordLeft,
    /// It has the hash of its last event.
    #[error("it names another event than its last")]
    OtherEvent,
    #[error("its history is broken at version {}: {}", .0.version, .0.reason)]
    Broken(BrokenLink),
}

/// The chain has all of the record's events. `is_named` says whether the record names the last of them.
#[must_use]
pub fn contradiction(chain: Chain, head: Option<&ChainHead>, is_named: bool) -> Option<Contradiction> {
    let (history, is_deleted) = (chain.next() - 1, chain.ends_with_deletion());
    match (chain.finish().broken, head) {
        (Some(link), None) if link.reason == ChainError::Gone => Some(Contradiction::RecordLost),
        (Some(link), _) => Some(Contradiction::Broken(link)),
        (None, Some(head)) if head.version < history && is_deleted => Some(Contradiction::RecordLeft),
        (None, Some(head)) if head.version < history => Some(Contradiction::RecordBehind { record: head.version, history }),
        (None, Some(_)) if !is_named => Some(Contradiction::OtherEvent),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Actor;
    use crate::history::chain::HistoryEntry;
    use crate::history::event::Event;
    use crate::samples::{chained, time};
    use crate::values::id::{EventId, Id};
    use uuid::Uuid;

    fn entries(verbs: &[&str]) -> Vec<HistoryEntry> {
        chained(verbs.iter().zip(1u8..).map(|(verb, version)| Event {
            id: EventId::new(time(version.into()), [version; 10]),
            at: time(5),
            event_type: format!("asset.{verb}"),
            entity_id: Uuid::from_u128(1),
            version: version.into(),
            actor: Actor::operator(),
            changes: serde_json::Map::new(),
            previous_hash: None,
        }))
    }

    /// Of a record at this version, whose history was `verbs` and has lost the entries `lost`.
    fn found(verbs: &[&str], lost: &[u64], version: Option<u64>, is_named: bool) -> Option<Contradiction> {
        let all = entries(verbs);
        let hash = |version: u64| all.get(usize::try_from(version).expect("small") - 1).map(|entry| entry.hash.clone());
        let head = version.map(|version| ChainHead { version, last_hash: hash(version).unwrap_or_default() });
        let mut chain = Chain::new(head.clone());
        for (version, entry) in (1..).zip(&all).filter(|(version, _)| !lost.contains(version)) {
            chain.add(version, entry);
        }
        contradiction(chain, head.as_ref(), is_named)
    }

    fn missing(version: u64) -> Option<Contradiction> {
        Some(Contradiction::Broken(BrokenLink { event_id: None, version, reason: ChainError::Missing }))
    }

    #[test]
    fn a_restore_can_lose_the_last_change_of_a_record_or_its_event() {
        let two = ["created", "updated"];
        assert_eq!(found(&two, &[], Some(2), true), None);
        assert_eq!(found(&two, &[], Some(1), true), Some(Contradiction::RecordBehind { record: 1, history: 2 }));
        assert_eq!(found(&two, &[], None, true), Some(Contradiction::RecordLost));
        assert_eq!(found(&two, &[2], Some(2), true), missing(2));
        assert_eq!(found(&["created"], &[1], Some(1), true), missing(1));
        assert_eq!(found(&["created", "updated", "updated"], &[2, 3], Some(3), true), missing(2));
    }

    #[test]
    fn a_restore_can_lose_a_deletion_or_its_event() {
        let deleted = ["created", "deleted"];
        assert_eq!(found(&deleted, &[], None, true), None);
        assert_eq!(found(&deleted, &[], Some(1), true), Some(Contradiction::RecordLeft));
        assert_eq!(found(&deleted, &[2], None, true), Some(Contradiction::RecordLost));
    }

    #[test]
    fn a_record_names_its_last_event() {
        let two = ["created", "updated"];
        assert_eq!(found(&two, &[], Some(2), false), Some(Contradiction::OtherEvent));
        assert_eq!(found(&two, &[], Some(1), false), Some(Contradiction::RecordBehind { record: 1, history: 2 }));
    }

    #[test]
    fn a_history_can_be_broken_in_the_middle_or_end_too_early() {
        let three = ["created", "updated", "updated"];
        for (lost, version, first) in [(2, Some(3), 2), (2, None, 2), (1, Some(3), 1), (1, Some(2), 1)] {
            assert_eq!(found(&three, &[lost], version, true), missing(first), "{lost} {version:?}");
        }
        assert_eq!(found(&["created", "deleted"], &[], Some(3), true), missing(3));
    }
}
