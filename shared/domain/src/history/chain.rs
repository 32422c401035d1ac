//! Verifies the history of a record: no entry is missing or altered, each follows from the previous one, and the record matches
//! the last one.

use crate::history::event::Commitments;
use crate::history::event::{self, EventType, Verb};
use crate::record::Kind;
use crate::values::id::EventId;
use crate::values::json;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The event's ID, from the item's key.
    pub id: EventId,
    /// The canonical JSON of the event, including the values behind its commitments.
    pub text: String,
    pub commitments: Commitments,
    pub hash: String,
}

impl HistoryEntry {
    /// Reads an entry as clients get it: the members of the event, its hash and its commitments, and in the feed two members that
    /// the hash doesn't cover. Also returns its version. `None` if one of these is missing or malformed.
    pub fn read(shown: &Value) -> Option<(u64, Self)> {
        let mut members = shown.as_object()?.clone();
        let commitments =
            members.remove("commitments").map_or_else(|| Some(Commitments::default()), |shown| Commitments::read(&shown))?;
        let hash = members.remove("hash")?.as_str()?.to_owned();
        members.retain(|name, _| name != "entity_name" && name != "entity_tag");
        let (version, id) = (members.get("version")?.as_u64()?, members.get("id")?.as_str()?.parse().ok()?);
        Some((version, Self { id, text: event::canonical(&members).ok()?, commitments, hash }))
    }
}

/// The end of a history, as stored in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    pub version: u64,
    pub last_hash: String,
}

/// Why a history is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ChainError {
    #[error("the entry can't be read")]
    Unreadable,
    /// The entry is not in its canonical form (RFC 8785).
    #[error("the entry is not in its canonical form")]
    NotCanonical,
    #[error("the stored hash is not the hash of the entry")]
    WrongHash,
    /// The entry's event ID differs from the ID in its key, or its version is wrong.
    #[error("the entry belongs to a different event or version")]
    WrongId,
    /// The entry's `previous_hash` is not the hash of the previous entry.
    #[error("the entry does not follow from the previous one")]
    WrongPrevious,
    #[error("the entry is missing")]
    Missing,
    #[error("there are two entries for the same version")]
    Doubled,
    #[error("the history does not start with a creation, or contains a second one")]
    NotCreated,
    #[error("there is an entry after the deletion")]
    AfterDeletion,
    #[error("the record's hash differs from the hash of its latest entry")]
    WrongHead,
    #[error("the record is missing, and there is no entry for its deletion")]
    Gone,
}

/// The first invalid entry of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BrokenLink {
    /// ID of the entry's event; null if the entry is missing.
    #[schema(required)]
    pub event_id: Option<EventId>,
    /// Version that the entry should have.
    pub version: u64,
    /// Why the entry is invalid.
    pub reason: ChainError,
}

/// The result of verifying a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Verification {
    /// Whether the whole history is valid.
    pub valid: bool,
    /// Number of valid entries, up to the first invalid one.
    pub checked: u64,
    /// First invalid entry; null if all are valid.
    #[schema(required)]
    pub broken: Option<BrokenLink>,
}

/// Verifies the history of one record. Entries can be added in any order.
#[derive(Debug, Default)]
pub struct Chain {
    head: Option<ChainHead>,
    checked: u64,
    /// The hash and verb of the last checked entry.
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
    /// The verb; `None` if it is unknown to this version of the service.
    verb: Option<Verb>,
    /// An error of the entry itself.
    error: Option<ChainError>,
}

impl Chain {
    /// Starts to verify a history. `head` comes from the record, if the record exists.
    pub fn new(head: Option<ChainHead>) -> Self {
        Self { head, ..Self::default() }
    }

    pub fn next(&self) -> u64 {
        self.checked + 1
    }

    /// Whether the chain is valid so far, but ends with neither a record nor a deletion.
    pub fn ends_open(&self) -> bool {
        self.head.is_none() && self.broken.is_none() && self.waiting.is_empty() && self.checked > 0 && !self.ends_with_deletion()
    }

    pub fn ends_with_deletion(&self) -> bool {
        self.last.as_ref().is_some_and(|(_, verb)| *verb == Some(Verb::Deleted))
    }

    /// Whether the chain agrees with a record that was read after the entries and can have changed in between. `None` means that
    /// there is neither a record nor a tombstone: the chain must end with the record's deletion.
    pub fn agrees_with(&self, head: Option<&ChainHead>) -> bool {
        let hash = self.last.as_ref().map(|(hash, _)| hash);
        match head {
            Some(head) => head.version > self.checked || head.version == self.checked && hash == Some(&head.last_hash),
            None => self.ends_with_deletion(),
        }
    }

    /// Whether the chain is valid so far, but has entries beyond the record's version.
    pub fn is_beyond(&self) -> bool {
        self.broken.is_none() && self.head.as_ref().is_some_and(|head| head.version < self.checked)
    }

    /// Whether the chain is valid so far, but lacks an entry that must exist.
    pub fn has_gap(&self) -> bool {
        self.broken.is_none() && (!self.waiting.is_empty() || self.is_behind() || self.checked == 0)
    }

