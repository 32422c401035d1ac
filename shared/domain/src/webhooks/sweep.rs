//! Sweeps: deliveries that wait longer than a queue can delay a message are found shortly before they are due.

use crate::values::id::{EventId, TenantId, WebhookId};
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// Sweeps divide the time into intervals of this length, and there is one in each. Two of them are less than the 15 minutes that
/// a queue can delay a message.
pub const SWEEP_INTERVAL: TimeDelta = TimeDelta::minutes(5);

/// A sweep of all tenants, or the rest of one. The schedule sends it without any of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Its beginning. `None` for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Takes everything that is overdue or due in its own interval, whether or not others have taken it: after a time without
    /// sweeps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
    /// The tenant to continue after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<TenantId>,
}

/// A sweep of one webhook, which has many deliveries that are due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookSweep {
    pub tenant_id: TenantId,
    pub webhook_id: WebhookId,
    pub at: Timestamp,
    pub overdue: bool,
    /// The row to continue after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DueRow>,
}

/// A pending delivery, as sweeps find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueRow {
    pub due: Timestamp,
    pub event_id: EventId,
}

/// A delivery that was found by a sweep. Its record has the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueDelivery {
    pub tenant_id: TenantId,
    pub webhook_id: WebhookId,
    pub event_id: EventId,
}

/// The end of the deliveries that a sweep looks at: that of the interval after its own.
#[must_use]
pub fn swept_until(at: Timestamp) -> Timestamp {
    Timestamp::from_millis((interval(at) + 2) * SWEEP_INTERVAL.num_milliseconds())
}

/// Each sweep takes the deliveries of the next interval, so it does not matter when in its own it runs. Overdue ones were taken
/// already, unless a sweep was lost: they are taken again after two intervals, four, eight and so on, since sending a long queue
/// again with each sweep would make it longer.
#[must_use]
pub fn is_taken(due: Timestamp, at: Timestamp, overdue: bool) -> bool {
    match interval(at) - interval(due) {
        -1 => true,
        age @ 0.. => overdue || age > 1 && age.count_ones() == 1,
        _ => false,
    }
}

fn interval(at: Timestamp) -> i64 {
    at.millis().div_euclid(SWEEP_INTERVAL.num_milliseconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * 60_000)
    }

    #[test]
    fn each_interval_is_taken_by_the_sweep_before_it_whenever_that_runs() {
        for sweep in [100, 102, 104] {
            let taken: Vec<i64> = (90..120).filter(|due| is_taken(at(*due), at(sweep), false) && *due >= 95).collect();
            assert_eq!(taken, [105, 106, 107, 108, 109], "{sweep}");
            assert_eq!(swept_until(at(sweep)), at(110));
        }
    }

    #[test]
    fn overdue_deliveries_are_taken_again_and_ever_more_rarely() {
        let ages = |overdue| (0..=40).filter(|age| is_taken(at(0), at(age * 5), overdue)).collect::<Vec<i64>>();
        assert_eq!(ages(false), [2, 4, 8, 16, 32]);
        assert_eq!(ages(true), (0..=40).collect::<Vec<_>>());
    }

    #[test]
    fn the_schedule_needs_no_fields() {
        let sweep: super::super::Message = serde_json::from_str(r#"{"kind":"sweep"}"#).expect("a sweep");
        assert_eq!(sweep, super::super::Message::Sweep(Sweep::default()));
        assert_eq!(serde_json::to_string(&sweep).expect("JSON"), r#"{"kind":"sweep"}"#);
    }
}
