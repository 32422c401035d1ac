//! Tests of verifying histories.

use super::*;
use crate::actor::Actor;
use crate::history::event::{self, Event};
use crate::samples::chained;
use crate::values::id::Id;
use crate::values::time::Timestamp;

fn entries(verbs: &[&str]) -> Vec<HistoryEntry> {
    let events = verbs.iter().zip(1u8..).map(|(verb, version)| {
        let id = EventId::new(Timestamp::from_millis(version.into()), [version; 10]);
        Event {
            id,
            at: Timestamp::from_millis(5),
            event_type: format!("asset.{verb}"),
            entity_id: Uuid::from_u128(1),
            version: version.into(),
            actor: Actor::operator(),
            changes: serde_json::Map::from_iter([("n".to_owned(), serde_json::json!({"old": null, "new": 1.5}))]),
            previous_hash: None,
        }
    });
    chained(events)
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
