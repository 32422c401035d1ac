//! The events of the last seconds that an index has applied, which need not be read again when there are many.

use super::change_event::{ChangeEvent, UnknownEvent};
use super::index::ListIndex;
use crate::domain::record::Kind;
use crate::domain::values::id::{EventId, Id};
use crate::domain::values::time::Timestamp;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use uuid::Uuid;

/// From this number of events on, those that were applied are counted instead of read. Below, a second query costs more than it
/// saves.
pub const MANY_EVENTS: usize = 100;
/// The number of events, of about 1 KB, that one query counts: less than a page.
const COUNTED_AT_ONCE: usize = 800;

/// By id; with the record, if the event removes it.
#[derive(Debug, Default)]
pub struct AppliedEvents(BTreeMap<EventId, Option<(Kind, Uuid)>>);

impl AppliedEvents {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Splits the time from `from` to `to` into parts that are counted at the same time, with the number of applied events in each.
    pub fn parts(&self, from: Timestamp, to: Timestamp) -> Vec<(Range<Timestamp>, usize)> {
        let count = 1 + self.0.range(first_id(from)..first_id(to)).count() / COUNTED_AT_ONCE;
        let millis = to.since(from).num_milliseconds();
        let bound = |n: usize| Timestamp::from_millis(from.millis() + millis * n as i64 / count as i64);
        let parts = (0..count).map(|n| bound(n)..bound(n + 1));
        parts.map(|part| (part.clone(), self.0.range(first_id(part.start)..first_id(part.end)).count())).collect()
    }

    pub fn contains(&self, UnknownEvent(id): &UnknownEvent) -> bool {
        self.0.contains_key(id)
    }

    /// The records that these events remove.
    pub fn removed(&self) -> HashSet<(Kind, Uuid)> {
        self.0.values().copied().flatten().collect()
    }

    pub fn add<I: ListIndex>(&mut self, events: &[ChangeEvent], others: Vec<EventId>) {
        self.0.extend(events.iter().map(|event| (event.id, I::is_removed_by(event).then(|| event.record()))));
        self.0.extend(others.into_iter().map(|id| (id, None)));
    }

    pub fn append(&mut self, Self(mut later): Self) {
        self.0.append(&mut later);
    }

    /// Earlier events are not read again.
    pub fn forget_before(&mut self, time: Timestamp) {
        self.0 = self.0.split_off(&first_id(time));
    }
}

fn first_id(time: Timestamp) -> EventId {
    EventId::new(time, [0; 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_time_once_with_the_events_in_each() {
        let at = Timestamp::from_millis;
        let mut applied = AppliedEvents::default();
        applied.0.extend((0..2_000).map(|n| (EventId::new(at(5_000 + n * 3), [n as u8; 10]), None)));
        for (from, to) in [(0, 20_000), (5_000, 11_000), (5_001, 10_999), (6_000, 6_001), (20_000, 30_000)] {
            let parts = applied.parts(at(from), at(to));
            let bounds: Vec<Timestamp> = parts.iter().map(|(part, _)| part.start).chain([at(to)]).collect();
            assert_eq!(bounds.first(), Some(&at(from)));
            assert!(parts.iter().zip(&bounds[1..]).all(|((part, _), next)| part.end == *next));
            let inside = (0..2_000).filter(|n| (from..to).contains(&(5_000 + n * 3))).count();
            assert_eq!(parts.iter().map(|(_, count)| count).sum::<usize>(), inside, "{from} to {to}");
        }
        assert_eq!(applied.parts(at(5_000), at(11_000)).len(), 3);
        applied.forget_before(at(8_000));
        assert_eq!(applied.len(), 1_000);
    }
}
