//! A tenant's replays: which are under way, and how many of a day's are used.

use crate::values::id::WebhookId;
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most replays of a tenant in a UTC day.
pub const MAX_REPLAYS_PER_DAY: u32 = 50;
/// A replay that is not confirmed for so long was lost: a further one may start.
const LOST_AFTER: TimeDelta = TimeDelta::minutes(15);
/// Confirming less often saves writes.
const CONFIRMED_EVERY: TimeDelta = TimeDelta::minutes(5);
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replays {
    /// Days since 1970.
    day: i64,
    /// Those of the day.
    started: u32,
    running: BTreeMap<WebhookId, RunningReplay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunningReplay {
    requested_at: Timestamp,
    confirmed_at: Timestamp,
    /// The idempotency key's hash: copies of a request start one replay.
    request: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayRefusal {
    /// The webhook's replay that was requested then is under way.
    Running(Timestamp),
    /// The day's replays are used. The next day begins then.
    DayIsUsed(Timestamp),
}

impl Replays {
    /// Starts a replay of a webhook. Returns the time of its request, which for a further copy of a request is that of the first.
    ///
    /// # Errors
    ///
    /// Returns a [`ReplayRefusal`] if it can't start now.
    pub fn start(
        mut self,
        webhook: WebhookId,
        request: Option<&str>,
        now: Timestamp,
    ) -> Result<(Self, Timestamp), ReplayRefusal> {
        let running = self.running.get(&webhook).filter(|running| running.confirmed_at > now.plus(-LOST_AFTER));
        if let Some(running) = running {
            let (is_copy, requested_at) = (request.is_some() && running.request.as_deref() == request, running.requested_at);
            return if is_copy { Ok((self, requested_at)) } else { Err(ReplayRefusal::Running(requested_at)) };
        }
        let day = now.millis().div_euclid(MILLIS_PER_DAY);
        if day > self.day {
            (self.day, self.started) = (day, 0);
        }
        if self.started >= MAX_REPLAYS_PER_DAY {
            return Err(ReplayRefusal::DayIsUsed(Timestamp::from_millis((self.day + 1) * MILLIS_PER_DAY)));
        }
        self.started += 1;
        self.running.retain(|_, running| running.confirmed_at > now.plus(-LOST_AFTER));
        let running = RunningReplay { requested_at: now, confirmed_at: now, request: request.map(str::to_owned) };
        self.running.insert(webhook, running);
        Ok((self, now))
    }

    /// A later replay of the webhook has started: the one that was requested at this time ends.
    #[must_use]
    pub fn is_superseded(&self, webhook: WebhookId, requested_at: Timestamp) -> bool {
        self.running.get(&webhook).is_some_and(|running| running.requested_at > requested_at)
    }

    /// With a part of a replay that is not superseded.
    #[must_use]
    pub fn confirmed(mut self, webhook: WebhookId, requested_at: Timestamp, now: Timestamp) -> Self {
        let running =
            self.running.entry(webhook).or_insert(RunningReplay { requested_at, confirmed_at: requested_at, request: None });
        if running.confirmed_at.plus(CONFIRMED_EVERY) <= now && running.requested_at <= requested_at {
            running.confirmed_at = now;
        }
        self
    }

    #[must_use]
    pub fn ended(mut self, webhook: WebhookId, requested_at: Timestamp) -> Self {
        self.running.retain(|of, running| *of != webhook || running.requested_at > requested_at);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::id::Id;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn webhook(n: u8) -> WebhookId {
        WebhookId::new(at(0), [n; 10])
    }

    #[test]
    fn a_webhook_has_one_replay_at_a_time() {
        let (replays, began) = Replays::default().start(webhook(1), None, at(10)).expect("none is running");
        assert_eq!(began, at(10));
        assert_eq!(replays.clone().start(webhook(1), None, at(20)), Err(ReplayRefusal::Running(at(10))));
        assert!(replays.clone().start(webhook(2), None, at(20)).is_ok());
        // The end of another one does not end it; a double of its message that comes later does not, either.
        assert!(replays.clone().ended(webhook(1), at(9)).start(webhook(1), None, at(20)).is_err());
        assert!(replays.clone().ended(webhook(2), at(10)).start(webhook(1), None, at(20)).is_err());
        let (later, began) = replays.ended(webhook(1), at(10)).start(webhook(1), None, at(20)).expect("it has ended");
        assert_eq!(began, at(20));
        assert_eq!([10, 20].map(|requested| later.is_superseded(webhook(1), at(requested))), [true, false]);
    }

    #[test]
    fn a_replay_runs_as_long_as_it_is_confirmed() {
        let (replays, _) = Replays::default().start(webhook(1), None, at(0)).expect("none is running");
        let often = replays.clone().confirmed(webhook(1), at(0), at(200));
        assert_eq!(often, replays, "it was confirmed a short time ago");
        let confirmed = replays.clone().confirmed(webhook(1), at(0), at(600));
        assert!(confirmed.clone().start(webhook(1), None, at(1_499)).is_err());
        assert!(confirmed.start(webhook(1), None, at(1_500)).is_ok());
        assert!(replays.clone().start(webhook(1), None, at(899)).is_err());
        let (later, _) = replays.start(webhook(1), None, at(900)).expect("it was lost");
        assert_eq!(later.clone().confirmed(webhook(1), at(0), at(1_600)), later, "only its own parts confirm a replay");
        // Its message was sent, although the response of the queue was lost.
        assert!(Replays::default().confirmed(webhook(1), at(0), at(400)).start(webhook(1), None, at(500)).is_err());
    }

    #[test]
    fn copies_of_a_request_start_one_replay() {
        let (replays, _) = Replays::default().start(webhook(1), Some("a"), at(10)).expect("none is running");
        assert_eq!(replays.clone().start(webhook(1), Some("a"), at(11)), Ok((replays.clone(), at(10))));
        assert_eq!(replays.clone().start(webhook(1), Some("b"), at(11)), Err(ReplayRefusal::Running(at(10))));
        assert_eq!(replays.start(webhook(1), None, at(11)), Err(ReplayRefusal::Running(at(10))));
    }

    #[test]
    fn the_replays_of_a_day_are_limited() {
        let day = MILLIS_PER_DAY / 1000;
        let mut replays = Replays::default();
        for n in 0..MAX_REPLAYS_PER_DAY {
            let (started, _) = replays.start(webhook(1), None, at(day + i64::from(n))).expect("the day isn't used");
            replays = started.ended(webhook(1), at(day + i64::from(n)));
        }
        assert_eq!(replays.clone().start(webhook(2), None, at(2 * day - 1)), Err(ReplayRefusal::DayIsUsed(at(2 * day))));
        assert!(replays.start(webhook(2), None, at(2 * day)).is_ok());
    }
}
