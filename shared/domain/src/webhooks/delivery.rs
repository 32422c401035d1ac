//! Records of deliveries (one event to one webhook, with the result of each attempt), and a tenant's replays: the running ones,
//! and the number started today.

use crate::history::event::Actor;
use crate::values::id::{EventId, WebhookId};
use crate::values::string_enum::string_enum;
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The delays between a failed attempt and the next one.
pub const RETRY_DELAYS: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(14),
    TimeDelta::hours(20),
    TimeDelta::hours(24),
];
/// How long the record of a delivery is kept after its last attempt.
pub const RETENTION: TimeDelta = TimeDelta::days(30);
/// Number of attempts that the record of a delivery keeps, the newest ones.
pub const MAX_ATTEMPTS_KEPT: usize = 20;

string_enum! {
    /// Status of a delivery.
    DeliveryStatus {
        /// Another attempt will follow.
        Pending = "pending",
        Delivered = "delivered",
        /// No further attempt will follow.
        Failed = "failed",
    }
}

string_enum! {
    /// Why there was no response to an attempt.
    #[schema(as = AttemptError)]
    AttemptFailure {
        /// The host's name could not be resolved.
        NameNotFound = "name_not_found",
        /// The host's name resolves to an address that webhooks can't have.
        AddressNotAllowed = "address_not_allowed",
        /// The connection could not be established, or broke.
        ConnectionFailed = "connection_failed",
        /// The receiver's certificate is invalid, or TLS failed for another reason.
        TlsFailed = "tls_failed",
        /// There was no response within 15 seconds.
        TimedOut = "timed_out",
        /// The webhook was not active when the attempt was due.
        WebhookDisabled = "webhook_disabled",
    }
}

/// A delivery attempt. Keeps only the status of the response, because receivers can echo names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Timestamp,
    /// HTTP status of the response; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AttemptFailure>,
    pub duration_ms: u64,
}

impl Attempt {
    /// Creates the entry that is recorded instead of an attempt, because the webhook is not active.
    pub fn not_made(at: Timestamp) -> Self {
        Self { at, status: None, error: Some(AttemptFailure::WebhookDisabled), duration_ms: 0 }
    }

    /// Whether the receiver accepted the event: any status from 200 to 299.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether the receiver refuses all further events: status 410.
    pub fn is_gone(&self) -> bool {
        self.status == Some(410)
    }

    pub fn ended_at(&self) -> Timestamp {
        self.at.plus(TimeDelta::milliseconds(i64::try_from(self.duration_ms).unwrap_or_default()))
    }
}

/// An event that only tests a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestEvent {
    pub actor: Actor,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub webhook_id: WebhookId,
    /// The event, whose ID is also the delivery's: an event has only one delivery to a webhook, even if it is sent again.
    pub event_id: EventId,
    pub event_type: String,
    pub status: DeliveryStatus,
    /// The time of the event or, if the event is sent again, of the request to do so. Messages of earlier requests are dropped.
    pub requested_at: Timestamp,
    /// Number of attempts since `requested_at`.
    pub tries: u32,
    /// Number of all attempts. Every write requires that this number hasn't changed since it was read.
    pub attempt_count: u64,
    /// The newest attempts, oldest first.
    pub attempts: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The event itself, if it only tests the webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestEvent>,
}

