//! Disabling webhooks that nobody receives.

use super::{Attempt, DisabledReason, RETENTION, Webhook};
use crate::values::time::Timestamp;
use chrono::TimeDelta;

/// The time without a success after which a webhook is disabled.
pub const MAX_FAILING: TimeDelta = TimeDelta::days(5);

/// The effect of an attempt on the health of its webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthChange {
    None,
    Begin(Timestamp),
    End,
    Disable(DisabledReason),
}

impl Webhook {
    /// `failing_since` is the time of the first failure after the last success.
    ///
    /// Failures before the webhook became active don't count, nor those whose record has expired.
    #[must_use]
    pub fn health_after(&self, attempt: &Attempt, failing_since: Option<Timestamp>) -> HealthChange {
        if attempt.is_success() {
            return if failing_since.is_some() { HealthChange::End } else { HealthChange::None };
        }
        if attempt.is_gone() {
            return HealthChange::Disable(DisabledReason::Gone);
        }
        let counts = |since: &Timestamp| *since >= self.active_since && *since > attempt.at.plus(-RETENTION);
        match failing_since.filter(counts) {
            None => HealthChange::Begin(attempt.at),
            Some(since) if since <= attempt.at.plus(-MAX_FAILING) => HealthChange::Disable(DisabledReason::Failing),
            Some(_) => HealthChange::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::id::{Id, WebhookId};
    use serde_json::json;

    fn day(days: i64) -> Timestamp {
        Timestamp::from_millis(0).plus(TimeDelta::days(days))
    }

    fn after(active_since: i64, failing_since: Option<i64>, at: Timestamp, status: u16) -> HealthChange {
        let webhook = json!({
            "id": WebhookId::new(day(0), [1; 10]), "url": "https://example.com/hook", "events": ["*"], "is_active": true,
            "active_since": day(active_since), "slot": 0, "secret": "AAAA"
        });
        let webhook: Webhook = serde_json::from_value(webhook).expect("a webhook");
        let attempt = Attempt { at, status: Some(status), error: None, duration_ms: 0, response: None };
        webhook.health_after(&attempt, failing_since.map(day))
    }

    #[test]
    fn five_days_of_failures_disable() {
        let just_before = day(15).plus(TimeDelta::milliseconds(-1));
        assert_eq!(after(0, None, day(10), 500), HealthChange::Begin(day(10)));
        assert_eq!(after(0, Some(10), just_before, 500), HealthChange::None);
        assert_eq!(after(0, Some(10), day(15), 500), HealthChange::Disable(DisabledReason::Failing));
        assert_eq!(after(10, Some(10), day(15), 302), HealthChange::Disable(DisabledReason::Failing));
    }

    #[test]
    fn what_failed_before_it_was_active_does_not_count() {
        assert_eq!(after(11, Some(10), day(16), 500), HealthChange::Begin(day(16)));
        assert_eq!(after(0, Some(10), day(40), 500), HealthChange::Begin(day(40)));
        assert_eq!(after(0, Some(11), day(40), 500), HealthChange::Disable(DisabledReason::Failing));
    }

    #[test]
    fn a_success_ends_it_and_410_disables_at_once() {
        assert_eq!(after(0, None, day(10), 204), HealthChange::None);
        assert_eq!(after(0, Some(1), day(10), 204), HealthChange::End);
        assert_eq!(after(11, Some(1), day(12), 204), HealthChange::End);
        assert_eq!(after(0, None, day(10), 410), HealthChange::Disable(DisabledReason::Gone));
    }
}
