//! Summaries of measured values.

use std::time::Duration;

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Returns the nearest-rank percentile: one of the values, or the default if there are none.
pub fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let place = (sorted.len() * percent).div_ceil(100);
    sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_latency_that_was_measured() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!([50, 99, 100].map(|percent| percentile(&sorted, percent).as_millis()), [100, 198, 200]);
        assert_eq!(percentile::<Duration>(&[], 99), Duration::ZERO);
        assert_eq!(percentile(&sorted[..1], 50).as_millis(), 1);
    }
}
