//! The facts that receipts read from the histories of a process instance, its asset and its users.

use super::{ReceiptAsset, ReceiptError};
use crate::history::chain::{BrokenLink, Chain, ChainError, ChainHead, HistoryEntry};
use crate::history::event::Event;
use crate::people;
use crate::processes::instance::Instance;
use crate::values::id::UserId;
use crate::values::time::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn missing(version: u64) -> ReceiptError {
    ReceiptError::BrokenLink(BrokenLink { event_id: None, version, reason: ChainError::Missing })
}

/// Without a `head`, the record may have been deleted since.
pub(super) fn verified_events(history: &[HistoryEntry], head: Option<ChainHead>) -> Result<Vec<Event>, ReceiptError> {
    let mut chain = Chain::new(head);
    let mut events = Vec::new();
    for (version, entry) in (1..).zip(history) {
        chain.add(version, entry);
        let unreadable = BrokenLink { event_id: Some(entry.id), version, reason: ChainError::Unreadable };
        events.push(serde_json::from_str(&entry.text).map_err(|_| ReceiptError::BrokenLink(unreadable))?);
    }
    let beyond = chain.is_beyond().then(|| BrokenLink { event_id: None, version: chain.next(), reason: ChainError::WrongHead });
    match chain.finish().broken.or(beyond) {
        Some(broken) if broken.reason != ChainError::Gone => Err(ReceiptError::BrokenLink(broken)),
        _ => Ok(events),
    }
}

/// The last one that changed the step's value to its present one; `None` if that is null. What was erased is compared by its
/// commitments: several texts may have become one pseudonym.
pub(super) fn submission<'a>(events: &'a [Event], history: &[HistoryEntry], key: &str, value: &Value) -> Option<&'a Event> {
    let sets_value = |event: &Event, entry: &HistoryEntry| {
        let new = event.changes.get("step_data").and_then(|change| change.get("new")?.get(key));
        new == Some(value) && entry.commitments.is_changed(&event.changes, &format!("step_data/{key}"))
    };
    let mut entries = events.iter().zip(history).filter(|_| !value.is_null());
    entries.rfind(|(event, entry)| sets_value(event, entry)).map(|(event, _)| event)
}

/// Whom the histories of an instance or a movement, and of the users who were picked, lack something of.
pub(super) fn erased_people(
    history: &[HistoryEntry],
    events: &[Event],
    user_histories: &BTreeMap<UserId, Vec<HistoryEntry>>,
) -> Result<BTreeSet<UserId>, ReceiptError> {
    let mut erased = erased_in(history, events);
    for (user, history) in user_histories {
        let events = verified_events(history, None)?;
        erased.extend(erased_in(history, &events).take(user));
    }
    Ok(erased)
}

fn erased_in(history: &[HistoryEntry], events: &[Event]) -> BTreeSet<UserId> {
    let entries: Vec<_> = events.iter().zip(history.iter().map(|entry| &entry.commitments)).collect();
    people::erased_people(&entries)
}

/// The event moved on to the next step, or, for the last step, completed the process instance.
pub(super) fn completes_step(event: &Event, index: usize, is_last: bool) -> bool {
    let change = |field: &str, side: &str| event.changes.get(field).and_then(|change| change.get(side));
    // Completion leaves `current_step` at the last step.
    match is_last {
        true => change("status", "new").and_then(Value::as_str) == Some("completed"),
        false => change("current_step", "old").and_then(Value::as_u64) == Some(index as u64),
    }
}

pub(super) fn ends_instance(event: &Event) -> bool {
    let status = event.changes.get("status").and_then(|change| change["new"].as_str());
    status.is_some_and(|status| status != "in_progress")
}

fn replay<'a>(events: impl Iterator<Item = &'a Event>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (field, change) in events.flat_map(|event| &event.changes) {
        fields.insert(field.clone(), change.get("new").cloned().unwrap_or(Value::Null));
    }
    fields
}

/// The asset just after the event by which the process instance ended on it.
pub(super) fn asset_at_completion(instance: &Instance, asset_events: &[Event]) -> ReceiptAsset {
    let id = instance.id.to_string();
    let ends = |event: &Event| event.changes.get("running_instance_id").is_some_and(|change| change["old"] == id.as_str());
    let count = asset_events.iter().position(ends).map_or(asset_events.len(), |index| index + 1);
    let fields = replay(asset_events.iter().take(count));
    let text = |field: &str| fields.get(field).and_then(Value::as_str).map(str::to_owned);
    ReceiptAsset {
        id: instance.asset_id,
        asset_tag: instance.asset_tag.clone(),
        name: text("name").unwrap_or_else(|| instance.asset_name.to_string()),
        serial_number: text("serial_number"),
        location: text("location"),
        manufacturer: text("manufacturer"),
        model: text("model"),
    }
}

