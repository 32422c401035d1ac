//! The rate limit of a credential: a number of requests in each minute of the clock.
//!
//! A function instance leases several requests of a minute at once, and counts them itself. A counter in the table says how many
//! requests of the minute are taken. Each share is added on condition that the limit isn't exceeded, so no number of instances
//! lets more through. Taken but unused requests are lost when the minute ends: the counter also has their maximum, and the
//! condition keeps it to a tenth of the limit. In the last quarter, requests are taken one by one, and instances use up what they
//! hold.

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;

use crate::values::time::Timestamp;

/// A key's requests are counted together in a window of this length.
pub const WINDOW_SECONDS: i64 = 60;
/// The part of a limit that all instances together may hold unused, as a divisor.
const HELD_PART: u64 = 10;
/// Each share takes 1/8 of the unused allowance. With a larger part, the first few instances would leave nothing to the others.
const SHARE_PART: u64 = 8;
/// The unused requests of a share of a small limit, up to half of the allowance.
const MIN_UNUSED: u64 = 3;

/// Windows are counted from 1970.
#[must_use]
pub fn window(at: Timestamp) -> i64 {
    at.millis().div_euclid(WINDOW_SECONDS * 1000)
}

/// The start of the next window.
#[must_use]
pub fn end_of_window(at: Timestamp) -> Timestamp {
    Timestamp::from_millis((window(at) + 1) * WINDOW_SECONDS * 1000)
}

/// The use of a rate limit in the current window, including the current request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// In requests per window.
    pub limit: u32,
    /// `None` if they could not be counted.
    pub used: Option<u64>,
    /// The start of the next window, as Unix time in seconds.
    pub reset: i64,
    /// Seconds until then, at least 1.
    pub wait: i64,
}

impl Rate {
    #[must_use]
    pub fn new(limit: u32, used: Option<u64>, at: Timestamp) -> Self {
        let reset = (window(at) + 1) * WINDOW_SECONDS;
        let wait = (reset * 1000 - at.millis() + 999).div_euclid(1000).max(1);
        Self { limit, used, reset, wait }
    }

    /// `None` if the number of sent requests is not known.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        Some(u64::from(self.limit).saturating_sub(self.used?))
    }

    /// False for a request that could not be counted.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.used.is_some_and(|used| used > self.limit.into())
    }
}

/// The counter of a credential's minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// How many requests the instances have taken.
    pub taken: u64,
    /// How many of them may be unused.
    pub held: u64,
}

/// Requests that an instance takes at once: what it adds to the counter, and on which condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of requests: the current one, and the ones that the instance will hold.
    pub requests: u64,
    /// Requests of earlier shares that the instance has used up and no longer holds.
    pub used_up: u64,
    /// The most requests that may be taken before.
    pub max_taken: u64,
    /// The most requests that may be held before; `None` if the share adds nothing to them.
    pub max_held: Option<u64>,
}

/// What a function instance has of a credential's requests in one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    window: i64,
    limit: u64,
    /// The counter as the instance's last write left it.
    counter: Counter,
    /// The requests that it can let through without asking the table.
    left: u64,
    /// How many of the counter's held requests are its own.
    held: u64,
}

impl Lease {
    #[must_use]
    pub fn new(limit: u32, at: Timestamp) -> Self {
        Self { window: window(at), limit: limit.into(), counter: Counter::default(), left: 0, held: 0 }
    }

    /// Whether the lease is for this minute and this limit. Any other is worth nothing.
    #[must_use]
    pub fn is_for(&self, limit: u32, at: Timestamp) -> bool {
        (self.window, self.limit) == (window(at), limit.into())
    }

    /// The minute, counted from 1970.
    #[must_use]
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Counts a request, and returns how many are used as far as the instance knows: more than the limit if it is used up.
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

    /// Counts a request with a share that was taken, after which the counter is `counter`. As [`Lease::count`].
    pub fn add(&mut self, share: Share, counter: Counter) -> u64 {
        let unused = share.requests - 1;
        self.left += unused;
        self.held += unused;
        // Of two requests at the same time, either can be the first to get its answer.
        self.counter = Counter { taken: counter.taken.max(self.counter.taken), held: counter.held };
        self.used()
    }

    /// Counts a request for which not even a share of one could be taken. As [`Lease::count`].
    pub fn exhaust(&mut self) -> u64 {
        self.counter.taken = self.limit;
        self.limit + 1
    }

    fn used(&self) -> u64 {
        self.counter.taken - self.left
    }

    /// A part of the allowance, and the current request.
    fn next_share(&mut self) -> Share {
        // Taken out at once: if the outcome of the write is unknown, the requests count as held until the minute ends.
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
    /// A share of the current request alone, which can be taken until the limit is used up; `None` if this is one.
    #[must_use]
    pub fn single(self, limit: u32) -> Option<Self> {
        let single = Self { requests: 1, max_taken: u64::from(limit) - 1, max_held: None, ..self };
        (self.requests > 1).then_some(single)
    }

    /// By how much the share changes the held requests.
    #[must_use]
    pub fn change_of_held(&self) -> i64 {
        (self.requests - 1).cast_signed() - self.used_up.cast_signed()
    }
}
