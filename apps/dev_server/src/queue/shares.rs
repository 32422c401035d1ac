//! Shares the worker's capacity among groups.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A group with visible messages. The one with the fewest messages at the worker comes first, then the one that waits longest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub held: usize,
    /// The time since which its oldest visible message could be received.
    pub since: i64,
    pub grouping: String,
}

/// The free part of the worker's capacity, and the groups that wait for it.
///
/// A group may have a third of the free capacity: if it is the only one, it ends up with a quarter of the capacity. Even if
/// many receivers hang, a part stays free for others, and every group can have one message at least while there is free
/// capacity.
#[derive(Debug)]
pub(super) struct Shares {
    free: usize,
    waiting: BinaryHeap<Reverse<Candidate>>,
}

impl Shares {
    pub fn new(free: usize, waiting: Vec<Candidate>) -> Self {
        Self { free, waiting: waiting.into_iter().map(Reverse).collect() }
    }

    /// The group of the next message; `None` if none may have more.
    pub fn next(&mut self) -> Option<Candidate> {
        loop {
            // The free capacity only shrinks: a group that may have none now may have none later.
            let Reverse(next) = self.waiting.pop()?;
            if self.free > 0 && next.held < (self.free / 3).max(1) {
                return Some(next);
            }
        }
    }

    pub fn took(&mut self, waiting: Candidate) {
        self.free -= 1;
        self.waiting.push(Reverse(Candidate { held: waiting.held + 1, ..waiting }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The messages of each grouping in the end, if all have many.
    fn filled(capacity: usize, groups: usize) -> BTreeMap<String, usize> {
        let waiting = (0..groups).map(|number| Candidate { held: 0, since: 0, grouping: format!("{number:03}") });
        let mut shares = Shares::new(capacity, waiting.collect());
        let mut held = BTreeMap::new();
        while let Some(next) = shares.next() {
            *held.entry(next.grouping.clone()).or_default() += 1;
            shares.took(next);
        }
        held
    }

    #[test]
    fn one_group_alone_gets_a_quarter() {
        assert_eq!(filled(256, 1)["000"], 64);
        assert_eq!(filled(4, 1)["000"], 1);
    }

    #[test]
    fn many_groups_leave_room_for_others() {
        for (groups, each, free) in [(2, 51, 154), (20, 11, 33), (100, 2, 8)] {
            let held = filled(256, groups);
            assert!(held.values().all(|held| held.abs_diff(each) <= 1), "{held:?}");
            assert!((256 - held.values().sum::<usize>()).abs_diff(free) <= 3, "{held:?}");
        }
        // More groups than capacity: each gets at most one.
        let held = filled(256, 300);
        assert_eq!((held.len(), held.values().max()), (256, Some(&1)));
    }

    #[test]
    fn who_has_fewest_comes_first_and_then_who_waits_longest() {
        let waiting = |grouping: &str, held, since| Candidate { held, since, grouping: grouping.to_owned() };
        let mut shares = Shares::new(100, vec![waiting("busy", 5, 1), waiting("late", 0, 9), waiting("early", 0, 3)]);
        let mut order = Vec::new();
        for _ in 0..3 {
            let next = shares.next().unwrap();
            order.push(next.grouping.clone());
            shares.took(next);
        }
        assert_eq!(order, ["early", "late", "early"]);
        assert_eq!(Shares::new(12, vec![waiting("busy", 4, 1)]).next(), None);
        assert_eq!(Shares::new(0, vec![waiting("idle", 0, 1)]).next(), None);
    }
}
