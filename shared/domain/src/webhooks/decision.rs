//! Decides what to do with a message (attempt, wait or give up), and how to continue after an attempt.

use super::request::is_early;
use super::{Attempt, Delivery, DeliveryRequest, DeliveryStatus, MAX_ATTEMPTS_KEPT, Webhook};
use crate::values::id::TenantId;
use crate::values::time::Timestamp;
use chrono::TimeDelta;
use std::time::Duration;

/// SQS's maximum delay of a message: 15 minutes.
pub const MAX_DELAY: Duration = Duration::from_secs(900);
/// Number by which to divide the product of a delay and a random `u16` to get the jitter: up to a tenth of the delay.
const JITTER_PARTS: i64 = 10 * u16::MAX as i64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Drop the message: a newer request has replaced this one, the delivery is finished, or the message is for an attempt other
    /// than the next.
    Drop,
    /// Wait: the attempt is not due before this time.
    Wait(Timestamp),
    /// Record that the delivery has failed because the webhook is not active.
    GiveUp,
    Attempt,
}

/// Decides what to do with a message. The delivery's `record` and `webhook` must be current at `now`.
///
/// The message for the next attempt is sent before an attempt is recorded. So a message with a number other than the next is
/// either a duplicate, or comes from an attempt that isn't recorded yet. In the second case, the message for that attempt will be
/// redelivered.
pub fn decide(request: &DeliveryRequest, record: Option<&Delivery>, webhook: &Webhook, now: Timestamp) -> Decision {
    if record.is_some_and(|record| record.requested_at > request.requested_at) {
        return Decision::Drop;
    }
    // The record of an earlier request is replaced.
    let same_request = record.filter(|record| record.requested_at == request.requested_at);
    let is_finished = same_request.is_some_and(|record| record.status != DeliveryStatus::Pending);
    if is_finished || same_request.map_or(0, |record| record.tries) + 1 != request.number {
        return Decision::Drop;
    }
    if !webhook.is_active && request.test.is_none() {
        return Decision::GiveUp;
    }
    let due = same_request.and_then(|record| record.next_attempt_at);
    match due.filter(|due| is_early(*due, now)) {
        Some(due) => Decision::Wait(due),
        None => Decision::Attempt,
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Retries<'a> {
    pub delays: &'a [TimeDelta],
    /// A random number for the jitter, which makes a delay up to a tenth longer.
    pub random: u16,
}

impl Retries<'_> {
    /// Returns the delay after a failed attempt, counted from 1; `None` after the last one.
    fn delay_after(&self, tries: u32) -> Option<TimeDelta> {
        let delay = self.delays.get(usize::try_from(tries).ok()?.checked_sub(1)?)?;
        let jitter = delay.num_milliseconds() * i64::from(self.random) / JITTER_PARTS;
        Some(*delay + TimeDelta::milliseconds(jitter))
    }
}

impl Delivery {
    pub fn after_attempt(
        previous: Option<&Self>,
        request: &DeliveryRequest,
        event_type: &str,
        attempt: Attempt,
        retries: &Retries<'_>,
    ) -> Self {
        let same_request = previous.filter(|previous| previous.requested_at == request.requested_at);
        let tries = same_request.map_or(0, |previous| previous.tries) + 1;
        let next_attempt_at = if attempt.is_success() || attempt.is_gone() {
            None
        } else {
            retries.delay_after(tries).map(|delay| attempt.ended_at().plus(delay))
        };
        let status = match next_attempt_at {
            Some(_) => DeliveryStatus::Pending,
            None if attempt.is_success() => DeliveryStatus::Delivered,
            None => DeliveryStatus::Failed,
        };
        let mut attempts = previous.map_or_else(Vec::new, |previous| previous.attempts.clone());
        attempts.push(attempt);
        attempts.drain(..attempts.len().saturating_sub(MAX_ATTEMPTS_KEPT));
        Self {
            webhook_id: request.webhook_id,
            event_id: request.event_id,
            event_type: event_type.to_owned(),
            status,
            requested_at: request.requested_at,
            tries,
            attempt_count: previous.map_or(0, |previous| previous.attempt_count) + 1,
            attempts,
            next_attempt_at,
            test: request.test.clone(),
        }
    }

    pub fn given_up(previous: Option<&Self>, request: &DeliveryRequest, event_type: &str, now: Timestamp) -> Self {
        let none = Retries { delays: &[], random: 0 };
        Self::after_attempt(previous, request, event_type, Attempt::not_made(now), &none)
    }

    /// Whether the wait is longer than a message's maximum delay, so that duplicates could become due at the same time.
    pub fn waits_in_parts(&self) -> bool {
        let since = self.attempts.last().map_or(self.requested_at, Attempt::ended_at);
        self.next_attempt_at.and_then(|due| due.since(since).to_std().ok()).is_some_and(|wait| wait > MAX_DELAY)
    }

