//! How many requests a key may send (contract 8): so many in each minute of the clock.

use super::time::Timestamp;

/// How long a key's requests are counted together, in seconds.
pub const WINDOW: i64 = 60;

/// The minute that a moment lies in, counted from 1970.
#[must_use]
pub fn window(at: Timestamp) -> i64 {
    at.millis().div_euclid(WINDOW * 1000)
}

/// Where a key stands in the present minute, the present request included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many requests it may send.
    pub limit: u32,
    /// How many it has sent.
    pub used: u64,
    /// When the next minute begins, as Unix time in seconds.
    pub reset: i64,
    /// How many seconds are left until then, at least 1.
    pub wait: i64,
}

impl Rate {
    /// Where a key with this limit stands after so many requests.
    #[must_use]
    pub fn new(limit: u32, used: u64, at: Timestamp) -> Self {
        let reset = (window(at) + 1) * WINDOW;
        let wait = (reset * 1000 - at.millis() + 999).div_euclid(1000).max(1);
        Self { limit, used, reset, wait }
    }

    /// How many more requests it may send in this minute.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        u64::from(self.limit).saturating_sub(self.used)
    }

    /// Whether the present request is one too many.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.used > self.limit.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_request_that_is_allowed_leaves_none() {
        let at = Timestamp::from_millis(1_772_704_859_001);
        let rate = Rate::new(3, 3, at);
        assert_eq!((rate.remaining(), rate.is_exceeded()), (0, false));
        assert_eq!((rate.reset, rate.wait), (1_772_704_860, 1));
        let rate = Rate::new(3, 4, at);
        assert_eq!((rate.remaining(), rate.is_exceeded()), (0, true));
        let begun = Rate::new(3, 0, Timestamp::from_millis(1_772_704_860_000));
        assert_eq!((begun.reset, begun.wait), (1_772_704_920, 60));
    }
}
