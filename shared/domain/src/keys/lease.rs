//! Leases: a function instance takes several requests of a credential's minute at once, and counts them locally.
//!
//! A counter in the table has the number of requests taken in that minute. A share is only added if the limit isn't exceeded, so
//! even many instances don't let more requests through. Unused requests are lost when the minute ends. To limit the loss, the
//! counter also tracks how many requests can be unused, and the same condition keeps that number within a tenth of the limit. In
//! the last quarter of the limit, requests are taken one at a time, and instances use up the ones they hold.

use crate::keys::api_key::window;
use crate::values::time::Timestamp;

/// Divides the limit to get the number of requests that all instances together can hold unused.
const HELD_PART: u64 = 10;
/// Divides the allowance for unused requests to get a share. With larger shares, the first few instances would leave nothing for
/// the others.
const SHARE_PART: u64 = 8;
/// Minimum number of unused requests in a share, but at most half of the allowance. Matters for small limits.
const MIN_UNUSED: u64 = 3;

/// The counter of a credential in one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// Number of requests taken by instances.
    pub taken: u64,
    /// Upper bound on how many of the taken requests are still unused.
    pub held: u64,
}

/// Requests that an instance takes at once: the change to the counter, and its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of requests: the current one, and the ones that the instance will hold.
    pub requests: u64,
    /// Number of requests of earlier shares that are used up and no longer held.
    pub used_up: u64,
    /// Condition: maximum number of requests taken before.
    pub max_taken: u64,
    /// Condition: maximum number of requests held before; `None` if the share adds no held requests.
    pub max_held: Option<u64>,
}

/// A function instance's lease of a credential's requests in one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    window: i64,
    limit: u64,
    /// The counter after the instance's last write.
    counter: Counter,
    /// Requests that the instance can let through without a write.
    left: u64,
    /// The instance's part of the counter's held requests.
    held: u64,
}

impl Lease {
    pub fn new(limit: u32, at: Timestamp) -> Self {
        Self { window: window(at), limit: limit.into(), counter: Counter::default(), left: 0, held: 0 }
    }

    /// Whether the lease is for this minute and this limit. Other leases can't be used.
    pub fn is_for(&self, limit: u32, at: Timestamp) -> bool {
        (self.window, self.limit) == (window(at), limit.into())
    }

    /// Returns the number of the minute, counted from 1970.
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Counts a request. Returns the number of used requests known to the instance: above the limit if the limit is used up.
    ///
    /// # Errors
    ///
    /// Returns the share to take first if nothing is left.
    pub fn count(&mut self) -> Result<u64, Share> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return Ok(self.used());
        }
        if self.counter.taken >= self.limit { Ok(self.limit + 1) } else { Err(self.next_share()) }
    }

    /// Counts a request after taking a share, which left the counter at `counter`. Returns the same as [`Lease::count`].
    pub fn add(&mut self, share: Share, counter: Counter) -> u64 {
        let unused = share.requests - 1;
        self.left += unused;
        self.held += unused;
        // The responses of concurrent writes can arrive in any order.
        self.counter = Counter { taken: counter.taken.max(self.counter.taken), held: counter.held };
        self.used()
    }

    /// Counts a request for which not even [`Share::single`] could be taken. Returns the same as [`Lease::count`].
    pub fn exhaust(&mut self) -> u64 {
        self.counter.taken = self.limit;
        self.limit + 1
    }

    fn used(&self) -> u64 {
        self.counter.taken - self.left
    }

    /// Returns the next share to take: the current request, plus a part of the allowance for unused requests.
    fn next_share(&mut self) -> Share {
        // Reset before the write: if the write's outcome is unknown, the requests count as held until the minute ends.
        let used_up = std::mem::take(&mut self.held);
        let max_held = self.limit / HELD_PART;
        let max_taken = self.limit / 4 * 3;
        let holdable = max_held.saturating_sub(self.counter.held.saturating_sub(used_up));
        let unused =
            (holdable / SHARE_PART).max(MIN_UNUSED).min(holdable / 2).min(max_taken.saturating_sub(self.counter.taken + 1));
        let single = Share { requests: 1, used_up, max_taken: self.limit - 1, max_held: None };
        match unused {
            0 => single,
            _ => Share {
                requests: unused + 1,
                max_taken: max_taken - (unused + 1),
                max_held: Some(max_held + used_up - unused),
                ..single
            },
        }
    }
}