    /// Returns the message for the next attempt, if there will be one.
    pub fn pending_request(&self, tenant_id: TenantId) -> Option<DeliveryRequest> {
        (self.status == DeliveryStatus::Pending).then(|| DeliveryRequest {
            tenant_id,
            webhook_id: self.webhook_id,
            event_id: self.event_id,
            requested_at: self.requested_at,
            number: self.tries + 1,
            due: self.next_attempt_at,
            test: self.test.clone(),
            attempted: None,
        })
    }
}

/// What to do if an attempt can't be written because the record has changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Race {
    /// The record has the attempt: only the response to the write was lost.
    Recorded,
    /// Write the record again, with the attempt added to its current state.
    Open,
    /// Keep the record: another attempt has settled the delivery, or scheduled the next attempt.
    Settled,
}

pub fn after_race(request: &DeliveryRequest, attempt: &Attempt, current: &Delivery) -> Race {
    if current.attempts.contains(attempt) {
        return Race::Recorded;
    }
    if current.requested_at < request.requested_at {
        return Race::Open;
    }
    let is_pending = current.requested_at == request.requested_at && current.status == DeliveryStatus::Pending;
    let is_final = attempt.is_success() || attempt.is_gone();
    // The record is from before this attempt, whose write failed.
    let is_missing = current.tries < request.number;
    if is_pending && (is_final || is_missing) { Race::Open } else { Race::Settled }
}

#[cfg(test)]
mod tests {
    use super::super::{AttemptFailure, RETRY_DELAYS, TestEvent};
    use super::*;
    use crate::history::event::Actor;
    use crate::samples::{self, at};
    use crate::values::id::{EventId, Id, WebhookId};

    fn request(seconds: i64) -> DeliveryRequest {
        DeliveryRequest {
            tenant_id: TenantId::new(at(0), [0; 10]),
            webhook_id: WebhookId::new(at(0), [1; 10]),
            event_id: EventId::new(at(1), [2; 10]),
            requested_at: at(seconds),
            number: 1,
            due: None,
            test: None,
            attempted: None,
        }
    }

    fn second(seconds: i64) -> DeliveryRequest {
        DeliveryRequest { number: 2, ..request(seconds) }
    }

    fn webhook(is_active: bool) -> Webhook {
        Webhook { is_active, ..samples::webhook() }
    }

    fn attempt(seconds: i64, status: u16) -> Attempt {
        Attempt { at: at(seconds), status: Some(status), error: None, duration_ms: 250 }
    }

    const RETRIES: Retries<'static> = Retries { delays: &RETRY_DELAYS, random: 0 };

    fn after(previous: Option<&Delivery>, request: &DeliveryRequest, attempt: Attempt) -> Delivery {
        Delivery::after_attempt(previous, request, "asset.created", attempt, &RETRIES)
    }

    #[test]
    fn a_message_is_decided_by_record_and_webhook() {
        let active = webhook(true);
        let decided = |record: Option<&Delivery>, requested, now| decide(&request(requested), record, &active, at(now));
        assert_eq!(decided(None, 1, 2), Decision::Attempt);
        let delivered = after(None, &request(5), attempt(10, 204));
        let failed = after(None, &request(5), attempt(10, 410));
        for record in [&delivered, &failed] {
            assert_eq!(
                [4, 5, 6].map(|seconds| decided(Some(record), seconds, 20)),
                [Decision::Drop, Decision::Drop, Decision::Attempt]
            );
        }
        // Due at 10.25 + 5 seconds.
        let pending = after(None, &request(5), attempt(10, 500));
        let due = pending.next_attempt_at.expect("a time");
        let next = |now| decide(&second(5), Some(&pending), &active, at(now));
        assert_eq!((next(12), next(16)), (Decision::Wait(due), Decision::Attempt));
        assert_eq!([4, 6].map(|seconds| decided(Some(&pending), seconds, 12)), [Decision::Drop, Decision::Attempt]);
        let just_before = decide(&second(5), Some(&pending), &active, Timestamp::from_millis(14_250));
        assert_eq!(just_before, Decision::Attempt);
    }