pub(super) fn display_name_at(history: &[HistoryEntry], at: Timestamp) -> Result<Option<String>, ReceiptError> {
    let events = verified_events(history, None)?;
    // Clocks differ between servers, but a user who was picked existed, so the first event always counts.
    let past = events.iter().enumerate().filter(|(index, event)| *index == 0 || event.at <= at).map(|(_, event)| event);
    Ok(replay(past).get("display_name").and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Actor;
    use crate::history::commitments::{Commitment, Commitments, SALT_BYTES, pointers_of_changes};
    use crate::samples::chained;
    use crate::values::id::{EventId, Id};
    use serde_json::json;
    use uuid::Uuid;

    /// The changes are one second apart.
    fn history(changes: &[Value]) -> Vec<HistoryEntry> {
        let events = (1..).zip(changes).map(|(version, changes)| {
            let id = EventId::new(Timestamp::from_millis(version * 1000), [0; 10]);
            Event {
                id,
                at: Timestamp::from_millis(version * 1000),
                event_type: if version == 1 { "user.created" } else { "user.updated" }.to_owned(),
                entity_id: Uuid::nil(),
                version: version.unsigned_abs(),
                actor: Actor::operator(),
                changes: changes.as_object().cloned().expect("an object"),
                previous_hash: None,
            }
        });
        chained(events)
    }

    #[test]
    fn a_users_name_is_the_one_of_that_time() {
        let name = |old: Value, new: &str| json!({"display_name": {"old": old, "new": new}});
        let all = history(&[
            name(Value::Null, "a"),
            name(json!("a"), "b"),
            json!({"role": {"old": 1, "new": 2}}),
            name(json!("b"), "c"),
        ]);
        for (seconds, expected) in [(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c"), (99, "c")] {
            let name = display_name_at(&all, Timestamp::from_millis(seconds * 1000));
            assert_eq!(name, Ok(Some(expected.to_owned())), "{seconds}");
        }
        assert_eq!(display_name_at(&[], Timestamp::from_millis(0)).map_err(|_| ()), Err(()), "an empty history");
        assert!(matches!(display_name_at(&all[1..], Timestamp::from_millis(0)), Err(ReceiptError::BrokenLink(_))));
    }

    /// Each entry as it is once the person has been erased.
    fn erased(history: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
        let erased = history.into_iter().map(|entry| {
            let mut value: Value = serde_json::from_str(&entry.text).expect("JSON");
            let pointers = pointers_of_changes(value["changes"].as_object().expect("changes"), &["step_data/*"]);
            let salts = (0..).zip(pointers).map(|(byte, pointer)| (pointer, Commitment::Salt([byte; SALT_BYTES])));
            let mut commitments = salts.collect::<Commitments>().with_unchanged(&value);
            commitments.erase(&mut value, |_| Some("Erased".to_owned()));
            HistoryEntry { text: value.to_string(), commitments, ..entry }
        });
        erased.collect()
    }

    #[test]
    fn the_last_of_several_texts_that_became_one_pseudonym_is_the_submission() {
        let set = |old: Value, new: Value| json!({"step_data": {"old": old, "new": new}});
        let other = json!({"a": "second", "b": "x"});
        let before = history(&[
            set(Value::Null, json!({"a": "first"})),
            set(json!({"a": "first"}), json!({"a": "second"})),
            set(json!({"a": "second"}), other.clone()),
            set(other, json!({"a": "second", "b": "y"})),
        ]);
        let version = |history: &[HistoryEntry], key: &str, value: &str| {
            let read = |entry: &HistoryEntry| serde_json::from_str::<Event>(&entry.text).expect("an event");
            let events: Vec<Event> = history.iter().map(read).collect();
            submission(&events, history, key, &json!(value)).map(|event| event.version)
        };
        assert_eq!((version(&before, "a", "second"), version(&before, "b", "y")), (Some(2), Some(4)));
        assert_eq!((version(&before, "a", "first"), version(&before, "c", "y")), (Some(1), None));
        let after = erased(before);
        assert_eq!((version(&after, "a", "Erased"), version(&after, "b", "Erased")), (Some(2), Some(4)));
    }

    #[test]
    fn a_step_is_completed_by_the_event_that_moved_on_from_it() {
        let step = |old: Value, new: u64| json!({"current_step": {"old": old, "new": new}});
        let done = json!({"status": {"old": "in_progress", "new": "completed"}});
        let entries = history(&[step(Value::Null, 0), step(json!(0), 1), step(json!(1), 2), done]);
        let events = verified_events(&entries, None).expect("a valid history");
        let versions: Vec<Option<u64>> = (0..3)
            .map(|index| events.iter().find(|event| completes_step(event, index, index == 2)).map(|event| event.version))
            .collect();
        assert_eq!(versions, [Some(2), Some(3), Some(4)]);
    }
}