impl Share {
    /// Returns a share of only the current request, which can be taken until the limit is used up; `None` if this share is
    /// already for a single request.
    #[must_use]
    pub fn single(self, limit: u32) -> Option<Self> {
        let single = Self { requests: 1, max_taken: u64::from(limit) - 1, max_held: None, ..self };
        (self.requests > 1).then_some(single)
    }

    pub fn change_of_held(&self) -> i64 {
        (self.requests - 1).cast_signed() - self.used_up.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::time as at;
    use proptest::array::uniform10;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const MINUTE: i64 = 60_000;

    /// The table's counters by minute, with conditional writes.
    #[derive(Default)]
    struct Table(HashMap<i64, Counter>);

    impl Table {
        fn take(&mut self, window: i64, share: Share) -> Option<Counter> {
            let counter = self.0.entry(window).or_default();
            let is_permitted = counter.taken <= share.max_taken && share.max_held.is_none_or(|most| counter.held <= most);
            is_permitted.then(|| {
                counter.taken += share.requests;
                counter.held = counter.held.checked_add_signed(share.change_of_held()).expect("held requests");
                *counter
            })
        }

        /// Counts a request like an instance that receives every response. Also returns the number of writes.
        fn count(&mut self, lease: &mut Lease, limit: u32) -> (u64, usize) {
            let share = match lease.count() {
                Ok(used) => return (used, 0),
                Err(share) => share,
            };
            let shares: Vec<Share> = std::iter::once(share).chain(share.single(limit)).collect();
            for (writes, share) in shares.iter().enumerate() {
                if let Some(counter) = self.take(lease.window, *share) {
                    return (lease.add(*share, counter), writes + 1);
                }
            }
            (lease.exhaust(), shares.len())
        }
    }

    #[test]
    fn one_instance_uses_exactly_the_limit_and_knows_what_remains() {
        for limit in [1, 2, 5, 10, 19, 20, 60, 600, 1_000_000] {
            let (mut table, mut lease, mut writes) = (Table::default(), Lease::new(limit, at(0)), 0);
            for n in 1..=u64::from(limit) {
                let (used, written) = table.count(&mut lease, limit);
                assert_eq!(used, n, "limit {limit}");
                writes += written;
            }
            for _ in 0..3 {
                assert_eq!(table.count(&mut lease, limit), (u64::from(limit) + 1, 0), "limit {limit}");
            }
            // Another instance finds the limit used up after one or two writes.
            let mut other = Lease::new(limit, at(0));
            let refused: Vec<_> = (0..3).map(|_| table.count(&mut other, limit)).collect();
            assert!(refused.iter().all(|(used, _)| *used == u64::from(limit) + 1), "limit {limit}");
            assert!((1..=2).contains(&refused[0].1) && refused[1..].iter().all(|(_, written)| *written == 0), "{refused:?}");
            assert!(limit < 100 || writes <= limit as usize * 2 / 5, "limit {limit}: {writes} writes");
        }
    }

    #[test]
    fn shares_are_large_first_and_single_in_the_last_quarter() {
        let share = |taken, held| {
            let lease = Lease { counter: Counter { taken, held }, ..Lease::new(600, at(0)) };
            let share = { lease }.count().expect_err("nothing is left");
            (share.requests, share.max_taken, share.max_held)
        };
        assert_eq!(share(0, 0), (8, 442, Some(53)));
        assert_eq!(share(100, 30), (4, 446, Some(57)), "another instance holds some");
        assert_eq!(share(100, 60), (1, 599, None), "others hold as much as possible");
        assert_eq!(share(444, 0), (6, 444, Some(55)), "up to the last quarter");
        assert_eq!(share(449, 0), (1, 599, None));
        assert_eq!(share(599, 0), (1, 599, None));
        let (mut table, mut lease) = (Table::default(), Lease::new(600, at(0)));
        let writes: usize = (0..100).map(|_| table.count(&mut lease, 600).1).sum();
        assert_eq!(writes, 13, "for the first 100 requests");
    }

    #[test]
    fn what_an_instance_has_used_up_it_can_hold_again() {
        let (mut table, mut lease) = (Table::default(), Lease::new(600, at(0)));
        for _ in 0..8 {
            table.count(&mut lease, 600);
        }
        let share = lease.count().expect_err("nothing is left");
        assert_eq!((share.requests, share.used_up, share.change_of_held()), (8, 7, 0));
        // The write's outcome is unknown: the used-up requests count as held until the minute ends.
        assert_eq!(lease.count().expect_err("nothing is left").used_up, 0);
    }

    #[test]
    fn a_lease_is_for_its_minute_and_its_limit() {
        let lease = Lease::new(600, at(MINUTE - 1));
        assert!(lease.is_for(600, at(0)) && !lease.is_for(600, at(MINUTE)) && !lease.is_for(601, at(0)));
    }

    /// Requests to random instances, with clocks up to a second apart. Instances freeze during a write, and writes fail or lose
    /// their response.
    #[derive(Debug, Clone)]
    enum Step {
        Request {
            instance: usize,
        },
        /// The write takes effect, and its response arrives later or never.
        Freeze {
            instance: usize,
            is_answered: bool,
        },
        Failure {
            instance: usize,
        },
        Thaw,
        Time {
            millis: i64,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let instance = || 0..10_usize;
        let step = prop_oneof![
            60 => instance().prop_map(|instance| Step::Request { instance }),
            3 => (instance(), any::<bool>()).prop_map(|(instance, is_answered)| Step::Freeze { instance, is_answered }),
            2 => instance().prop_map(|instance| Step::Failure { instance }),
            3 => Just(Step::Thaw),
            5 => (0..2_000_i64).prop_map(|millis| Step::Time { millis }),
        ];
        proptest::collection::vec(step, 0..1_500)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn random_instances_never_let_more_through_than_the_limit(limit in 1..300_u32, skews in uniform10(0..1_000_i64), steps in steps()) {
            let mut now = 0;
            let mut table = Table::default();
            let mut leases: Vec<Lease> = skews.iter().map(|skew| Lease::new(limit, at(*skew))).collect();
            let mut frozen: Vec<(usize, i64, Share, Counter)> = Vec::new();
            let mut let_through: HashMap<i64, u64> = HashMap::new();
            // Requests in shares whose response was lost, by minute. No instance uses them.
            let mut lost: HashMap<i64, u64> = HashMap::new();
            for step in steps {
                let instance = match step {
                    Step::Time { millis } => {
                        now += millis;
                        continue;
                    }
                    Step::Thaw => {
                        for (instance, window, share, counter) in frozen.drain(..) {
                            // The request counts in the minute of its arrival; the rest of the share is useless in other minutes.
                            *let_through.entry(window).or_default() += 1;
                            if leases[instance].window == window {
                                leases[instance].add(share, counter);
                            }
                        }
                        continue;
                    }
                    Step::Request { instance } | Step::Freeze { instance, .. } | Step::Failure { instance } => instance,
                };
                let time = at(now + skews[instance]);
                let lease = &mut leases[instance];
                if !lease.is_for(limit, time) {
                    *lease = Lease::new(limit, time);
                }
                let used = match step {
                    Step::Request { .. } => table.count(lease, limit).0,
                    Step::Freeze { is_answered, .. } => match lease.count() {
                        Ok(used) => used,
                        Err(share) => {
                            match table.take(lease.window, share) {
                                Some(counter) if is_answered => frozen.push((instance, lease.window, share, counter)),
                                Some(_) => *lost.entry(lease.window).or_default() += share.requests,
                                None => {}
                            }
                            continue;
                        }
                    },
                    // The request is let through without being counted: there is no guarantee while the table fails.
                    Step::Failure { .. } => match lease.count() {
                        Ok(used) => used,
                        Err(_) => continue,
                    },
                    Step::Thaw | Step::Time { .. } => continue,
                };
                if used <= limit.into() {
                    *let_through.entry(lease.window).or_default() += 1;
                } else {
                    // Early rejections: at most the requests held elsewhere, in flight, or lost with a response.
                    let waiting = frozen.iter().filter(|(_, window, ..)| *window == lease.window).count() as u64;
                    let lost = lost.get(&lease.window).copied().unwrap_or_default();
                    let missing = u64::from(limit) - let_through.get(&lease.window).copied().unwrap_or_default();
                    prop_assert!(missing <= u64::from(limit) / HELD_PART + waiting + lost, "{missing} of {limit} refused");
                }
            }
            for (window, count) in let_through {
                prop_assert!(count <= limit.into(), "{count} of {limit} in minute {window}");
            }
        }
    }
}
