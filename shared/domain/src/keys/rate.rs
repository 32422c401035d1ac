//! The rate limit of API keys: a number of requests in each minute of the clock.

use crate::values::time::Timestamp;

/// A key's requests are counted together in a window of this length.
pub const WINDOW_SECONDS: i64 = 60;

/// Windows are counted from 1970.
#[must_use]
pub fn window(at: Timestamp) -> i64 {
    at.millis().div_euclid(WINDOW_SECONDS * 1000)
}

/// The begin of the next window.
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
    /// The begin of the next window, as Unix time in seconds.
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

    /// A request that could not be counted does not.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.used.is_some_and(|used| used > self.limit.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_allowed_request_leaves_none_and_the_next_one_exceeds_the_limit() {
        let at = Timestamp::from_millis(1_772_704_859_001);
        let rate = Rate::new(3, Some(3), at);
        assert_eq!((rate.remaining(), rate.is_exceeded()), (Some(0), false));
        assert_eq!((rate.reset, rate.wait), (1_772_704_860, 1));
        let rate = Rate::new(3, Some(4), at);
        assert_eq!((rate.remaining(), rate.is_exceeded()), (Some(0), true));
        let begun = Rate::new(3, Some(0), Timestamp::from_millis(1_772_704_860_000));
        assert_eq!((begun.reset, begun.wait), (1_772_704_920, 60));
    }

    #[test]
    fn a_request_that_could_not_be_counted_does_not_exceed_the_limit() {
        let rate = Rate::new(3, None, Timestamp::from_millis(1_772_704_860_000));
        assert_eq!((rate.remaining(), rate.is_exceeded(), rate.reset), (None, false, 1_772_704_920));
    }
}