    #[test]
    fn a_message_is_for_one_attempt() {
        let active = webhook(true);
        let pending = after(None, &request(5), attempt(10, 500));
        let expected = DeliveryRequest { due: pending.next_attempt_at, ..second(5) };
        assert_eq!(pending.pending_request(request(5).tenant_id), Some(expected));
        for (number, record, expected) in [
            (1, None, Decision::Attempt),
            (2, None, Decision::Drop),
            (1, Some(&pending), Decision::Drop),
            (2, Some(&pending), Decision::Attempt),
            (3, Some(&pending), Decision::Drop),
        ] {
            let message = DeliveryRequest { number, ..request(5) };
            assert_eq!(decide(&message, record, &active, at(1_000)), expected, "{number}");
            // If the webhook is inactive, a delivery is given up only once.
            let given_up = if expected == Decision::Drop { Decision::Drop } else { Decision::GiveUp };
            assert_eq!(decide(&message, record, &webhook(false), at(1_000)), given_up, "{number}");
        }
        // A new request starts over.
        assert_eq!(decide(&request(6), Some(&pending), &active, at(12)), Decision::Attempt);
        // An inactive webhook still gets test events, at the same times.
        let test = DeliveryRequest { test: Some(TestEvent { actor: Actor::operator() }), ..second(5) };
        let due = pending.next_attempt_at.expect("a time");
        assert_eq!(decide(&test, Some(&pending), &webhook(false), at(12)), Decision::Wait(due));
    }

    #[test]
    fn failures_are_repeated_by_the_schedule_and_then_fail() {
        let mut record = after(None, &request(1), attempt(0, 500));
        let mut now = 0;
        for (tries, delay) in (1..).zip(RETRY_DELAYS) {
            assert_eq!((record.status, record.tries, record.attempt_count), (DeliveryStatus::Pending, tries, u64::from(tries)));
            assert_eq!(record.next_attempt_at, Some(at(now).plus(delay + TimeDelta::milliseconds(250))));
            assert_eq!(record.waits_in_parts(), tries > 2);
            now += delay.num_seconds();
            record = after(Some(&record), &request(1), attempt(now, 302));
        }
        assert_eq!((record.status, record.tries, record.next_attempt_at), (DeliveryStatus::Failed, 10, None));
        // Another request starts over, and the record keeps the earlier attempts, up to a limit.
        let mut again = after(Some(&record), &request(2), attempt(now + 1, 503));
        assert_eq!((again.status, again.tries, again.attempt_count, again.attempts.len()), (DeliveryStatus::Pending, 1, 11, 11));
        for n in 0..15 {
            again = after(Some(&again), &request(3 + n), attempt(now + 2 + n, 200));
        }
        assert_eq!((again.status, again.attempt_count, again.attempts.len()), (DeliveryStatus::Delivered, 26, MAX_ATTEMPTS_KEPT));
        assert_eq!(again.attempts.last(), Some(&attempt(now + 16, 200)));
    }

    #[test]
    fn any_2xx_is_a_success_and_410_is_final() {
        for (status, expected) in [
            (200, DeliveryStatus::Delivered),
            (299, DeliveryStatus::Delivered),
            (199, DeliveryStatus::Pending),
            (300, DeliveryStatus::Pending),
            (404, DeliveryStatus::Pending),
            (410, DeliveryStatus::Failed),
        ] {
            assert_eq!(after(None, &request(1), attempt(2, status)).status, expected, "{status}");
        }
        let silent = Attempt { status: None, error: Some(AttemptFailure::TimedOut), ..attempt(2, 0) };
        assert_eq!(after(None, &request(1), silent).status, DeliveryStatus::Pending);
    }

    #[test]
    fn jitter_adds_up_to_a_tenth() {
        let delays = RETRY_DELAYS;
        for (tries, delay) in (1..).zip(delays) {
            let with = |random| Retries { delays: &delays, random }.delay_after(tries).expect("a delay");
            assert_eq!((with(0), with(u16::MAX)), (delay, delay + delay / 10));
            assert!(with(u16::MAX / 2) > delay && with(u16::MAX / 2) < delay + delay / 10);
        }
        assert_eq!((RETRIES.delay_after(0), RETRIES.delay_after(10)), (None, None));
    }

    #[test]
    fn a_race_never_loses_a_success() {
        let (mine, other) = (request(5), request(5));
        let success = attempt(10, 200);
        let failure = attempt(10, 500);
        let of_other = |status| after(None, &other, attempt(11, status));
        for (attempt, current, expected) in [
            (&success, of_other(500), Race::Open),
            (&success, of_other(200), Race::Settled),
            (&failure, of_other(500), Race::Settled),
            (&failure, of_other(200), Race::Settled),
            (&success, after(None, &mine, success.clone()), Race::Recorded),
            (&failure, after(None, &mine, failure.clone()), Race::Recorded),
            (&failure, after(None, &request(4), attempt(12, 500)), Race::Open),
            (&success, after(None, &request(6), attempt(12, 500)), Race::Settled),
        ] {
            assert_eq!(after_race(&mine, attempt, &current), expected, "{attempt:?} {current:?}");
        }
        let second = DeliveryRequest { number: 2, ..mine };
        assert_eq!(after_race(&second, &failure, &of_other(500)), Race::Open, "the second attempt isn't recorded yet");
    }
}
