//! The pace at which the writer of snapshots reads a tenant's partition, so that the API keeps most of it.

use std::time::Duration;
use tokio::time::Instant;

/// Read units per second: a third of the 3,000 that a partition has.
pub const UNITS_PER_SECOND: f64 = 1_000.0;

/// The reads of one snapshot so far.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    began_at: Instant,
    units: f64,
}

impl Pace {
    pub fn begin() -> Self {
        Self { began_at: Instant::now(), units: 0.0 }
    }

    /// Counts a read, and returns the time until the next one.
    pub fn pause_after(&mut self, units: f64) -> Duration {
        self.units += units;
        pause(self.units, self.began_at.elapsed())
    }
}

/// The time that is left of that in which `units` may be read.
fn pause(units: f64, elapsed: Duration) -> Duration {
    Duration::from_secs_f64((units / UNITS_PER_SECOND).max(0.0)).saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_wait_until_their_units_are_due() {
        let seconds = Duration::from_secs_f64;
        for (units, elapsed, wait) in [(0.0, 0.0, 0.0), (128.0, 0.0, 0.128), (128.0, 0.1, 0.028), (1_000.0, 3.0, 0.0)] {
            let paused = pause(units, seconds(elapsed));
            assert!(paused.abs_diff(seconds(wait)) < Duration::from_micros(1), "{units} units in {elapsed} s: {paused:?}");
        }
        // 147,000 units of a million assets with 250 changes a second, page by page, without any time for the reads.
        let (mut pace, mut waited) = (Pace::begin(), Duration::ZERO);
        for _ in 0..1_148 {
            waited = pace.pause_after(128.0);
        }
        assert!(waited > seconds(146.0) && waited < seconds(148.0), "{waited:?}");
    }
}
