//! The health of webhooks. Slow and failing webhooks must not delay the others, and are disabled after five days of failures.

use super::{Attempt, DisabledReason, RETENTION, Webhook};
use crate::values::time::Timestamp;
use chrono::TimeDelta;

/// A webhook is disabled when its attempts have failed for this long.
pub const MAX_FAILING: TimeDelta = TimeDelta::days(5);
/// Duration in milliseconds above which an attempt marks its webhook as slow.
pub const SLOW_AFTER: u64 = 1_000;

/// The health of a webhook, recorded from the first attempt on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// When the first failure after the last success happened.
    pub failing_since: Option<Timestamp>,
    /// Whether an attempt took long, and none has succeeded quickly since.
    pub is_slow: bool,
}

impl Webhook {
    /// Whether attempts can take long, so that they must be kept apart from other webhooks' attempts.
    pub fn is_apart(&self, health: &Health, now: Timestamp) -> bool {
        health.is_slow || self.failing_since(health, now).is_some()
    }

    /// Returns the health after an attempt, and the reason to disable the webhook, if any.
    pub fn health_after(&self, attempt: &Attempt, health: &Health) -> (Health, Option<DisabledReason>) {
        let is_long = attempt.duration_ms > SLOW_AFTER;
        if attempt.is_success() {
            return (Health { failing_since: None, is_slow: is_long }, None);
        }
        let health = Health { is_slow: health.is_slow || is_long, ..*health };
        if attempt.is_gone() {
            return (health, Some(DisabledReason::Gone));
        }
        match self.failing_since(&health, attempt.at) {
            None => (Health { failing_since: Some(attempt.at), ..health }, None),
            Some(since) if since <= attempt.at.plus(-MAX_FAILING) => (health, Some(DisabledReason::Failing)),
            Some(_) => (health, None),
        }
    }

    /// Returns the time of the first failure since the last success. Ignores failures before the webhook became active, and
    /// expired records.
    fn failing_since(&self, health: &Health, at: Timestamp) -> Option<Timestamp> {
        health.failing_since.filter(|since| *since >= self.active_since && *since > at.plus(-RETENTION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn day(days: i64) -> Timestamp {
        Timestamp::from_millis(0).plus(TimeDelta::days(days))
    }

    fn webhook(active_since: i64) -> Webhook {
        Webhook { active_since: day(active_since), ..samples::webhook() }
    }

    fn attempt(at: Timestamp, status: u16, duration_ms: u64) -> Attempt {
        Attempt { at, status: Some(status), error: None, duration_ms }
    }

    fn failing(since: Option<i64>) -> Health {
        Health { failing_since: since.map(day), is_slow: false }
    }

    #[test]
    fn five_days_of_failures_since_the_last_success_disable_an_active_webhook() {
        let just_before = day(15).plus(TimeDelta::milliseconds(-1));
        let (due, gone) = (Some(DisabledReason::Failing), Some(DisabledReason::Gone));
        // The days of the activation and the first failure, an attempt, and the first failure and the result after the attempt.
        for (active_since, since, at, status, failing_since, disabled) in [
            (0, None, day(10), 500, Some(10), None),
            (0, Some(10), just_before, 500, Some(10), None),
            (0, Some(10), day(15), 500, Some(10), due),
            (10, Some(10), day(15), 302, Some(10), due),
            // Failures before the activation, or long ago, don't count.
            (11, Some(10), day(16), 500, Some(16), None),
            (0, Some(10), day(40), 500, Some(40), None),
            (0, Some(11), day(40), 500, Some(11), due),
            (0, None, day(10), 204, None, None),
            (0, Some(1), day(10), 204, None, None),
            (11, Some(1), day(12), 204, None, None),
            (0, None, day(10), 410, None, gone),
        ] {
            let after = webhook(active_since).health_after(&attempt(at, status, 0), &failing(since));
            assert_eq!(after, (failing(failing_since), disabled), "{active_since} {since:?} {at} {status}");
        }
        let is_apart = |active_since, at| webhook(active_since).is_apart(&failing(Some(10)), day(at));
        assert_eq!((is_apart(0, 11), is_apart(11, 12), is_apart(0, 40)), (true, false, false));
    }

    #[test]
    fn a_long_attempt_marks_a_webhook_as_slow_until_a_quick_success() {
        let slow_after = |health: Health, status, duration_ms| {
            webhook(0).health_after(&attempt(day(1), status, duration_ms), &health).0.is_slow
        };
        let (quick, slow) = (Health::default(), Health { is_slow: true, ..Health::default() });
        assert_eq!([1_000, 1_001].map(|duration| slow_after(quick, 200, duration)), [false, true]);
        assert_eq!([1_000, 1_001].map(|duration| slow_after(quick, 500, duration)), [false, true]);
        assert_eq!(
            [(200, 1_001), (500, 1), (410, 1), (200, 1_000)].map(|(status, ms)| slow_after(slow, status, ms)),
            [true, true, true, false]
        );
        assert!(webhook(0).is_apart(&slow, day(1)) && !webhook(0).is_apart(&quick, day(1)));
    }
}