    /// Whether the record's version is beyond the last entry.
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
        // With commitments, the hash is computed from the values, regardless of their form in the text.
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
    #[error("it is at version {record}, but its history is at {history}")]
    RecordBehind { record: u64, history: u64 },
    #[error("its history ends without a deletion, but the record is missing")]
    RecordLost,
    #[error("it still exists, but its history ends with a deletion")]
    RecordLeft,
    /// The record has the hash of its last event, but the ID of a different event.
    #[error("it names an event other than its last")]
    OtherEvent,
    #[error("its history is broken at version {}: {}", .0.version, .0.reason)]
    Broken(BrokenLink),
}

/// Compares a record with its history. `chain` must have all of the record's events. `is_named`: whether the record names the
/// last event.
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

/// The record that an entry belongs to. The kind is `None` if it is unknown to this version of the service.
pub type Subject = (Option<Kind>, Uuid);

/// Parses the record and version of an entry; `None` if the entry can't be read.
pub fn subject(text: &str) -> Option<(Subject, u64)> {
    let entry = json::parse(text).ok()?;
    let kind = EventType::parse(entry["type"].as_str()?)?.kind;
    Some(((kind, entry["entity_id"].as_str()?.parse().ok()?), entry["version"].as_u64()?))
}

pub fn is_deletion(text: &str) -> bool {
    let entry = json::parse(text).ok();
    entry.is_some_and(|entry| verb_of(&entry) == Some(Verb::Deleted))
}

fn verb_of(entry: &Value) -> Option<Verb> {
    EventType::parse(entry["type"].as_str()?)?.verb
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::event::{Commitment, SALT_BYTES, hash};
    use crate::samples::{at, chained, event};
    use crate::values::id::Id;

    fn entries(verbs: &[&str]) -> Vec<HistoryEntry> {
        let changes = serde_json::json!({"n": {"old": null, "new": 1.5}});
        chained((1..).zip(verbs).map(|(version, verb)| event(version, &format!("asset.{verb}"), &changes)))
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
    fn an_entry_is_read_as_clients_get_it() {
        let commitments: Commitments = [("/changes/n/new".to_owned(), Commitment::Salt([7; SALT_BYTES]))].into_iter().collect();
        let [plain, _] = entries(&["created", "updated"]).try_into().expect("two");
        let event = json::parse(&plain.text).expect("json");
        let hash = commitments.hash_of(Cow::Borrowed(&event), &plain.text).expect("a value to commit to");
        for entry in [plain.clone(), HistoryEntry { commitments, hash, ..plain }] {
            let mut shown = event.clone();
            shown["hash"] = entry.hash.clone().into();
            shown["entity_name"] = "Laptop".into();
            if !entry.commitments.is_empty() {
                shown["commitments"] = serde_json::to_value(&entry.commitments).expect("json");
            }
            assert_eq!(HistoryEntry::read(&shown), Some((1, entry.clone())));
            assert_eq!(check(std::slice::from_ref(&entry), Some((1, &entry.hash))), Ok(1));
            for broken in ["hash", "id", "version"] {
                let mut shown = shown.clone();
                shown[broken] = serde_json::json!([]);
                assert_eq!(HistoryEntry::read(&shown), None, "{broken}");
            }
            shown["commitments"] = serde_json::json!({"/changes/n/new": {"salt": "%"}});
            assert_eq!(HistoryEntry::read(&shown), None);
        }
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
            bad[version].hash = hash("x");
            assert_eq!(check(&bad, Some((3, &head))), Err((version as u64 + 1, ChainError::WrongHash)));
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
        foreign[1].id = EventId::new(at(9), [9; 10]);
        assert_eq!(check(&foreign, head), Err((2, ChainError::WrongId)));
    }

    #[test]
    fn an_entry_that_is_not_canonical_is_refused() {
        let mut all = entries(&["created", "deleted"]);
        all[1].text = all[1].text.replacen(',', ", ", 1);
        all[1].hash = hash(&all[1].text);
        assert_eq!(check(&all, None), Err((2, ChainError::NotCanonical)));
    }

    /// Compares a record at this version with the history `verbs`, without the entries `lost`.
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

    #[test]
    fn a_restore_can_lose_a_change_or_its_event() {
        let [one, two, three, deleted]: [&[&str]; 4] =
            [&["created"], &["created", "updated"], &["created", "updated", "updated"], &["created", "deleted"]];
        let missing = |version| Some(Contradiction::Broken(BrokenLink { event_id: None, version, reason: ChainError::Missing }));
        let behind = Some(Contradiction::RecordBehind { record: 1, history: 2 });
        for (verbs, lost, version, expected) in [
            (two, &[][..], Some(2), None),
            (two, &[], Some(1), behind.clone()),
            (two, &[], None, Some(Contradiction::RecordLost)),
            (two, &[2], Some(2), missing(2)),
            (one, &[1], Some(1), missing(1)),
            (three, &[2, 3], Some(3), missing(2)),
            (three, &[2], Some(3), missing(2)),
            (three, &[2], None, missing(2)),
            (three, &[1], Some(3), missing(1)),
            (three, &[1], Some(2), missing(1)),
            (deleted, &[], None, None),
            (deleted, &[], Some(1), Some(Contradiction::RecordLeft)),
            (deleted, &[2], None, Some(Contradiction::RecordLost)),
            (deleted, &[], Some(3), missing(3)),
        ] {
            assert_eq!(found(verbs, lost, version, true), expected, "{verbs:?} without {lost:?}, record at {version:?}");
        }
        assert_eq!(found(two, &[], Some(2), false), Some(Contradiction::OtherEvent), "the record doesn't name its last event");
        assert_eq!(found(two, &[], Some(1), false), behind);
    }
}
