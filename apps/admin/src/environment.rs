//! AWS region and credentials from the environment, and the check of this computer's clock.
//!
//! Events are sorted by the time in their IDs, and readers of the change feed rely on an ID being recent when the event is
//! written. AWS sets the functions' clocks, but the clock of the operator's computer may be wrong, so nothing is changed while
//! the clocks differ by more than readers allow for.

use anyhow::{Context, Result, bail};
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef as Response;
use aws_sdk_dynamodb::config::{
    ConfigBag, Credentials, Intercept, ProvideCredentials, RuntimeComponents, SharedCredentialsProvider,
};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use shared::aws::environment::system_https;
use shared::store::Store;
use std::sync::{Arc, Mutex, PoisonError};

/// Loads the AWS configuration (profiles, single sign-on, credential processes, roles) and its credentials.
pub async fn load() -> Result<SdkConfig> {
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(system_https()).load().await;
    if config.region().is_none() {
        bail!("no AWS region: set AWS_REGION, or set AWS_PROFILE to a profile with a region");
    }
    let provider = config.credentials_provider().context("no AWS credentials")?;
    // Loaded once, because a credential process may prompt the user each time.
    let credentials = credentials(&provider).await?;
    Ok(config.into_builder().credentials_provider(SharedCredentialsProvider::new(credentials)).build())
}

pub async fn credentials(provider: &SharedCredentialsProvider) -> Result<Credentials> {
    provider.provide_credentials().await.context("no AWS credentials")
}

/// Clock difference that readers of the change feed allow for, in milliseconds.
const MAX_DIFFERENCE: i64 = 2_000;
/// Resolution of the header `Date`, in milliseconds.
const DATE_RESOLUTION: i64 = 1_000;

/// An SDK interceptor that keeps the `Date` of the last response, in milliseconds.
#[derive(Debug, Clone, Default)]
pub struct ServiceDate(Arc<Mutex<Option<i64>>>);

impl Intercept for ServiceDate {
    fn name(&self) -> &'static str {
        "service date"
    }

    fn read_after_transmit(&self, response: &Response<'_>, _: &RuntimeComponents, _: &mut ConfigBag) -> Result<(), BoxError> {
        let date = response.response().headers().get("date");
        let date = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date.map(|date| date.secs() * DATE_RESOLUTION);
        Ok(())
    }
}

impl ServiceDate {
    /// Compares this computer's clock with the service's. `store` must use this interceptor.
    ///
    /// # Errors
    ///
    /// Returns an error if the clocks differ by more than the change feed allows for, or a [`StoreError`] if the table doesn't
    /// respond.
    ///
    /// [`StoreError`]: shared::store::StoreError
    pub async fn compare(&self, store: &Store) -> Result<()> {
        let sent = store.now().millis();
        let pinged = store.ping().await;
        let received = store.now().millis();
        let date = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked even without a response to the ping: AWS refuses requests signed at a wrong time, with a less clear error.
        match date.map(|date| behind(sent, received, date)) {
            Some(by) if by.abs() > MAX_DIFFERENCE => {
                let direction = if by > 0 { "behind" } else { "ahead of" };
                let seconds = by.abs() / 1_000;
                bail!(
                    "this computer's clock is {seconds} s {direction} the service's; set it, for example by turning on network time \
                     (NTP), and try again"
                );
            }
            _ => Ok(pinged?),
        }
    }
}

/// Returns the minimum time by which this computer's clock is behind the service's, in milliseconds; negative if it is ahead.
/// `sent` and `received` are times of this computer's clock. The service set `date` between them, rounded down to a second.
fn behind(sent: i64, received: i64, date: i64) -> i64 {
    (date - received).max(0) + (date + DATE_RESOLUTION - sent).min(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_difference_that_is_certain_counts() {
        for (sent, received, date, expected) in [
            (10_000, 10_020, 10_000, 0),
            (10_999, 11_019, 10_000, 0),
            (10_990, 11_010, 11_000, 0),
            (10_000, 19_000, 12_000, 0),
            (10_000, 10_020, 13_000, 2_980),
            (14_000, 14_020, 10_000, -3_000),
        ] {
            assert_eq!(behind(sent, received, date), expected, "{sent} {received} {date}");
        }
    }
}
