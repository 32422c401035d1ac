//! The time that a command waits for a service that is busy or can't be reached.

use crate::http::answer::{Busy, MAX_FAULTS};
use crate::http::pace::retry_pause;
use crate::progress::duration;
use std::time::{Duration, Instant};

/// The wait for a service that is busy or can't be reached, without an option.
pub const DEFAULT: Duration = Duration::from_secs(300);

/// A limit for the time without progress.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    limit: Duration,
    since: Instant,
}

impl Patience {
    #[must_use]
    pub fn begin(limit: Duration, now: Instant) -> Self {
        Self { limit, since: now }
    }

    pub fn renew(&mut self, now: Instant) {
        self.since = now;
    }

    /// The pause before a request is repeated, after so many attempts without progress.
    ///
    /// # Errors
    ///
    /// Waiting is of no use: the time is over, the service asks for a longer wait, or it fails at the request.
    pub fn pause(&self, attempts: u32, busy: &Busy, now: Instant) -> Result<Duration, String> {
        let left = self.limit.saturating_sub(now.saturating_duration_since(self.since));
        if left.is_zero() || (busy.is_fault && attempts >= MAX_FAULTS) {
            return Err(busy.detail.clone());
        }
        match busy.retry_after.filter(|wait| *wait > left) {
            Some(wait) => Err(format!(
                "{}\nThe service asks to wait {}, and this command gives up after {}. Try again after that time.",
                busy.detail,
                duration(wait),
                duration(left)
            )),
            None => Ok(retry_pause(attempts, busy.retry_after, fastrand::f64()).min(left)),
        }
    }
}

/// The pause before a request that is never given up: at most [`DEFAULT`], however long the service asks to wait.
#[must_use]
pub fn endless_pause(attempts: u32, busy: &Busy) -> Duration {
    retry_pause(attempts, busy.retry_after, fastrand::f64()).min(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>, is_fault: bool) -> Busy {
        Busy { retry_after: retry_after.map(Duration::from_secs), is_fault, detail: "Not now.".into() }
    }

    #[test]
    fn nothing_waits_for_longer_than_is_left() {
        let (limit, start) = (Duration::from_secs(3), Instant::now());
        let mut patience = Patience::begin(limit, start);
        let later = start + Duration::from_secs(2);
        assert_eq!(patience.pause(1, &busy(Some(3), false), start), Ok(limit));
        assert_eq!(patience.pause(1, &busy(Some(1), false), later), Ok(Duration::from_secs(1)));
        assert_eq!(patience.pause(9, &busy(None, false), later), Ok(Duration::from_secs(1)));
        let told = patience.pause(1, &busy(Some(2), false), later).unwrap_err();
        assert!(told.contains("Not now.\nThe service asks to wait 2 s, and this command gives up after 1 s."), "{told}");
        assert_eq!(patience.pause(1, &busy(Some(0), false), start + limit), Err("Not now.".into()));
        patience.renew(later);
        assert_eq!(patience.pause(1, &busy(Some(3), false), later), Ok(limit));
    }

    #[test]
    fn faults_are_given_up_after_a_few_attempts() {
        let (start, fault) = (Instant::now(), busy(None, true));
        let patience = Patience::begin(DEFAULT, start);
        assert!(patience.pause(MAX_FAULTS - 1, &fault, start).is_ok() && patience.pause(MAX_FAULTS, &fault, start).is_err());
    }

    #[test]
    fn who_never_gives_up_still_asks_again() {
        assert_eq!(endless_pause(1, &busy(Some(86_400), false)), DEFAULT);
        assert_eq!(endless_pause(1, &busy(Some(7), false)), Duration::from_secs(7));
    }
}
