//! Keys of events: in the table by time, in the index `history` by record and version.

use super::{COMMITMENTS, HS, Item, Key, Keys};
use crate::domain::history::commitments::{Commitment, Commitments};
use crate::domain::values::id::{EventId, Id, TenantId};
use crate::domain::values::time::Timestamp;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use uuid::Uuid;

pub const EVENTS: &str = "EVENT#";
/// The digits of a version in the index `history`.
const VERSION_DIGITS: usize = 10;
/// The highest version that has a key in the index `history`.
pub const LAST_VERSION: u64 = 9_999_999_999;

impl Keys {
    /// `EVENT#<id>`: one event.
    #[must_use]
    pub fn event(&self, id: EventId) -> Key {
        self.key(format!("{EVENTS}{}", id.short()))
    }

    /// The sort key, in the index `history`, of the event that made this version of a record.
    ///
    /// Versions have leading zeros so that they sort as numbers. The newest is therefore the number of events, and a page of a
    /// history is a range of keys.
    #[must_use]
    pub fn history(record: Uuid, version: u64) -> AttributeValue {
        AttributeValue::S(format!("{}#{version:0VERSION_DIGITS$}", EventId::from_uuid(record).short()))
    }

    /// From an item of the index `history`.
    #[must_use]
    pub fn history_row(item: &Item) -> Option<(u64, EventId)> {
        let (_, version) = history_entry(item.get(HS)?)?;
        Some((version, event_id(&Key::of(item)?)?))
    }

    /// The first and the last sort key that an event can have whose id was created at `since` or later.
    #[must_use]
    pub fn events_since(since: Timestamp) -> (AttributeValue, AttributeValue) {
        let first = EventId::new(since, [0; 10]).short();
        (AttributeValue::S(format!("{EVENTS}{first}")), AttributeValue::S(format!("{EVENTS}~")))
    }

    /// The first and the last sort key that an event can have whose id was created from `from` on and before `end`.
    #[must_use]
    pub fn events_in(from: Timestamp, end: Timestamp) -> Option<(AttributeValue, AttributeValue)> {
        Self::events_between(Some(Self::last_event_before(from)), end)
    }

    /// The last possible id of an event that was created before `end`.
    #[must_use]
    pub fn last_event_before(end: Timestamp) -> EventId {
        EventId::new(end.plus(TimeDelta::milliseconds(-1)), [u8::MAX; 10])
    }

    /// The range of sort keys of events after `after` whose id was created before `end`; `None` if there can be no such event.
    #[must_use]
    pub fn events_between(after: Option<EventId>, end: Timestamp) -> Option<(AttributeValue, AttributeValue)> {
        // No key sorts between an id's key and the same key with one more character.
        let from = after.map_or_else(|| EVENTS.to_owned(), |after| format!("{EVENTS}{}~", after.short()));
        let to = format!("{EVENTS}{}", EventId::new(end, [0; 10]).short());
        (from < to).then_some((AttributeValue::S(from), AttributeValue::S(to)))
    }
}

/// The record and the version in a sort key of the index `history`.
#[must_use]
pub fn history_entry(key: &AttributeValue) -> Option<(Uuid, u64)> {
    let (record, version) = key.as_s().ok()?.split_once('#')?;
    Some((EventId::from_short(record)?.uuid(), version.parse().ok()?))
}

#[must_use]
pub fn event_id(key: &Key) -> Option<EventId> {
    key.sort().strip_prefix(EVENTS).and_then(EventId::from_short)
}

#[must_use]
pub fn event_of(partition: &str, sort: &str) -> Option<(TenantId, EventId)> {
    let key = Key { pk: partition.to_owned(), sk: sort.to_owned() };
    Some((super::tenant(&key)?, event_id(&key)?))
}

/// The commitments of an event.
#[must_use]
pub fn commitments_of(item: &Item) -> Commitments {
    let stored = item.get(COMMITMENTS).and_then(|commitments| commitments.as_m().ok());
    let commitment = |(pointer, value): (&String, &AttributeValue)| {
        let pointer = if pointer.starts_with('/') { pointer.clone() } else { format!("{CHANGES}{pointer}") };
        Some((pointer, Commitment::from_bytes(value.as_b().ok()?.as_ref())?))
    };
    stored.into_iter().flatten().filter_map(commitment).collect()
}

/// Most pointers begin with it. It is not stored, so that entries stay small.
const CHANGES: &str = "/changes/";

/// `None` without commitments.
#[must_use]
pub fn commitments_attribute(commitments: &Commitments) -> Option<AttributeValue> {
    let stored = commitments.iter().map(|(pointer, commitment)| {
        (pointer.strip_prefix(CHANGES).unwrap_or(pointer).to_owned(), AttributeValue::B(Blob::new(commitment.as_bytes())))
    });
    (!commitments.is_empty()).then(|| AttributeValue::M(stored.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_rows_sort_by_version_and_can_be_read() {
        let keys = Keys::of(TenantId::new(Timestamp::from_millis(0), [0; 10]));
        let event = EventId::new(Timestamp::from_millis(7), [7; 10]);
        let mut row = keys.event(event).item();
        row.insert(HS.to_owned(), Keys::history(Uuid::from_u128(9), 12));
        assert_eq!(Keys::history_row(&row), Some((12, event)));
        let sort = |version| Keys::history(Uuid::from_u128(9), version).as_s().cloned().ok();
        assert!(sort(9) < sort(10) && sort(999) < sort(1_000_000_000));
    }

    #[test]
    fn the_key_of_an_event_names_its_tenant() {
        let (tenant, event) =
            (TenantId::new(Timestamp::from_millis(0), [1; 10]), EventId::new(Timestamp::from_millis(7), [7; 10]));
        let keys = Keys::of(tenant);
        let of = |key: &Key| event_of(&key.pk, &key.sk);
        assert_eq!(of(&keys.event(event)), Some((tenant, event)));
        assert_eq!(of(&keys.rate(event.uuid(), 1)), None);
        assert_eq!(event_of("REGISTRY", &keys.event(event).sk), None);
    }

    #[test]
    fn events_after_an_event_begin_with_the_next_one() {
        let at = Timestamp::from_millis;
        let event = EventId::new(at(1000), [9; 10]);
        let key = |id: EventId| format!("{EVENTS}{}", id.short());
        let (from, to) = Keys::events_between(Some(event), at(2000)).expect("a range");
        let (from, to) = (from.as_s().expect("text"), to.as_s().expect("text"));
        assert!(*from > key(event) && *from < key(EventId::from_uuid(Uuid::from_u128(event.uuid().as_u128() + 1))));
        assert!(*to > key(EventId::new(at(1999), [255; 10])) && *to <= key(EventId::new(at(2000), [0; 10])));
        assert_eq!(Keys::events_between(Some(event), at(1000)), None);
        assert!(Keys::events_between(None, at(1000)).is_some());
        let last = Keys::last_event_before(at(2000));
        assert!(last >= EventId::new(at(1999), [255; 10]) && last < EventId::new(at(2000), [0; 10]));
    }
}
