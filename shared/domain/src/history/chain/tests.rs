//! Tests of verifying histories.

use super::*;
use crate::actor::Actor;
use crate::history::event::Event;
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
