//! How a record and its events contradict each other.

use crate::history::chain::{BrokenLink, Chain, ChainError, ChainHead};

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
