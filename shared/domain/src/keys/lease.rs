//! Rate limits of credentials, in requests per clock minute.
//!
//! A function instance leases several requests of a minute at once, and counts them locally. A counter in the table has the
//! number of requests taken in that minute. A share is only added if the limit isn't exceeded, so even many instances don't let
//! more through. Unused requests are lost when the minute ends. To limit the loss, the counter also tracks how many requests can
//! be unused, and the same condition keeps that number within a tenth of the limit. In the last quarter of the limit, requests
//! are taken one by one, and instances use up the ones that they hold.

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;

use crate::values::time::Timestamp;

/// Length of the window in which requests are counted.
pub const WINDOW_SECONDS: i64 = 60;
/// All instances together can hold at most 1/10 of the limit unused.
const HELD_PART: u64 = 10;
/// Each share takes 1/8 of the unused allowance. With a larger part, the first few instances would leave nothing for the others.
const SHARE_PART: u64 = 8;
/// Minimum number of unused requests in a share, but at most half of the allowance. Matters for small limits.
const MIN_UNUSED: u64 = 3;

/// The number of the window, counted from 1970.
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
    /// `None` if the requests couldn't be counted.
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

    /// `None` if the number of used requests is unknown.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        Some(u64::from(self.limit).saturating_sub(self.used?))
    }

    /// False for a request that couldn't be counted.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.used.is_some_and(|used| used > self.limit.into())
    }
}

/// The counter of a credential in one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// Number of requests taken by instances.
    pub taken: u64,
    /// Maximum number of taken requests that are still unused.
    pub held: u64,
}

/// Requests that an instance takes at once: the change of the counter, and its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of requests: the current one, and the ones that the instance will hold.
    pub requests: u64,
    /// Number of requests of earlier shares that are used up and no longer held.
    pub used_up: u64,
    /// Condition: maximum number of requests taken before.
    pub max_taken: u64,
    /// Condition: maximum number of requests held before; `None` if the share doesn't add any.
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
    #[must_use]
    pub fn new(limit: u32, at: Timestamp) -> Self {
        Self { window: window(at), limit: limit.into(), counter: Counter::default(), left: 0, held: 0 }
    }

    /// Whether the lease is for this minute and this limit. Other leases are worthless.
    #[must_use]
    pub fn is_for(&self, limit: u32, at: Timestamp) -> bool {
        (self.window, self.limit) == (window(at), limit.into())
    }

    /// The minute, counted from 1970.
    #[must_use]
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Counts a request. Returns the number of used requests as far as the instance knows: more than the limit if it is used up.
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

    /// Counts a request if not even a single one could be taken. Returns the same as [`Lease::count`].
    pub fn exhaust(&mut self) -> u64 {
        self.counter.taken = self.limit;
        self.limit + 1
    }

    fn used(&self) -> u64 {
        self.counter.taken - self.left
    }

    /// The current request, plus a part of the allowance.
    fn next_share(&mut self) -> Share {
        // Reset before the write: if its outcome is unknown, the requests count as held until the minute ends.
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
    /// A share of only the current request, which can be taken until the limit is used up; `None` if this already is one.
    #[must_use]
    pub fn single(self, limit: u32) -> Option<Self> {
        let single = Self { requests: 1, max_taken: u64::from(limit) - 1, max_held: None, ..self };
        (self.requests > 1).then_some(single)
    }

    /// The change of the number of held requests.
    #[must_use]
    pub fn change_of_held(&self) -> i64 {
        (self.requests - 1).cast_signed() - self.used_up.cast_signed()
    }
}
