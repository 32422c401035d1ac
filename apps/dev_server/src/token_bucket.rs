//! A token bucket, as each partition of a table has one for its capacity.

use tokio::time::Instant;

/// A token bucket that holds the units of one second. A call may take more than the rest: the bucket goes into debt.
#[derive(Debug)]
pub struct TokenBucket {
    left: f64,
    at: Instant,
}

impl TokenBucket {
    #[must_use]
    pub fn full(units_per_second: f64, now: Instant) -> Self {
        Self { left: units_per_second, at: now }
    }

    pub fn has_any(&mut self, units_per_second: f64, now: Instant) -> bool {
        self.refill(units_per_second, now);
        self.left > 0.0
    }

    pub fn take(&mut self, units: f64, units_per_second: f64, now: Instant) {
        self.refill(units_per_second, now);
        self.left -= units;
    }

    /// Adds the units since the last time.
    fn refill(&mut self, units_per_second: f64, now: Instant) {
        self.left = (self.left + (now - self.at).as_secs_f64() * units_per_second).min(units_per_second);
        self.at = now;
    }
}
