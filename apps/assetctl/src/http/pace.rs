//! The pace of requests: more and more at once while the service keeps up, half as many as soon as it doesn't.

use std::time::{Duration, Instant};

pub const MAX_WINDOW: f64 = 16.0;
/// The slowest pace: one request, then a pause of 15 times its duration.
const MIN_WINDOW: f64 = 1.0 / 16.0;
/// The longest pause between two requests that the service didn't ask for.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The first pause before a request is repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct Pace {
    /// Requests that may be under way; below 1, the part of the time in which one is.
    window: f64,
    /// The service has kept up so far: the window then doubles instead of growing by one.
    is_starting: bool,
    slowed_down: Option<Instant>,
    not_before: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { window: 2.0, is_starting: true, slowed_down: None, not_before: None }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Permit {
    Now,
    At(Instant),
    /// Not before one of those under way is answered.
    Full,
}

impl Pace {
    /// `under_way`: the number of unanswered requests.
    #[must_use]
    pub fn permit(&self, under_way: usize, now: Instant) -> Permit {
        let limit = (1..=16_u8).rev().find(|limit| f64::from(*limit) <= self.window).map_or(1, usize::from);
        match self.not_before {
            Some(time) if time > now => Permit::At(time),
            _ if under_way < limit => Permit::Now,
            _ => Permit::Full,
        }
    }

    pub fn answered(&mut self, sent: Instant, now: Instant) {
        let growth = if self.is_starting || self.window < 1.0 { self.window.min(1.0) } else { 1.0 / self.window };
        self.window = (self.window + growth).min(MAX_WINDOW);
        self.pause(sent, now);
    }

    /// The service couldn't keep up, and perhaps asks to wait.
    ///
    /// Requests that were sent before the pace was last lowered tell nothing new.
    pub fn overloaded(&mut self, sent: Instant, now: Instant, retry_after: Option<Duration>) {
        if self.slowed_down.is_none_or(|time| sent >= time) {
            self.window = (self.window / 2.0).max(MIN_WINDOW);
            self.is_starting = false;
            self.slowed_down = Some(now);
        }
        self.pause(sent, now);
        if let Some(wait) = retry_after {
            self.not_before = self.not_before.max(Some(now + wait));
        }
    }

    /// Below one request at a time, there are pauses between them.
    fn pause(&mut self, sent: Instant, now: Instant) {
        if self.window < 1.0 {
            let pause = now.saturating_duration_since(sent).mul_f64(1.0 / self.window - 1.0).min(MAX_PAUSE);
            self.not_before = self.not_before.max(Some(now + pause));
        }
    }
}

/// The pause after so many attempts without progress; `random` is from 0 to 1.
#[must_use]
pub fn retry_pause(attempts: u32, retry_after: Option<Duration>, random: f64) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(6)).min(MAX_PAUSE);
    longest.mul_f64(0.5 + random / 2.0).max(retry_after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_window_doubles_until_the_service_is_overloaded_and_then_grows_slowly() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 0..2 {
            pace.answered(start, start);
        }
        assert!((pace.window - 4.0).abs() < 0.01);
        pace.overloaded(start, start + ms(1), None);
        assert!((pace.window - 2.0).abs() < 0.01);
        for _ in 0..2 {
            pace.answered(start + ms(2), start + ms(3));
        }
        assert!(pace.window > 2.8 && pace.window < 3.0);
        for _ in 0..1_000 {
            pace.answered(start + ms(2), start + ms(3));
        }
        assert_eq!(pace.permit(15, start + ms(3)), Permit::Now);
        assert_eq!(pace.permit(16, start + ms(3)), Permit::Full);
    }

    #[test]
    fn requests_sent_before_the_pace_was_lowered_do_not_lower_it_again() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 0..30 {
            pace.answered(start, start);
        }
        for _ in 0..16 {
            pace.overloaded(start, start + ms(5), None);
        }
        assert!((pace.window - 8.0).abs() < 0.01);
        pace.overloaded(start + ms(6), start + ms(9), None);
        assert!((pace.window - 4.0).abs() < 0.01);
    }

    #[test]
    fn below_one_request_at_a_time_there_are_pauses() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for step in 0..3 {
            pace.overloaded(start + ms(100 * step), start + ms(100 * step + 100), None);
        }
        assert!((pace.window - 0.25).abs() < 0.01);
        let now = start + ms(300);
        assert_eq!(pace.permit(0, now), Permit::At(now + ms(300)));
        assert_eq!(pace.permit(0, now + ms(300)), Permit::Now);
        assert_eq!(pace.permit(1, now + ms(300)), Permit::Full);
    }

    #[test]
    fn retry_after_is_respected() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.overloaded(start, start, Some(ms(7_000)));
        assert_eq!(pace.permit(0, start), Permit::At(start + ms(7_000)));
        assert_eq!(retry_pause(1, Some(ms(7_000)), 0.5), ms(7_000));
        assert_eq!(retry_pause(1, None, 0.0), ms(100));
        assert_eq!(retry_pause(3, None, 1.0), ms(800));
        assert_eq!(retry_pause(99, None, 1.0), MAX_PAUSE);
    }
}
