//! The differences between a record and its events.

use crate::history::chain::{BrokenLink, Chain, ChainError, ChainHead};
use crate::processes::process::MAX_STEPS;

/// The difference between a record and its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainState {
    Consistent,
    /// Events are beyond the record's version.
    RecordBehind,
    /// The record's last event is lost, or its last few.
    EventLost,
    /// The record or the event of its deletion is lost.
    RecordLost,
    /// The record is there although its last event deleted it.
    RecordLeft,
    /// The record has the hash of its last event, and names another.
    OtherEvent,
    /// Not caused by a restore.
    Broken(BrokenLink),
}

/// The number of entries at the end of a history that can be replaced: those that one transaction writes of a process instance,
/// which it starts and completes.
const MAX_LOST_ENTRIES: u64 = 1 + MAX_STEPS as u64;

/// `newest` is the highest version of the events, and `is_named` says whether the record names the event of that version. The
/// chain has all of its events.
pub fn classify(chain: Chain, head: Option<&ChainHead>, newest: u64, is_named: bool) -> ChainState {
    let (last, is_deleted) = (chain.next() - 1, chain.ends_with_deletion());
    match (chain.finish().broken, head) {
        (Some(link), Some(head))
            if link.reason == ChainError::Missing
                && link.version == newest + 1
                && newest < head.version
                && head.version - newest <= MAX_LOST_ENTRIES
                && !is_deleted =>
        {
            ChainState::EventLost
        }
        (Some(link), None) if link.reason == ChainError::Gone => ChainState::RecordLost,
        (Some(link), _) => ChainState::Broken(link),
        (None, Some(head)) if is_deleted && head.version < last => ChainState::RecordLeft,
        (None, Some(head)) if head.version < last => ChainState::RecordBehind,
        (None, Some(_)) if !is_named => ChainState::OtherEvent,
        (None, _) => ChainState::Consistent,
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

    /// The state of a record at this version, whose history was `verbs` and has lost the entries `lost`.
    fn state(verbs: &[&str], lost: &[u64], version: Option<u64>) -> ChainState {
        state_if_named(verbs, lost, version, true)
    }

    fn state_if_named(verbs: &[&str], lost: &[u64], version: Option<u64>, is_named: bool) -> ChainState {
        let all = entries(verbs);
        let hash = |version: u64| all.get(usize::try_from(version).expect("small") - 1).map(|entry| entry.hash.clone());
        let head = version.map(|version| ChainHead { version, last_hash: hash(version).unwrap_or_default() });
        let mut chain = Chain::new(head.clone());
        let mut newest = 0;
        for (version, entry) in (1..).zip(&all).filter(|(version, _)| !lost.contains(version)) {
            chain.add(version, entry);
            newest = version;
        }
        classify(chain, head.as_ref(), newest, is_named)
    }

    #[test]
    fn a_restore_can_lose_the_last_change_of_a_record_or_its_event() {
        let two = ["created", "updated"];
        assert_eq!(state(&two, &[], Some(2)), ChainState::Consistent);
        assert_eq!(state(&two, &[], Some(1)), ChainState::RecordBehind);
        assert_eq!(state(&two, &[2], Some(2)), ChainState::EventLost);
        assert_eq!(state(&["created"], &[1], Some(1)), ChainState::EventLost);
        assert_eq!(state(&["created", "updated", "updated"], &[2, 3], Some(3)), ChainState::EventLost);
        assert_eq!(state(&two, &[], None), ChainState::RecordLost);
    }

    #[test]
    fn a_restore_can_lose_a_deletion_or_its_event() {
        let deleted = ["created", "deleted"];
        assert_eq!(state(&deleted, &[], None), ChainState::Consistent);
        assert_eq!(state(&deleted, &[], Some(1)), ChainState::RecordLeft);
        assert_eq!(state(&deleted, &[2], None), ChainState::RecordLost);
    }

    #[test]
    fn a_record_names_its_last_event() {
        let two = ["created", "updated"];
        assert_eq!(state_if_named(&two, &[], Some(2), false), ChainState::OtherEvent);
        assert_eq!(state_if_named(&two, &[], Some(1), false), ChainState::RecordBehind);
    }

    #[test]
    fn anything_else_is_broken() {
        let three = ["created", "updated", "updated"];
        for (lost, version) in [(&[2][..], Some(3)), (&[2], None), (&[1], Some(3)), (&[1], Some(2))] {
            assert!(matches!(state(&three, lost, version), ChainState::Broken(_)), "{lost:?} {version:?}");
        }
        assert!(matches!(state(&["created", "deleted"], &[], Some(3)), ChainState::Broken(_)));
    }
}