/// Maximum number of replays per tenant and UTC day.
pub const MAX_REPLAYS_PER_DAY: u32 = 50;
/// Time after which a replay without confirmations counts as lost, so that another one can start.
const LOST_AFTER: TimeDelta = TimeDelta::minutes(15);
/// Interval of confirmations. Longer intervals save writes.
const CONFIRMED_EVERY: TimeDelta = TimeDelta::minutes(5);
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replays {
    /// The day, in days since 1970.
    day: i64,
    /// Number of replays started on that day.
    started: u32,
    running: BTreeMap<WebhookId, RunningReplay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunningReplay {
    requested_at: Timestamp,
    confirmed_at: Timestamp,
    /// Identifies the request that started the replay: see [`Replays::start`].
    identity: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayRefusal {
    /// The webhook's replay requested at this time is still running.
    Running(Timestamp),
    /// The day's replays are used up. The next day starts at this time.
    DayIsUsed(Timestamp),
}

impl Replays {
    /// Starts a replay of a webhook. Returns the time of its request. Duplicates of the request and retries of the write have the
    /// same `identity`: they don't start another replay, and get the time of the first request.
    ///
    /// # Errors
    ///
    /// Returns a [`ReplayRefusal`] if the replay can't start now.
    pub fn start(mut self, webhook: WebhookId, identity: &str, now: Timestamp) -> Result<(Self, Timestamp), ReplayRefusal> {
        self.running.retain(|_, running| running.confirmed_at > now.plus(-LOST_AFTER));
        if let Some(RunningReplay { requested_at, identity: of, .. }) = self.running.get(&webhook) {
            let (is_copy, requested_at) = (of == identity, *requested_at);
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
        let running = RunningReplay { requested_at: now, confirmed_at: now, identity: identity.to_owned() };
        self.running.insert(webhook, running);
        Ok((self, now))
    }

    /// Removes a replay whose message was not sent. A removed replay doesn't count toward the day's limit.
    #[must_use]
    pub fn cancelled(mut self, webhook: WebhookId, identity: &str) -> Self {
        if self.running.get(&webhook).is_some_and(|running| running.identity == identity) {
            self.running.remove(&webhook);
            self.started = self.started.saturating_sub(1);
        }
        self
    }

    /// Confirms the replay requested at this time; `None` if a later replay has superseded it. The clocks of function instances
    /// can differ by two seconds, so if two replays are requested that close together, either can end.
    #[must_use]
    pub fn confirmed(mut self, webhook: WebhookId, requested_at: Timestamp, now: Timestamp) -> Option<Self> {
        let unknown = || RunningReplay { requested_at, confirmed_at: requested_at, identity: String::new() };
        let running = self.running.entry(webhook).or_insert_with(unknown);
        if running.requested_at > requested_at {
            return None;
        }
        if running.confirmed_at.plus(CONFIRMED_EVERY) <= now {
            running.confirmed_at = now;
        }
        Some(self)
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
    use crate::samples::at;
    use crate::values::id::Id;

    fn webhook(n: u8) -> WebhookId {
        WebhookId::new(at(0), [n; 10])
    }

    fn started(replays: &Replays, of: WebhookId, identity: &str, seconds: i64) -> Replays {
        let (replays, requested_at) = replays.clone().start(of, identity, at(seconds)).expect("it can start");
        assert_eq!(requested_at, at(seconds));
        replays
    }

    fn refusal(replays: &Replays, of: WebhookId, seconds: i64) -> Option<ReplayRefusal> {
        replays.clone().start(of, "another", at(seconds)).err()
    }

    #[test]
    fn a_webhook_has_one_replay_at_a_time() {
        let replays = started(&Replays::default(), webhook(1), "a", 10);
        assert_eq!(refusal(&replays, webhook(1), 20), Some(ReplayRefusal::Running(at(10))));
        assert_eq!(refusal(&replays, webhook(2), 20), None);
        // The end of an earlier replay, or of another webhook's replay, doesn't end this one.
        assert!(refusal(&replays.clone().ended(webhook(1), at(9)), webhook(1), 20).is_some());
        assert!(refusal(&replays.clone().ended(webhook(2), at(10)), webhook(1), 20).is_some());
        let later = started(&replays.ended(webhook(1), at(10)), webhook(1), "b", 20);
        assert_eq!(later.clone().confirmed(webhook(1), at(10), at(21)), None, "it is superseded");
        assert_eq!(later.clone().confirmed(webhook(1), at(20), at(21)), Some(later));
    }

    #[test]
    fn a_replay_runs_as_long_as_it_is_confirmed() {
        let replays = started(&Replays::default(), webhook(1), "a", 0);
        let confirmed = |seconds| replays.clone().confirmed(webhook(1), at(0), at(seconds)).expect("it is the last one");
        assert_eq!(confirmed(200), replays, "it was confirmed a short time ago");
        assert_eq!(refusal(&confirmed(600), webhook(1), 1_499), Some(ReplayRefusal::Running(at(0))));
        assert_eq!(refusal(&confirmed(600), webhook(1), 1_500), None);
        assert_eq!([899, 900].map(|seconds| refusal(&replays, webhook(1), seconds).is_some()), [true, false]);
        // The replay's message was sent, but the queue's response was lost.
        let unknown = Replays::default().confirmed(webhook(1), at(0), at(400)).expect("there is no later one");
        assert!(refusal(&unknown, webhook(1), 500).is_some());
    }

    #[test]
    fn copies_of_a_request_start_one_replay() {
        let replays = started(&Replays::default(), webhook(1), "a", 10);
        assert_eq!(replays.clone().start(webhook(1), "a", at(11)), Ok((replays.clone(), at(10))));
        assert_eq!(replays.clone().cancelled(webhook(1), "b"), replays);
        assert_eq!(replays.clone().cancelled(webhook(2), "a"), replays);
        assert_eq!(refusal(&replays.cancelled(webhook(1), "a"), webhook(1), 11), None);
    }

    #[test]
    fn the_replays_of_a_day_are_limited() {
        let day = MILLIS_PER_DAY / 1000;
        let mut replays = Replays::default();
        for n in 0..MAX_REPLAYS_PER_DAY {
            let cancelled = started(&replays, webhook(1), "x", day + i64::from(n)).cancelled(webhook(1), "x");
            replays = started(&cancelled, webhook(1), "a", day + i64::from(n)).ended(webhook(1), at(day + i64::from(n)));
        }
        assert_eq!(refusal(&replays, webhook(2), 2 * day - 1), Some(ReplayRefusal::DayIsUsed(at(2 * day))));
        assert_eq!(refusal(&replays, webhook(2), 2 * day), None);
    }
}
