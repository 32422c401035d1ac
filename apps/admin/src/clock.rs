//! The clock for changes that the operator makes: this computer's, corrected by the service's.
//!
//! Events are sorted by the time in their ids, and readers of the change feed rely on an id being recent when the event is
//! written. The functions' clocks are set by AWS; the operator's computer may have any time.

use aws_sdk_dynamodb::config::interceptors::{
    BeforeDeserializationInterceptorContextRef as Response, BeforeTransmitInterceptorContextRef as Request,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use shared::app::system_clock;
use shared::domain::values::time::Timestamp;
use shared::store::{Clock, Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};

/// In milliseconds. Beyond that, something else is wrong with this computer.
const MAX_OFFSET: i64 = 60_000;
/// The uncertainty of the offset, in milliseconds: half of it is the largest error, which must stay within the difference that
/// readers of the change feed allow for.
const MAX_UNCERTAINTY: i64 = 3_500;
/// Requests for the service's time. The first answer takes longer, because the connection is new.
const SAMPLES: usize = 2;
/// The resolution of the header `Date`, in milliseconds.
const DATE_RESOLUTION: i64 = 1_000;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// This computer's clock is off by more than [`MAX_OFFSET`], here in milliseconds; positive if it is behind.
    #[error("this computer's clock is {} s {} the service's; set it, for example by turning on network time (NTP), and try again", .0.abs() / 1000, if *.0 > 0 { "behind" } else { "ahead of" })]
    TooFar(i64),
    /// The responses took too long to tell the time from them.
    #[error("can't compare this computer's clock with the service's: its responses took too long; try again")]
    TooSlow,
    /// No response has a `Date`.
    #[error("can't compare this computer's clock with the service's: its responses have no Date")]
    NoDate,
}

/// The times of a request and its response, by this computer's clock, and the response's `Date`; in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Sample {
    sent: i64,
    received: i64,
    date: i64,
}

impl Sample {
    /// The least and the greatest time by which the service's clock can be ahead of this computer's. `Date` was cut to whole
    /// seconds, and set at some moment between the request and the response.
    fn offsets(self) -> (i64, i64) {
        (self.date - self.received, self.date + DATE_RESOLUTION - self.sent)
    }
}

/// The milliseconds by which the service's clock is ahead of this computer's; 0 if it can't be more than the permitted error.
fn offset(samples: &[Sample]) -> Result<i64, ClockError> {
    let offsets = samples.iter().map(|sample| sample.offsets());
    let (least, greatest) = offsets.min_by_key(|(least, greatest)| greatest - least).ok_or(ClockError::NoDate)?;
    let middle = i64::midpoint(least, greatest);
    if middle.abs() > MAX_OFFSET {
        Err(ClockError::TooFar(middle))
    } else if greatest - least > MAX_UNCERTAINTY {
        Err(ClockError::TooSlow)
    } else if least.abs().max(greatest.abs()) <= MAX_UNCERTAINTY / 2 {
        Ok(0)
    } else {
        Ok(middle)
    }
}

/// An SDK interceptor that notes the times of requests and responses.
#[derive(Clone)]
pub struct ClockSamples {
    clock: Clock,
    sent: Arc<Mutex<i64>>,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl std::fmt::Debug for ClockSamples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClockSamples").finish_non_exhaustive()
    }
}

impl Default for ClockSamples {
    fn default() -> Self {
        Self { clock: system_clock(), sent: Arc::default(), samples: Arc::default() }
    }
}

impl Intercept for ClockSamples {
    fn name(&self) -> &'static str {
        "clock samples"
    }

    fn read_before_transmit(&self, _: &Request<'_>, _: &RuntimeComponents, _: &mut ConfigBag) -> Result<(), BoxError> {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = (self.clock)().millis();
        Ok(())
    }

    fn read_after_transmit(&self, response: &Response<'_>, _: &RuntimeComponents, _: &mut ConfigBag) -> Result<(), BoxError> {
        let received = (self.clock)().millis();
        let sent = *self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let date = response.response().headers().get("date");
        let date = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        if let Some(date) = date {
            let sample = Sample { sent, received, date: date.secs() * DATE_RESOLUTION };
            self.samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        }
        Ok(())
    }
}

impl ClockSamples {
    /// Returns a clock that agrees with the service's. `store` must be reached through these samples.
    ///
    /// # Errors
    ///
    /// Returns a [`ClockError`] when the clocks can't be compared or are too far apart, and otherwise a [`StoreError`] when
    /// the table does not respond.
    pub async fn service_clock(&self, store: &Store) -> anyhow::Result<Clock> {
        let mut pinged: Result<(), StoreError> = Ok(());
        for _ in 0..SAMPLES {
            if pinged.is_ok() {
                pinged = store.ping().await;
            }
        }
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let offset = offset(&samples);
        // AWS refuses requests that are signed with a wrong time, and says so less clearly.
        if let Err(error @ ClockError::TooFar(_)) = offset {
            return Err(error.into());
        }
        pinged?;
        let (clock, offset) = (Arc::clone(&self.clock), offset?);
        Ok(Arc::new(move || Timestamp::from_millis(clock().millis() + offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(sent: i64, received: i64, date: i64) -> Sample {
        Sample { sent, received, date }
    }

    #[test]
    fn a_clock_that_may_agree_stays_as_it_is() {
        for (sent, date) in [(10_000, 10_000), (10_999, 10_000), (10_500, 10_000), (10_990, 11_000)] {
            assert_eq!(offset(&[sample(sent, sent + 20, date)]), Ok(0), "{sent} {date}");
        }
    }

    #[test]
    fn a_clock_that_is_off_is_corrected_to_within_half_the_uncertainty() {
        for by in [-58_000, -30_000, -2_000, 2_000, 30_000, 58_000] {
            for fraction in [0, 1, 499, 500, 999] {
                for round_trip in [0, 40, 900, 2_400] {
                    for stamped in [0, round_trip] {
                        // The service's clock when the response is stamped, and this computer's when the request is sent.
                        let service = 1_000_000 + fraction;
                        let sent = service - stamped - by;
                        let found = offset(&[sample(sent, sent + round_trip, service / 1000 * 1000)]).expect("an offset");
                        let uncertainty = 1_000 + round_trip;
                        let may_agree = found == 0 && by.abs() <= MAX_UNCERTAINTY / 2;
                        assert!(may_agree || (found - by).abs() <= uncertainty / 2, "{found} for {by}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_most_certain_answer_counts_and_too_uncertain_ones_are_refused() {
        let slow = sample(100_000, 109_000, 136_000);
        assert_eq!(offset(&[slow]), Err(ClockError::TooSlow));
        assert_eq!(offset(&[slow, sample(110_000, 110_010, 140_000)]), Ok(30_495));
        assert_eq!(offset(&[]), Err(ClockError::NoDate));
    }

    #[test]
    fn a_clock_that_is_too_far_off_is_refused_with_a_line_that_says_how_far() {
        let error = offset(&[sample(100_000, 100_010, 200_000)]).expect_err("too far");
        assert!(error.to_string().starts_with("this computer's clock is 100 s behind the service's; set it"), "{error}");
        let error = offset(&[sample(200_000, 200_010, 100_000)]).expect_err("too far");
        assert!(error.to_string().starts_with("this computer's clock is 99 s ahead of the service's; set it"), "{error}");
    }
}
